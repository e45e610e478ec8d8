"""The compiled eraser against FTS5's own secure-delete, on small random stores.

What an erasure leaves of a document's text anywhere in a file is looked for in
tests/reliability; here are the states of an index that its documents alone would hardly bring
about: many segments, merges half done, doclists and position lists over many pages.
"""

import random
from collections.abc import Iterable
from contextlib import closing

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import Cancelled, DamagedIndex, Eraser
from tests.native.ranked import _unindex, fresh, take, tell
from tests.native.test_agreement import differing, sound
from tests.native.test_ranker import SETTINGS, SLOW_STEPS, TEXTS, TITLES
from tests.oracle import postings
from tests.reliability import segments
from tests.reliability.examiner import index_traces

ADD = st.tuples(st.just("add"), TITLES, st.lists(TEXTS, min_size=1, max_size=4))
OURS = (
    ADD,
    ADD,
    st.tuples(st.just("erase"), st.integers(0, 50)),
    st.tuples(st.just("retitle"), st.integers(0, 50), TITLES),
    st.tuples(st.just("tell"), st.sampled_from(["optimize", "merge"]), st.just(-4)),
)
FTS5S = st.tuples(st.just("remove"), st.integers(0, 50))


def steps(*kinds: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(st.one_of(*kinds), min_size=3, max_size=30)


def copy_of(db: apsw.Connection) -> apsw.Connection:
    copy = fresh()
    copy.deserialize("main", db.serialize("main"))
    return copy


def erase(db: apsw.Connection, rows: Iterable[int]) -> int:
    """Takes the chunks out of the index; how many of their postings were not there."""
    with closing(Eraser(db)) as eraser:
        eraser.begin(rows)
        while eraser.step():
            pass
        return eraser.lacking


def forget(db: apsw.Connection, rows: Iterable[int]) -> None:
    """Takes the chunks out of the table that the index is of, and documents that are left with
    none."""
    db.executemany("DELETE FROM chunks WHERE id = ?", [(row,) for row in rows])
    db.execute("DELETE FROM docs WHERE n NOT IN (SELECT doc FROM chunks)")


def pages(db: apsw.Connection) -> dict[int, bytes]:
    """All of the index but indexes of doclists."""
    return {
        id: block
        for id, block in db.execute("SELECT id, block FROM chunks_fts_data")
        if not id & segments.DOCLIST_INDEX_BIT
    }


def mark_as_erased_from(db: apsw.Connection) -> None:
    """Has FTS5 note that rows were erased, as it does when it erases one."""
    tell(db, "secure-delete", 1)
    with db:
        db.execute("INSERT INTO chunks_fts(rowid, text) VALUES(0, 'abc')")
        db.execute("INSERT INTO chunks_fts(chunks_fts, rowid, text) VALUES('delete', 0, 'abc')")


def go(db: apsw.Connection, step: tuple) -> None:
    """A step of a history in which a row of the index that is replaced was erased before."""
    if step[0] not in ("erase", "retitle"):
        take(db, step)
        return
    docs = [n for (n,) in db.execute("SELECT n FROM docs ORDER BY n")]
    if not docs:
        return
    doc = docs[step[1] % len(docs)]
    rows = [row for (row,) in db.execute("SELECT id FROM chunks WHERE doc = ? ORDER BY 1", (doc,))]
    if step[0] == "erase":
        assert erase(db, rows) == 0
        forget(db, rows)
    else:
        assert erase(db, rows[:1]) == 0
        db.execute("UPDATE docs SET title = ?1, title_form = ?1 WHERE n = ?2", (step[2], doc))
        db.execute(
            "INSERT INTO chunks_fts(rowid, text, title, words)"
            " SELECT id, text, title, words FROM chunks_indexed WHERE id = ?",
            rows[:1],
        )


def history(config: dict[str, int], steps: Iterable[tuple]) -> apsw.Connection:
    db = fresh(**config)
    mark_as_erased_from(db)
    tell(db, "secure-delete", config["secure-delete"])
    for step in steps:
        with db:
            go(db, step)
    return db


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW_STEPS)
@given(config=SETTINGS, steps=steps(*OURS, FTS5S), chance=st.randoms(use_true_random=False))
def test_what_is_left_is_to_the_byte_what_fts5_leaves(config, steps, chance) -> None:
    db = history(config, steps)
    tell(db, "secure-delete", 1)
    rows = [row for (row,) in db.execute("SELECT id FROM chunks ORDER BY id")]
    rows = sorted(chance.sample(rows, chance.randint(0, len(rows))))
    twin = copy_of(db)
    with twin:
        for row in rows:
            _unindex(twin, row)
    with db:
        assert erase(db, rows) == 0
    assert pages(db) == pages(twin)
    sizes = "SELECT * FROM chunks_fts_docsize ORDER BY id"
    assert db.execute(sizes).fetchall() == twin.execute(sizes).fetchall()


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_STEPS)
@given(config=SETTINGS, steps=steps(*OURS), chance=st.randoms(use_true_random=False))
def test_nothing_names_a_row_or_a_term_that_is_gone(config, steps, chance) -> None:
    db = history(config, steps)
    rows = [row for (row,) in db.execute("SELECT id FROM chunks ORDER BY id")]
    rows = chance.sample(rows, chance.randint(0, len(rows)))
    others = spots_without(db, rows)
    with db:
        assert erase(db, rows) == 0
        forget(db, rows)
    assert index_traces(db) == []
    assert spots_without(db, []) == others
    assert sound(db)
    assert differing(db) == []
    tell(db, "optimize", 0)
    assert spots_without(db, []) == others
    assert sound(db)


