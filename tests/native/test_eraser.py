"""The compiled eraser against FTS5's own secure-delete, on small random stores.

What an erasure leaves of a document's text anywhere in a file is looked for in
tests/reliability; here are the states of an index that its documents alone would hardly bring
about: many segments, merges half done, doclists and position lists over many pages.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import Cancelled, DamagedIndex, Eraser
from tests.native.erased import (
    copy_of,
    erase,
    filled,
    mark_as_erased_from,
    outcome,
    record,
    write_record,
)
from tests.native.histories import SETTINGS, SLOW_STEPS, TEXTS, TITLES
from tests.native.ranked import differing, fresh, sound, take, tell, unindex
from tests.oracle import postings
from tests.reliability import segments
from tests.reliability.examiner import index_traces
from tests.reliability.pages import big
from tests.reliability.pages import varint as read_varint
from tests.tools.store import Store

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


def forget(db: apsw.Connection, rows: Iterable[int]) -> None:
    """Takes the chunks out of the table that the index is of, and documents that are left with
    none."""
    db.executemany("DELETE FROM chunks WHERE id = ?", [(row,) for row in rows])
    db.execute("DELETE FROM docs WHERE n NOT IN (SELECT doc FROM chunks)")


def whole(db: apsw.Connection) -> list[list[tuple]]:
    """All of the index's tables."""
    return [
        db.execute(f"SELECT * FROM chunks_fts_{table} ORDER BY 1, 2").fetchall()
        for table in ("data", "idx", "docsize", "config")
    ]


def pages(db: apsw.Connection) -> dict[int, bytes]:
    """All of the index but indexes of doclists."""
    return {
        id: block
        for id, block in db.execute("SELECT id, block FROM chunks_fts_data")
        if not id & segments.DOCLIST_INDEX_BIT
    }


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
            unindex(twin, row)
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


def test_a_separator_names_no_term_that_a_merge_under_way_took_with_it() -> None:
    """FTS5 cuts what it has merged from an older segment's first leaf, and lets the separator be:
    it may name a term that only the new segment has."""
    named = 0
    for pages_merged in range(2, 40):
        db = fresh(pgsz=64, automerge=0, **{"secure-delete": 0})
        mark_as_erased_from(db)
        chance = random.Random(pages_merged)
        for _ in range(6):
            with db:
                for _ in range(4):
                    take(db, ("add", "", ["".join(chance.choices("abcdefghijklmnop", k=60))]))
        tell(db, "merge", -pages_merged)
        cut = {it.id: it.first for it in segments.structure(record(db, 10)) if it.first > 1}
        separators = [
            term[1:].decode()
            for segment, first in cut.items()
            for (term,) in db.execute(
                "SELECT term FROM chunks_fts_idx WHERE segid = ? AND pgno >> 1 = ?",
                (segment, first),
            )
            if len(term) == 4
        ]
        rows = {row for term in separators for row in postings.by_fts5(db, [(0, term)])}
        named += len(separators)
        with db:
            assert erase(db, rows) == 0
            forget(db, rows)
        assert index_traces(db) == []
        assert sound(db)
        assert differing(db) == []
    assert named > 20


def test_postings_that_the_index_lacks_are_counted() -> None:
    db = filled()
    db.execute("UPDATE chunks SET text = 'xyz', form = NULL WHERE id = 7")
    with db:
        # "xyz", "yz\\n" and "z\\n\\n"
        assert erase(db, [7]) == 3


def test_every_codepoint_of_a_text_is_looked_for_as_fts5_keeps_it() -> None:
    db = fresh()
    mark_as_erased_from(db)
    letters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    with db:
        for start in range(0, len(letters), 800):
            take(db, ("add", "", ["".join(letters[start : start + 800])]))
    rows = [row for (row,) in db.execute("SELECT id FROM chunks")]
    with db:
        assert erase(db, rows) == 0
        forget(db, rows)
    assert index_traces(db) == []


