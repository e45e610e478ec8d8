"""The search form and FTS5's own folding: what the one has folded, the other leaves alone.

If it did not, a query's trigrams and those of the index would part ways.
"""

import sys

import apsw
import pytest

from hadano._native import search_form

TAIL = "qz"


@pytest.fixture(scope="module")
def tokenized() -> dict[str, str]:
    """Every codepoint that UTF-8 has, NUL aside, and what FTS5's trigram tokenizer makes of it."""
    connection = apsw.Connection(":memory:")
    connection.execute("""
        CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'trigram');
        CREATE VIRTUAL TABLE terms USING fts5vocab(texts, 'instance');
    """)
    codepoints = [c for c in range(1, sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]
    with connection:
        connection.executemany(
            "INSERT INTO texts(rowid, text) VALUES (?, ?)", ((c, chr(c) + TAIL) for c in codepoints)
        )
    terms = connection.execute("SELECT doc, term FROM terms")
    return {chr(doc): term.removesuffix(TAIL) for doc, term in terms}


def test_every_codepoint_heads_a_trigram(tokenized: dict[str, str]) -> None:
    assert len(tokenized) == sys.maxunicode - 0x800
    assert all(len(folded) == 1 for folded in tokenized.values())


def test_fts5_changes_nothing_that_is_folded_but_ascii_case(tokenized: dict[str, str]) -> None:
    changed = {
        c: folded
        for c, folded in tokenized.items()
        if folded != c and search_form(c) == c and not c.isascii()
    }
    assert changed == {}


def test_fts5_folds_ascii_capitals_itself(tokenized: dict[str, str]) -> None:
    for capital in map(chr, range(ord("A"), ord("Z") + 1)):
        assert tokenized[capital] == capital.lower()
