"""The comparison of index and text, with FTS5's own integrity check for its judge."""

import random
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano import status
from hadano._native import Agreement, DamagedIndex
from hadano.connection import Connection
from tests.native.histories import CHANGES, SETTINGS, SLOW_STEPS, STEPS
from tests.native.ranked import differing, fresh, sound, take
from tests.oracle import postings


def whole(text: str) -> str:
    return f"UPDATE chunks SET form = {text}, text = {text} WHERE id = ?1"


INDEXED = "SELECT id, text, title, words FROM chunks_indexed WHERE id = ?1"
#: What may have happened to a chunk that its index knows nothing of.
TAMPERING = {
    "a letter of the text": whole("'x' || substr(form, 2)"),
    "the order of the text": whole("substr(form, 9) || substr(form, 1, 8)"),
    "the end of the text": whole("form || 'more'"),
    "the text for the title": """
        UPDATE docs SET title_form = (SELECT substr(form, 1, length(title_form)) FROM chunks
        WHERE id = ?1) WHERE n = (SELECT doc FROM chunks WHERE id = ?1 AND seq = 0)
    """,
    "a short word": "UPDATE chunks SET words = replace(words, 'o', 'a') WHERE id = ?1",
    "the row of the index": f"""
        INSERT INTO chunks_fts(chunks_fts, rowid, text, title, words)
        SELECT 'delete', * FROM ({INDEXED})
    """,
    "half of the row of the index": f"""
        INSERT INTO chunks_fts(chunks_fts, rowid, text, title, words)
        SELECT 'delete', id, substr(text, 1, length(text) / 2), title, words FROM ({INDEXED})
    """,
    "the sizes": "UPDATE chunks_fts_docsize SET sz = x'010203' WHERE id = ?1",
    "the sizes, which are none": "UPDATE chunks_fts_docsize SET sz = x'' WHERE id = ?1",
}


def filled() -> apsw.Connection:
    db = fresh(pgsz=100, automerge=0, crisismerge=16)
    chance = random.Random(1)
    words = ["function", "functions", "the", "go", "on", "rollback", "愛する", "東京"]
    for _ in range(6):
        with db:
            for _ in range(5):
                text = " ".join(["function go", *chance.choices(words, k=60)])
                take(db, ("add", "a title " + chance.choice(words), [text]))
    return db


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_STEPS)
@given(config=SETTINGS, steps=STEPS)
def test_after_any_history_index_and_text_agree(config, steps) -> None:
    db = fresh(**config)
    for step in steps:
        if step[0] != "commit":
            take(db, step)
    assert sound(db)
    assert differing(db) == []


@pytest.mark.parametrize("row", [1, 17, 30])
@pytest.mark.parametrize("what", TAMPERING)
def test_what_was_changed_behind_the_indexs_back_is_found_and_no_more(what: str, row: int) -> None:
    db = filled()
    assert differing(db) == []
    db.execute(TAMPERING[what], (row,))
    assert not sound(db)
    restore_averages(db)
    assert differing(db) == [row]


def restore_averages(db: apsw.Connection) -> None:
    """The index's own account of its rows, as their sizes have it."""
    sizes = [postings.varints(size) for (size,) in db.execute("SELECT sz FROM chunks_fts_docsize")]
    record = [len(sizes), *(sum(column) for column in zip_longest(*sizes, fillvalue=0))]
    db.execute("UPDATE chunks_fts_data SET block = ? WHERE id = 1", (as_varints(record),))


def as_varints(numbers: list[int]) -> bytes:
    """A record of SQLite varints, all below 2**14."""
    return b"".join(bytes([n >> 7 | 0x80, n & 0x7F]) for n in numbers)


def test_a_row_that_the_index_counts_twice_is_damage() -> None:
    db = filled()
    db.execute(f"INSERT INTO chunks_fts(rowid, text, title, words) {INDEXED}", (5,))
    assert not sound(db)
    with pytest.raises(DamagedIndex, match="averages"):
        differing(db)
    restore_averages(db)
    assert differing(db) == []


def differing_within(db: apsw.Connection) -> list[int]:
    """The rows that differ, compared in the transaction that is open."""
    with closing(Agreement(db)) as agreement:
        while agreement.step():
            pass
        return agreement.differing()


