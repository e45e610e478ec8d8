"""What a SQLite file is made of, page by page, read without SQLite.

After the file format's own description (sqlite.org/fileformat2.html, sections 1.3 to 1.6). It names
each page, and each stretch of bytes in which nothing that is stored stands: free pages, the gaps
and freed cells of b-tree pages, and what the last page of an overflow chain does not use. Refuses
to know what the tables mean; it reads sound files only.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

HEADER_BYTES: Final = 100
INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE = 2, 5, 10, 13
KINDS: Final = {
    INTERIOR_INDEX: "interior page of an index",
    INTERIOR_TABLE: "interior page of a table",
    LEAF_INDEX: "leaf of an index",
    LEAF_TABLE: "leaf of a table",
}
FREE_TRUNK, FREE_LEAF, OVERFLOW = "trunk of the freelist", "free page", "overflow page"


class Stretch(NamedTuple):
    """Bytes `start` to `end` of the file, in which nothing that is stored stands."""

    start: int
    end: int
    page: int
    kind: str


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that stands at `at`, and where the next thing does: up to nine bytes, the ninth
    of which counts in full."""
    number = 0
    for step in range(8):
        byte = data[at + step]
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, at + step + 1
    return number << 8 | data[at + 8], at + 9


def big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


class Pages:
    """The pages of one file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        size = big(data, 16, 2)
        self.size = 65_536 if size == 1 else size
        self.usable = self.size - data[20]
        self.count = len(data) // self.size
        self.kind: dict[int, str] = {}
        self.unused: list[Stretch] = []
        self._free()
        for root in (1, *self._roots()):
            self._tree(root)

    def at(self, offset: int) -> str:
        """What kind of page an offset of the file lies on."""
        page = offset // self.size + 1
        return f"{self.kind.get(page, 'page of no tree')} {page}"

    def pages_of(self, kind: str) -> list[int]:
        return [page for page, its in self.kind.items() if its == kind]

    def start(self, page: int) -> int:
        return (page - 1) * self.size

    def _note(self, page: int, kind: str) -> None:
        if page in self.kind:
            raise AssertionError(f"page {page} is both {self.kind[page]} and {kind}")
        self.kind[page] = kind

    def _leave(self, page: int, start: int, end: int) -> None:
        if start < end:
            base = self.start(page)
            self.unused.append(Stretch(base + start, base + end, page, self.kind[page]))

    def _free(self) -> None:
        trunk = big(self.data, 32, 4)
        while trunk:
            base = self.start(trunk)
            listed = big(self.data, base + 4, 4)
            self._note(trunk, FREE_TRUNK)
            self._leave(trunk, 8 + 4 * listed, self.size)
            for n in range(listed):
                page = big(self.data, base + 8 + 4 * n, 4)
                self._note(page, FREE_LEAF)
                self._leave(page, 0, self.size)
            trunk = big(self.data, base, 4)

    def _roots(self) -> list[int]:
        """Root pages, which are the fourth column of sqlite_schema's records."""
        return [
            root
            for page in self._leaves_of_schema(1)
            for cell in self._cells(page)
            if (root := self._root_in(cell))
        ]

    def _leaves_of_schema(self, page: int) -> Iterator[int]:
        head = self._head(page)
        if self.data[head] == LEAF_TABLE:
            yield page
            return
        for child in self._children(page):
            yield from self._leaves_of_schema(child)

    def _root_in(self, cell: int) -> int:
        _, at = varint(self.data, cell)
        _, at = varint(self.data, at)
        head_bytes, types_at = varint(self.data, at)
        body = at + head_bytes
        for _ in range(3):
            kind, types_at = varint(self.data, types_at)
            body += (kind - 12) // 2 if kind >= 12 else kind
        kind, _ = varint(self.data, types_at)
        return big(self.data, body, kind) if kind in (1, 2, 3, 4) else 0

    def _head(self, page: int) -> int:
        return self.start(page) + (HEADER_BYTES if page == 1 else 0)

    def _cells(self, page: int) -> list[int]:
        head = self._head(page)
        first = head + (12 if self.data[head] in (INTERIOR_INDEX, INTERIOR_TABLE) else 8)
        base = self.start(page)
        return [base + big(self.data, first + 2 * n, 2) for n in range(big(self.data, head + 3, 2))]

    def _children(self, page: int) -> list[int]:
        head = self._head(page)
        if self.data[head] not in (INTERIOR_INDEX, INTERIOR_TABLE):
            return []
        return [
            *(big(self.data, cell, 4) for cell in self._cells(page)),
            big(self.data, head + 8, 4),
        ]

    def _tree(self, root: int) -> None:
        waiting = [root]
        while waiting:
            page = waiting.pop()
            kind = self.data[self._head(page)]
            self._note(page, KINDS[kind])
            ends = [
                (cell - self.start(page), self._cell_end(kind, cell)) for cell in self._cells(page)
            ]
            self._gaps(page, kind, ends)
            waiting += self._children(page)

    def _gaps(self, page: int, kind: int, cells: list[tuple[int, int]]) -> None:
        """What lies between the list of cells, and the cells; freed cells begin with the four bytes
        of their own list."""
        head = self._head(page) - self.start(page)
        at = head + (12 if kind in (INTERIOR_INDEX, INTERIOR_TABLE) else 8) + 2 * len(cells)
        freed = self._freed(page)
        for start, end in sorted(cells):
            self._between(page, at, start, freed)
            at = max(at, end)
        self._between(page, at, self.usable, freed)

    def _between(self, page: int, start: int, end: int, freed: dict[int, int]) -> None:
        """A gap without the heads of the freed cells inside it."""
        at = start
        for block in sorted(block for block in freed if start <= block < end):
            self._leave(page, at, block)
            at = block + 4
        self._leave(page, at, end)

    def _freed(self, page: int) -> dict[int, int]:
        blocks = {}
        base, block = self.start(page), big(self.data, self._head(page) + 1, 2)
        while block:
            blocks[block] = big(self.data, base + block + 2, 2)
            block = big(self.data, base + block, 2)
        return blocks

    def _cell_end(self, kind: int, cell: int) -> int:
        """Where on its page a cell ends; its overflow pages are named on the way."""
        base = (cell // self.size) * self.size
        at = cell + (4 if kind in (INTERIOR_INDEX, INTERIOR_TABLE) else 0)
        if kind == INTERIOR_TABLE:
            return varint(self.data, at)[1] - base
        payload, at = varint(self.data, at)
        if kind == LEAF_TABLE:
            at = varint(self.data, at)[1]
        local = self._local(kind, payload)
        if local < payload:
            self._chain(big(self.data, at + local, 4), payload - local)
            local += 4
        # A cell takes at least four bytes, so that it can become a freed one.
        return max(at + local, cell + 4) - base

    def _local(self, kind: int, payload: int) -> int:
        most = self.usable - 35 if kind == LEAF_TABLE else (self.usable - 12) * 64 // 255 - 23
        if payload <= most:
            return payload
        least = (self.usable - 12) * 32 // 255 - 23
        kept = least + (payload - least) % (self.usable - 4)
        return kept if kept <= most else least

    def _chain(self, page: int, left: int) -> None:
        while page:
            self._note(page, OVERFLOW)
            self._leave(page, 4 + min(left, self.usable - 4), self.size)
            left -= self.usable - 4
            page = big(self.data, self.start(page), 4)
