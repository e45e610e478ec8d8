"""Documents in, out and away: everything that is derived from a text is made and unmade here.

Runs inside the caller's transaction, so a document and what comes from it appear and go together.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import UNSET, Struct

from hadano import limits, schema, vectors
from hadano._native import search_form, short_words, windows
from hadano.connection import Connection, listed
from hadano.digest import sha256_of
from hadano.errors import Code, HadanoError, no_document
from hadano.quotes import Gone
from hadano.types import (
    Deleted,
    DeleteDocument,
    Document,
    GetDocument,
    Stored,
    StoreDocument,
)


def now() -> str:
    """This moment as the contract writes time: ISO 8601, UTC, milliseconds, `Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


class _Facts(Struct, frozen=True):
    """What `docs` says of a document beside its text: columns of that table, in this order."""

    title: str
    tags: str
    sha256: str
    created_at: str
    updated_at: str


_HELD = f"SELECT n, {', '.join(_Facts.__struct_fields__)} FROM docs WHERE id = ?"

#: A document that the store holds: its number, and the facts of it.
_Held = tuple[int, _Facts]


def store(db: Connection, it: StoreDocument) -> tuple[Stored, Gone | None]:
    """Saves a document, or replaces the one of that id whole; also gives what that held and the
    new one does not, if anything.

    The same content keeps its chunk ids; changed content gets new ones, never used before.
    """
    id = os.urandom(16).hex() if it.id is UNSET else it.id
    moment = now()
    held = _held(db, id)
    new = _facts(it, moment if held is None else held[1].created_at, moment)
    gone = None if held is None else _gone(db, id, it)
    _save(db, id, it, held, new)
    chunks = db.value(
        "SELECT count(*) FROM chunks WHERE doc = (SELECT n FROM docs WHERE id = ?)", (id,)
    )
    return Stored(id=id, chunks=chunks, sha256=new.sha256), gone


def restore(
    db: Connection, id: str, it: StoreDocument, created_at: str, updated_at: str
) -> tuple[Literal["same", "new", "replaced"], Gone | None]:
    """Saves a document as `store` does, with an id and times of its own. One that the store holds
    already, to the last tag, is left untouched."""
    held = _held(db, id)
    new = _facts(it, created_at, updated_at)
    if held is not None and held[1] == new and relations_of(db, id) == sorted(_edges(it)):
        return "same", None
    gone = None if held is None else _gone(db, id, it)
    _save(db, id, it, held, new)
    return "new" if held is None else "replaced", gone


def relations_of(db: Connection, id: str) -> list[tuple[str, str, str]]:
    """The relations (src, rel, dst) that a document states, sorted."""
    return [
        (src, rel, dst)
        for src, rel, dst in db.rows(
            "SELECT src, rel, dst FROM edges WHERE doc_id = ? ORDER BY src, rel, dst", (id,)
        )
    ]


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


def delete(db: Connection, it: DeleteDocument) -> tuple[Deleted, Gone | None]:
    """Removes the document of that id and all that came from it, and gives what it held;
    E_NOT_FOUND where there is none.

    `erased` says whether the index is rid of it; of the write-ahead log the caller must see to it
    once the transaction is over.
    """
    n = db.value("SELECT n FROM docs WHERE id = ?", (it.id,))
    if n is None:
        raise no_document(it.id)
    gone = _gone(db, it.id, None)
    erased = _unindex(db, n)
    db.run("DELETE FROM docs WHERE n = ?", (n,))
    return Deleted(id=it.id, deleted=True, erased=erased), gone


def merge_index(db: Connection) -> None:
    """Makes one segment of the full-text index, inside the caller's transaction: some 3 s for
    100,000 notes. A search then looks each trigram up once, and not once a segment."""
    db.run("INSERT INTO chunks_fts(chunks_fts) VALUES('optimize')")


def erase_owed(db: Connection, pages: int) -> Iterator[None]:
    """Merges the index, `pages` pages and one transaction a step, until no erasure is owed.

    The chore counts how often it was asked for: text deleted while the merge was under way may
    have missed it, and then it starts again.
    """
    while owed := db.value("SELECT asked FROM chores WHERE name = ?", (schema.CHORE_ERASE_INDEX,)):
        yield from _merge_all(db, pages)
        with db.change():
            db.run(
                "DELETE FROM chores WHERE name = ? AND asked = ?", (schema.CHORE_ERASE_INDEX, owed)
            )


def merge_scattered(db: Connection, pages: int) -> Iterator[None]:
    """Merges the index as `erase_owed` does, where it lies in many segments and they are not small
    beside the largest: so a store that grows document by document is searched like one that was
    restored, and what is merged again and again is in the end eight times what was written."""
    leaves = [count for (count,) in db.rows(schema.LEAVES_BY_SEGMENT)]
    small = sum(leaves) - max(leaves, default=0)
    if (
        len(leaves) >= limits.MERGE_SEGMENTS_MIN
        and sum(leaves) >= limits.MERGE_LEAVES_MIN
        and small * limits.MERGE_SHARE >= sum(leaves)
    ):
        yield from _merge_all(db, pages)


def _merge_all(db: Connection, pages: int) -> Iterator[None]:
    """Makes one segment of the index, `pages` pages and one transaction a step."""
    more = first = True
    while more:
        with db.step():
            more = _merge_step(db, pages, first=first)
        first = False
        yield


def _merge_step(db: Connection, pages: int, *, first: bool) -> bool:
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


def _held(db: Connection, id: str) -> _Held | None:
    row = db.row(_HELD, (id,))
    return None if row is None else (row[0], _Facts(*row[1:]))


def _gone(db: Connection, id: str, new: StoreDocument | None) -> Gone | None:
    """What a document holds, but for what is in the one that comes in its place; None where that
    is nothing."""
    old = get(db, GetDocument(id=id))
    relations = relations_of(db, id)
    texts, edges = {old.title, old.content, *old.tags}, set(relations)
    if new is not None:
        texts -= {new.title, new.content, *([] if new.tags is UNSET else new.tags)}
        edges -= set(_edges(new))
    if not texts and not edges:
        return None
    return Gone(
        id=id,
        texts=sorted(texts),
        nodes=sorted({name for src, _, dst in edges for name in (src, dst)}),
        rels=sorted({rel for _, rel, _ in edges}),
    )


def _facts(it: StoreDocument, created_at: str, updated_at: str) -> _Facts:
    return _Facts(
        title=it.title,
        tags=msgspec.json.encode([] if it.tags is UNSET else it.tags).decode(),
        sha256=sha256_of(it.content),
        created_at=created_at,
        updated_at=updated_at,
    )


def _save(db: Connection, id: str, it: StoreDocument, held: _Held | None, new: _Facts) -> None:
    """A document and all that is derived from it, in place of the one `held`."""
    title_form = _form(it.title)
    if held is None:
        db.run(
            "INSERT INTO docs(id, title_form, content, title, tags, sha256, created_at, updated_at)"
            " VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            (id, title_form, it.content, *msgspec.structs.astuple(new)),
        )
        _index(db, db.inserted(), it, title_form)
    else:
        _replace(db, held, it, title_form, new)
        db.run("DELETE FROM edges WHERE doc_id = ?", (id,))
    db.run_many(
        "INSERT INTO edges(doc_id, src, rel, dst) VALUES(?, ?, ?, ?)",
        [(id, *edge) for edge in _edges(it)],
    )


def _replace(
    db: Connection, held: _Held, it: StoreDocument, title_form: str | None, new: _Facts
) -> None:
    n, old = held
    text_changed, title_changed = new.sha256 != old.sha256, new.title != old.title
    if text_changed:
        _unindex(db, n)
        db.run("DELETE FROM chunks WHERE doc = ?", (n,))
    elif title_changed:
        first = [_first_chunk(db, n)]
        _note_unindexed(db, first)
        db.erase_from_index(first)
    db.run(
        "UPDATE docs SET title_form = ?, content = ?, title = ?, tags = ?, sha256 = ?,"
        " created_at = ?, updated_at = ? WHERE n = ?",
        (title_form, it.content, *msgspec.structs.astuple(new), n),
    )
    if text_changed:
        _index(db, n, it, title_form)
    elif title_changed:
        _reindex_title(db, n, it)


def _index(db: Connection, n: int, it: StoreDocument, title_form: str | None) -> None:
    """Chunks of a document that has none, and their rows in the full-text index.

    The index's rows are given, and not selected from `chunks_indexed` whose rows they are: for an
    INSERT ... SELECT SQLite opens a savepoint, and at each of those FTS5 writes out what it had
    gathered in memory, which doubles the time that many documents take.
    """
    texts = windows(it.content, limits.CHUNK_CODEPOINTS_MAX, limits.CHUNK_STRIDE_CODEPOINTS)
    last = len(texts) - 1
    chunks, indexed = [], []
    for seq, text in enumerate(texts):
        form = _form(text)
        compared = text if form is None else form
        words = short_words(compared, seq > 0, seq < last)
        title = ""
        if seq == 0:
            words = _with_title(it.title, words)
            title = (it.title if title_form is None else title_form) + schema.SENTINELS
        chunks.append((n, seq, text, form, words))
        indexed.append((title, compared + schema.SENTINELS, words))
    db.run_many("INSERT INTO chunks(doc, seq, text, form, words) VALUES(?, ?, ?, ?, ?)", chunks)
    first = db.inserted() - last
    large = len(it.content) >= limits.MERGE_LATER_CODEPOINTS_MIN
    with _merged_later(db) if large else nullcontext():
        db.run_many(
            "INSERT INTO chunks_fts(rowid, title, text, words) VALUES(?, ?, ?, ?)",
            [(first + seq, *columns) for seq, columns in enumerate(indexed)],
        )
    vectors.add(db, first, it.title, texts)


@contextmanager
def _merged_later(db: Connection) -> Iterator[None]:
    """FTS5 writes a segment of the index for each megabyte that it has gathered, and merges some of
    them after each: for a text by chance that takes as long as all the rest. What is written inside
    is merged as other documents are stored, or at once where there would be too many segments."""
    _configure(db, "automerge", 0)
    yield
    # FTS5 writes down what it has gathered when a savepoint opens.
    db.run("SAVEPOINT gathered")
    db.run("RELEASE gathered")
    _configure(db, "automerge", _FTS5_AUTOMERGE)


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
    vectors.retitle(db, chunk)


def _first_chunk(db: Connection, n: int) -> int:
    chunk: int = db.value("SELECT id FROM chunks WHERE doc = ? AND seq = 0", (n,))
    return chunk


def _unindex(db: Connection, n: int) -> bool:
    """Takes a document's chunks out of the indexes; the chunks themselves are still there, for what
    to take out is read from them. True where that overwrote all that stood there."""
    chunks = [chunk for (chunk,) in db.rows(_CHUNKS, (n,))]
    erased = _erase_from_index(db, chunks)
    vectors.remove(db, chunks)
    return erased


#: FTS5_CURRENT_VERSION_SECUREDELETE of its fts5Int.h.
_FTS5_VERSION_ERASED = 5
#: FTS5_DEFAULT_AUTOMERGE of its fts5_config.c.
_FTS5_AUTOMERGE = 4
_CHUNKS = "SELECT id FROM chunks WHERE doc = ?"
_DELETE_ROWS = "DELETE FROM chunks_fts WHERE rowid IN (SELECT value FROM json_each(?))"


def _erase_from_index(db: Connection, chunks: list[int]) -> bool:
    """Takes chunks out of the full-text index: overwrites what it has of them (True) or, where that
    is too much for a call, marks them as deleted and has that done later."""
    _note_unindexed(db, chunks)
    if db.erase_from_index(
        chunks,
        leaves=limits.ERASE_AT_ONCE_LEAVES_MAX,
        seconds=limits.ERASE_AT_ONCE_MS_MAX / 1000,
    ):
        return True
    db.run(schema.ASK_FOR_CHORE, (schema.CHORE_ERASE_INDEX,))
    _configure(db, "secure-delete", 0)
    db.run(_DELETE_ROWS, (listed(chunks),))
    _configure(db, "secure-delete", 1)
    return False


def _note_unindexed(db: Connection, chunks: list[int]) -> None:
    """Notes in the file that these chunks are taken out of the full-text index; and for FTS5 that
    rows are overwritten there, for some of its rules are laxer then. It does so when it overwrites
    one itself."""
    db.run_many(schema.LIST_UNINDEXED, [(chunk,) for chunk in chunks])
    db.run(schema.SHORTEN_UNINDEXED)
    version = db.value("SELECT v FROM chunks_fts_config WHERE k = 'version'")
    if not isinstance(version, int):
        raise HadanoError(Code.INTEGRITY, "the database is damaged")
    if version < _FTS5_VERSION_ERASED:
        db.run("INSERT INTO chunks_fts(rowid, text) VALUES(0, '***')")
        db.run("INSERT INTO chunks_fts(chunks_fts, rowid, text) VALUES('delete', 0, '***')")


def _configure(db: Connection, option: str, value: int) -> None:
    db.run("INSERT INTO chunks_fts(chunks_fts, rank) VALUES(?, ?)", (option, value))


def _edges(it: StoreDocument) -> list[tuple[str, str, str]]:
    if it.relations is UNSET:
        return []
    return [(relation.src, relation.rel, relation.dst) for relation in it.relations]
