"""Histories of a small store, made by chance, for all that reads or writes its full-text index.

A step of one is what `ranked.take` carries out; `SETTINGS` are FTS5's, with which `ranked.fresh`
makes a store whose index has many segments of small pages.
"""

from hypothesis import HealthCheck
from hypothesis import strategies as st

from hadano.plan import Kind
from tests.native.ranked import form

SUBSTRING, WORD, ANYWHERE = Kind

LETTERS = "abc AB\n#東京愛é\U0001f600"
PIECES = ["go", "c", "function", "at", "東京", "the", "é"]
TEXTS = st.one_of(
    st.text(alphabet=LETTERS, max_size=60),
    st.text(alphabet="ab", max_size=300),
    st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join),
)
SUBSTRINGS = (
    st.one_of(
        st.text(alphabet=LETTERS, min_size=3, max_size=12),
        st.sampled_from(["function", "unction", "the", "go function", "nct", "aaaaaaa", "ababa"]),
    )
    .map(form)
    .filter(lambda text: len(text) >= 3)
)
TERMS = st.one_of(
    st.tuples(st.just(SUBSTRING), SUBSTRINGS),
    st.tuples(st.just(WORD), st.sampled_from(["go", "c", "at", "ab", "b", "zz"])),
    st.tuples(st.just(ANYWHERE), st.sampled_from(["東", "東京", "愛", "#", "a", "b ", "\n"])),
)
QUERIES = st.lists(TERMS, min_size=1, max_size=5, unique=True)
TITLES = st.text(LETTERS, max_size=8)
ADDS = st.tuples(st.just("add"), TITLES, st.lists(TEXTS, max_size=3))
CHANGES = st.one_of(
    ADDS,
    st.tuples(st.just("replace"), st.integers(0, 50), TEXTS),
    st.tuples(st.just("retitle"), st.integers(0, 50), TITLES),
    st.tuples(st.just("remove"), st.integers(0, 50)),
)
STEPS = st.lists(
    st.one_of(
        CHANGES,
        CHANGES,
        st.tuples(st.just("commit"), QUERIES),
        st.tuples(st.just("tell"), st.just("secure-delete"), st.integers(0, 1)),
        st.tuples(st.just("tell"), st.sampled_from(["optimize", "merge"]), st.just(-16)),
    ),
    min_size=3,
    max_size=40,
)
SETTINGS = st.fixed_dictionaries(
    {
        "pgsz": st.sampled_from([32, 40, 64, 200, 4050]),
        "automerge": st.sampled_from([0, 2, 4, 8]),
        "crisismerge": st.sampled_from([2, 4, 16]),
        "usermerge": st.sampled_from([2, 4]),
        "hashsize": st.sampled_from([64, 1024, 1 << 20]),
        "secure-delete": st.integers(0, 1),
    }
)
SLOW_STEPS = [HealthCheck.too_slow, HealthCheck.data_too_large]
