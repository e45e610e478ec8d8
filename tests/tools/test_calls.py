"""Section 4: what every call has in common. Ids, audit rows, the six codes, what a message says."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from hadano import limits
from hadano.errors import MESSAGE_CODEPOINTS_MAX, Code
from hadano.service import TOOLS, UnknownTool
from tests.tools.store import REQUEST_ID, Neighbour, Store, until

NOW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

#: One call of each tool that is answered, in an order in which they can be made, with the rows that
#: the audit log counts.
GOOD = [
    ("store_document", {"id": "a", "title": "Amber", "content": "amber lamp"}, 1),
    ("search_documents", {"query": "amber"}, 1),
    ("search_knowledge", {"seed_chunk_ids": [1]}, 0),
    ("query_graph", {"node": "Amber"}, 0),
    ("get_document", {"id": "a"}, 1),
    ("delete_document", {"id": "a"}, 1),
    ("db_status", {}, 1),
]

#: One call of each tool, and more, that is refused.
BAD = [
    ("store_document", {"title": "no content"}, "E_VALIDATION"),
    ("store_document", {"title": "t" * 513, "content": ""}, "E_TOO_LARGE"),
    ("search_documents", {"query": " "}, "E_VALIDATION"),
    ("search_knowledge", {"seed_chunk_ids": [77]}, "E_NOT_FOUND"),
    ("search_knowledge", {"seed_chunk_ids": []}, "E_VALIDATION"),
    ("query_graph", {"node": "n", "depth": 4}, "E_VALIDATION"),
    ("get_document", {"id": "nowhere"}, "E_NOT_FOUND"),
    ("delete_document", {"id": "nowhere"}, "E_NOT_FOUND"),
    ("db_status", {"verbose": True}, "E_VALIDATION"),
    ("db_status", [], "E_VALIDATION"),
    ("db_status", "{}", "E_VALIDATION"),
]


def test_there_are_seven_tools_and_six_codes() -> None:
    assert [tool.name for tool in TOOLS] == [
        "store_document",
        "search_documents",
        "search_knowledge",
        "query_graph",
        "get_document",
        "delete_document",
        "db_status",
    ]
    assert sorted(Code) == sorted(
        f"E_{name}"
        for name in ("VALIDATION", "TOO_LARGE", "NOT_FOUND", "TIMEOUT", "INTEGRITY", "INTERNAL")
    )


def test_a_tool_that_is_none_is_no_call_and_leaves_no_row(store: Store) -> None:
    with pytest.raises(UnknownTool):
        store.service.call("drop_document", {})
    assert store.audit() == []


def test_every_answer_has_a_request_id_of_its_own(store: Store) -> None:
    ids = [store.answer(tool, arguments)[0]["request_id"] for tool, arguments, _ in GOOD]
    ids += [store.answer(tool, arguments)[0]["request_id"] for tool, arguments, _ in BAD]
    assert len(set(ids)) == len(GOOD) + len(BAD)
    assert all(REQUEST_ID.fullmatch(id) for id in ids)


@pytest.mark.parametrize("mode", ["full", "redacted", "off"])
def test_every_call_good_or_bad_leaves_one_row(tmp_path, mode: str) -> None:
    with Store(tmp_path / "store.db", request_log=mode) as store:
        ids = [store.answer(tool, arguments)[0]["request_id"] for tool, arguments, _ in GOOD]
        ids += [store.answer(tool, arguments)[0]["request_id"] for tool, arguments, _ in BAD]
        audit = store.audit()
    assert [row["request_id"] for row in audit] == ids
    assert [(row["tool"], row["outcome"], row["row_count"]) for row in audit] == [
        *((tool, "ok", rows) for tool, _, rows in GOOD),
        *((tool, code, 0) for tool, _, code in BAD),
    ]
    assert all(NOW.fullmatch(row["time"]) for row in audit)
    assert all(0 <= row["duration_ms"] <= limits.CALL_MS_MAX for row in audit)


def test_the_full_log_holds_arguments_word_for_word(store: Store) -> None:
    given = {"title": "Ä", "content": "x\n\u2028y", "tags": ["a"], "id": "007"}
    store.answer("store_document", given)
    store.answer("search_documents", {"query": "amber", "top_k": 500})
    store.answer("db_status", None)
    assert [json.loads(row["args"]) for row in store.audit()] == [
        given,
        {"query": "amber", "top_k": 500},
        None,
    ]


def test_the_redacted_log_holds_names_types_lengths_and_counts_alone(tmp_path) -> None:
    with Store(tmp_path / "store.db", request_log="redacted") as store:
        store.put(
            "private words",
            "secret title",
            id="hidden id",
            tags=["inner"],
            relations=[{"src": "who", "rel": "knows", "dst": "whom"}],
        )
        store.answer("search_documents", {"query": "private", "top_k": 10, "nul": None})
        stored, searched = (json.loads(row["args"]) for row in store.audit())
        log = store.rows("SELECT * FROM audit_log")
    assert stored == {
        "title": {"type": "string", "length": 12},
        "content": {"type": "string", "length": 13},
        "id": {"type": "string", "length": 9},
        "tags": {"type": "array", "count": 1},
        "relations": {"type": "array", "count": 1},
    }
    assert searched == {
        "query": {"type": "string", "length": 7},
        "top_k": {"type": "number"},
        "nul": {"type": "null"},
    }
    for word in ("private", "secret", "hidden", "inner", "who", "knows"):
        assert word not in str(log)


def test_the_log_that_is_off_holds_no_arguments(tmp_path) -> None:
    with Store(tmp_path / "store.db", request_log="off") as store:
        store.put("private words", "secret title", id="hidden id")
        store.answer("get_document", {"id": "hidden id"})
        assert [row["args"] for row in store.audit()] == [None, None]
        assert "hidden" not in str(store.rows("SELECT * FROM audit_log"))


def test_arguments_that_no_json_can_hold_are_logged_and_refused(store: Store) -> None:
    deep: list = []
    for _ in range(50_000):
        deep = [deep]
    for odd in ("\ud83d", 10**5000, deep, float("inf"), float("nan"), -(2**70)):
        assert store.refused("get_document", id=odd) == "E_VALIDATION"
    assert [row["outcome"] for row in store.audit()] == ["E_VALIDATION"] * 6


def test_rows_of_deleted_documents_remain_and_are_in_the_order_of_the_calls(store: Store) -> None:
    store.put("one", id="a")
    store.put("two", id="a")
    store.ask("delete_document", id="a")
    store.refused("delete_document", id="a")
    assert [(row["tool"], row["outcome"]) for row in store.audit()] == [
        ("store_document", "ok"),
        ("store_document", "ok"),
        ("delete_document", "ok"),
        ("delete_document", "E_NOT_FOUND"),
    ]


def test_what_is_missing_is_said_in_the_same_words_by_get_and_delete(shared: Store) -> None:
    got = shared.refusal("get_document", id="a 'quoted' id")
    assert got == shared.refusal("delete_document", id="a 'quoted' id")
    assert got == ("E_NOT_FOUND", """id: there is no document "a 'quoted' id\"""")


