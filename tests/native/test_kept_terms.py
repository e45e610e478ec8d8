"""The terms that a ranker keeps decoded: true whatever happened since, and given from one ranker to
another. Held against FTS5 itself and the ranker's slow twin.
"""

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import Cancelled, Ranker
from hadano.plan import Kind
from tests.native.histories import ADDS, CHANGES, QUERIES, SETTINGS, SLOW_STEPS
from tests.native.ranked import agree, fresh, loaded, take

SUBSTRING, WORD, ANYWHERE = Kind


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW_STEPS)
@given(
    config=SETTINGS,
    changes=st.lists(st.one_of(ADDS, ADDS, ADDS, CHANGES), min_size=3, max_size=30),
    query=QUERIES,
)
def test_a_query_that_is_asked_after_every_change_keeps_fts5s_order(config, changes, query) -> None:
    """What its terms came to before is kept, but for the rows that changed."""
    db = fresh(**config)
    kept = Ranker(db)
    for change in changes:
        with db:
            take(db, change)
        agree(db, kept, query)
    kept.close()


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW_STEPS)
@given(
    config=SETTINGS,
    before=st.lists(CHANGES, min_size=1, max_size=10),
    between=st.lists(st.one_of(ADDS, ADDS, CHANGES), max_size=3),
    used=st.booleans(),
    query=QUERIES,
)
def test_what_one_ranker_decoded_serves_another_whatever_happened_since(
    config, before, between, used, query
) -> None:
    db = fresh(**config)
    with db:
        for change in before:
            take(db, change)
    other, kept = Ranker(db), Ranker(db)
    agree(db, other, query)
    if used:
        agree(db, kept, query[:1])
    for change in between:
        with db:
            take(db, change)
        if used:
            agree(db, kept, query[:1])
    other.close()
    with db:
        kept.adopt(other)
    agree(db, kept, query)
    with db:
        assert not kept.adopt(other) or used
    agree(db, kept, query)
    kept.close()


def test_terms_of_another_ranker_are_taken_whatever_happened_since() -> None:
    db = fresh()
    with db:
        take(db, ("add", "", ["function"] * 3_000))
    kept = Ranker(db)
    agree(db, kept, [(SUBSTRING, "some")])
    for change in (("add", "", ["some other function"]), ("remove", 1), ("tell", "optimize", 0)):
        other = Ranker(db)
        agree(db, other, [(SUBSTRING, "function")])
        with db:
            take(db, change)
        agree(db, kept, [(SUBSTRING, "some")])
        with db:
            assert kept.adopt(other)
        assert kept.cached_bytes > 3_000
        agree(db, kept, [(SUBSTRING, "function")])


def test_of_terms_made_ready_those_that_there_is_room_for_are_kept() -> None:
    db = fresh()
    with db:
        take(db, ("add", "", ["amber basalt cobalt"]))
    amber, basalt, cobalt = ((SUBSTRING, text) for text in ("amber", "basalt", "cobalt"))
    ranker = Ranker(db)
    with db:
        assert ranker.make_ready(*amber)
        size = ranker.cached_bytes
        assert ranker.make_ready(*amber)
        assert ranker.cached_bytes == size
    ranker = Ranker(db, cache_bytes=2 * size)
    with db:
        assert [ranker.make_ready(*term) for term in (amber, basalt, cobalt)] == [True, True, False]
        assert [ranker.make_ready(*term) for term in (amber, basalt, cobalt)] == [True, True, False]
    assert ranker.cached_bytes == 2 * size
    agree(db, ranker, [amber, basalt, cobalt])


def test_of_terms_taken_from_another_the_last_go_first() -> None:
    db = fresh()
    texts = ["amber", "basalt", "cobalt", "dolomite", "emerald"]
    with db:
        take(db, ("add", "", texts))
    one = Ranker(db)
    with db:
        one.make_ready(SUBSTRING, "emerald")
    for room, left in ((5, texts), (3, ["amber", "basalt", "emerald"]), (1, ["emerald"])):
        other, kept = Ranker(db), Ranker(db, cache_bytes=room * one.cached_bytes)
        with db:
            kept.make_ready(SUBSTRING, "emerald")
            for text in texts[:4]:
                other.make_ready(SUBSTRING, text)
            assert kept.adopt(other)
            assert [text for text in texts if kept.make_ready(SUBSTRING, text)] == left
        agree(db, kept, [(SUBSTRING, text) for text in texts])


def test_terms_of_a_ranker_with_room_for_more_rows_are_fitted_into_what_there_is() -> None:
    """How many rows there is room for is a matter of when a ranker first looked."""
    db = fresh()
    db.execute("INSERT INTO sqlite_sequence VALUES('chunks', 1000000)")
    with db:
        take(db, ("add", "", ["function"]))
    kept = Ranker(db)
    agree(db, kept, [(SUBSTRING, "function")])
    db.execute("UPDATE sqlite_sequence SET seq = 1490000")
    with db:
        take(db, ("add", "", ["function"]))
    other = Ranker(db)
    rare = [(SUBSTRING, f"word{number}") for number in range(20)]
    agree(db, other, rare)
    with db:
        kept.adopt(other)
    agree(db, kept, rare)
    with db:
        take(db, ("add", "", [text for _, text in rare]))
    agree(db, kept, rare)
    kept.close()


