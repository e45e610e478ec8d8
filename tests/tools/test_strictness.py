"""Section 4's strictness: what is taken, what is refused, in which order, and that a refusal writes
nothing. Sections 6's limits stand in test_limits.py."""

import json

import pytest

from hadano.service import TOOLS
from tests.tools.store import Store

DOCUMENT = {"title": "t", "content": "c"}
EDGE = {"src": "a", "rel": "r", "dst": "b"}

#: A call of each tool that is answered, as far as its form goes, and all its text parameters.
FORMS = {
    "store_document": {**DOCUMENT, "id": "i", "tags": ["x"], "relations": [EDGE]},
    "search_documents": {"query": "q"},
    "search_knowledge": {"seed_chunk_ids": [1], "mode": "auto"},
    "query_graph": {"node": "n", "rel": "r"},
    "get_document": {"id": "i"},
    "delete_document": {"id": "i"},
}
TEXTS = [
    ("store_document", "title"),
    ("store_document", "content"),
    ("store_document", "id"),
    ("search_documents", "query"),
    ("search_knowledge", "mode"),
    ("query_graph", "node"),
    ("query_graph", "rel"),
    ("get_document", "id"),
    ("delete_document", "id"),
]
REQUIRED = [
    ("store_document", "title"),
    ("store_document", "content"),
    ("search_documents", "query"),
    ("search_knowledge", "seed_chunk_ids"),
    ("query_graph", "node"),
    ("get_document", "id"),
    ("delete_document", "id"),
]
#: Whole numbers, with their ranges.
WHOLE = [
    ("search_documents", "top_k", 1, 100),
    ("search_documents", "max_chunks_per_doc", 1, 20),
    ("search_knowledge", "top_k", 1, 100),
    ("query_graph", "depth", 1, 3),
]
#: What Python calls blank, and what looks it: all of Unicode's white space.
BLANKS = ["", " ", "\t\n", "\u3000", "\u00a0", " \u2003\u2029\u0085 "]


@pytest.fixture(scope="module")
def held(shared: Store) -> Store:
    """A store with one document, of one chunk, that nobody in this module changes."""
    shared.put("an amber lamp", id="kept", relations=[EDGE])
    return shared


def refuses(store: Store, tool: str, arguments: object, code: str = "E_VALIDATION") -> str:
    """The message of a refusal, which has written nothing but its audit row."""
    before = store.contents()
    content, is_error = store.answer(tool, arguments)
    assert is_error, content
    assert content["error"]["code"] == code
    assert store.contents() == before
    return content["error"]["message"]


@pytest.mark.parametrize(("tool", "field"), REQUIRED)
def test_a_required_parameter_may_be_neither_missing_nor_null(held, tool, field) -> None:
    without = {name: value for name, value in FORMS[tool].items() if name != field}
    assert refuses(held, tool, without) == f"{field}: required, and missing"
    assert refuses(held, tool, without | {field: None}).startswith(f"{field}: ")


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS if tool.name != "db_status"])
def test_no_arguments_at_all_are_arguments_that_lack_what_is_required(held, tool) -> None:
    for nothing in (None, {}):
        assert refuses(held, tool, nothing).endswith("required, and missing")


@pytest.mark.parametrize("arguments", [[], "x", 3, True, 1.5, [["query", "x"]]])
def test_arguments_that_are_no_object_are_refused(held, arguments) -> None:
    for tool in TOOLS:
        assert refuses(held, tool.name, arguments).startswith("arguments: ")


def test_null_for_an_optional_parameter_means_absent(tmp_path) -> None:
    with Store(tmp_path / "store.db") as store:
        stored = store.ask("store_document", **DOCUMENT, id=None, tags=None, relations=None)
        assert len(stored["id"]) == 32
        assert store.ask("get_document", id=stored["id"])["tags"] == []
        assert store.found("title", top_k=None, max_chunks_per_doc=None) == []
        assert store.ask("search_knowledge", seed_chunk_ids=[1], top_k=None, mode=None)
        assert store.ask("query_graph", node="a", depth=None, rel=None)


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
@pytest.mark.parametrize(
    "name", ["max_result", "Query", "ids", "limit", "", "query ", "titl\u0435"]
)
def test_a_parameter_that_the_tool_does_not_have_is_refused_by_name(held, tool, name) -> None:
    for value in (None, 1, "x"):
        message = refuses(held, tool, FORMS.get(tool, {}) | {name: value})
        assert message.startswith(f"{name}: this tool has no such parameter; it takes ")
    for known in FORMS.get(tool, ()):
        assert known in message


