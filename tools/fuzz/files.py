"""Feeds of files: an index of which bytes were changed, and a store from which a document goes.

Leans on the tests for small stores with large indexes, and on their examiner.
"""

import random
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw

from hadano import limits
from hadano._native import DamagedIndex
from hadano.connection import Connection
from hadano.errors import Code, HadanoError
from hadano.plan import terms
from hadano.quotes import PIECE_BYTES
from tests.native.erased import copy_of, filled, outcome, record, write_record
from tests.native.ranked import differing, tell
from tests.reliability import notes, segments
from tests.reliability.examiner import kept, raw_traces, secret, without
from tests.reliability.notes import held, traces_in_index
from tests.tools.store import Store, until
from tools.fuzz.chance import Round, clean, mutated, part

QUERIES: Final = ("amber lamp", "a b c 東京", "go", "の", "a" * 60, "configuration")


# The ranker, over a broken index.


def on_a_broken_index(path: str) -> Round:
    """Changes bytes of some records of the index, asks, and takes the changes back."""
    beside = apsw.Connection(path)
    records = [id for (id,) in beside.execute("SELECT id FROM chunks_fts_data")]

    def round_(chance: random.Random) -> str:
        held = []
        for id in chance.sample(records, min(len(records), chance.randrange(1, 4))):
            block = beside.execute("SELECT block FROM chunks_fts_data WHERE id = ?", (id,)).get
            held.append((block, id))
            beside.execute(
                "UPDATE chunks_fts_data SET block = ? WHERE id = ?", (mutated(chance, block), id)
            )
        try:
            return _ranked(chance, path)
        finally:
            beside.executemany("UPDATE chunks_fts_data SET block = ? WHERE id = ?", held)

    return round_


def _ranked(chance: random.Random, path: str) -> str:
    try:
        with closing(Connection(path)) as db, db.snapshot():
            for query in chance.sample(QUERIES, 3):
                db.ranking(terms(query), per_doc=3, ranks=limits.FUSION_RANKS_MAX)
    except HadanoError as error:
        if error.code not in (Code.INTEGRITY, Code.TIMEOUT):
            raise
        return str(error.code)
    return "ranked"


# The eraser, over a broken index.


def on_the_eraser() -> Round:
    """Changes records and separators of an index, erases or compares, and takes all of it back."""
    stores = []
    for page_bytes in (40, 64, 200):
        loose = filled(page_bytes)
        merged, whole = copy_of(loose), copy_of(loose)
        tell(merged, "merge", -4)
        tell(whole, "optimize", 0)
        stores += [loose, merged, whole]

    def round_(chance: random.Random) -> str:
        db = chance.choice(stores)
        db.execute("SAVEPOINT sound")
        try:
            for _ in range(chance.randint(1, 3)):
                chance.choice((_break_a_separator, *[_break_a_record] * 3))(chance, db)
            if chance.random() < 0.3:
                return _compared(db)
            return outcome(db, chance.sample(range(1, 145), chance.choice((1, 5, 144))))
        finally:
            db.execute("ROLLBACK TO sound; RELEASE sound")

    return round_


def _break_a_separator(chance: random.Random, db: apsw.Connection) -> None:
    separators = db.execute("SELECT segid, term, pgno FROM chunks_fts_idx").fetchall()
    segment, term, page = chance.choice(separators)
    db.execute(
        "UPDATE OR IGNORE chunks_fts_idx SET pgno = ?, term = ? WHERE segid = ? AND term = ?",
        (
            chance.choice((page, 0, -1, page + 2, 1 << 31, 1 << 62)),
            chance.choice((term, term + b"\xff" * 80, term[:1])),
            segment,
            term,
        ),
    )


def _break_a_record(chance: random.Random, db: apsw.Connection) -> None:
    """A few bytes, so that what follows them is still read."""
    ids = [id for (id,) in db.execute("SELECT id FROM chunks_fts_data")]
    id = chance.choice(chance.choice((ids, [segments.AVERAGES_ID, segments.STRUCTURE_ID])))
    torn = bytearray(record(db, id))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(torn) + 1)
        torn[at : at + chance.choice((0, 1, 1, 2))] = chance.choice(
            (b"", b"\xff" * 9, chance.randbytes(1), chance.randbytes(2), b"\0", b"\1")
        )
    write_record(db, id, bytes(torn))


def _compared(db: apsw.Connection) -> str:
    try:
        return "differs" if differing(db) else "agrees"
    except DamagedIndex:
        return "damage"


# What an erasure leaves.


def on_erasure(folder: str) -> Round:
    """Two documents in a file of their own; of one nothing is left."""

    def round_(chance: random.Random) -> str:
        with tempfile.TemporaryDirectory(dir=folder) as own, Store(Path(own, "store.db")) as store:
            return _erased(chance, store)

    return round_


def _erased(chance: random.Random, store: Store) -> str:
    gone, stays = _document(chance, "gone"), _document(chance, "stays")
    stays["content"] += chance.choice(("", part(chance, gone["content"])))
    for document in (gone, stays):
        if store.answer("store_document", document)[1]:
            return "refused"
    # Shorter ones are no quotes, and still have pieces where JSON spells a letter with six bytes.
    texts = [it for it in notes.texts(gone) if len(it.encode()) >= PIECE_BYTES]
    for it in chance.sample(texts, min(3, len(texts))):
        said = part(chance, it)
        store.answer("search_documents", {"query": said})
        store.answer("query_graph", {"node": said})
        store.refused("store_document", title=" ", content=gone["content"])
    new = _document(chance, "gone")
    replaced = chance.random() < 0.5 and not store.answer("store_document", new)[1]
    if not replaced:
        store.ask("delete_document", id="gone")
    until(lambda: not store.rows("SELECT name FROM chores UNION ALL SELECT n FROM forgetting"))
    there = kept(notes.rows(new)) if replaced else kept([])
    wanted = without(secret(texts), held(store, [stays]), there)
    found = [*raw_traces(store.path, wanted), *traces_in_index(store)]
    assert not found, found[:9]
    return "replaced" if replaced else "deleted"


def _document(chance: random.Random, id: str) -> dict[str, Any]:
    ends = ("src", "rel", "dst")
    return {
        "id": id,
        "title": _name(chance),
        "content": clean(chance),
        "tags": [_name(chance) for _ in range(chance.randrange(3))],
        "relations": [{end: _name(chance) for end in ends} for _ in range(chance.randrange(3))],
    }


def _name(chance: random.Random) -> str:
    return "n" + clean(chance, 59)
