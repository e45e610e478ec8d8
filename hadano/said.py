"""What rows of the audit log say, kept in memory from one erasure to the next.

Each erasure looks through all of the log, and nearly all of it is as it was before. What is kept
only tells which rows need a look: nothing is believed of a row that was not read again. Refuses to
know what is looked for (quotes.py) and what becomes of it (audit.py).
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from hadano.connection import Connection, listed
from hadano.errors import Code, HadanoError
from hadano.quotes import heard

#: Rows that can quote what their document does not hold: calls about none, and refused ones. The
#: condition is that of the index.
SAYING: Final = (
    "FROM audit_log INDEXED BY audit_log_saying"
    " WHERE args IS NOT NULL AND (doc_id IS NULL OR outcome <> 'ok')"
)
#: Longer rows are looked at one by one.
SHORT_BYTES_MAX: Final = 4_096
_ROWS_AT_ONCE: Final = 1_000

#: The last row is the one that `max` finds (SQLite's manual, "Bare columns in an aggregate query").
_ROWS: Final = f"""
SELECT max(n), request_id, count(*),
       CAST(coalesce(group_concat(args || coalesce(char(10) || doc_id, ''), char(10))
                     FILTER (WHERE bytes <= {SHORT_BYTES_MAX}), '') AS BLOB),
       json_group_array(n) FILTER (WHERE bytes > {SHORT_BYTES_MAX})
FROM (SELECT n, request_id, args, doc_id, octet_length(args) AS bytes {SAYING}
      AND n > ? AND n <= ? ORDER BY n LIMIT {_ROWS_AT_ONCE})
"""
_LASTS: Final = """
SELECT n, request_id FROM json_each(?) AS last JOIN audit_log ON audit_log.n = last.value
"""


class Block(Struct):
    """Rows that are looked at together."""

    #: The number of the last of them, and that row's request_id.
    upto: int
    request_id: str
    #: What `quotes.heard` gives of the short ones; None once some of that is gone.
    heard: bytes | None
    #: Numbers of the long ones, of which nothing is kept.
    long: list[int]


class Said:
    """Blocks of rows, each behind the one before it, of which as many are kept as `room` bytes
    hold.

    Not for two threads at once; who takes out of rows what they say holds the write lock, and so
    does who asks for blocks that may be kept.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        #: By the number of the row behind which each begins.
        self._kept: dict[int, Block] = {}
        self._committed = True

    def begin(self, db: Connection) -> None:
        """Comes before all `behind` of a change, and forgets all where the last one was undone, for
        rows may have been read as they are not; and where a row is not the one that it was, because
        somebody emptied the log and its number was given again."""
        were = {block.upto: block.request_id for block in self._kept.values()}
        if not self._committed or dict(db.rows(_LASTS, (listed(were),))) != were:
            self._room += sum(map(_bytes, self._kept.values()))
            self._kept.clear()
        self._committed = False

    def committed(self) -> None:
        """Comes after the change."""
        self._committed = True

    def behind(self, db: Connection, row: int, newest: int) -> Block | None:
        """The block that begins behind a row, and ends with `newest` or before it; None where there
        are no more rows."""
        kept = self._kept.get(row)
        if kept is not None and kept.heard is not None:
            return kept
        block, full = _read(db, row, newest if kept is None else kept.upto)
        if kept is not None:  # It ends where it did, whatever its last rows say now.
            read = (b"", []) if block is None else (block.heard, block.long)
            block, full = Block(kept.upto, kept.request_id, *read), True
        if block is not None and full and _bytes(block) <= self._room:
            self._kept[row] = block
            self._room -= _bytes(block)
        return block

    def forget(self, rows: Iterable[int]) -> None:
        """Forgets what is kept of these rows, and of those that were looked at with them."""
        for row in rows:
            for before, block in self._kept.items():
                if before < row <= block.upto:
                    self._room += _bytes(block)
                    block.heard = None


def _bytes(block: Block) -> int:
    return len(block.heard or b"")


def _read(db: Connection, row: int, newest: int) -> tuple[Block | None, bool]:
    """The block behind a row, and whether there may be more rows behind that."""
    upto, request_id, count, lines, long = db.rows(_ROWS, (row, newest))[0]
    if upto is None:
        return None, False
    try:
        said = heard(lines)
    except ValueError as error:
        raise HadanoError(Code.INTEGRITY, "the database is damaged") from error
    return Block(upto, request_id, said, msgspec.json.decode(long)), count == _ROWS_AT_ONCE
