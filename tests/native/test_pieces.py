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
    assert Pieces(tuple(texts)).runs(said) == pieces.runs(texts, said)


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=3), TEXT)
@example([b"abcdefgh" * 2], [b"bcdefgha"], b"abcdefgh" * 3)
@example([bytes(9)], [bytes(8)], bytes(9))
def test_what_was_dropped_is_in_no_run(texts, dropped, said) -> None:
    known = Pieces(tuple(texts))
    for text in dropped:
        known.drop(text)
    assert known.runs(said) == pieces.runs(texts, said, dropped)


@given(st.lists(TEXT, max_size=3), st.binary(max_size=200))
def test_texts_are_found_in_themselves_among_anything(texts, beside) -> None:
    found = Pieces((*texts, beside)).runs(beside)
    assert found == ([(0, len(beside))] if len(beside) >= 8 else [])


def test_no_text_has_no_pieces() -> None:
    assert Pieces(()).runs(b"anything at all") == []
    assert Pieces((b"", b"1234567")).runs(b"1234567") == []


@pytest.mark.parametrize("arguments", [(), (None,), ("text",), ([b"list"],), (("text",),)])
def test_what_is_no_tuple_of_bytes_is_refused(arguments) -> None:
    with pytest.raises(TypeError):
        Pieces(*arguments)