def test_no_message_tells_of_paths_statements_or_traces(shared: Store) -> None:
    for tool, arguments, code in BAD:
        content, is_error = shared.answer(tool, arguments)
        assert is_error
        assert content["error"]["code"] == code
        message = content["error"]["message"]
        assert "\n" not in message
        assert not re.search("select|insert|sqlite|apsw|msgspec|traceback|line \\d", message, re.I)
        assert str(shared.path.parent) not in message
        assert "struct" not in message.lower()


def test_a_message_names_the_field_first(shared: Store) -> None:
    assert shared.refusal("search_documents", query=1)[1] == "query: expected text, got an integer"
    assert shared.refusal("search_documents")[1] == "query: required, and missing"
    assert shared.refusal("query_graph", node="x", depth="2")[1].startswith("depth: ")
    where = shared.refusal(
        "store_document", title="t", content="c", relations=[{"src": "a", "rel": "b"}]
    )
    assert where[1] == "relations[0].dst: required, and missing"


def test_a_message_stays_short_however_long_the_clients_words_are(shared: Store) -> None:
    for arguments in ({"x" * 100_000: 1}, {"query": "x", "mode" * 9_999: None}):
        code, message = shared.refusal("search_documents", **arguments)
        assert code == "E_VALIDATION"
        assert len(message) <= MESSAGE_CODEPOINTS_MAX
    code, message = shared.refusal("search_knowledge", seed_chunk_ids=[1], mode="m" * 100_000)
    assert code == "E_VALIDATION"
    assert len(message) <= MESSAGE_CODEPOINTS_MAX


def test_calls_that_are_made_at_once_run_one_at_a_time_and_are_all_answered(store: Store) -> None:
    with ThreadPoolExecutor(12) as pool:
        stores = [pool.submit(store.put, f"text {n}", id=f"d{n}") for n in range(30)]
        searches = [pool.submit(store.found, "text") for _ in range(30)]
    assert [future.result() for future in stores] == [f"d{n}" for n in range(30)]
    assert all(len(future.result()) <= 10 for future in searches)
    assert len(store.hits("text")) == 30
    assert len(store.audit()) == 61


# Time and locks.


def test_a_call_past_its_time_is_undone_and_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "CALL_MS_MAX", 20)
    with Store(tmp_path / "store.db") as store:
        before = store.contents()
        code, message = store.refusal(
            "store_document", id="big", title="t", content="long words " * 50_000
        )
        assert code == "E_TIMEOUT"
        assert message.endswith(("and was undone", "cut short and undone"))
        assert store.contents() == before
        assert store.refused("get_document", id="big") == "E_NOT_FOUND"
        assert store.put("short", id="big") == "big"
        assert [row["outcome"] for row in store.audit()][:1] == ["E_TIMEOUT"]


