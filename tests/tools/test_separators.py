"""Erasing takes terms out of FTS5's index of pages too, and leaves an index that FTS5 reads."""

import random

import pytest

from tests.tools.store import Store

WORDS = [a + b + c for a in "bcdfg" for b in "aeiou" for c in "klmnp"]


def text(seed: int, words: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


@pytest.fixture
def filled(store: Store) -> Store:
    """Enough documents for an index of many pages, every third with terms of its own."""
    for n in range(90):
        own = " ".join(f"{chr(0x4E00 + 40 * n + i)}q{chr(0x3400 + n)}x" for i in range(30))
        store.put(text(n, 100) + " " + own * (n % 3 == 0), f"title {n}", id=f"d{n}")
    return store


def separators(store: Store) -> list[bytes]:
    return [term for (term,) in store.rows("SELECT term FROM chunks_fts_idx")]


def terms(store: Store) -> list[bytes]:
    store.rows("CREATE VIRTUAL TABLE IF NOT EXISTS temp.t USING fts5vocab(main, chunks_fts, row)")
    return [b"0" + term.encode() for (term,) in store.rows("SELECT term FROM temp.t")]


def check(store: Store) -> None:
    """No separator that tells of a term which is gone: a whole trigram, or eight bytes of one. FTS5
    agrees with the text and finds every term."""
    known = terms(store)
    begun = {term[:length] for term in known for length in range(len(term) + 1)}
    strange = [it[1:] for it in separators(store) if it not in begun]
    assert [it for it in strange if len(it.decode(errors="ignore")) > 2 or len(it) > 7] == []
    store.rows("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")
    for term in known[::29]:
        quoted = term[1:].decode().replace('"', '""')
        found = "SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?"
        assert store.value(found, f'"{quoted}"') > 0


def test_deleting_leaves_no_separator_of_a_term_that_is_gone(filled: Store) -> None:
    before = separators(filled)
    for n in range(0, 90, 3):
        filled.ask("delete_document", id=f"d{n}")
    assert any(b"q" in it for it in before)
    check(filled)


def test_replacing_leaves_no_separator_of_a_term_that_is_gone(filled: Store) -> None:
    for n in range(0, 90, 3):
        filled.put("short", f"title {n}", id=f"d{n}")
    check(filled)


def test_a_new_title_leaves_no_separator_of_the_old_one(store: Store) -> None:
    for n in range(90):
        store.put(
            "text", "".join(map(chr, range(0x4E00 + 90 * n, 0x4E00 + 90 * n + 90))), id=str(n)
        )
    for n in range(90):
        store.put("text", f"title {n}", id=str(n))
    check(store)


def test_deleting_everything_leaves_no_term(filled: Store) -> None:
    for n in random.Random(0).sample(range(90), 90):
        filled.ask("delete_document", id=f"d{n}")
    assert terms(filled) == []
    assert [it for it in separators(filled) if it] == []
