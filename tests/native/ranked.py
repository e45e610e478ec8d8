"""Small stores for the ranker's tests: the real tables, filled without the service.

The tests choose what the service never would: page sizes, merge settings, chunks of any text.
Run as a program with the path of a store, it takes steps from standard input, each a line of JSON
and a transaction, and answers each with a line.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing

import apsw

from hadano import schema
from hadano._native import ENTRY_POINT, LIBRARY, Agreement, Ranker, search_form, short_words
from hadano.plan import lower_ascii
from tests.oracle import postings
from tests.oracle.postings import Term

_INDEXED = "SELECT id, text, title, words FROM chunks_indexed WHERE id = ?"


def loaded(path: str) -> apsw.Connection:
    """A connection that a ranker can be made on."""
    db = apsw.Connection(path)
    db.execute("PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON")
    db.enable_load_extension(True)
    db.load_extension(LIBRARY, ENTRY_POINT)
    db.enable_load_extension(False)
    return db


def fresh(path: str = ":memory:", **config: int) -> apsw.Connection:
    """An empty store whose index has FTS5's settings `config`."""
    db = loaded(path)
    for step in schema.MIGRATIONS:
        db.execute(step)
    for key, value in config.items():
        tell(db, key, value)
    return db


def tell(db: apsw.Connection, key: str, value: int) -> None:
    """Makes a setting of the index, or gives it a command."""
    db.execute("INSERT INTO chunks_fts(chunks_fts, rank) VALUES(?, ?)", (key, value))


def form(text: str) -> str:
    """A text as a term of a query has it."""
    return lower_ascii(search_form(text))


def add(db: apsw.Connection, title: str, texts: Iterable[str]) -> None:
    """Stores one document as the given chunks."""
    db.execute(
        "INSERT INTO docs(id, title, title_form, tags, sha256, created_at, updated_at, content)"
        " VALUES(hex(randomblob(16)), ?, ?, '[]', '', '', '', '')",
        (title, search_form(title)),
    )
    doc = db.last_insert_rowid()
    for seq, text in enumerate(texts):
        folded = search_form(text)
        db.execute(
            "INSERT INTO chunks(doc, seq, text, form, words) VALUES(?, ?, ?, ?, ?)",
            (doc, seq, text, folded, short_words(folded, False, False)),
        )
        _index(db, db.last_insert_rowid())


def _index(db: apsw.Connection, chunk: int) -> None:
    db.execute(f"INSERT INTO chunks_fts(rowid, text, title, words) {_INDEXED}", (chunk,))


def unindex(db: apsw.Connection, chunk: int) -> None:
    """Takes a chunk out of the index, and notes that it was."""
    row = db.execute(_INDEXED, (chunk,)).fetchall()[0]
    db.execute(schema.LIST_UNINDEXED, (chunk,))
    db.execute(
        "INSERT INTO chunks_fts(chunks_fts, rowid, text, title, words)"
        " VALUES('delete', ?, ?, ?, ?)",
        row,
    )


def _remove(db: apsw.Connection, doc: int) -> None:
    for (chunk,) in db.execute("SELECT id FROM chunks WHERE doc = ?", (doc,)).fetchall():
        unindex(db, chunk)
    db.execute("DELETE FROM docs WHERE n = ?", (doc,))


def _retitle(db: apsw.Connection, doc: int, title: str) -> None:
    """Changes a title; the chunks keep their ids, the first is indexed anew."""
    sql = "SELECT id FROM chunks WHERE doc = ? AND seq = 0"
    ((first,),) = db.execute(sql, (doc,)).fetchall()
    unindex(db, first)
    db.execute("UPDATE docs SET title = ?1, title_form = ?1 WHERE n = ?2", (form(title), doc))
    _index(db, first)


def take(db: apsw.Connection, step: Sequence) -> None:
    """Carries out one step of a history: add, replace, retitle or remove a document, or tell the
    index something. Documents are counted from the oldest, round and round."""
    match step:
        case ("add", title, texts):
            add(db, title, texts or [""])
        case ("tell", key, value):
            tell(db, key, value)
        case (verb, which, *rest):
            docs = [n for (n,) in db.execute("SELECT n FROM docs ORDER BY n")]
            if not docs:
                return
            doc = docs[which % len(docs)]
            if verb == "retitle":
                _retitle(db, doc, rest[0])
                return
            _remove(db, doc)
            if verb == "replace":
                add(db, "again", [rest[0]])


def ranking(
    db: apsw.Connection, ranker: Ranker, terms: Sequence[Term], per_doc: int = 20, ranks: int = 1000
) -> list[int]:
    """What the ranker answers, once each chunk's document number has been found right."""
    with db:
        chunks, docs = ranker.rank(terms, per_doc, ranks)
        owner = dict(db.execute("SELECT id, doc FROM chunks").fetchall())
    assert [owner[chunk] for chunk in chunks] == list(docs)
    return list(chunks)


def agree(db: apsw.Connection, ranker: Ranker, terms: Sequence[Term]) -> None:
    """The ranker, its twin and (where it can be asked) FTS5 give one order."""
    found = ranking(db, ranker, terms)
    assert found == postings.by_counting(db, terms)
    if all(kind != postings.ANYWHERE for kind, _ in terms):
        assert found == postings.by_fts5(db, terms)


def differing(db: apsw.Connection) -> list[int]:
    """The rows that differ, compared in steps of a transaction each."""
    with closing(Agreement(db)) as agreement:
        more = True
        while more:
            with db:
                more = agreement.step()
        return agreement.differing()


def sound(db: apsw.Connection) -> bool:
    """Whether FTS5 itself finds the index to be that of the text."""
    try:
        tell(db, "integrity-check", 1)
    except apsw.CorruptError:
        return False
    return True


def serve(path: str) -> None:
    with closing(loaded(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        for line in sys.stdin:
            with db:
                take(db, json.loads(line))
            print("done", flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
