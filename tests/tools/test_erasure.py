"""Deletion: not one byte of the text is left where the answer says so, and soon where it says not.

Texts are letters by chance, so that no eight bytes of them stand in the file for another reason.
"""

import random
import string

import pytest

from hadano import limits
from tests.reliability.sound import quiet
from tests.tools.store import Neighbour, Store, no_erasing_at_once, pieces_on_disk, until

SECRET = "ZQXSECRETWV"


def chance_text(seed: int, codepoints: int, letters: str = string.ascii_letters) -> str:
    """Words of letters by chance."""
    chance = random.Random(seed)
    text = ""
    while len(text) < codepoints:
        text += "".join(chance.choices(letters, k=chance.randint(9, 12))) + " "
    return text[:codepoints]


def fill(store: Store, documents: int = 50) -> None:
    """Other documents, so that index pages are shared."""
    for n in range(documents):
        store.put(chance_text(1_000 + n, 300), chance_text(2_000 + n, 20), id=f"other {n}")


def terms(store: Store) -> set[str]:
    """All trigrams that the index holds."""
    store.rows("CREATE VIRTUAL TABLE IF NOT EXISTS temp.t USING fts5vocab(main, chunks_fts, row)")
    return {row[0] for row in store.rows("SELECT term FROM temp.t")}


def trigrams(text: str) -> set[str]:
    return {text[at : at + 3].lower() for at in range(len(text) - 2)}


def merged_and_gone(store: Store, text: str) -> None:
    """Waits until the index owes nothing more, and nothing of the text is left on the disk."""
    until(lambda: not store.rows("SELECT * FROM chores"))
    vanishes(store, text)


def vanishes(store: Store, text: str) -> None:
    """Waits until nothing of the text is left on the disk: a replacement does not say whether it
    is, and waits for nobody who still reads."""
    until(lambda: not store.left(text))


@pytest.mark.parametrize("character", ["\ufffe", "\uffff", "\ufffd", "\U0001fffe", "\U0010ffff"])
def test_what_is_no_character_is_found_and_goes_with_its_document(store, character) -> None:
    """SQLite reads the first two as the third, so the index has no other trigrams of them."""
    store.put("another one")
    before = terms(store)
    id = store.put(f"ab{character}cd")
    assert store.found(f"b{character}c") == [id]
    assert store.ask("delete_document", id=id)["erased"]
    assert terms(store) == before


@pytest.mark.parametrize(
    "letters", [string.ascii_letters, "ÀÉÎÕÜàéîõüßﬁŁł", "東京都庁寺訪話日本語"]
)
@pytest.mark.parametrize("codepoints", [20, 5_000])
def test_nothing_of_a_deleted_document_is_left(store: Store, letters, codepoints) -> None:
    fill(store, 5)
    parts = {
        "content": chance_text(1, codepoints, letters),
        "title": chance_text(2, 100, letters).strip(),
        "tags": [chance_text(3, 50, letters).strip()],
        "relations": [
            {
                name: chance_text(4 + n, 60, letters).strip()
                for n, name in enumerate("src rel dst".split())
            }
        ],
    }
    store.put(id="gone", **parts)
    assert store.left(parts["content"])
    assert store.ask("delete_document", id="gone")["erased"] is True
    left = set.union(
        store.left(parts["content"]),
        store.left(parts["title"]),
        store.left(parts["tags"][0]),
        *(store.left(text) for text in parts["relations"][0].values()),
    )
    assert left == set()


def test_no_trigram_of_a_deleted_word_is_left_in_the_index_or_the_file(store: Store) -> None:
    fill(store)
    store.rows("DELETE FROM audit_log")  # chance texts of others may hold three letters of it
    before = terms(store)
    store.put(f"the word {SECRET} stands here", id="gone")
    store.ask("delete_document", id="gone")
    assert terms(store) == before
    assert not store.left(SECRET, piece_bytes=5)