def test_a_row_of_the_index_that_is_newer_than_all_chunks_is_found() -> None:
    db = filled()
    db.execute("INSERT INTO chunks_fts(rowid, text, title, words) VALUES(99, 'ghost', '', '')")
    db.execute("DELETE FROM chunks_fts_docsize WHERE id = 99")
    restore_averages(db)
    assert differing(db) == [99]


def test_characters_that_fts5_folds_or_replaces_agree() -> None:
    db = fresh()
    take(db, ("add", "ÀÉ Straße ﬁ", ["Ab\ufffeC d\uffff \U0001f600\U00010400 ΑΣ İı ǅ \x7f\x1f |"]))
    assert sound(db)
    assert differing(db) == []


def test_a_doclist_longer_than_a_step_does_not_hold_the_comparison_up() -> None:
    """To go on at `aab`, which is in the newer segment, the older one's 300 leaves of `aaa` are
    passed by."""
    db = fresh(pgsz=32, automerge=0, crisismerge=16)
    for texts in (["a" * 800] * 20, ["aab"]):
        with db:
            take(db, ("add", "title", texts))
    with closing(Agreement(db)) as agreement:
        for _ in range(10_000):
            with db:
                if not agreement.step():
                    break
        else:
            pytest.fail("the comparison goes round in a circle")
        assert agreement.differing() == []


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW_STEPS)
@given(first=st.lists(CHANGES, min_size=5, max_size=30), meanwhile=st.lists(CHANGES, max_size=8))
def test_only_what_is_written_meanwhile_may_seem_to_differ(first, meanwhile) -> None:
    db = fresh(pgsz=32, automerge=2, usermerge=2)
    for change in first:
        take(db, change)
    before = dict(db.execute("SELECT id, text || title || words FROM chunks_indexed").fetchall())
    with closing(Agreement(db)) as agreement:
        with db:
            more = agreement.step()
        for change in meanwhile:
            take(db, change)
        while more:
            with db:
                more = agreement.step()
        found = set(agreement.differing())
    after = dict(db.execute("SELECT id, text || title || words FROM chunks_indexed").fetchall())
    assert found <= {row for row in before.keys() | after if before.get(row) != after.get(row)}
    assert differing(db) == []


def test_a_damaged_page_is_damage_or_a_difference() -> None:
    """FTS5 may well be content with a page whose damage nobody reads."""
    db = filled()
    chance = random.Random(3)
    ids = [id for (id,) in db.execute("SELECT id FROM chunks_fts_data WHERE id > 10")]
    found = 0
    for _ in range(300):
        db.execute("SAVEPOINT whole")
        id = chance.choice(ids)
        ((block,),) = db.execute("SELECT block FROM chunks_fts_data WHERE id = ?", (id,))
        torn = bytearray(block)
        torn[chance.randrange(len(torn))] = chance.choice([0, 1, 4, 127, 128, 255])
        db.execute("UPDATE chunks_fts_data SET block = ? WHERE id = ?", (bytes(torn), id))
        try:
            found += differing_within(db) != []
        except DamagedIndex:
            found += 1
        db.execute("ROLLBACK TO whole; RELEASE whole")
    assert found > 200


def test_comparing_outside_a_transaction_is_refused() -> None:
    agreement = Agreement(fresh())
    with pytest.raises(ValueError, match="open transaction"):
        agreement.step()


def test_a_letter_changed_behind_the_services_back_is_seen_at_the_next_start(
    tmp_path: Path,
) -> None:
    """The lengths are as they were, so nothing but a comparison of all can tell."""
    path = str(tmp_path / "store.db")
    with closing(Connection(path)) as db:
        with db.change():
            db.run(
                "INSERT INTO docs(id, title, tags, sha256, created_at, updated_at, content)"
                " VALUES('a', 'title', '[]', '', '', '', 'the text')"
            )
            db.run("INSERT INTO chunks(doc, seq, text, words) VALUES(1, 0, 'the text', '')")
            db.run(f"INSERT INTO chunks_fts(rowid, text, title, words) {INDEXED}", (1,))
        assert status.index_agrees(db)
        db.run("UPDATE chunks SET text = 'the test'")
        assert not status.index_agrees(db)
        db.run("UPDATE chunks SET text = 'the text'")
        assert status.index_agrees(db)