def test_an_erasure_that_is_cancelled_ends_and_can_be_undone() -> None:
    db = filled(200)
    tell(db, "optimize", 0)
    before = whole(db)
    eraser = Eraser(db)
    db.execute("BEGIN")
    eraser.begin(range(1, 60))
    assert eraser.step()
    eraser.cancel()
    with pytest.raises(Cancelled):
        eraser.step()
    eraser.resume()
    db.execute("ROLLBACK")
    assert whole(db) == before
    eraser.close()
    with db:
        assert erase(db, range(1, 60)) == 0


def of_long_position_lists() -> apsw.Connection:
    """A store of three chunks, each with the same two trigrams on some hundred leaves."""
    db = fresh(pgsz=64, automerge=0)
    mark_as_erased_from(db)
    for _ in range(3):
        take(db, ("add", "", ["ab" * 30_000]))
    return db


def test_an_erasure_that_is_cancelled_reads_no_further_leaf() -> None:
    """However many a doclist has to be gone through for one row."""
    db = of_long_position_lists()
    tell(db, "optimize", 0)
    done: list[None] = []
    with db, closing(Eraser(db)) as eraser:
        eraser.begin([3])

        def count() -> bool:
            eraser.cancel()
            done.append(None)
            return False

        db.set_progress_handler(count, 1)
        with pytest.raises(Cancelled):
            eraser.step()
        db.set_progress_handler(None)
    assert 0 < len(done) < 100


def test_a_long_doclist_is_erased_in_steps_of_some_hundred_leaves() -> None:
    db = of_long_position_lists()
    leaves = len(pages(db))
    assert leaves > 2_000
    rows = [row for (row,) in db.execute("SELECT id FROM chunks")]
    steps = 1
    with db, closing(Eraser(db)) as eraser:
        eraser.begin(rows)
        while eraser.step():
            steps += 1
        assert eraser.lacking == 0
    assert steps > leaves // 256
    forget(db, rows)
    assert index_traces(db) == []
    assert sound(db)


def varint(value: int) -> bytes:
    """A number below 2**56 as SQLite writes it."""
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F | 0x80)
    return bytes(reversed(digits))


@pytest.mark.parametrize(
    "averages",
    [
        b"\x03" + b"\xff" * 9 + b"\x10\x10",
        b"\x03" + varint(1 << 53) + b"\x10\x10",
        b"\x00\x10\x10\x10",
        b"\x03\x00\x00\x00",
        b"\x03\x7f\x7f",
    ],
    ids=["above all", "too great", "no rows", "no tokens", "cut off"],
)
def test_averages_that_cannot_be_are_damage(averages) -> None:
    db = fresh()
    mark_as_erased_from(db)
    for text in ("one text", "another", "a third"):
        take(db, ("add", "title", [text]))
    write_record(db, segments.AVERAGES_ID, averages)
    with db, pytest.raises(DamagedIndex):
        erase(db, [2])
    assert record(db, segments.AVERAGES_ID) == averages


def structure(*listed: tuple[int, int, int]) -> bytes:
    """A structure record of one level with these segments."""
    numbers = [1, len(listed), 9, 0, len(listed), *(n for segment in listed for n in segment)]
    return bytes(4) + b"".join(map(varint, numbers))


@pytest.mark.parametrize(
    "listed",
    [
        [(0, 0, 0), (1, 1, 1)],
        [(0, 1, 1), (1, 1, 1)],
        [(2_001, 0, 0), (1, 1, 1)],
        [(1, 0, 0), (1, 1, 1)],
        [(1, 1, 1), (1, 1, 1)],
        [(1, 0, 1)],
        [(1, 2, 1)],
        [(1, 1, 1 << 31)],
    ],
    ids=[
        "id 0, emptied",
        "id 0",
        "id above all",
        "twice, emptied",
        "twice",
        "emptied, not empty",
        "backwards",
        "endless",
    ],
)
def test_a_structure_that_cannot_be_is_damage_and_nothing_is_removed(listed) -> None:
    db = fresh()
    take(db, ("add", "title", ["some text"]))
    assert segments.structure(record(db, segments.STRUCTURE_ID)) == [(1, 1, 1)]
    assert outcome(db, [1]) == "erased"
    write_record(db, segments.STRUCTURE_ID, structure(*listed))
    before = whole(db)
    with db, closing(Eraser(db)) as eraser, pytest.raises(DamagedIndex):
        eraser.begin([1])
    assert whole(db) == before