def test_an_unknown_key_of_a_relation_is_refused(held) -> None:
    message = refuses(held, "store_document", DOCUMENT | {"relations": [EDGE | {"why": "x"}]})
    assert message.startswith("relations[0]: ")
    assert "why" in message


@pytest.mark.parametrize(("tool", "field"), TEXTS)
@pytest.mark.parametrize("value", [1, 1.5, True, ["x"], {"x": 1}])
def test_only_text_is_text(held, tool, field, value) -> None:
    assert refuses(held, tool, FORMS[tool] | {field: value}).startswith(f"{field}: ")


@pytest.mark.parametrize(("tool", "field", "least", "most"), WHOLE)
def test_a_whole_number_is_an_integer_however_json_writes_it(held, tool, field, least, most):
    for good in (least, most, float(least), float(most), None):
        held.ask(tool, **FORMS[tool] | {field: good})
    for value in json.loads("[1.0, 1e0, 10e-1, 2.0]"):
        held.ask(tool, **FORMS[tool] | {field: value})


@pytest.mark.parametrize(("tool", "field", "least", "most"), WHOLE)
def test_a_number_that_is_no_integer_or_out_of_range_is_refused(held, tool, field, least, most):
    out_of_range = [least - 1, -1, most + 1, 10_000, 1_000_000, 2**63, 10**30, -(2**63) - 1, 1e300]
    no_integers = [True, False, "1", "10", "ten", 1.5, 0.5, [1], {}, float("inf"), float("nan")]
    for value in out_of_range + no_integers:
        assert refuses(held, tool, FORMS[tool] | {field: value}).startswith(f"{field}: ")


@pytest.mark.parametrize(
    "seeds",
    [[], [1, 2, 3, 4], [1, 1], [1, 1.0], [True], ["1"], "1", "[1]", 1, {}, [None], [1.5], [[1]]],
)
def test_seeds_are_one_to_three_distinct_integers(held, seeds) -> None:
    message = refuses(held, "search_knowledge", {"seed_chunk_ids": seeds})
    assert message.startswith("seed_chunk_ids")


@pytest.mark.parametrize("mode", ["AUTO", "", " auto", "vectors", "all"])
def test_an_unknown_mode_is_refused(held, mode) -> None:
    message = refuses(held, "search_knowledge", {"seed_chunk_ids": [1], "mode": mode})
    assert message.startswith("mode: ")


@pytest.mark.parametrize(("tool", "field"), [text for text in TEXTS if text[1] != "mode"])
@pytest.mark.parametrize("bad", ["cut \ud83d here", "\udc81", "\udc00\ud800", "a\0b", "\0"])
def test_a_lone_surrogate_or_a_nul_is_refused_in_every_text(held, tool, field, bad) -> None:
    message = refuses(held, tool, FORMS[tool] | {field: bad})
    assert message.startswith(f"{field}: holds a")
    message.encode()


@pytest.mark.parametrize("bad", ["\ud83d", "\0", "x\0", "x\udfff"])
def test_a_lone_surrogate_or_a_nul_is_refused_inside_lists_and_names(held, bad) -> None:
    refuses(held, "store_document", DOCUMENT | {"tags": ["good", bad]})
    for name in EDGE:
        refuses(held, "store_document", DOCUMENT | {"relations": [EDGE | {name: bad}]})
    refuses(held, "store_document", DOCUMENT | {"relations": [EDGE | {bad: "x"}]})
    refuses(held, "store_document", DOCUMENT | {bad: "x"})
    refuses(held, "search_knowledge", {"seed_chunk_ids": [1], "mode": bad})


