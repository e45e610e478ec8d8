"""store_document, get_document, delete_document and db_status, exactly (section 5, and 2)."""

import hashlib
import re

import apsw
import pytest

from tests.tools.store import Store

NOW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
EDGE = {"src": "Aki", "rel": "works_at", "dst": "Mizuno Labs"}


def long(marker: str, chunks: int = 3) -> str:
    """A text of so many chunks, the marker in each."""
    return f"{marker} ".ljust(100, ".") * (7 * chunks - 6) + "last"


def chunk_ids(store: Store, id: str) -> list[int]:
    return [
        row[0]
        for row in store.rows(
            "SELECT id FROM chunks WHERE doc = (SELECT n FROM docs WHERE id = ?) ORDER BY seq",
            id,
        )
    ]


def index_rows(store: Store, term: str) -> list[int]:
    """Chunks that the full-text index itself holds a term for."""
    return [
        row[0]
        for row in store.rows(
            "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY 1", f'"{term}"'
        )
    ]


def test_storing_answers_with_id_chunks_and_hash(store: Store) -> None:
    content = "é" * 801
    assert store.ask("store_document", title="t", content=content, id="a") == {
        "id": "a",
        "chunks": 2,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
    }


def test_a_generated_id_is_32_hex_digits_and_new_each_time(store: Store) -> None:
    ids = {store.put("same text") for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)


def test_a_document_comes_back_exactly_as_it_was_stored(store: Store) -> None:
    given = {
        "title": " Ünï \u200b\n title ",
        "content": "\ufeff\r\nx\u2028y\u0085\t\x1f\x7f e\u0301 é ﬁ \U0010ffff \uffff",
        "tags": ["b", "a", "B", "a,b", "[x]", " "[:0] + "é", "e\u0301"],
    }
    id = store.ask("store_document", **given)["id"]
    got = store.ask("get_document", id=id)
    assert list(got) == ["id", "title", "content", "tags", "sha256", "created_at", "updated_at"]
    assert {name: got[name] for name in given} == given
    assert got["sha256"] == hashlib.sha256(given["content"].encode()).hexdigest()
    assert NOW.fullmatch(got["created_at"])
    assert got["updated_at"] == got["created_at"]


def test_a_replacement_keeps_the_creation_time_and_drops_what_is_not_given(store: Store) -> None:
    store.put("one", id="a", tags=["x"], relations=[EDGE])
    store.rows("UPDATE docs SET created_at = ?1, updated_at = ?1", "2001-02-03T04:05:06.789Z")
    store.put("two", "new title", id="a")
    got = store.ask("get_document", id="a")
    assert (got["title"], got["content"], got["tags"]) == ("new title", "two", [])
    assert got["created_at"] == "2001-02-03T04:05:06.789Z"
    assert got["updated_at"] > "2020"
    status = store.ask("db_status")
    assert (status["docs"], status["chunks"], status["edges"]) == (1, 1, 0)


def test_a_replacement_puts_its_own_tags_and_relations_in_place(store: Store) -> None:
    store.put("one", id="a", tags=["x", "y"], relations=[EDGE, EDGE | {"rel": "owns"}])
    store.put("one", id="a", tags=["z"], relations=[EDGE | {"rel": "left"}])
    assert store.ask("get_document", id="a")["tags"] == ["z"]
    assert [edge["rel"] for edge in store.ask("query_graph", node="Aki")["edges"]] == ["left"]


def test_the_same_content_keeps_its_chunk_ids_whatever_else_changes(store: Store) -> None:
    store.put(long("amber"), id="a")
    ids = chunk_ids(store, "a")
    assert len(ids) == 3
    store.put("other", id="b")
    store.put(long("amber"), id="a")
    store.put(long("amber"), "new title", id="a", tags=["x"], relations=[EDGE])
    assert chunk_ids(store, "a") == ids
    assert sorted(m["chunk_id"] for m in store.search("amber")[0]["matched_chunks"]) == ids


def test_changed_content_gets_new_chunk_ids_and_none_is_ever_used_twice(tmp_path) -> None:
    used: set[int] = set()
    for _ in range(3):
        with Store(tmp_path / "store.db") as store:
            for turn in range(4):
                store.put(long(f"text {len(used)}"), id="a")
                fresh = set(chunk_ids(store, "a"))
                assert len(fresh) == 3
                assert not fresh & used
                used |= fresh
                if turn % 2:
                    store.ask("delete_document", id="a")
    assert len(used) == 36


def test_a_seed_of_text_that_was_replaced_is_not_found(store: Store) -> None:
    store.put("one", id="a")
    seed = store.seed("a")
    store.put("two", id="a")
    assert store.refused("search_knowledge", seed_chunk_ids=[seed]) == "E_NOT_FOUND"


def test_a_new_title_changes_the_first_chunks_index_row_alone(store: Store) -> None:
    store.put(long("amber"), "Old name", id="a")
    first, second, third = chunk_ids(store, "a")
    sizes = dict(store.rows("SELECT id, sz FROM chunks_fts_docsize"))
    assert index_rows(store, "old name") == [first]
    store.put(long("amber"), "A quite new name: C# 42", id="a")
    assert index_rows(store, "old name") == []
    assert index_rows(store, "quite new name") == [first]
    assert index_rows(store, "amber") == [first, second, third]
    changed = dict(store.rows("SELECT id, sz FROM chunks_fts_docsize"))
    assert {chunk for chunk in sizes if sizes[chunk] != changed[chunk]} == {first}
    assert store.found("C#") == store.found("42") == ["a"]
    assert store.search("quite")[0]["matched_chunks"][0]["chunk_id"] == first
    store.put(long("amber"), "x", id="a")
    assert store.found("C#") == store.found("42") == store.found("quite") == []
    store.rows("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")