@pytest.mark.parametrize("row", [1, 1 << 31], ids=["of a leaf before", "above all"])
def test_a_first_row_of_a_leaf_that_cannot_be_is_found(row) -> None:
    db = filled(200)
    tell(db, "optimize", 0)
    blobs = dict(db.execute("SELECT id, block FROM chunks_fts_data"))
    index, head = list(segments.rows_of_doclist_indexes(blobs))[3]
    leaf = (index ^ segments.DOCLIST_INDEX_BIT) + 1
    outcomes = []
    while len(block := blobs[leaf]) == big(block, 2, 2):
        if first := big(block, 0, 2):
            _, after = read_varint(block, first)
            torn = block[:first] + varint(row) + block[after:]
            write_record(db, leaf, torn[:2] + len(torn).to_bytes(2) + torn[4:])
            outcomes.append(outcome(db, [head]))
            write_record(db, leaf, block)
        leaf += 1
    assert outcomes.count("damage") > 1
    assert outcome(db, [head]) == "erased"


def test_damage_anywhere_is_damage_or_does_not_matter() -> None:
    db = filled()
    chance = random.Random(3)
    outcomes = Counter()
    ids = [id for (id,) in db.execute("SELECT id FROM chunks_fts_data")]
    fixed = [segments.AVERAGES_ID, segments.STRUCTURE_ID]
    for _ in range(300):
        db.execute("SAVEPOINT whole")
        id = chance.choice(chance.choice((ids, fixed)))
        torn = bytearray(record(db, id))
        # The first bytes of a leaf tell where its first row is, which often is the next.
        at = chance.choice((chance.randrange(len(torn)), chance.randrange(min(6, len(torn)))))
        torn[at] = chance.choice([0, 1, 4, 127, 128, 255])
        write_record(db, id, bytes(torn))
        outcomes[outcome(db, range(1, 145))] += 1
        db.execute("ROLLBACK TO whole; RELEASE whole")
    assert outcomes.keys() == {"damage", "lacking", "erased"}


def test_erasing_outside_a_transaction_is_refused() -> None:
    eraser = Eraser(fresh())
    with pytest.raises(ValueError, match="open transaction"):
        eraser.begin([1])
    with pytest.raises(ValueError, match="open transaction"):
        eraser.step()


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    with Store(tmp_path / "store.db") as store:
        store.put("some text of it", "title", id="a")
        store.put("of another", "title", id="b")
        yield store


def test_a_document_that_the_index_lacks_is_damage_and_stays(store: Store) -> None:
    store.rows(
        "INSERT INTO chunks_fts(chunks_fts, rowid, text, title, words)"
        " SELECT 'delete', id, text, '', '' FROM chunks_indexed WHERE id = 1"
    )
    assert store.refused("delete_document", id="a") == "E_INTEGRITY"
    retitled = {"id": "a", "title": "new", "content": "some text of it"}
    assert store.refused("store_document", **retitled) == "E_INTEGRITY"
    assert store.ask("get_document", id="a")["content"] == "some text of it"
    assert store.ask("delete_document", id="b")["erased"] is True


@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET v = 'five'"])
def test_an_index_that_does_not_tell_its_version_is_damage(store: Store, change) -> None:
    store.rows(change.format("chunks_fts_config") + " WHERE k = 'version'")
    assert store.refused("delete_document", id="a") == "E_INTEGRITY"
