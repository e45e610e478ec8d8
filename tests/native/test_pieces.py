"""Pieces of eight bytes against their twin."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hadano._native import Pieces
from tests.oracle import pieces

#: Few letters, so that texts share pieces; zeros, for they look like nothing.
TEXT = st.lists(st.sampled_from([b"\0" * 8, b"a", b"b", b"\xff" * 4]), max_size=40).map(b"".join)


@given(st.lists(TEXT, max_size=4), TEXT)
@example([b"abcdefgh" * 2], b"abcdefgh")
@example([b"abcdefgh", b"bcdefghx"], b"abcdefghx")
@example([b"abcdefgh", b"12345678"], b"abcdefgh12345678")
def test_runs_are_those_of_the_twin(texts, said) -> None:
    assert pieces.runs_of(Pieces(tuple(texts)), said) == pieces.runs(texts, said)


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=3), TEXT)
@example([b"abcdefgh" * 2], [b"bcdefgha"], b"abcdefgh" * 3)
@example([bytes(9)], [bytes(8)], bytes(9))
def test_what_was_dropped_is_in_no_run(texts, dropped, said) -> None:
    known = Pieces(tuple(texts))
    for text in dropped:
        known.drop(text)
    assert pieces.runs_of(known, said) == pieces.runs(texts, said, dropped)


@given(st.lists(TEXT, max_size=3), st.binary(max_size=200))
def test_texts_are_found_in_themselves_among_anything(texts, beside) -> None:
    found = pieces.runs_of(Pieces((*texts, beside)), beside)
    assert found == ([(0, len(beside))] if len(beside) >= 8 else [])


@given(TEXT, TEXT, st.integers(8, 30))
def test_a_long_run_is_cut_where_it_is_told(text, said, most) -> None:
    cut = pieces.runs_of(Pieces((text,)), said, most)
    assert all(end - start <= most for start, end in cut)
    whole = pieces.runs((text,), said)
    assert {at for start, end in cut for at in range(start, end - 7)} == {
        at for start, end in whole for at in range(start, end - 7)
    }


@pytest.mark.parametrize(
    ("start", "most", "run"),
    [
        (-(2**63), 99, (1, 9)),
        (1, 8, (1, 9)),
        (1, 0, (1, 9)),
        (1, -(2**63), (1, 9)),
        (2, 99, (11, 20)),
        (11, 2**63 - 1, (11, 20)),
        (12, 99, (12, 20)),
        (13, 99, None),
        (2**63 - 1, 99, None),
    ],
)
def test_a_run_is_looked_for_from_a_place_on(start, most, run) -> None:
    assert Pieces((b"abcdefgh", b"123456789")).run(b" abcdefgh  123456789", start, most) == run


def test_no_text_has_no_pieces() -> None:
    assert Pieces(()).run(b"anything at all", 0, 99) is None
    assert Pieces((b"", b"1234567")).run(b"1234567", 0, 99) is None


@pytest.mark.parametrize("arguments", [(), (None,), ("text",), ([b"list"],), (("text",),)])
def test_what_is_no_tuple_of_bytes_is_refused(arguments) -> None:
    with pytest.raises(TypeError):
        Pieces(*arguments)
