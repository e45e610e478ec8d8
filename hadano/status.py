"""db_status, and the two checks behind its `integrity_at_boot`.

Answers even for a damaged file: a figure that cannot be read is 0 then, and `failed` says why.
"""

from hadano import connection
from hadano.connection import Connection
from hadano.errors import Code, HadanoError
from hadano.types import DbStatus, Status


def status(db: Connection, _: DbStatus) -> Status:
    """What the database holds. How it fared at start-up is the hall's to say."""
    return Status(
        db_path=db.path,
        size_bytes=db.size_bytes(),
        docs=_count(db, "docs"),
        chunks=_count(db, "chunks"),
        edges=_count(db, "edges"),
        # vec0's own table of row numbers: it can be counted without the extension.
        vectors=_count(db, "vec_chunks_rowids"),
        embeddings_mode="local" if db.vectors else "off",
        integrity_at_boot="checking",
        sqlite_version=connection.sqlite_version(),
        vec_version=db.vec_version,
    )


def _count(db: Connection, table: str) -> int:
    try:
        if db.row("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)) is None:
            return 0
        count: int = db.value(f"SELECT count(*) FROM {table}")
    except HadanoError as error:
        if error.code is not Code.INTEGRITY:
            raise
        return 0
    return count


def bytes_by_table(db: Connection) -> dict[str, int]:
    """How many bytes of the file each table and each index takes, largest first."""
    return dict(db.rows("SELECT name, sum(pgsize) FROM dbstat GROUP BY 1 ORDER BY 2 DESC"))


# The view leaves out a chunk whose document is gone.
_ROWS = """
SELECT count(*) = (SELECT count(*) FROM chunks)
   AND count(*) = (SELECT count(*) FROM chunks_fts_docsize)
FROM chunks_indexed
"""


def index_agrees(db: Connection) -> bool:
    """Whether the full-text index has a row for each chunk and for nothing else, and in it just the
    trigrams of the chunk's text, each in its place."""
    try:
        return bool(db.value(_ROWS)) and not _differing(db)
    except HadanoError as error:
        if error.code is not Code.INTEGRITY:
            raise
        return False


def _differing(db: Connection) -> set[int]:
    """The chunks that differ however often they are compared.

    A long snapshot would keep deleted text in the write-ahead log, so at first there is none, and a
    chunk that others write meanwhile may seem to differ. What does so twice is looked at in one.
    """
    found = set(db.differing(at_once=False))
    for at_once in (False, True):
        if found:
            found &= set(db.differing(at_once=at_once))
    return found
