"""FTS5's index as FTS5 wrote it: every segment's terms and doclists, put together without FTS5.

After the comments of SQLite's fts5_index.c (*Record formats*). Blobs of the table `%_data` come in,
postings go out; a row that was deleted and still has its marker is a posting like any other. Reads
sound indexes only.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tests.reliability.pages import big, varint

STRUCTURE_ID: Final = 10
AVERAGES_ID: Final = 1
#: An id of `%_data` is segment, whether it is of a doclist's own index, height and page.
SEGMENT_SHIFT: Final = 37
DOCLIST_INDEX_BIT: Final = 1 << 36
PAGE_MASK: Final = (1 << 31) - 1
LEAF_HEADER_BYTES: Final = 4
#: What a structure record of the newer format has after its cookie.
NEWER: Final = b"\xff\x00\x00\x01"


class Posting(NamedTuple):
    segment: int
    term: bytes
    row: int
    #: Whether the row is only marked as deleted.
    marker: bool


class Segment(NamedTuple):
    id: int
    first: int
    last: int


def structure(blob: bytes) -> list[Segment]:
    """The segments that the index consists of."""
    newer = blob[4:8] == NEWER
    at = 8 if newer else 4
    levels, at = varint(blob, at)
    _, at = varint(blob, at)
    _, at = varint(blob, at)
    segments = []
    for _ in range(levels):
        _, at = varint(blob, at)
        held, at = varint(blob, at)
        for _ in range(held):
            numbers = []
            for _ in range(8 if newer else 3):
                number, at = varint(blob, at)
                numbers.append(number)
            segments.append(Segment(*numbers[:3]))
    return segments


def postings(blobs: Mapping[int, bytes]) -> Iterator[Posting]:
    """Every posting of every segment."""
    for segment in structure(blobs[STRUCTURE_ID]):
        yield from _segment(blobs, segment)


def strays(blobs: Mapping[int, bytes]) -> list[int]:
    """Ids of records that belong to no segment."""
    known = {segment.id: segment for segment in structure(blobs[STRUCTURE_ID])}
    return [
        id
        for id in blobs
        if id not in (STRUCTURE_ID, AVERAGES_ID)
        and not (
            (segment := known.get(id >> SEGMENT_SHIFT))
            and segment.first <= id & PAGE_MASK <= segment.last
        )
    ]


def rows_of_doclist_indexes(blobs: Mapping[int, bytes]) -> Iterator[tuple[int, int]]:
    """(record, row) for each row that an index of a long doclist names."""
    for id, blob in blobs.items():
        if not id & DOCLIST_INDEX_BIT:
            continue
        _, at = varint(blob, 1)
        row, at = varint(blob, at)
        yield id, row
        while at < len(blob):
            step, at = varint(blob, at)
            # A zero stands for a page on which no row begins.
            if step:
                row += step
                yield id, row


def _segment(blobs: Mapping[int, bytes], segment: Segment) -> Iterator[Posting]:
    """A position list may run on over any number of leaves; `skip` bytes of it are still to come.
    The first row of a leaf stands in full, each other one as the difference from the row before."""
    term = b""
    row = skip = 0
    for page in range(segment.first, segment.last + 1):
        leaf = blobs.get((segment.id << SEGMENT_SHIFT) + page, b"")
        if not leaf:
            continue
        end = big(leaf, 2, 2)
        starts = _terms_of(leaf, end)
        first_row = big(leaf, 0, 2)
        at = LEAF_HEADER_BYTES
        room = (starts[0] if starts else end) - at
        if skip >= room and not first_row:
            skip -= room
            at += room
        else:
            at += skip
            skip = 0
        fresh = True
        for start, stop in zip([0, *starts], [*starts, end], strict=True):
            if start:
                term, at = _term(leaf, start, term, whole=start == starts[0])
                fresh = True
            while at < stop:
                number, at = varint(leaf, at)
                row = number if fresh else row + number
                fresh = False
                size, at = varint(leaf, at)
                yield Posting(segment.id, term, row, bool(size & 1))
                at += size >> 1
            skip = max(at - stop, skip)


def _terms_of(leaf: bytes, end: int) -> list[int]:
    """Where the terms of a leaf begin: its footer, each as the difference from the one before."""
    starts, at, start = [], end, 0
    while at < len(leaf):
        step, at = varint(leaf, at)
        start += step
        starts.append(start)
    return starts


def _term(leaf: bytes, at: int, before: bytes, *, whole: bool) -> tuple[bytes, int]:
    kept = 0
    if not whole:
        kept, at = varint(leaf, at)
    size, at = varint(leaf, at)
    return before[:kept] + leaf[at : at + size], at + size