def test_a_replacement_past_its_time_leaves_the_old_document_whole(tmp_path, monkeypatch) -> None:
    with Store(tmp_path / "store.db") as store:
        store.put("an amber lamp", id="a", tags=["old"])
        before = store.contents()
    monkeypatch.setattr(limits, "CALL_MS_MAX", 20)
    with Store(tmp_path / "store.db") as store:
        arguments = {"id": "a", "title": "t", "content": "long words " * 50_000}
        assert store.refused("store_document", **arguments) == "E_TIMEOUT"
        assert store.contents() == before
        assert store.found("amber lamp") == ["a"]


def test_a_cancelled_call_is_undone_and_the_next_one_runs(store: Store) -> None:
    answers = []
    arguments = {"id": "big", "title": "t", "content": "many different words " * 40_000}
    call = Thread(target=lambda: answers.append(store.refused("store_document", **arguments)))
    call.start()
    while call.is_alive():
        store.service.cancel()
        call.join(0.001)
    assert answers == ["E_TIMEOUT"]
    assert store.ask("db_status")["docs"] == 0
    assert store.put("text")


def test_a_call_that_waits_for_a_lock_can_be_cancelled(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "CALL_MS_MAX", 600_000)
    monkeypatch.setattr(limits, "BUSY_MS_MAX", 600_000)
    answers = []
    arguments = {"title": "t", "content": "c"}
    with Store(tmp_path / "store.db") as store, Neighbour(store.path) as other:
        other.run("BEGIN IMMEDIATE")
        call = Thread(target=lambda: answers.append(store.refused("store_document", **arguments)))
        call.start()
        until(lambda: store.service.cancel() or call.join(0.001) or not call.is_alive())
        assert answers == ["E_TIMEOUT"]


def test_a_lock_that_outlasts_the_calls_time_is_a_timeout_and_is_logged_later(store: Store) -> None:
    with Neighbour(store.path) as other:
        other.run("BEGIN IMMEDIATE")
        code, message = store.refusal("store_document", title="t", content="c")
        assert code == "E_TIMEOUT"
        assert "another process" in message or "longer than" in message
        assert store.audit_now() == []
        other.run("COMMIT")
        rows = until(store.audit_now)
    assert [(row["tool"], row["outcome"]) for row in rows] == [("store_document", "E_TIMEOUT")]
    assert store.ask("db_status")["docs"] == 0


def test_reading_waits_for_no_writer_and_its_row_is_written_afterwards(store: Store) -> None:
    store.put("an amber lamp", id="a", relations=[{"src": "a", "rel": "r", "dst": "b"}])
    with Neighbour(store.path) as other:
        other.run("BEGIN IMMEDIATE")
        other.run("UPDATE docs SET tags = '[\"not committed\"]'")
        assert store.found("amber") == ["a"]
        assert store.ask("get_document", id="a")["tags"] == []
        assert len(store.ask("query_graph", node="a")["edges"]) == 1
        assert store.ask("search_knowledge", seed_chunk_ids=[1])["truncated"] is False
        assert store.ask("db_status")["docs"] == 1
        assert len(store.audit_now()) == 1
        other.run("ROLLBACK")
    assert [row["outcome"] for row in store.audit()] == ["ok"] * 6


def test_rows_that_still_wait_are_written_when_the_server_ends(tmp_path) -> None:
    with Store(tmp_path / "store.db") as store, Neighbour(store.path) as other:
        other.run("BEGIN IMMEDIATE")
        for _ in range(5):
            store.found("amber")
        other.run("COMMIT")
    with Store(tmp_path / "store.db") as store:
        assert len(store.audit()) == 5


def test_a_reader_elsewhere_never_holds_a_writer_up(store: Store) -> None:
    store.put("an amber lamp", id="a")
    with Neighbour(store.path) as other:
        other.run("BEGIN")
        other.run("SELECT * FROM docs")
        store.put("a cedar lamp", id="b")
        assert store.hits("lamp") == {"a", "b"}
        assert other.run("SELECT * FROM docs") == 1
        other.run("COMMIT")
        assert other.run("SELECT * FROM docs") == 2


def test_a_call_whose_row_cannot_be_written_fails(store: Store) -> None:
    # The row of a call that meets the first emptying of the log waits, and that call answers.
    until(lambda: not Path(f"{store.path}-wal").stat().st_size)
    store.rows(
        "CREATE TRIGGER deaf BEFORE INSERT ON audit_log BEGIN SELECT raise(ABORT, 'deaf'); END"
    )
    assert store.refusal("db_status") == ("E_INTERNAL", "the database refused a statement")
    assert store.refused("store_document", title="t", content="c", id="a") == "E_INTERNAL"
    store.rows("DROP TRIGGER deaf")
    assert store.refused("get_document", id="a") == "E_NOT_FOUND"
    assert store.ask("db_status")["docs"] == 0
