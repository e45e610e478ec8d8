"""Phrases of a few rows whose trigrams most rows have: the ranker tells them by the rows' texts.

The stores of test_ranker.py are too small for that: an index has to be long beside what is rare in
it. FTS5 and the slow twin are the oracles here too.
"""

from contextlib import closing

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import DamagedIndex, Ranker
from hadano.plan import Kind
from tests.native.ranked import add, agree, form, fresh, loaded, ranking, take
from tests.oracle import postings

CROWD = ["abcabcab bcabca cabcabé 東京都東京都", "\nabc\n\nabcéabc abéab 京都東京都東"] * 100
LETTERS = "aabbccxX東京é \n\ufffe\ufffd"
TEXTS = st.text(LETTERS, max_size=40).map(lambda text: f"{text}xabcabc{text}")
TITLES = st.text(LETTERS, max_size=12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), TITLES, st.lists(TEXTS, min_size=1, max_size=3)),
        st.tuples(st.just("replace"), st.integers(0, 300), TEXTS),
        st.tuples(st.just("retitle"), st.integers(190, 300), TITLES),
        st.tuples(st.just("remove"), st.integers(0, 300)),
    ),
    min_size=2,
    max_size=12,
)
PHRASES = st.one_of(
    st.sampled_from(["xabca", "abcx", "cxab", "xabcabc", "bcabcxabcab", "xxabc"]),
    st.text(LETTERS, min_size=4, max_size=9),
).map(form)
QUERIES = st.lists(
    PHRASES.filter(lambda text: len(text) >= 3).map(lambda text: (Kind.SUBSTRING, text)),
    min_size=1,
    max_size=3,
    unique=True,
)


@pytest.fixture(scope="module", params=[32, 200])
def crowded(request: pytest.FixtureRequest) -> bytes:
    """A store of 200 rows that are alike, on small leaves."""
    with closing(fresh(pgsz=request.param, automerge=0)) as db:
        with db:
            for text in CROWD:
                add(db, "abcab", [text])
        return db.serialize("main")


def opened(store: bytes) -> apsw.Connection:
    db = loaded(":memory:")
    db.deserialize("main", store)
    return db


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, query=QUERIES)
def test_the_order_is_fts5s_where_texts_tell_who_has_a_phrase(crowded, steps, query) -> None:
    with closing(opened(crowded)) as db:
        with db:
            for step in steps:
                take(db, step)
        agree(db, Ranker(db), query)


PLACES = [
    ("xabcab", "xabcab abcabc"),
    ("abcabc", "xabcab abcabc"),
    ("XABCAB", "xabcab xabcab"),
    ("abcabc", "xabcab xabcab"),
    ("xabcab", "abcabc abcabc"),
    ("abcabc", "XabcabcaxabcA"),
]


@pytest.mark.parametrize("places", [PLACES, PLACES[::-1]], ids=["titles first", "titles last"])
def test_occurrences_are_counted_in_title_and_text(crowded, places) -> None:
    """Rows of one length, so that one occurrence more ranks higher, and else the smaller id."""
    with closing(opened(crowded)) as db:
        with db:
            for title, text in places:
                add(db, title, [text])
        for phrase in ("xabcab", "xabcabc", "abcxabc"):
            agree(db, Ranker(db), [(Kind.SUBSTRING, phrase)])


@pytest.mark.parametrize("phrase", ["xabcabc\n", "xabcabc\n\n", "xabcabc\ufffd", "\ufffdxabcabc"])
def test_what_the_index_has_otherwise_than_the_text_is_found(crowded, phrase) -> None:
    """Newlines behind each text; U+FFFE and U+FFFF, which FTS5 reads as U+FFFD."""
    with closing(opened(crowded)) as db:
        with db:
            for text in ("abcabc xabcabc", "xabcabc\ufffe abc", "\uffffxabcabc abca", "xabcabc\n"):
                add(db, "", [text])
            db.execute("UPDATE chunks SET form = NULL WHERE text LIKE '%xabc%'")
        query = [(Kind.SUBSTRING, phrase)]
        assert ranking(db, Ranker(db), query) == postings.by_fts5(db, query) != []


def test_a_row_of_the_index_that_has_no_text_is_damage(crowded) -> None:
    with closing(opened(crowded)) as db:
        with db:
            add(db, "", ["one xabcab"])
            add(db, "", ["two xabcab"])
        chunks = ranking(db, Ranker(db), [(Kind.SUBSTRING, "xabcab")])
        db.execute("DELETE FROM chunks WHERE id = ?", (chunks[0],))
        with db, pytest.raises(DamagedIndex):
            Ranker(db).rank([(Kind.SUBSTRING, "xabcab")], 1, 10)
