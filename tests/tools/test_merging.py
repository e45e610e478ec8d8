"""Segments of the full-text index that are merged behind the calls, in small steps."""

import random
import string
from contextlib import closing

import pytest

from hadano import ingest, limits, schema
from hadano.connection import Connection
from tests.reliability.examiner import examine
from tests.tools.store import Store, until


def segments(store: Store) -> list[int]:
    """Leaves of each segment of the index."""
    return sorted(count for (count,) in store.rows(schema.LEAVES_BY_SEGMENT))


def letters(seed: int, count: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_lowercase, k=count))


@pytest.fixture
def grown(store, monkeypatch) -> Store:
    """A store that grew document by document, and lies in many segments."""
    monkeypatch.setattr(limits, "MERGE_LEAVES_MIN", 1)
    store.integrity()
    for n in range(24):
        store.put(letters(n, 2_000), id=str(n))
    return store


def test_a_store_that_grew_is_one_segment_once_nobody_calls(grown) -> None:
    until(lambda: len(segments(grown)) == 1)
    assert grown.found(letters(7, 2_000)[500:520]) == ["7"]
    assert grown.ask("delete_document", id="7")["erased"] is True
    assert grown.found(letters(7, 2_000)[500:520]) == []


def test_what_is_small_beside_the_largest_segment_is_left_alone(grown) -> None:
    until(lambda: len(segments(grown)) == 1)
    with closing(Connection(str(grown.path))) as db:
        for n in range(limits.MERGE_SEGMENTS_MIN):
            grown.put(f"small {n}")
        assert list(ingest.merge_scattered(db, limits.MERGE_PAGES)) == []
    assert len(segments(grown)) > 1


def test_a_small_index_is_left_alone_however_many_segments_it_has(store) -> None:
    store.integrity()
    for n in range(24):
        store.put(letters(n, 2_000), id=str(n))
    with closing(Connection(str(store.path))) as db:
        assert list(ingest.merge_scattered(db, limits.MERGE_PAGES)) == []


def test_between_two_steps_of_a_merge_calls_find_and_erase_all(grown) -> None:
    """By hand: now and then a document is replaced and one deleted, and all are looked for. What
    was looked for by then is in the audit log."""
    grown.service._housekeeper.close()
    held = {str(n): letters(n, 2_000) for n in range(24)}
    gone = []
    with closing(Connection(str(grown.path))) as db:
        for step, _ in enumerate(ingest.merge_scattered(db, 2)):
            if step % 20 == 10:
                replaced, deleted = random.Random(step).sample(sorted(held), 2)
                gone += [held[replaced], held.pop(deleted)]
                held[replaced] = letters(100 + step, 500)
                grown.put(held[replaced], id=replaced)
                assert grown.ask("delete_document", id=deleted)["erased"] is True
            for id, text in held.items():
                assert grown.found(text[400:412]) == [id]
            assert all(grown.found(text[20:32]) == [] for text in gone)
    assert step > 20
    assert examine(grown.path, [text[40:100] for text in gone]) == []
