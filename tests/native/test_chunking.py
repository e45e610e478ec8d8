"""Windows: what the contract promises of chunks (section 2)."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import windows
from hadano.limits import CHUNK_CODEPOINTS_MAX, CHUNK_STRIDE_CODEPOINTS
from tests.native.texts import ONE_OF_EACH_WIDTH
from tests.oracle import chunking

LIMITS = (CHUNK_CODEPOINTS_MAX, CHUNK_STRIDE_CODEPOINTS)
BOUNDARIES = sorted(
    {0, 1, 2, 699, 700, 701}
    | {800 + 700 * k + near for k in (0, 1, 2, 3, 10) for near in (-1, 0, 1)}
)


def of_length(sample: str, length: int) -> str:
    return (sample * (length // len(sample) + 1))[:length]


@pytest.mark.parametrize("sample", ONE_OF_EACH_WIDTH)
@pytest.mark.parametrize("length", BOUNDARIES)
def test_every_boundary_of_every_width_is_cut_as_the_contract_says(
    sample: str, length: int
) -> None:
    text = of_length(sample, length)
    cut = windows(text, *LIMITS)
    assert cut == chunking.windows(text, *LIMITS)
    assert len(cut) == (1 if length <= 800 else 1 + math.ceil((length - 800) / 700))
    assert cut[-1] == text[700 * (len(cut) - 1) :]
    assert all(len(window) == 800 for window in cut[:-1])


@settings(max_examples=1000, deadline=None)
@given(st.text(st.characters()), st.integers(1, 40), st.integers(1, 40))
def test_any_text_is_cut_as_the_twin_cuts_it(text: str, size: int, stride: int) -> None:
    stride = min(size, stride)
    assert windows(text, size, stride) == chunking.windows(text, size, stride)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=12), st.integers(0, 3000))
def test_mixed_widths_around_a_boundary_lose_no_codepoint(patch: str, at: int) -> None:
    text = "x" * at + patch + "y" * 900
    cut = windows(text, *LIMITS)
    assert cut[0] + "".join(window[100:] for window in cut[1:]) == text


def test_a_window_lies_wholly_inside_no_other() -> None:
    text = of_length("0123456789abcdefg", 5003)
    cut = windows(text, *LIMITS)
    starts = [700 * index for index in range(len(cut))]
    ends = [start + len(window) for start, window in zip(starts, cut, strict=True)]
    assert ends == sorted(set(ends))
    assert ends[-1] == len(text)


@pytest.mark.parametrize("text", ["", "a", "é" * 800, "😀" * 800])
def test_a_text_of_one_window_is_that_window_and_no_copy(text: str) -> None:
    (window,) = windows(text, *LIMITS)
    assert window is text


@pytest.mark.parametrize(("size", "stride"), [(0, 0), (8, 0), (8, -1), (7, 8), (-1, -1)])
def test_windows_that_would_skip_text_or_never_end_are_refused(size: int, stride: int) -> None:
    with pytest.raises(ValueError, match="stride"):
        windows("some text", size, stride)


@pytest.mark.parametrize("text", [None, b"bytes", 7])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(TypeError):
        windows(text, *LIMITS)  # type: ignore[arg-type]
