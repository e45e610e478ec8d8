"""The audit log: one row a call, and what is left of it when a document is erased.

A row holds the arguments verbatim (`full`), their shape (`redacted`) or nothing (`off`). When the
document that a call stored is deleted or replaced, the row stays and its arguments become their
shape; the hash of the content stays with it. So do the rows of searches and of refused calls that
quote what no document holds any more (quotes.py).
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from hadano import limits
from hadano.connection import Connection, Row
from hadano.digest import sha256_of
from hadano.quotes import Gone, OutOfTime, Quotes
from hadano.said import SAYING, SHORT_BYTES_MAX, Said
from hadano.types import RequestLog


class Entry(Struct, frozen=True, kw_only=True):
    """One row of audit_log."""

    request_id: str
    time: str
    tool: str
    doc_id: str | None
    sha256: str | None
    args: str | None
    row_count: int
    duration_ms: float
    outcome: str


_COLUMNS = Entry.__struct_fields__
_INSERT = f"INSERT INTO audit_log({', '.join(_COLUMNS)}) VALUES({', '.join('?' * len(_COLUMNS))})"


def write(db: Connection, entries: list[Entry]) -> None:
    """Appends the rows, inside the caller's transaction."""
    for entry in entries:
        db.run(_INSERT, msgspec.structs.astuple(entry))


def arguments(mode: RequestLog, given: object) -> str | None:
    """What the log keeps of a call's arguments, as JSON: under `full` too their shape alone where
    they are more than any call within limits can carry."""
    if mode == "off":
        return None
    if mode == "redacted":
        return _json(shape(given))
    text = _json(given)
    return text if len(text) <= limits.JSON_LINE_BYTES_MAX else _json(shape(given))


def trace(mode: RequestLog, given: object, doc_id: str | None) -> tuple[str | None, str | None]:
    """What ties a row to a document, so that its text can be found again to be erased: `doc_id`,
    else whatever id the arguments name, and the hash of the content that they carry. Only `full`
    needs either."""
    if mode != "full" or not isinstance(given, dict):
        return None, None
    id, content = doc_id or given.get("id"), given.get("content")
    known = isinstance(id, str) and len(id) <= limits.ID_CODEPOINTS_MAX and _whole(id)
    return id if known else None, sha256_of(content) if isinstance(content, str) else None


def _whole(text: str) -> bool:
    """Whether there is no half of a surrogate pair in it, which SQLite could not hold."""
    return text.encode("utf-8", "ignore").decode() == text


def scrub(db: Connection, doc_id: str) -> None:
    """Takes the arguments of the calls that stored a document, or tried to, out of their rows: it
    is gone or replaced."""
    for n, args in db.rows(_STORES, (doc_id,)):
        left = _shape_of(args)
        if left != args:
            db.run("UPDATE audit_log SET args = ? WHERE n = ?", (left, n))


_STORES: Final = (
    "SELECT n, args FROM audit_log"
    " WHERE doc_id = ? AND tool = 'store_document' AND args IS NOT NULL"
)


def forget(db: Connection, gone: Gone, said: Said, *, until: float) -> bool:
    """Takes what is gone out of the rows that quote it, inside the caller's transaction; looks at
    what `said` keeps of them, and has it keep more. False where `until`, on the clock of
    `time.monotonic`, came first: then the rest is owed."""
    newest = db.value(_NEWEST)
    if newest is None:
        return True
    try:
        quotes = Quotes(db, [gone], until=until)
        said.begin(db)
        for rows in _quoting(db, quotes, newest, said):
            _take_out(db, quotes, rows, said)
    except OutOfTime:
        owe(db, gone)
        return False
    return True


def owe(db: Connection, gone: Gone) -> None:
    """Leaves to `forget_owed` what `forget` does, inside the caller's transaction."""
    newest = db.value(_NEWEST)
    if newest is not None:
        text = msgspec.json.encode(gone).decode()
        db.run("INSERT INTO forgetting(upto, gone) VALUES(?, ?)", (newest, text))


