"""The audit log: one row a call, and what is left of it when a document is erased.

A row holds the arguments verbatim (`full`), their shape (`redacted`) or nothing (`off`). When the
document that a call stored is deleted or replaced, the row stays and its arguments become their
shape; the hash of the content stays with it.
"""

from typing import Any

import msgspec
from msgspec import Struct

from hadano import limits
from hadano.connection import Connection
from hadano.digest import sha256_of
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
    """Takes the text of a document that is gone or replaced out of earlier rows: those of calls
    that stored it or tried to, under whatever parameter, and of calls that tried to store the same
    content under an id that does not hold it."""
    import json  # It reads what msgspec does not; kept off the way to the first answer.

    for n, args in db.rows(_TRACES, (doc_id,)):
        given = json.loads(args)
        if not _is_shape(given):
            db.run("UPDATE audit_log SET args = ? WHERE n = ?", (_json(shape(given)), n))


_TRACES = """
SELECT n, args FROM audit_log AS a WHERE args IS NOT NULL AND (
  doc_id = ?1 AND tool = 'store_document'
  OR sha256 IN (SELECT sha256 FROM audit_log WHERE doc_id = ?1)
     AND NOT EXISTS (SELECT 1 FROM docs AS d WHERE d.id = a.doc_id AND d.sha256 = a.sha256)
)
"""


def _is_shape(given: dict[str, Any]) -> bool:
    """Whether these are no arguments but their shape: of each, an object with its type."""
    return all(isinstance(item, dict) and "type" in item for item in given.values())


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
        return json.dumps(value)
    except (ValueError, RecursionError):
        return json.dumps(shape(value))
