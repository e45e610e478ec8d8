"""Documents in, out and away: everything that is derived from a text is made and unmade here.

Runs inside the caller's transaction, so a document and what comes from it appear and go together.
"""

import hashlib
import os
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET

from hadano import limits, schema
from hadano._native import search_form, short_words, windows
from hadano.connection import Connection
from hadano.errors import no_document
from hadano.types import (
    Deleted,
    DeleteDocument,
    Document,
    GetDocument,
    Relation,
    Stored,
    StoreDocument,
)


def now() -> str:
    """This moment as the contract writes time: ISO 8601, UTC, milliseconds, `Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def store(db: Connection, it: StoreDocument) -> tuple[Stored, bool]:
    """Saves a document, or replaces the one of that id whole; also says whether text went away.

    The same content keeps its chunk ids; changed content gets new ones, never used before.
    """
    id = os.urandom(16).hex() if it.id is UNSET else it.id
    sha256 = hashlib.sha256(it.content.encode()).hexdigest()
    tags = msgspec.json.encode([] if it.tags is UNSET else it.tags).decode()
    moment = now()
    old = db.row("SELECT n, title, sha256 FROM docs WHERE id = ?", (id,))
    if old is None:
        db.run(
            "INSERT INTO docs(id, title, title_form, tags, sha256, created_at, updated_at, content)"
            " VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            (id, it.title, _form(it.title), tags, sha256, moment, moment, it.content),
        )
        _index(db, db.inserted(), it)
    else:
        n, title, old_sha256 = old
        text_changed, title_changed = sha256 != old_sha256, it.title != title
        if text_changed:
            _unindex(db, n)
            db.run("DELETE FROM chunks WHERE doc = ?", (n,))
        elif title_changed:
            db.run("DELETE FROM chunks_fts WHERE rowid = ?", (_first_chunk(db, n),))
        db.run(
            "UPDATE docs SET title = ?, title_form = ?, tags = ?, sha256 = ?, updated_at = ?,"
            " content = ? WHERE n = ?",
            (it.title, _form(it.title), tags, sha256, moment, it.content, n),
        )
        if text_changed:
            _index(db, n, it)
        elif title_changed:
            _reindex_title(db, n, it)
    _state(db, id, [] if it.relations is UNSET else it.relations)
    chunks = db.value(
        "SELECT count(*) FROM chunks WHERE doc = (SELECT n FROM docs WHERE id = ?)", (id,)
    )
    return Stored(id=id, chunks=chunks, sha256=sha256), old is not None


def get(db: Connection, it: GetDocument) -> Document:
    """The document of that id; E_NOT_FOUND where there is none."""
    row = db.row(
        "SELECT title, content, tags, sha256, created_at, updated_at FROM docs WHERE id = ?",
        (it.id,),
    )
    if row is None:
        raise no_document(it.id)
    title, content, tags, sha256, created_at, updated_at = row
    return Document(
        id=it.id,
        title=title,
        content=content,
        tags=msgspec.json.decode(tags, type=list[str]),
        sha256=sha256,
        created_at=created_at,
        updated_at=updated_at,
    )


def delete(db: Connection, it: DeleteDocument) -> tuple[Deleted, bool]:
    """Removes the document of that id and all that came from it; E_NOT_FOUND where there is none.

    `erased` says whether the index is rid of it; of the write-ahead log the caller must see to it
    once the transaction is over.
    """
    n = db.value("SELECT n FROM docs WHERE id = ?", (it.id,))
    if n is None:
        raise no_document(it.id)
    erased = _unindex(db, n)
    db.run("DELETE FROM docs WHERE n = ?", (n,))
    return Deleted(id=it.id, deleted=True, erased=erased), True


def erase_step(db: Connection, pages: int, *, first: bool) -> bool:
    """Merges up to `pages` pages of the full-text index; True while there is more to merge.

    Once all segments are one, no delete marker and none of the text it stood for is left. FTS5
    takes a negative number to mean *everything into one segment*, a positive one to go on with
    that (its manual, "The 'merge' command", which also gives the sign of the end: fewer than two
    rows changed).
    """
    before = db.changes()
    db.run(
        "INSERT INTO chunks_fts(chunks_fts, rank) VALUES('merge', ?)", (-pages if first else pages,)
    )
    return db.changes() - before >= 2


def _form(text: str) -> str | None:
    """What to keep as a text's search form: nothing where the text itself will do."""
    form = search_form(text)
    return None if form is text or form == text else form


