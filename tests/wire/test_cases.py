"""What hurt the users of stores like this one over MCP, asked through the wire.

The numbers are those of the collection of public complaints that this project was begun with.
"""

import jsonschema
import pytest

from hadano.service import TOOLS
from tests.wire.process import REAL, Process, call, initialize


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("cases") / "store.db"
    with Process(*REAL, environment={"HADANO_DB": str(path)}) as process:
        process.ask(initialize())
        yield process


@pytest.fixture
def ask(server):
    """Calls a tool: its answer, or its error's code and message."""

    def ask(tool, **arguments):
        result = server.ask(call(1, tool, **arguments))["result"]
        content = result["structuredContent"]
        assert result["isError"] == ("error" in content)
        return content.get("error", content)

    return ask


def test_85_replies_are_bounded(ask):
    for n in range(50):
        ask("store_document", id=f"big-{n}", title="t", content="flood of words " * 1_333)
    documents = ask("search_documents", query="flood", top_k=50)["documents"]
    assert len(documents) == 50
    assert all(len(document["matched_chunks"]) == 3 for document in documents)
    assert all(len(c["text"]) <= 800 for d in documents for c in d["matched_chunks"])
    for n in range(6):
        edges = [{"src": "hub", "rel": "to", "dst": f"spoke {n}-{i}"} for i in range(100)]
        ask("store_document", id=f"hub-{n}", title="t", content="", relations=edges)
    graph = ask("query_graph", node="hub")
    assert (len(graph["edges"]), graph["truncated"]) == (500, True)


@pytest.mark.parametrize(
    "tags", ['["a","b"]', "a,b", "a", [["a"]], [1], [None], {"a": "b"}, ["a", "a"], [""]]
)
def test_87_lists_sent_as_something_else_are_refused_by_name(ask, tags):
    error = ask("store_document", id="tagged", title="t", content="c", tags=tags)
    assert error["code"] == "E_VALIDATION"
    assert "tags" in error["message"]
    assert ask("get_document", id="tagged")["code"] == "E_NOT_FOUND"


@pytest.mark.parametrize("tags", [["a", "b"], []])
def test_87_lists_are_kept_as_they_were_sent(ask, tags):
    ask("store_document", id="kept", title="t", content="c", tags=tags)
    assert ask("get_document", id="kept")["tags"] == tags


@pytest.mark.parametrize(
    "text", ['{"a":1}', "[1,2]", "123", "007", "1e5", "true", "null", '"quoted"', "  x\n"]
)
def test_88_text_that_looks_like_something_else_stays_text(ask, text):
    name = text.strip()
    ask("store_document", id=name, title=text, content=text)
    document = ask("get_document", id=name)
    assert (document["id"], document["title"], document["content"]) == (name, text, text)
    found = ask("search_documents", query=text, top_k=100)["documents"]
    assert name in [document["doc_id"] for document in found]


@pytest.mark.parametrize("number", [1, 1.0, None])
def test_89_whole_numbers_are_whole_in_any_spelling(ask, number):
    ask("store_document", id="n", title="t", content="numbers")
    assert len(ask("search_documents", query="numbers", top_k=number)["documents"]) == 1


@pytest.mark.parametrize("number", ["1", "ten", 1.5, 0, 101, -1, True, [1], {}, 10**30, 1e300])
def test_89_other_numbers_are_refused_by_name(ask, number):
    error = ask("search_documents", query="numbers", top_k=number)
    assert error["code"] == "E_VALIDATION"
    assert "top_k" in error["message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "wrong"),
    [
        ("search_documents", {"query": "q", "max_result": 1}, "max_result"),
        ("search_documents", {"query": "q", "filter": {}}, "filter"),
        ("search_documents", {"Query": "q"}, "Query"),
        ("query_graph", {"node": "n", "hops": 2}, "hops"),
        ("delete_document", {"id": "n", "ids": ["n"]}, "ids"),
        ("db_status", {"verbose": True}, "verbose"),
    ],
)
def test_91_a_misspelled_parameter_is_refused_by_name(ask, tool, arguments, wrong):
    error = ask(tool, **arguments)
    assert error["code"] == "E_VALIDATION"
    assert wrong in error["message"]


def test_99_a_missing_document_is_told_in_one_way(ask):
    got, deleted = ask("get_document", id="missing"), ask("delete_document", id="missing")
    assert got == deleted
    assert got["code"] == "E_NOT_FOUND"
    assert ask("query_graph", node="missing") | {"request_id": ""} == {
        "nodes": [],
        "edges": [],
        "truncated": False,
        "request_id": "",
    }


@pytest.mark.parametrize("arguments", [[], "text", 7, True, [{"query": "q"}]])
def test_99_arguments_that_are_no_object_are_the_halls_to_refuse(server, arguments):
    message = call(1, "search_documents")
    message["params"]["arguments"] = arguments
    result = server.ask(message)["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == "E_VALIDATION"


@pytest.mark.parametrize("text", ["\ud83d", "a\0b", "\udc00\ud800"])
@pytest.mark.parametrize("field", ["id", "title", "content"])
def test_text_that_sqlite_and_json_disagree_about_is_refused_by_name(ask, field, text):
    document = {"id": "bad", "title": "t", "content": "c"} | {field: text}
    error = ask("store_document", **document)
    assert error["code"] == "E_VALIDATION"
    assert field in error["message"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_99_an_error_too_is_what_the_tools_output_schema_says(server, tool):
    result = server.ask(call(1, tool.name, no="such"))["result"]
    assert result["isError"] is True
    # The TypeScript SDK before its version 2 refuses the whole answer otherwise.
    jsonschema.validate(result["structuredContent"], tool.output_schema)
