"""The examiner: looks in every place of a file where a text could still stand, without SQLite's
help where SQLite would hide it.

    raw bytes     of the file, -wal, -shm and -journal: every piece of eight bytes of the text, as
                  it is, case folded, in search form, and as JSON spells each of these, in UTF-8 and
                  UTF-16 of both orders, ASCII capitals ignored; free pages and gaps are bytes of
                  the file like any other, and the finding says on what kind of page it was made
    index         FTS5's segments put together again: postings and markers of rows that no chunk
                  has, terms that no posting has, separators and doclist indexes that name either,
                  records of no segment, and FTS5's row of sizes
    vectors       vectors and row numbers of chunks that are gone

A piece that another document holds is no trace. `tests/reliability/test_examiner.py` plants a
secret in each place and sees it found; until then this file is not believed.
"""

import json
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import apsw
import numpy as np
import sqlite_vec
from numpy.typing import NDArray

from tests.oracle import folding
from tests.reliability import segments
from tests.reliability.pages import Pages

PIECE_BYTES: Final = 8
#: The file last: what is copied into it meanwhile is seen where it was or where it is.
FILES: Final = ("-wal", "-shm", "-journal", "")
ENCODINGS: Final = ("utf-8", "utf-16-le", "utf-16-be")
#: As much is looked at in one go: what is made of it stays in the processor's cache.
SLAB_BYTES: Final = 1 << 20
_FILTER_BITS: Final = 22
#: Fibonacci hashing (Knuth, TAOCP 6.4): 2**64 over the golden ratio.
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)

_SEVEN_BYTES: Final = np.uint64(2**56 - 1)
_ONE_BYTE: Final = np.uint64(8)

Words = NDArray[np.uint64]


class Finding(NamedTuple):
    """A trace, and where it was found."""

    place: str
    what: str


# Raw bytes.

_READ = """
import os, sys
for path in sys.argv[1:]:
    data = open(path, "rb").read() if os.path.exists(path) else b""
    sys.stdout.buffer.write(len(data).to_bytes(8, "big") + data)
"""


def files(path: Path, suffixes: Sequence[str] = FILES) -> dict[str, bytes]:
    """The bytes of a database file and of all that SQLite keeps beside it, read by a process of
    its own: to close a file drops every lock that its process holds on it."""
    paths = [f"{path}{suffix}" for suffix in suffixes]
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _READ, *paths], capture_output=True, check=True
    ).stdout
    found, at = {}, 0
    for suffix in suffixes:
        size = int.from_bytes(out[at : at + 8], "big")
        found[suffix] = out[at + 8 : at + 8 + size]
        at += 8 + size
    return found


def spellings(text: str) -> Iterator[bytes]:
    """The bytes that a text can stand as; ASCII lowered."""
    forms = {text, text.casefold(), unicodedata.normalize("NFKC", text), folding.search_form(text)}
    for form in forms | {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}:
        for encoding in ENCODINGS:
            yield form.encode(encoding).lower()


def words(data: bytes) -> Iterator[tuple[int, Words]]:
    """Every piece of eight bytes of `data` as a number; by the eight ways to cut it, with how far
    in each of them begins."""
    for start in range(PIECE_BYTES):
        count = (len(data) - start) // PIECE_BYTES
        if count > 0:
            yield start, np.frombuffer(data, "<u8", count, start)


def pieces(spelled: Iterable[bytes]) -> Words:
    """Every piece of eight bytes, ascending, each once."""
    cuts = [cut for data in spelled for _, cut in words(data)]
    return np.unique(np.concatenate(cuts)) if cuts else np.empty(0, np.uint64)


def secret(texts: Iterable[str]) -> Words:
    """Every piece by which the texts could be known again."""
    return pieces(spelled for text in texts for spelled in spellings(text))


def kept(spelled: Iterable[bytes]) -> Words:
    """What `without` wants of what other documents hold: every seven bytes of it, ascending."""
    eights = pieces(spelled)
    return np.unique(np.concatenate([eights & _SEVEN_BYTES, eights >> _ONE_BYTE]))


def without(wanted: Words, *others: Words) -> Words:
    """The wanted pieces that tell something, given what other documents hold (each as `kept`):
    seven bytes of that and one byte beside it can stand together by chance, where the other is a
    number or the beginning of the next row."""
    told = np.zeros(len(wanted), np.bool_)
    for held in others:
        for seven in _halves(wanted):
            told |= _among(seven, held)
    return wanted[~told]


def without_rows(wanted: Words, rows: Iterable[bytes]) -> Words:
    """The same, given the rows themselves: as many as there are, of which nothing is kept but what
    was wanted."""
    sieve = _Sieve(np.unique(np.concatenate(_halves(wanted))))
    told = [np.empty(0, np.uint64)]
    for slab in _slabs(rows):
        for _, cut in words(slab):
            seven = cut & _SEVEN_BYTES
            told.append(np.unique(seven[sieve.places(seven)]))
    return without(wanted, np.unique(np.concatenate(told)))


def _halves(wanted: Words) -> tuple[Words, Words]:
    return wanted & _SEVEN_BYTES, wanted >> _ONE_BYTE


def _slabs(rows: Iterable[bytes]) -> Iterator[bytes]:
    """The rows together, with bytes between them that no text has."""
    slab = bytearray()
    for row in rows:
        if len(row) >= PIECE_BYTES:
            slab += row + b"\xff" * PIECE_BYTES
        if len(slab) >= SLAB_BYTES:
            yield bytes(slab)
            slab.clear()
    yield bytes(slab)


