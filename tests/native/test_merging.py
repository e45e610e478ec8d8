"""Capping and merging: what the contract promises of documents (7.5 and 7.6)."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import fuse
from tests.oracle import merging

INT64 = st.integers(-(2**63), 2**63 - 1)
# Few documents, so that caps bind; and far ones, so that hashes collide and wrap.
DOCUMENTS = st.one_of(st.integers(1, 6), st.integers(1, 6).map(lambda n: n << 40), INT64)


def ranking(*pairs: tuple[int, int]) -> "tuple[array[int], array[int]]":
    return array("q", [chunk for chunk, _ in pairs]), array("q", [doc for _, doc in pairs])


@settings(max_examples=1000, deadline=None)
@given(
    st.lists(st.tuples(INT64, DOCUMENTS), max_size=80),
    st.integers(1, 5),
    st.integers(0, 60),
    st.integers(0, 100),
    st.integers(0, 12),
)
def test_any_ranking_is_merged_as_the_twin_merges_it(
    pairs: list[tuple[int, int]], per_doc: int, ranks: int, constant: int, top: int
) -> None:
    chunks, docs = ranking(*pairs)
    merged = fuse(chunks, docs, per_doc, ranks, constant, top)
    assert merged == merging.fuse(chunks, docs, per_doc, ranks, constant, top)


def test_the_first_two_ranks_alone_score_as_the_contract_works_out() -> None:
    ((doc, score, chunks),), more = fuse(*ranking((5, 1), (9, 1)), 3, 1000, 60, 10)
    assert (doc, chunks, more) == (1, [5, 9], False)
    assert score == 1 / 61 + 1 / 62
    assert round(score, 4) == 0.0325


def test_a_chunk_beyond_the_cap_takes_no_rank() -> None:
    merged, _ = fuse(*ranking((1, 7), (2, 7), (3, 7), (4, 8)), 2, 1000, 60, 10)
    assert merged == [(7, 1 / 61 + 1 / 62, [1, 2]), (8, 1 / 63, [4])]


def test_the_walk_ends_after_the_last_rank() -> None:
    pairs = [(n, n) for n in range(1500)]
    merged, more = fuse(*ranking(*pairs), 3, 1000, 60, 2000)
    assert (len(merged), more) == (1000, False)
    assert merged[-1] == (999, 1 / 1060, [999])


def test_among_equal_scores_the_better_best_rank_comes_first() -> None:
    # A constant of 0 makes a tie of one rank and two: 1/2 = 1/3 + 1/6, exactly.
    merged, _ = fuse(*ranking((1, 9), (2, 5), (3, 4), (4, 9), (5, 9), (6, 4)), 3, 6, 0, 3)
    assert [(doc, score) for doc, score, _ in merged[1:]] == [(5, 0.5), (4, 0.5)]


def test_more_documents_than_asked_for_are_told_of() -> None:
    assert fuse(*ranking((1, 1), (2, 2)), 3, 1000, 60, 1) == ([(1, 1 / 61, [1])], True)
    assert fuse(*ranking((1, 1), (2, 2)), 3, 1000, 60, 0) == ([], True)


def test_nothing_ranked_is_nothing_found() -> None:
    assert fuse(*ranking(), 3, 1000, 60, 10) == ([], False)


@pytest.mark.parametrize(
    "limits", [(0, 10, 60, 10), (3, -1, 60, 10), (3, 10, -1, 10), (3, 10, 60, -1)]
)
def test_limits_out_of_range_are_refused(limits: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="limits"):
        fuse(*ranking((1, 1)), *limits)


def test_arrays_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        fuse(array("q", [1, 2]), array("q", [1]), 3, 1000, 60, 10)


def test_arrays_of_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match="mismatch"):
        fuse(array("d", [1]), array("d", [1]), 3, 1000, 60, 10)