@pytest.mark.parametrize(
    "titles", [("ab", "ab cd"), ("go", "GO"), ("Ｇｏ", "go"), ("x", "ß é"), ("a b c", "d")]
)
def test_short_words_of_a_title_follow_it(store: Store, titles) -> None:
    old, new = titles
    store.put("at 7 pm", old, id="a")
    store.put("at 7 pm", new, id="a")
    for word in new.split():
        assert store.found(word) == ["a"]
    for word in old.split():
        assert store.found(word) == (["a"] if word.lower() in new.lower() or word == "Ｇｏ" else [])
    assert store.found("7") == store.found("pm") == ["a"]
    store.rows("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")


def test_a_shorter_version_leaves_no_tail_and_a_hundred_of_them_no_rows(store: Store) -> None:
    store.put("filler " * 7_000 + "TAILTOKEN", id="a")
    assert store.found("TAILTOKEN") == ["a"]
    for n in range(100):
        store.put(f"short text {n}", id="a")
    assert store.found("TAILTOKEN") == store.found("filler") == []
    assert store.found("short") == ["a"]
    assert store.value("SELECT count(*) FROM chunks") == 1
    assert store.value("SELECT count(*) FROM chunks_fts_docsize") == 1
    store.rows("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")


def test_deleting_takes_everything_that_came_from_the_document(store: Store) -> None:
    store.put(long("amber"), id="a", tags=["x"], relations=[EDGE])
    store.put("cedar", id="b", relations=[EDGE])
    assert store.ask("delete_document", id="a") == {"id": "a", "deleted": True, "erased": True}
    assert store.found("amber") == []
    assert store.refused("get_document", id="a") == "E_NOT_FOUND"
    assert store.refused("delete_document", id="a") == "E_NOT_FOUND"
    assert [edge["doc_id"] for edge in store.ask("query_graph", node="Aki")["edges"]] == ["b"]
    status = store.ask("db_status")
    assert (status["docs"], status["chunks"], status["edges"]) == (1, 1, 1)
    assert store.value("SELECT count(*) FROM chunks_fts_docsize") == 1
    store.rows("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")


def test_a_deleted_id_can_be_stored_again_as_a_new_document(store: Store) -> None:
    store.put("one", id="a")
    store.rows("UPDATE docs SET created_at = '2001-02-03T04:05:06.789Z'")
    store.ask("delete_document", id="a")
    store.put("two", id="a")
    assert store.ask("get_document", id="a")["created_at"] > "2020"
    assert store.found("one") == []


def test_the_file_can_be_read_by_a_stock_fts5(store: Store) -> None:
    """chunks_fts is the index of record; columns of the tables are named as in section 2."""
    store.put("reconfigured lamps", "Amber", id="a", relations=[EDGE])
    rows = store.rows(
        "SELECT d.id, c.seq, c.text FROM chunks_fts AS f JOIN chunks AS c ON c.id = f.rowid"
        " JOIN docs AS d ON d.n = c.doc WHERE chunks_fts MATCH 'config' ORDER BY rank"
    )
    assert rows == [("a", 0, "reconfigured lamps")]
    store.rows("SELECT id, title, content, tags, sha256, created_at, updated_at FROM docs")
    store.rows("SELECT src, rel, dst, doc_id FROM edges")
    store.rows("SELECT request_id, time, tool, args, duration_ms, outcome FROM audit_log")


def test_status_counts_what_was_stored(store: Store) -> None:
    empty = store.ask("db_status")
    assert empty == empty | {"docs": 0, "chunks": 0, "edges": 0, "vectors": 0}
    store.put(long("amber"), relations=[EDGE, EDGE | {"dst": "x"}])
    store.put("cedar", relations=[EDGE])
    status = store.ask("db_status")
    assert list(status) == [
        "db_path",
        "size_bytes",
        "docs",
        "chunks",
        "edges",
        "vectors",
        "embeddings_mode",
        "integrity_at_boot",
        "sqlite_version",
        "vec_version",
    ]
    assert status["size_bytes"] > 0
    assert {name: status[name] for name in ("docs", "chunks", "edges", "vectors")} == {
        "docs": 2,
        "chunks": 4,
        "edges": 3,
        "vectors": 0,
    }
    assert status["db_path"] == str(store.path)
    assert status["embeddings_mode"] == "off"
    assert status["vec_version"] is None
    assert status["sqlite_version"] == apsw.sqlite_lib_version()
    assert store.integrity() == "ok"


def test_the_connections_settings_are_those_of_the_contract(store: Store) -> None:
    pragma = store.service._db.value
    assert pragma("PRAGMA journal_mode") == "wal"
    assert pragma("PRAGMA foreign_keys") == 1
    assert pragma("PRAGMA secure_delete") == 1
    assert pragma("SELECT v FROM chunks_fts_config WHERE k = 'secure-delete'") == 1


def test_derived_rows_cannot_outlive_their_document(store: Store) -> None:
    store.put(long("amber"), id="a", relations=[EDGE])
    service = store.service._db
    with service.change():
        service.run("DELETE FROM docs WHERE id = 'a'")
    assert store.value("SELECT count(*) FROM chunks") == 0
    assert store.value("SELECT count(*) FROM edges") == 0
