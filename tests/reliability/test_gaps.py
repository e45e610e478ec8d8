"""Copies of cells that SQLite leaves in the gaps of the pages that it splits."""

import random
import string
from itertools import pairwise
from pathlib import Path

from hadano.backup import backup
from hadano.connection.pages import PAGES_MAX, without_gap
from tests.reliability.examiner import raw_traces, secret
from tests.reliability.pages import FREE_LEAF, FREE_TRUNK, OVERFLOW, Pages
from tests.reliability.sound import quiet, state_of
from tests.tools.store import Store


def words(seed: int, count: int) -> str:
    chance = random.Random(seed)
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=12)) for _ in range(count))


def chain(seed: int) -> list[dict[str, str]]:
    """Nineteen relations with names of their own."""
    names = [words(40 * seed + n, 2) for n in range(20)]
    return [{"src": src, "rel": "is", "dst": dst} for src, dst in pairwise(names)]


def test_names_of_relations_that_a_split_moved_are_erased(store: Store) -> None:
    for n in range(200):
        store.put(f"text {n}", id=str(n), relations=chain(n))
    for n in range(0, 200, 4):
        assert store.ask("delete_document", id=str(n))["erased"] is True
    gone = [edge[end] for n in range(0, 200, 4) for edge in chain(n) for end in ("src", "dst")]
    assert raw_traces(store.path, secret(gone)) == []


def test_texts_that_the_growth_of_others_moved_are_erased(store: Store) -> None:
    texts = {n: (words(n, 12), words(1_000 + n, 2)) for n in range(200)}
    for n, (content, title) in texts.items():
        store.put(content, title, id=str(n))
    for n in random.Random(0).sample(range(200), 100):
        texts[n] = words(2_000 + n, 60), words(3_000 + n, 2)
        store.put(*texts[n], id=str(n))
    for n in range(0, 200, 3):
        assert store.ask("delete_document", id=str(n))["erased"] is True
    gone = [text for n in range(0, 200, 3) for text in texts[n]]
    assert raw_traces(store.path, secret(gone)) == []


def test_a_page_without_its_gap_says_the_same(tmp_path) -> None:
    path = tmp_path / "store.db"
    with Store(path) as store:
        for n in range(80):
            content = words(n, 1_000 if n % 20 == 0 else 60)
            store.put(content, id=str(n), relations=chain(n))
        store.ask("delete_document", id="20")
        quiet(store)
    data = path.read_bytes()
    pages = Pages(data)
    size = pages.size
    cleaned = b"".join(
        without_gap(data[at : at + size], at // size + 1) for at in range(0, len(data), size)
    )
    for page in (
        page for kind in (OVERFLOW, FREE_LEAF, FREE_TRUNK) for page in pages.pages_of(kind)
    ):
        start = pages.start(page)
        assert cleaned[start : start + size] == data[start : start + size]
    copy = tmp_path / "cleaned.db"
    copy.write_bytes(cleaned)
    assert state_of(copy) == state_of(path)
    assert Pages(cleaned).unused == pages.unused


def test_a_page_that_is_not_as_it_should_be_is_left_alone() -> None:
    chance = random.Random(0)
    for head in range(256):
        page = bytes([head, *chance.randbytes(4_095)])
        count, start = int.from_bytes(page[3:5], "big"), int.from_bytes(page[5:7], "big")
        if head not in (2, 5, 10, 13) or 8 + 2 * count >= start or start > 4_096:
            assert without_gap(page, 2) == page
    sound = bytes([13, 0, 0, 0, 0, 16, 0]) + b"x" * 4_089
    assert without_gap(sound, 2) != sound
    assert without_gap(sound, PAGES_MAX) == sound


def test_the_gaps_of_a_backup_are_empty_too(store: Store, tmp_path) -> None:
    """Its pages come from the source's log as well, as they were written there."""
    for n in range(60):
        store.put(words(n, 20), id=str(n), relations=chain(n))
    data = Path(backup(str(store.path), str(tmp_path))).read_bytes()
    pages = Pages(data)
    for page in range(1, pages.count + 1):
        held = data[pages.start(page) :][: pages.size]
        assert without_gap(held, page) == held