def _among(numbers: Words, held: Words) -> NDArray[np.bool_]:
    """Which of the numbers are among those held, which ascend."""
    if not len(held):
        return np.zeros(len(numbers), np.bool_)
    return held[np.minimum(np.searchsorted(held, numbers), len(held) - 1)] == numbers


class _Sieve:
    """Knows some numbers, ascending. A filter by hash spares the exact look for most others."""

    def __init__(self, wanted: Words) -> None:
        self._wanted = wanted
        self._marked = np.zeros(1 << _FILTER_BITS, np.bool_)
        self._marked[self._hash(wanted)] = True

    def places(self, numbers: Words) -> NDArray[np.int64]:
        """Where the numbers are some that it knows."""
        likely = np.flatnonzero(self._marked[self._hash(numbers)])
        return likely[_among(numbers[likely], self._wanted)]

    def _hash(self, numbers: Words) -> Words:
        return (numbers * _GOLDEN) >> np.uint64(64 - _FILTER_BITS)


def _hits(data: bytes, wanted: Words) -> Iterator[tuple[NDArray[np.int64], Words]]:
    """Where in `data` the wanted pieces stand, and which; in no order."""
    sieve = _Sieve(wanted)
    for base in range(0, len(data), SLAB_BYTES):
        slab = data[base : base + SLAB_BYTES + PIECE_BYTES - 1].lower()
        for start, cut in words(slab):
            at = sieve.places(cut)
            yield at * PIECE_BYTES + (base + start), cut[at]


def seen(path: Path, wanted: Words, suffixes: Sequence[str] = FILES) -> Words:
    """Which of the wanted pieces stand anywhere in the bytes of the files, ascending: of any number
    of secrets at once, for one reading."""
    found = [np.empty(0, np.uint64)]
    for data in files(path, suffixes).values():
        found += [which for _, which in _hits(data, wanted)]
    return np.unique(np.concatenate(found))


def raw_traces(path: Path, wanted: Words) -> list[Finding]:
    """Pieces of text in the bytes of the files."""
    found = []
    for suffix, data in files(path).items():
        places = sorted(at for where, _ in _hits(data, wanted) for at in where.tolist())
        pages = Pages(data) if places and not suffix else None
        for at in places:
            place = suffix or (pages.at(at) if pages else "")
            found.append(Finding(place, repr(data[at : at + PIECE_BYTES])))
    return found


# What SQLite reads.


def opened(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    return db


def index_traces(db: apsw.Connection) -> list[Finding]:
    """What the full-text index names though no chunk has it."""
    blobs = dict(db.execute("SELECT id, block FROM chunks_fts_data"))
    live = {row for (row,) in db.execute("SELECT id FROM chunks")}
    found, terms = [], set()
    for posting in segments.postings(blobs):
        terms.add(posting.term)
        if posting.row not in live or posting.marker:
            kind = "marker" if posting.marker else "posting"
            found.append(Finding(kind, f"{posting.term!r} of row {posting.row}"))
    for record, row in segments.rows_of_doclist_indexes(blobs):
        if row not in live:
            found.append(Finding("doclist index", f"row {row} in record {record}"))
    found += [Finding("stray record", str(id)) for id in segments.strays(blobs)]
    beginnings = {term[:length] for term in terms for length in range(len(term) + 1)}
    for segment, separator in db.execute("SELECT segid, term FROM chunks_fts_idx"):
        if separator not in beginnings and _tells(separator[1:]):
            found.append(Finding("separator", f"{separator!r} of segment {segment}"))
    for (row,) in db.execute("SELECT id FROM chunks_fts_docsize"):
        if row not in live:
            found.append(Finding("row of sizes", f"row {row}"))
    return found


def _tells(separator: bytes) -> bool:
    """Whether a separator is a whole trigram or long enough to be a piece; FTS5 cuts them off where
    it can, between two bytes of a character too."""
    return len(separator.decode(errors="ignore")) >= 3 or len(separator) >= PIECE_BYTES


def vector_traces(db: apsw.Connection) -> list[Finding]:
    """Vectors of chunks that are gone. vec0 keeps them in blocks with a bit for each row that is
    taken: what an untaken place of a block holds must be zero."""
    if not db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'vec_chunks'").get:
        return []
    found = [
        Finding("vector", f"row {row}")
        for (row,) in db.execute(
            "SELECT chunk_id FROM vec_chunks WHERE chunk_id NOT IN (SELECT id FROM chunks)"
        )
    ]
    blocks = db.execute(
        "SELECT c.chunk_id, c.size, c.validity, c.rowids, v.vectors FROM vec_chunks_chunks AS c"
        " JOIN vec_chunks_vector_chunks00 AS v ON v.rowid = c.chunk_id"
    )
    for block, size, taken, rows, vectors in blocks:
        for place in range(size):
            if not taken[place // 8] >> place % 8 & 1:
                for name, blob in (("row number", rows), ("vector", vectors)):
                    width = len(blob) // size
                    if any(blob[place * width : (place + 1) * width]):
                        found.append(Finding("untaken place", f"{name} in block {block}"))
    return found


def examine(path: Path, secrets: Iterable[str]) -> list[Finding]:
    """Every trace of the secrets in the file and beside it."""
    found = raw_traces(path, secret(secrets))
    db = opened(path)
    try:
        db.execute("BEGIN")
        return found + index_traces(db) + vector_traces(db)
    finally:
        db.close()
