"""Nearest vectors: the kernel and its plain twin give the same answer."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native.vectors import nearest
from tests.native.blocks import block, packed
from tests.oracle import nearest as plain

# Few values, so that equal scores and vectors without direction come up often.
components = st.sampled_from([0, 0, 1, -1, 127, -127, -128])
vectors = st.lists(components, min_size=4, max_size=4).map(lambda few: few * 64) | st.lists(
    st.integers(-128, 127), min_size=256, max_size=256
)


@settings(max_examples=40)
@given(
    st.lists(vectors, max_size=20), st.lists(vectors, max_size=4), st.integers(1, 25), st.booleans()
)
def test_a_few_vectors_are_ranked_as_plain_arithmetic_ranks_them(
    held: list[list[int]], seeds: list[list[int]], most: int, gaps: bool
) -> None:
    numbered = {7 * n - 30: vector for n, vector in enumerate(held)}
    found = nearest([block(numbered, gaps)], [packed(seed) for seed in seeds], most)
    assert found == plain.nearest(numbered, seeds, most)


def clustered(count: int, chance: random.Random) -> dict[int, list[int]]:
    """Vectors of which some dozens lie close together, as texts on one subject do."""
    centres = [[chance.gauss(0, 30) for _ in range(256)] for _ in range(count // 40)]
    return {
        n: [max(-127, min(127, round(c + chance.gauss(0, 20)))) for c in centres[n % len(centres)]]
        for n in range(count)
    }


def test_of_thousands_of_vectors_in_several_blocks_the_ten_nearest_are_found() -> None:
    held = clustered(2_000, random.Random(6))
    blocks = [block({n: held[n] for n in range(k, k + 1_000)}) for k in range(0, 2_000, 1_000)]
    for n in range(0, 2_000, 1_500):
        seeds = [held[n], held[n + 1], held[n + 2]]
        found = nearest(blocks, [packed(seed) for seed in seeds], 10)
        assert found == plain.nearest(held, seeds, 10)


def test_a_seed_without_direction_finds_nothing() -> None:
    assert nearest([block({1: [1] * 256})], [bytes(256)], 5) == []


def test_nobody_is_near_to_no_seeds() -> None:
    assert nearest([block({1: [1] * 256})], [], 5) == []


def test_a_vector_is_as_near_to_itself_as_can_be() -> None:
    vector = list(range(-128, 128))
    [(id, score)] = nearest([block({9: vector})], [packed(vector)], 5)
    assert id == 9
    assert math.isclose(score, 1)


def test_a_vector_of_which_every_sign_differs_is_still_scored() -> None:
    [(_, score)] = nearest([block({1: [-5] * 256})], [packed([5] * 256)], 1)
    assert math.isclose(score, -1)


@pytest.mark.parametrize("part", range(4))
def test_a_block_with_a_part_cut_short_is_refused(part: int) -> None:
    parts = list(block({n: [n] * 256 for n in range(9)}))
    parts[part] = parts[part][:-1] if part != 1 else parts[part] + bytes(64)
    valid, ids, together, packed_signs = parts
    with pytest.raises(ValueError, match="one length"):
        nearest([(valid, ids, together, packed_signs)], [packed([1] * 256)], 3)


def test_a_seed_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="256 bytes"):
        nearest([], [bytes(255)], 3)


def test_wanting_none_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        nearest([], [], 0)