def test_a_surrogate_pair_is_one_character_like_any_other(tmp_path) -> None:
    text = json.loads('"\\ud83d\\ude00"')
    with Store(tmp_path / "store.db") as store:
        store.put(text, title=text, id=text, tags=[text])
        assert store.found(text) == [text]
        assert store.ask("get_document", id=text)["content"] == "\U0001f600"


@pytest.mark.parametrize("blank", BLANKS)
def test_blank_text_is_refused_everywhere_but_as_content(held, blank) -> None:
    for tool, field in TEXTS:
        if field not in ("content", "mode"):
            assert refuses(held, tool, FORMS[tool] | {field: blank}) == f"{field}: is blank"
    refuses(held, "store_document", DOCUMENT | {"tags": [blank]})
    for name in EDGE:
        refuses(held, "store_document", DOCUMENT | {"relations": [EDGE | {name: blank}]})


@pytest.mark.parametrize("blank", BLANKS)
def test_blank_content_is_one_chunk_found_by_its_title(tmp_path, blank) -> None:
    with Store(tmp_path / "store.db") as store:
        stored = store.ask("store_document", title="Amber", content=blank, id="a")
        assert stored["chunks"] == 1
        assert store.ask("get_document", id="a")["content"] == blank
        assert store.search("amber")[0]["matched_chunks"] == [
            {"chunk_id": 1, "seq": 0, "text": blank}
        ]


@pytest.mark.parametrize("control", ["\x01", "\t", "\n", "\x1f", "\x7f", "\x80", "\x9f", "\x1b[0m"])
def test_an_id_with_a_control_character_is_refused(held, control) -> None:
    for tool in ("store_document", "get_document", "delete_document"):
        message = refuses(held, tool, FORMS[tool] | {"id": f"a{control}b"})
        assert message == "id: holds a control character"


@pytest.mark.parametrize(
    "tags",
    ["a,b", "a", '["a","b"]', {}, 1, True, [["a"]], [1], [None], [True], [{}], ["a", "a"]],
)
def test_tags_are_a_list_of_distinct_texts(held, tags) -> None:
    assert refuses(held, "store_document", DOCUMENT | {"tags": tags}).startswith("tags")


@pytest.mark.parametrize(
    "relations",
    ["a", {}, EDGE, [["a", "r", "b"]], ["a r b"], [None], [EDGE, EDGE], [{"src": "a"}], '[{"src"']
    + [[EDGE | {name: value}] for name in EDGE for value in (None, 1, ["x"], True)],
)
def test_relations_are_a_list_of_distinct_edges(held, relations) -> None:
    message = refuses(held, "store_document", DOCUMENT | {"relations": relations})
    assert message.startswith("relations")


def test_edges_that_differ_in_anything_are_distinct(tmp_path) -> None:
    relations = [EDGE, EDGE | {"src": "A"}, EDGE | {"rel": "R"}, EDGE | {"dst": "a"}]
    relations += [{"src": "b", "rel": "r", "dst": "a"}]
    with Store(tmp_path / "store.db") as store:
        store.put("text", relations=relations)
        assert store.ask("db_status")["edges"] == 5


# Validation, then size, then existence.

LONG = {
    "title": "t" * 513,
    "content": "c" * 1_048_577,
    "tags": ["x" * 65],
    "relations": [EDGE | {"src": "x" * 129}],
}


def test_what_is_wrong_is_refused_before_what_is_too_large(held) -> None:
    for wrong in ({"id": "a\n"}, {"tags": ["a", "a"]}, {"relations": [EDGE, EDGE]}, {"extra": 1}):
        refuses(held, "store_document", DOCUMENT | LONG | wrong)
    refuses(held, "store_document", LONG | {"title": " " * 513})
    refuses(held, "store_document", LONG | {"content": "\0" * 1_048_577})
    refuses(held, "store_document", LONG | {"tags": ["x" * 65, "\ud800"]})
    refuses(held, "store_document", LONG | {"relations": [EDGE | {"rel": "", "src": "x" * 129}]})
    refuses(held, "search_documents", {"query": "q" * 1_025, "top_k": 0})
    refuses(held, "search_documents", {"query": "?" * 1_025})
    refuses(held, "search_documents", {"query": " " * 1_025})
    refuses(held, "query_graph", {"node": "n" * 129, "depth": 4})
    refuses(held, "query_graph", {"node": "n" * 129, "rel": " "})


