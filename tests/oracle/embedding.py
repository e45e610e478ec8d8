"""The table of embeddings read plainly: its vocabulary as a model file for sentencepiece itself,
and the vector of a list of pieces by numpy. Knows nothing of the kernel.

The table's format is told in tools/make_embedding_table.py; sentencepiece's, protocol buffers, in
its sentencepiece_model.proto.
"""

import struct
from functools import cached_property
from typing import Any

import numpy as np

HEADER = struct.Struct("<8s7If")
ALIGNMENT = 64
SYMBOL, REPLACED = 0x3FFF, 0x4000
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
NOBODY = 0xFFFFFFFF

Array = np.ndarray[Any, Any]

UNIT = np.dtype([("base", "<u4"), ("check", "<u4"), ("score", "<f4"), ("piece", "<u4")])
ROW = np.dtype([("multipliers", "<u2", 8), ("nibbles", "u1", (8, 16))])


class Table:
    """The sections of a table, by name."""

    def __init__(self, memory: bytes) -> None:
        _, _, _, blocks, units, text, trie, rows, self.unknown_score = HEADER.unpack_from(memory)
        self._memory, self._at = memory, ALIGNMENT
        self.pages = self._section("<u2", 0x1100)
        self.blocks = self._section("<u2", blocks * 256).reshape(blocks, 256)
        self.map_units = self._section("<u4", units)
        self.map_text = self._section("u1", text)
        self.trie = self._section(UNIT, trie)
        self.rows = self._section(ROW, rows)

    def _section(self, kind: Any, count: int) -> Array:
        found = np.frombuffer(self._memory, kind, count, self._at)
        self._at += -(-found.nbytes // ALIGNMENT) * ALIGNMENT
        return found

    @cached_property
    def entries(self) -> Array:
        """The entry of every codepoint."""
        return self.blocks[self.pages].ravel()

    @cached_property
    def letters(self) -> dict[int, str]:
        """The codepoint that each symbol stands for, as pieces spell it."""
        found = {1: "\u2581"}
        for codepoint in map(int, np.flatnonzero(self.entries & SYMBOL)):
            if not self.entries[codepoint] & REPLACED and not self._is_replaced(codepoint):
                found.setdefault(int(self.entries[codepoint]) & SYMBOL, chr(codepoint))
        return found

    def _is_replaced(self, codepoint: int) -> bool:
        """Whether sentencepiece's normaliser, a darts-clone double array, has a rule for it."""
        place, unit = 0, int(self.map_units[0])
        for byte in chr(codepoint).encode("utf-8", "surrogatepass"):
            place ^= (unit >> 10) << ((unit & 0x200) >> 6) ^ byte
            unit = int(self.map_units[place])
            if unit & 0x800000FF != byte:
                return False
        return bool(unit & 0x100)

    @cached_property
    def vocabulary(self) -> dict[int, tuple[str, float]]:
        """The text and the score of every piece."""
        found = {}
        bases, parents = self.trie["base"].tolist(), self.trie["check"].tolist()
        for place in map(int, np.flatnonzero(self.trie["piece"])):
            text, at = "", place
            while at:
                text = self.letters[at - bases[parents[at]]] + text
                at = parents[at]
            unit = self.trie[place]
            found[int(unit["piece"])] = text, float(unit["score"])
        return found

    def model(self) -> bytes:
        """A model file of the same vocabulary and rules, for the sentencepiece package."""
        pieces = [field(1, field(1, b"<unk>"), field(3, UNKNOWN))]
        for piece in range(1, len(self.rows)):
            text, score = self.vocabulary.get(piece, (f"<{piece}>", 0.0))
            kind = NORMAL if piece in self.vocabulary else CONTROL
            pieces.append(field(1, field(1, text.encode()), field(2, score), field(3, kind)))
        units = self.map_units.tobytes()
        rules = struct.pack("<I", len(units)) + units + self.map_text.tobytes()
        return b"".join(pieces) + field(3, field(2, rules))

    def vector(self, pieces: list[int]) -> bytes:
        """127 times the sum of the rows over its largest component, halves away from zero."""
        distinct, counts = np.unique(np.array(pieces, np.int64), return_counts=True)
        rows = self.rows[distinct]
        low, high = rows["nibbles"] & 15, rows["nibbles"] >> 4
        numbers = np.concatenate([low, high], axis=2).astype(np.int64) - 8
        multipliers = rows["multipliers"].astype(np.int64) * counts[:, None]
        sums = (multipliers[:, :, None] * numbers).sum(0).ravel().tolist()
        return bytes(component & 0xFF for component in scaled(sums))


def scaled(sums: list[int]) -> list[int]:
    most = max(map(abs, sums))
    if most == 0:
        return sums
    while most >= 2**23:
        sums = [abs(t) // 2 * (1 if t > 0 else -1) for t in sums]
        most //= 2
    return [(254 * abs(t) + most) // (2 * most) * (1 if t > 0 else -1) for t in sums]


def field(number: int, *value: Any) -> bytes:
    """A field of a protocol buffer: an integer, a float, or bytes given in parts."""
    if isinstance(value[0], int):
        return bytes((number << 3, value[0]))
    if isinstance(value[0], float):
        return bytes((number << 3 | 5,)) + struct.pack("<f", value[0])
    joined = b"".join(value)
    return bytes((number << 3 | 2,)) + varint(len(joined)) + joined


def varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + varint(number >> 7)