def test_earlier_calls_of_a_deleted_document_keep_their_rows_but_not_their_text(store) -> None:
    text = chance_text(1, 200)
    store.refused("store_document", title="t" * 513, content=text)
    store.refused("store_document", title="t" * 513, content=text, id="another id")
    store.refused("store_document", title="t", text=text, id="gone")
    store.put(text, id="gone", tags=["x"])
    store.put(text + ".", id="gone")
    store.put("kept", id="kept")
    before = store.audit()
    assert store.ask("delete_document", id="gone")["erased"] is True
    after = store.audit()[:-1]
    assert store.left(text) == set()
    for old, new in zip(before, after, strict=True):
        assert {**old, "args": None} == {**new, "args": None}
    assert after[-1] == before[-1]
    assert '"content":{"type":"string","length":200}' in after[0]["args"]


def test_the_row_of_another_document_with_the_same_text_stays(store: Store) -> None:
    text = chance_text(1, 200)
    store.put(text, id="kept")
    store.put(text, id="gone")
    store.ask("delete_document", id="gone")
    kept, gone, _ = store.audit()
    assert text in kept["args"]
    assert text not in gone["args"]
    assert store.ask("get_document", id="kept")["content"] == text


def test_replaced_text_is_erased_too(store: Store) -> None:
    fill(store, 10)
    old, title = chance_text(1, 3_000), chance_text(2, 100).strip()
    store.put(old, title, id="a", tags=[chance_text(3, 40).strip()])
    store.put("new text", "new title", id="a")
    for text in (old, title, chance_text(3, 40).strip()):
        vanishes(store, text)


def test_a_replaced_title_is_erased_too(store: Store) -> None:
    title = chance_text(2, 400).strip()
    store.put("text " * 400, title, id="a")
    store.put("text " * 400, "new", id="a")
    vanishes(store, title)


@pytest.mark.parametrize(
    ("leaves_max", "milliseconds", "at_once"),
    [(4_000, 60_000, True), (100, 60_000, True), (2, 60_000, False), (4_000, 0, False)],
    ids=["few terms", "many terms on few leaves", "many terms on many leaves", "no time"],
)
def test_a_document_too_large_to_be_erased_at_once_is_erased_soon(
    store: Store, monkeypatch, leaves_max, milliseconds, at_once
) -> None:
    monkeypatch.setattr(limits, "ERASE_AT_ONCE_LEAVES_MAX", leaves_max)
    monkeypatch.setattr(limits, "ERASE_AT_ONCE_MS_MAX", milliseconds)
    fill(store, 5)
    text = chance_text(1, 3_000)
    store.put(text, id="gone")
    assert 1_000 < len(trigrams(text)) < 4_000
    assert store.ask("delete_document", id="gone")["erased"] is at_once
    if not at_once:
        merged_and_gone(store, text)
        assert not terms(store) - trigrams_of_documents(store)
    assert store.left(text) == set()
    assert store.rows("SELECT v FROM chunks_fts_config WHERE k = 'secure-delete'") == [(1,)]
    assert store.found(chance_text(1_000, 40))[0] == "other 0"


def segments(store: Store) -> int:
    count: int = store.value("SELECT count(DISTINCT segid) FROM chunks_fts_idx")
    return count


def test_large_documents_are_merged_as_others_are_stored(store: Store, monkeypatch) -> None:
    """Into the index, whose segments of one text by chance take as long to merge as to write."""
    monkeypatch.setattr(limits, "MERGE_LATER_CODEPOINTS_MIN", 20_000)
    for n in range(10):
        store.put(chance_text(n, 20_000), id=f"large {n}")
    assert segments(store) == 10
    for n in range(10, 30):
        store.put(chance_text(n, 19_999), id=f"other {n}")
    assert segments(store) < 10
    assert store.found(chance_text(3, 60)[:40], top_k=1) == ["large 3"]


def trigrams_of_documents(store: Store) -> set[str]:
    columns = store.rows(
        "SELECT text || char(31) || title || char(31) || words FROM chunks_indexed"
    )
    return set.union(*(trigrams(text) for (text,) in columns))