def test_a_cut_ends_the_counting_of_terms_in_changed_rows(filled: apsw.Connection) -> None:
    """A thousand terms in a thousand rows take longer than a call has."""
    ranker = Ranker(filled)
    agree(filled, ranker, [(SUBSTRING, "function")])
    with filled:
        take(filled, ("add", "", ["function"]))
    ranker.cancel()
    with filled, pytest.raises(Cancelled):
        ranker.rank([(SUBSTRING, "function")], 3, 1000)
    assert ranker.cached_bytes == 0
    ranker.resume()
    agree(filled, ranker, [(SUBSTRING, "function")])


def test_terms_of_a_state_that_is_yet_to_come_are_not_taken(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    with closing(fresh(path)) as db, closing(loaded(path)) as ahead:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        with db:
            take(db, ("add", "", ["function", "some function"]))
        kept, other = Ranker(db), Ranker(ahead)
        for change in (("add", "", ["a function"]), ("remove", 0)):
            with db:
                agree(db, kept, [(SUBSTRING, "function")])
                with ahead:
                    take(ahead, change)
                agree(ahead, other, [(SUBSTRING, "function")])
                other.close()
                assert not kept.adopt(other)
                agree(db, kept, [(SUBSTRING, "function")])
            other = Ranker(ahead)
        kept.close()
        other.close()


CHANGES_KEPT = (
    ("add", "", ["some other function"]),
    ("retitle", 0, "again"),
    ("remove", 1),
    ("replace", 2, "a function of another kind"),
    ("tell", "optimize", 0),
    ("tell", "merge", -16),
)


def test_terms_stay_decoded_whatever_is_done_to_the_index() -> None:
    """What is kept takes the bytes of 3,000 postings throughout; one term alone is asked for."""
    db = fresh()
    with db:
        take(db, ("add", "title", ["function"] * 3_000))
        for n in range(3):
            take(db, ("add", "title", [f"function {n}"]))
    ranker = Ranker(db)
    agree(db, ranker, [(SUBSTRING, "function")])
    for change in CHANGES_KEPT:
        with db:
            take(db, change)
        agree(db, ranker, [(SUBSTRING, "some")])
        assert ranker.cached_bytes > 6_000
        agree(db, ranker, [(SUBSTRING, "function")])


def test_counts_too_great_for_a_posting_are_exact_whatever_changes() -> None:
    db = fresh()
    with db:
        for n in range(60, 70):
            take(db, ("add", "", ["function " * n]))
    kept = Ranker(db)
    asked = [(SUBSTRING, "function")]
    agree(db, kept, asked)
    for change in (
        ("retitle", 2, "function " * 3),
        ("retitle", 3, "function " * 5),
        ("retitle", 2, ""),
        ("remove", 8),
        ("replace", 0, "function " * 64),
        ("replace", 4, "function " * 2),
    ):
        with db:
            take(db, change)
        agree(db, kept, asked)
        agree(db, Ranker(db), asked)


def test_what_dropped_out_of_the_list_of_changes_is_decoded_anew() -> None:
    db = fresh()
    with db:
        for n in range(30):
            take(db, ("add", "title", [f"function {n}"]))
    ranker = Ranker(db)
    agree(db, ranker, [(SUBSTRING, "function")])
    with db:
        for _ in range(5):
            take(db, ("remove", 3))
        db.execute("DELETE FROM chunks_unindexed WHERE n < 3")
    agree(db, ranker, [(SUBSTRING, "function")])


def test_a_change_that_nobody_noted_is_seen_by_the_sums() -> None:
    db = fresh()
    with db:
        take(db, ("add", "title", ["function", "another function"]))
    ranker = Ranker(db)
    agree(db, ranker, [(SUBSTRING, "function")])
    with db:
        take(db, ("remove", 0))
        take(db, ("add", "title", ["a function"]))
        db.execute("DELETE FROM chunks_unindexed")
    agree(db, ranker, [(SUBSTRING, "function")])


def test_more_changes_than_are_remembered_are_read_from_the_index() -> None:
    db = fresh()
    with db:
        take(db, ("add", "title", ["function"]))
    ranker = Ranker(db)
    query = [(SUBSTRING, "function"), (ANYWHERE, "f")]
    agree(db, ranker, query)
    for n in (400, 400, 600):
        with db:
            take(db, ("add", "title", [f"function {n} {i}" for i in range(n)]))
        agree(db, ranker, query[1:])
    agree(db, ranker, query)