def forget_owed(db: Connection, said: Said) -> Iterator[None]:
    """Does what is owed, in small transactions, until nothing is; `said` forgets it too. What is to
    be forgotten stands in the file for so long, and what a crash cuts short begins again.

    The last change is a step too: whoever empties the log between the steps has not seen it."""
    while owed := _owed(db):
        quotes = Quotes(db, (gone for _, _, gone in owed))
        for rows in _quoting(db, quotes, max(upto for _, upto, _ in owed), Said(room=0)):
            if rows:
                with db.change(durable=False):
                    _take_out(db, quotes, rows, said)
            yield
        with db.change():
            db.run_many("DELETE FROM forgetting WHERE n = ?", [(n,) for n, _, _ in owed])
        yield


def _owed(db: Connection) -> list[tuple[int, int, Gone]]:
    """What is owed first, as much of it as is looked for in one go; each with the newest row in
    which to look."""
    owed: list[tuple[int, int, Gone]] = []
    size = 0
    for n, upto, gone in db.stream("SELECT n, upto, gone FROM forgetting ORDER BY n"):
        size += len(gone)
        if owed and size > limits.CONTENT_BYTES_MAX:
            break
        owed.append((n, upto, msgspec.json.decode(gone, type=Gone)))
    return owed


def _quoting(db: Connection, quotes: Quotes, newest: int, said: Said) -> Iterator[list[Row]]:
    """The rows that hold quotes, up to the newest that is asked for, as (n, args, doc_id): of each
    some that were looked at together, often none.

    Short ones are looked at as one text: to hand each over takes longer than to look at it.
    """
    last = 0
    while (block := said.behind(db, last, newest)) is not None:
        before, last = last, block.upto
        may = block.heard is not None and quotes.may_be_among(block.heard)
        short = db.rows(_SHORT, (before, last)) if may else []
        yield [row for row in short if _quotes(row, quotes)]
        for n in block.long:
            yield [row for row in db.rows(_ONE, (n,)) if _quotes(row, quotes)]


def _quotes(row: Row, quotes: Quotes) -> bool:
    _, args, doc_id = row
    return quotes.among(args) or (doc_id is not None and quotes.among(doc_id))


_NEWEST: Final = f"SELECT max(n) {SAYING}"
_SHORT: Final = f"""
SELECT n, args, doc_id {SAYING} AND n > ? AND n <= ? AND octet_length(args) <= {SHORT_BYTES_MAX}
"""
_ONE: Final = "SELECT n, args, doc_id FROM audit_log WHERE n = ?"


def _take_out(db: Connection, quotes: Quotes, rows: list[Row], said: Said) -> None:
    """Leaves of the arguments their shape, and nothing where a name in it is a quote too; of an id
    nothing where it is one."""
    said.forget(n for n, _, _ in rows)
    for n, args, doc_id in rows:
        shape = _shape_of(args)
        left = None if shape is None or quotes.among(shape) else shape
        id = None if doc_id is not None and quotes.among(doc_id) else doc_id
        db.run("UPDATE audit_log SET args = ?, doc_id = ? WHERE n = ?", (left, id, n))


def _shape_of(args: str) -> str | None:
    """The shape of logged arguments, which may be no more than that already; None where they are
    nested too deep to be read, which depends on how deep the reader itself is called."""
    import json  # It reads what msgspec does not; kept off the way to the first answer.

    try:
        given = json.loads(args)
    except (ValueError, RecursionError):
        return None
    return args if _is_shape(given) else _json(shape(given))


def _is_shape(given: Any) -> bool:
    """Whether these are no arguments but their shape: of each, or of all, an object with its
    type."""
    if not isinstance(given, dict):
        return False
    return given.keys() <= {"type", "count", "length"} or all(
        isinstance(item, dict) and "type" in item for item in given.values()
    )


def shape(given: object) -> Any:
    """The arguments' names, and the type, length or count of each, without content."""
    if isinstance(given, dict):
        return {name: _kind(item) for name, item in given.items()}
    return _kind(given)


def _kind(value: object) -> dict[str, str | int]:
    if isinstance(value, dict):
        return {"type": "object", "count": len(value)}
    if isinstance(value, list):
        return {"type": "array", "count": len(value)}
    if isinstance(value, str):
        return {"type": "string", "length": len(value)}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int | float):
        return {"type": "number"}
    return {"type": "null"}


def _json(value: object) -> str:
    """JSON of what a client sent, whatever it sent: a lone surrogate, a number past 64 bits and
    deep nesting are more than msgspec writes, and the last is no legal argument anyway."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, OverflowError, RecursionError):
        import json  # Rarely needed.
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = json.dumps(shape(value), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()  # \ud800, as JSON spells it