def test_a_large_documents_erasure_goes_on_after_the_server_has_ended(tmp_path) -> None:
    text = chance_text(1, 100_000)
    with Store(tmp_path / "store.db") as store:
        store.put(text, id="gone")
        with no_erasing_at_once():
            assert store.ask("delete_document", id="gone")["erased"] is False
    with Store(tmp_path / "store.db") as store:
        merged_and_gone(store, text)


def test_a_large_replaced_text_is_erased_soon(store: Store) -> None:
    text = chance_text(1, 60_000)
    store.put(text, id="a")
    with no_erasing_at_once():
        store.put("short", id="a")
    assert store.found("short") == ["a"]
    merged_and_gone(store, text)


def test_a_snapshot_elsewhere_makes_the_answer_honest_and_delays_the_erasure(store) -> None:
    text = chance_text(1, 500)
    store.put(text, id="gone")
    with Neighbour(store.path) as other:
        other.run("BEGIN")
        assert other.run("SELECT * FROM docs") == 1
        assert store.ask("delete_document", id="gone")["erased"] is False
        assert store.refused("get_document", id="gone") == "E_NOT_FOUND"
        assert other.run("SELECT * FROM docs") == 1
        other.run("COMMIT")
        vanishes(store, text)


def test_an_erasure_that_waits_for_a_reader_elsewhere_holds_no_writer_up(store: Store) -> None:
    text = chance_text(1, 500)
    store.put(text, id="gone")
    with Neighbour(store.path) as other:
        other.run("BEGIN")
        other.run("SELECT * FROM docs")
        assert store.ask("delete_document", id="gone")["erased"] is False
        for n in range(20):
            store.put(f"text {n}", id="a")
        assert store.found("text 19") == ["a"]
        other.run("COMMIT")
        vanishes(store, text)


def test_an_erasure_that_a_reader_delays_goes_on_when_the_file_is_next_opened(tmp_path) -> None:
    text = chance_text(1, 500)
    path = tmp_path / "store.db"
    with Neighbour(path) as other:
        with Store(path) as store:
            store.put(text, id="gone")
            other.run("BEGIN")
            other.run("SELECT * FROM docs")
            assert store.ask("delete_document", id="gone")["erased"] is False
        other.run("COMMIT")
        with Store(path) as store:
            vanishes(store, text)


def test_two_servers_erase_each_others_documents(tmp_path) -> None:
    path = tmp_path / "store.db"
    text = chance_text(1, 2_000)
    with Store(path) as one, Store(path) as two:
        one.put(text, id="a")
        assert two.ask("get_document", id="a")["content"] == text
        assert two.ask("delete_document", id="a")["erased"] is True
        assert one.refused("get_document", id="a") == "E_NOT_FOUND"
        assert pieces_on_disk(path, text, 8) == set()


def test_the_log_of_writes_goes_back_to_a_bound_once_a_reader_has_gone(store: Store) -> None:
    """Case 63: without a restart."""
    wal = store.path.with_name("store.db-wal")
    with Neighbour(store.path) as other:
        other.run("BEGIN")
        other.run("SELECT * FROM docs")
        for n in range(15):
            store.put(chance_text(n, 60_000))
        assert wal.stat().st_size > 2 * limits.WAL_IDLE_BYTES_MAX
        other.run("COMMIT")
    until(lambda: store.put("more") and wal.stat().st_size <= limits.WAL_IDLE_BYTES_MAX)


def test_an_erasure_begins_the_log_that_it_emptied(store: Store) -> None:
    """Else the next search would: SQLite has a log's header reach the disk before all else."""
    quiet(store)
    secret = "a quite unheard-of word"
    store.put(secret, id="a")
    assert store.ask("delete_document", id="a")["erased"] is True
    assert 0 < store.path.with_name("store.db-wal").stat().st_size < 3 * 4_120
    assert store.left(secret) == set()
