"""A store's vectors as the search over them wants them: vec0's blocks, kept in memory.

Read from vec0's shadow tables (its ARCHITECTURE.md, "chunks"), each of which holds the vectors of a
block, their chunk ids, and a bit for each place that is in use. A block is kept with those ids and
bits: as long as they are the same, so are the vectors, for a chunk id is never used twice and its
vector stays. Where one is made again all the same, the caller says so by another number. Whose
model made them is not known here.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from hadano._native.vectors import nearest, signs

#: validity, ids, vectors, signs: as the kernel takes them.
Block = tuple[bytes, bytes, bytes, bytes]
#: Runs a statement and gives its rows.
Rows = Callable[..., list[tuple[Any, ...]]]

_HEADS: Final = "SELECT chunk_id, validity, rowids FROM vec_chunks_chunks ORDER BY chunk_id"
_VECTORS: Final = "SELECT vectors FROM vec_chunks_vector_chunks00 WHERE rowid = ?"


class Blocks:
    """The blocks that one connection keeps, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[int, Block] = {}
        self._remade = 0
        #: All of them in order, if all are kept, and the state of the file that they are of.
        self._whole: list[Block] = []
        self._state: object = None

    def nearest(
        self, rows: Rows, seeds: list[bytes], most: int, *, remade: int, state: object
    ) -> list[tuple[int, float]]:
        """What the kernel of that name finds in all blocks of the current snapshot. Blocks that
        were read under another number `remade` are not used; under the same `state` as before
        nothing is read, if all are kept.

        Raises ValueError where the shadow tables do not fit together.
        """
        if remade != self._remade:
            self._kept.clear()
            self._remade, self._state = remade, None
        return nearest(self._whole if state == self._state else self._now(rows, state), seeds, most)

    def _now(self, rows: Rows, state: object) -> Iterator[Block]:
        self._state = None
        heads = rows(_HEADS)
        for gone in self._kept.keys() - {number for number, _, _ in heads}:
            del self._kept[gone]
        for number, valid, ids in heads:
            block = self._kept.get(number)
            if block is None or block[0] != valid or block[1] != ids:
                [(vectors,)] = rows(_VECTORS, (number,))
                block = valid, ids, vectors, signs(vectors)
                if number in self._kept or len(self._kept) < self._most:
                    self._kept[number] = block
            yield block
        if len(self._kept) == len(heads):
            self._whole = [self._kept[number] for number, _, _ in heads]
            self._state = state
