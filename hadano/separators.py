"""What FTS5 leaves behind when it erases: terms in the index of its pages.

FTS5's secure-delete overwrites postings and terms on the pages of a segment, but not the rows of
`%_idx`, which say with a beginning of its first term where each page begins: three letters of a
text that is gone could stand there until the segment is merged. What is put in their place is true
of the page as it is now. After the comments of SQLite's fts5_index.c; knows nothing of documents.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from hadano.connection import Connection
from hadano.varints import varints

#: As many bytes of a text are a trace of it.
PIECE_BYTES: Final = 8

#: The separators that are among the given blobs, and the pages that they stand for: an id of
#: `%_data` is a segment and, in the lower 37 bits, a page. All separators are read, one for each
#: page on which a term begins: to look a document's terms up in every segment takes longer.
_SUSPECTS: Final = """
SELECT i.segid, i.term, d.block
FROM chunks_fts_idx AS i JOIN chunks_fts_data AS d ON d.id = (i.segid << 37) + (i.pgno >> 1)
WHERE i.term IN (SELECT unhex(value) FROM json_each(?))
"""
_HERE: Final = "WHERE segid = ?1 AND term = ?2"


def mend(db: Connection, terms: Iterable[str]) -> None:
    """Takes terms that have just been erased out of the separators that still name them, inside
    the caller's transaction and once FTS5 has written what it erased. A page that no longer begins
    with its separator gets another, one on which no term begins any more gets none."""
    for segment, separator, page in db.rows(_SUSPECTS, (_beginnings(terms),)):
        first = _first_term(page)
        if first is None:
            db.run(f"DELETE FROM chunks_fts_idx {_HERE}", (segment, separator))
        elif not first.startswith(separator):
            db.run(
                f"UPDATE chunks_fts_idx SET term = ?3 {_HERE}",
                (segment, separator, _above(separator, first)),
            )


def _beginnings(terms: Iterable[str]) -> str:
    """The separators that would tell of one of the terms, as JSON of hexadecimal blobs: FTS5 puts a
    0 before each, and cuts one where that still tells it from the last term of the page before. A
    cut one tells nothing while it is shorter than `PIECE_BYTES`."""
    found = {
        term[:length].hex()
        for term in (f"0{term}".encode() for term in terms)
        for length in range(min(PIECE_BYTES + 1, len(term)), len(term) + 1)
    }
    return msgspec.json.encode(list(found)).decode()


def _first_term(page: bytes) -> bytes | None:
    """The first term that begins on a page, its leading 0 and all.

    Where the list of terms begins is in the third and fourth byte; where the first of them does is
    that list's first varint; a term there is its length, of under 128, and as many bytes.
    """
    starts = varints(page[int.from_bytes(page[2:4]) :][:3])
    if not starts:
        return None
    at = starts[0]
    return page[at + 1 :][: page[at]]


def _above(old: bytes, first: bytes) -> bytes:
    """The shortest beginning of `first` that is above `old`, and so above all on earlier pages."""
    at = next(at for at, byte in enumerate(first) if old[at : at + 1] != bytes([byte]))
    return first[: at + 1]
