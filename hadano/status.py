"""db_status, and the two checks behind its `integrity_at_boot`.

Answers even for a damaged file: a figure that cannot be read is 0 then, and `failed` says why.
"""

from collections.abc import Iterator

from hadano import connection, schema
from hadano.connection import Connection, Row
from hadano.errors import Code, HadanoError
from hadano.types import DbStatus, Status
from hadano.varints import varints


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


_SIZES = """
SELECT v.id, v.text, v.title, v.words, s.sz
FROM chunks_indexed AS v LEFT JOIN chunks_fts_docsize AS s ON s.id = v.id
WHERE v.id > ? ORDER BY v.id LIMIT 500
"""
# The view leaves out a chunk whose document is gone.
_ROWS = """
SELECT count(*) = (SELECT count(*) FROM chunks)
   AND count(*) = (SELECT count(*) FROM chunks_fts_docsize)
FROM chunks_indexed
"""


def structure_holds(db: Connection) -> bool:
    """Whether every b-tree of the file is well formed: pages, cells, order, overflow chains.

    Table by table, for a check of the whole would also have FTS5 read its index to the end.
    """
    try:
        tables = [name for (name,) in db.rows(schema.B_TREES)]
        return all(
            db.rows(f"PRAGMA quick_check({_quoted(table)})") == [("ok",)] for table in tables
        )
    except HadanoError as error:
        if error.code is not Code.INTEGRITY:
            raise
        return False


def index_agrees(db: Connection) -> bool:
    """Whether the full-text index has a row for each chunk and for nothing else, with as many
    tokens in each column as the chunk's text has trigrams."""
    try:
        return bool(db.value(_ROWS)) and all(
            sizes is not None and varints(sizes) == [max(len(column) - 2, 0) for column in columns]
            for _, *columns, sizes in _indexed(db)
        )
    except HadanoError as error:
        if error.code is not Code.INTEGRITY:
            raise
        return False


def _indexed(db: Connection) -> Iterator[Row]:
    """What is indexed of each chunk, and its tokens. A few hundred rows at a time, for as long as a
    snapshot is open no deleted text can be erased from the write-ahead log."""
    last = 0
    while rows := db.rows(_SIZES, (last,)):
        yield from rows
        last = rows[-1][0]


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