def spots_without(db: apsw.Connection, rows: list[int]) -> postings.Spots:
    return {
        term: left
        for term, spots in postings.spots(db).items()
        if (left := {spot: at for spot, at in spots.items() if spot[0] not in rows})
    }


def filled(page_bytes: int = 64) -> apsw.Connection:
    """An index of several segments, with doclists and position lists over many pages."""
    chance = random.Random(1)
    db = fresh(pgsz=page_bytes, automerge=0)
    mark_as_erased_from(db)
    for _ in range(6):
        with db:
            for _ in range(12):
                words = chance.choices(["function", "the", "go", "on", "東京", "ab" * 40], k=60)
                take(db, ("add", "a title", [" ".join(words), "aaa" * 50]))
    return db


def test_an_index_of_a_long_doclist_names_no_row_that_is_gone() -> None:
    db = filled(200)
    tell(db, "optimize", 0)
    blobs = dict(db.execute("SELECT id, block FROM chunks_fts_data"))
    assert len(list(segments.rows_of_doclist_indexes(blobs))) > 20
    rows = [row for (row,) in db.execute("SELECT id FROM chunks ORDER BY id")]
    for gone in (rows[60:90], rows[:30], rows[100:], rows[30:60] + rows[90:100]):
        with db:
            assert erase(db, gone) == 0
            forget(db, gone)
        assert index_traces(db) == []
        assert sound(db)
        assert postings.by_fts5(db, [(0, "function")]) == postings.by_counting(
            db, [(0, "function")]
        )


def test_a_marker_of_a_row_stays_for_an_older_segment_may_have_it() -> None:
    db = fresh(automerge=0)
    take(db, ("add", "first", ["some text"]))
    take(db, ("retitle", 0, "second"))
    mark_as_erased_from(db)
    with db:
        erase(db, [1])
        forget(db, [1])
    assert postings.spots(db) == {}
    tell(db, "optimize", 0)
    assert postings.spots(db) == {}
    assert sound(db)


def test_postings_that_the_index_lacks_are_counted() -> None:
    db = filled()
    db.execute("UPDATE chunks SET text = 'xyz', form = NULL WHERE id = 7")
    with db:
        # "xyz", "yz\\n" and "z\\n\\n"
        assert erase(db, [7]) == 3


def test_an_erasure_that_is_cancelled_ends_and_can_be_undone() -> None:
    db = filled()
    before = pages(db)
    eraser = Eraser(db)
    db.execute("BEGIN")
    eraser.begin(range(1, 60))
    assert eraser.step()
    eraser.cancel()
    with pytest.raises(Cancelled):
        eraser.step()
    eraser.resume()
    db.execute("ROLLBACK")
    assert pages(db) == before
    eraser.close()
    with db:
        assert erase(db, range(1, 60)) == 0


def test_a_damaged_page_is_damage_or_does_not_matter() -> None:
    db = filled()
    chance = random.Random(3)
    ids = [id for (id,) in db.execute("SELECT id FROM chunks_fts_data WHERE id > 10")]
    damaged = 0
    for _ in range(100):
        db.execute("SAVEPOINT whole")
        id = chance.choice(ids)
        ((block,),) = db.execute("SELECT block FROM chunks_fts_data WHERE id = ?", (id,))
        torn = bytearray(block)
        torn[chance.randrange(len(torn))] = chance.choice([0, 1, 4, 127, 128, 255])
        db.execute("UPDATE chunks_fts_data SET block = ? WHERE id = ?", (bytes(torn), id))
        try:
            erase(db, range(1, 145))
        except DamagedIndex:
            damaged += 1
        db.execute("ROLLBACK TO whole; RELEASE whole")
    assert damaged > 3


def test_erasing_outside_a_transaction_is_refused() -> None:
    eraser = Eraser(fresh())
    with pytest.raises(ValueError, match="open transaction"):
        eraser.begin([1])
    with pytest.raises(ValueError, match="open transaction"):
        eraser.step()