def test_what_is_wrong_is_refused_before_what_does_not_exist(held) -> None:
    refuses(held, "search_knowledge", {"seed_chunk_ids": [999], "mode": "fast"})
    refuses(held, "search_knowledge", {"seed_chunk_ids": [999, 999]})
    refuses(held, "search_knowledge", {"seed_chunk_ids": [999], "top_k": 101})
    refuses(held, "get_document", {"id": "nowhere", "part": 1})
    refuses(held, "delete_document", {"id": "nowhere", "part": 1})


@pytest.mark.parametrize("seed", [0, -1, 2, 999, 2**63 - 1, 2**63, 10**30, -(10**30)])
def test_a_seed_that_no_chunk_has_is_not_found(held, seed) -> None:
    message = refuses(held, "search_knowledge", {"seed_chunk_ids": [1, seed]}, "E_NOT_FOUND")
    assert message == f"seed_chunk_ids: there is no chunk {seed}"


def test_a_refused_replacement_leaves_the_document_as_it_was(held) -> None:
    for wrong in ({"content": "\0"}, {"title": ""}, {"tags": [""]}, {"relations": [{}]}):
        refuses(held, "store_document", FORMS["store_document"] | {"id": "kept"} | wrong)
    refuses(held, "store_document", DOCUMENT | {"id": "kept"} | LONG, "E_TOO_LARGE")


# Text is text, whatever it looks like (cases 27, 87, 88).


@pytest.mark.parametrize(
    "text", ['{"a":1}', "[1,2]", "123", "007", "1e5", "true", "null", '"quoted"', "1.0", "NaN"]
)
def test_text_that_looks_like_json_or_a_number_stays_text(tmp_path, text) -> None:
    with Store(tmp_path / "store.db") as store:
        store.put(text, title=text, id=text, tags=[text], relations=[EDGE | {"src": text}])
        got = store.ask("get_document", id=text)
        assert [got["id"], got["title"], got["content"], got["tags"]] == [text, text, text, [text]]
        assert store.ask("query_graph", node=text)["edges"][0]["src"] == text
        assert store.found(text) == [text]


IDS = ["2026-01-17", "007", "7", "a/b", " x ", "x", "..", "日報", "ID", "id", "İ", "i\u0307", "'--"]
IDS += ["%", "_", "a%", "\u200b", "é", "e\u0301", "🎵" * 256, "x" * 256]


def test_ids_are_compared_codepoint_for_codepoint(tmp_path) -> None:
    with Store(tmp_path / "store.db") as store:
        for id in IDS:
            assert store.put(f"text of {id!r}", id=id) == id
        assert store.ask("db_status")["docs"] == len(IDS)
        for id in IDS:
            assert store.ask("get_document", id=id)["content"] == f"text of {id!r}"
        for gone, id in enumerate(IDS, start=1):
            assert store.ask("delete_document", id=id) == {
                "id": id,
                "deleted": True,
                "erased": True,
            }
            assert store.refused("get_document", id=id) == "E_NOT_FOUND"
            assert store.ask("db_status")["docs"] == len(IDS) - gone


def test_a_deletion_means_exactly_the_id_it_names(tmp_path) -> None:
    with Store(tmp_path / "store.db") as store:
        store.put("text", id="Note")
        for other in ("note", "NOTE", "Note ", " Note", "Note.", "Ｎote"):
            assert store.refused("delete_document", id=other) == "E_NOT_FOUND"
        assert store.ask("delete_document", id="Note")["deleted"] is True
        assert store.refused("delete_document", id="Note") == "E_NOT_FOUND"