def _index(db: Connection, n: int, it: StoreDocument) -> None:
    """Chunks of a document that has none, and their rows in the full-text index."""
    texts = windows(it.content, limits.CHUNK_CODEPOINTS_MAX, limits.CHUNK_STRIDE_CODEPOINTS)
    last = len(texts) - 1
    rows = []
    for seq, text in enumerate(texts):
        form = _form(text)
        words = short_words(text if form is None else form, seq > 0, seq < last)
        rows.append((n, seq, text, form, words if seq else _with_title(it.title, words)))
    db.run_many("INSERT INTO chunks(doc, seq, text, form, words) VALUES(?, ?, ?, ?, ?)", rows)
    db.run(
        "INSERT INTO chunks_fts(rowid, text, title, words) SELECT id, text, title, words"
        " FROM chunks_indexed WHERE id BETWEEN ? AND ?",
        (db.inserted() - last, db.inserted()),
    )


def _with_title(title: str, words: str) -> str:
    return short_words(search_form(title), False, False) + words


def _reindex_title(db: Connection, n: int, it: StoreDocument) -> None:
    """The first chunk's index row under a new title; its id and text stay."""
    chunk = _first_chunk(db, n)
    form, seconds = db.rows(
        "SELECT coalesce(form, text), EXISTS(SELECT 1 FROM chunks WHERE doc = ? AND seq = 1)"
        " FROM chunks WHERE id = ?",
        (n, chunk),
    )[0]
    words = _with_title(it.title, short_words(form, False, bool(seconds)))
    db.run("UPDATE chunks SET words = ? WHERE id = ?", (words, chunk))
    db.run(
        "INSERT INTO chunks_fts(rowid, text, title, words)"
        " SELECT id, text, title, words FROM chunks_indexed WHERE id = ?",
        (chunk,),
    )


def _first_chunk(db: Connection, n: int) -> int:
    chunk: int = db.value("SELECT id FROM chunks WHERE doc = ? AND seq = 0", (n,))
    return chunk


def _unindex(db: Connection, n: int) -> bool:
    """Takes a document's chunks out of the indexes; the chunks themselves are still there, for
    FTS5 reads from them what to take out. True where that overwrote all that stood there."""
    chunks = db.value("SELECT count(*) FROM chunks WHERE doc = ?", (n,))
    at_once: bool = chunks <= limits.ERASE_AT_ONCE_CHUNKS_MAX
    if not at_once:
        _secure_delete(db, False)
        db.run(schema.ASK_FOR_CHORE, (schema.CHORE_ERASE_INDEX,))
    db.run("DELETE FROM chunks_fts WHERE rowid IN (SELECT id FROM chunks WHERE doc = ?)", (n,))
    if not at_once:
        _secure_delete(db, True)
    if db.value("SELECT 1 FROM sqlite_schema WHERE name = 'vec_chunks'"):
        db.load_vectors()
        db.run(
            "DELETE FROM vec_chunks WHERE chunk_id IN (SELECT id FROM chunks WHERE doc = ?)", (n,)
        )
    return at_once


def _secure_delete(db: Connection, on: bool) -> None:
    db.run("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('secure-delete', ?)", (int(on),))


def _state(db: Connection, id: str, relations: list[Relation]) -> None:
    """The edges that a document states, in place of those it stated before."""
    db.run("DELETE FROM edges WHERE doc_id = ?", (id,))
    if relations:
        db.run_many(
            "INSERT INTO edges(doc_id, src, rel, dst) VALUES(?, ?, ?, ?)",
            [(id, relation.src, relation.rel, relation.dst) for relation in relations],
        )
