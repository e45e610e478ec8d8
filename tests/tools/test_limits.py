"""Section 6: each limit one below, at, and one above; and what its unit counts."""

import json

import pytest

from hadano import limits
from tests.tools.store import Store

EDGE = {"src": "a", "rel": "r", "dst": "b"}


def edges(count: int) -> list[dict[str, str]]:
    return [EDGE | {"dst": f"node {n}"} for n in range(count)]


#: Arguments that put so many units of a field into a call: tool, field, limit, unit, arguments.
STORED = [
    ("title", 512, "codepoints", lambda n: {"title": "t" * n}),
    ("title", 512, "codepoints", lambda n: {"title": "𠮷" * n}),
    ("content", 1_048_576, "bytes", lambda n: {"content": "c" * n}),
    ("content", 1_048_576, "bytes", lambda n: {"content": "c" * (n % 3) + "愛" * (n // 3)}),
    ("content", 1_048_576, "bytes", lambda n: {"content": "c" * (n % 4) + "🎵" * (n // 4)}),
    ("tags", 20, "items", lambda n: {"tags": [f"tag {i}" for i in range(n)]}),
    ("tags[1]", 64, "codepoints", lambda n: {"tags": ["x", "🎵" * n]}),
    ("relations", 100, "items", lambda n: {"relations": edges(n)}),
    (
        "relations[1].src",
        128,
        "codepoints",
        lambda n: {"relations": [EDGE, EDGE | {"src": "é" * n}]},
    ),
    ("relations[0].dst", 128, "codepoints", lambda n: {"relations": [EDGE | {"dst": "🎵" * n}]}),
    ("relations[0].rel", 64, "codepoints", lambda n: {"relations": [EDGE | {"rel": "愛" * n}]}),
]
ASKED = [
    ("search_documents", "query", 1_024, lambda n: {"query": "q" * n}),
    ("search_documents", "query", 1_024, lambda n: {"query": "東" * n}),
    ("search_documents", "query", 1_024, lambda n: {"query": "🎵" * n}),
    ("search_documents", "query", 1_024, lambda n: {"query": "x" + " " * (n - 1)}),
    ("query_graph", "node", 128, lambda n: {"node": "🎵" * n}),
    ("query_graph", "rel", 64, lambda n: {"node": "n", "rel": "🎵" * n}),
]


@pytest.mark.parametrize(("field", "most", "unit", "arguments"), STORED)
def test_a_document_is_taken_up_to_each_limit_and_refused_past_it(
    tmp_path, field, most, unit, arguments
) -> None:
    with Store(tmp_path / "store.db") as store:
        document = {"title": "t", "content": "c"}
        for size in (most - 1, most):
            id = store.ask("store_document", **document | arguments(size))["id"]
            got = store.ask("get_document", id=id)
            for name in ("title", "content", "tags"):
                assert got[name] == arguments(size).get(name, document.get(name, []))
        before = store.contents()
        code, message = store.refusal("store_document", **document | arguments(most + 1))
        assert code == "E_TOO_LARGE"
        assert message == f"{field}: {most + 1:,} {unit}, at most {most:,} are allowed"
        assert store.contents() == before


@pytest.mark.parametrize(("tool", "field", "most", "arguments"), ASKED)
def test_a_question_is_taken_up_to_each_limit_and_refused_past_it(
    shared: Store, tool, field, most, arguments
) -> None:
    for size in (most - 1, most):
        shared.ask(tool, **arguments(size))
    code, message = shared.refusal(tool, **arguments(most + 1))
    assert code == "E_TOO_LARGE"
    assert message == f"{field}: {most + 1:,} codepoints, at most {most:,} are allowed"


def test_an_id_past_its_length_is_no_id_and_not_too_large(shared: Store) -> None:
    for size in (255, 256):
        id = "🎵" * size
        shared.put("text", id=id)
        assert shared.ask("get_document", id=id)["id"] == id
        assert shared.ask("delete_document", id=id)["deleted"]
    for tool in ("get_document", "delete_document"):
        assert shared.refused(tool, id="x" * 257) == "E_VALIDATION"
    long = {"title": "t", "content": "c", "id": "x" * 257}
    assert shared.refused("store_document", **long) == "E_VALIDATION"


def test_all_limits_can_be_reached_at_once(tmp_path) -> None:
    with Store(tmp_path / "store.db") as store:
        document = {
            "id": "i" * 256,
            "title": "t" * 512,
            "content": "c" * 1_048_576,
            "tags": [f"{n:064}" for n in range(20)],
            "relations": [
                {"src": f"{n:0128}", "rel": f"{n:064}", "dst": f"{n + 1:0128}"} for n in range(100)
            ],
        }
        assert store.ask("store_document", **document)["chunks"] == 1498
        assert store.ask("get_document", id="i" * 256)["content"] == document["content"]
        assert store.ask("query_graph", node=f"{0:0128}", depth=3)["edges"] == [
            {**edge, "doc_id": document["id"]} for edge in document["relations"][:3]
        ]


def test_the_numbers_of_the_contract_are_the_numbers_in_the_code() -> None:
    assert limits.CONTENT_BYTES_MAX == 1_048_576
    assert (limits.TITLE_CODEPOINTS_MAX, limits.QUERY_CODEPOINTS_MAX) == (512, 1_024)
    assert (limits.TAGS_MAX, limits.TAG_CODEPOINTS_MAX, limits.RELATIONS_MAX) == (20, 64, 100)
    assert (limits.NODE_CODEPOINTS_MAX, limits.REL_CODEPOINTS_MAX) == (128, 64)
    assert (limits.SEEDS_MAX, limits.HOPS_MAX, limits.GRAPH_EDGES_MAX) == (3, 3, 500)
    assert (limits.CALL_MS_MAX, limits.BUSY_MS_MAX) == (2_000, 5_000)
    assert (limits.CHUNK_CODEPOINTS_MAX, limits.CHUNK_STRIDE_CODEPOINTS) == (800, 700)
    assert (limits.FUSION_RANKS_MAX, limits.FUSION_CONSTANT) == (1_000, 60)


def test_no_document_within_limits_makes_a_longer_line_of_json(store: Store) -> None:
    wide = "𝔞"  # two escaped halves of a surrogate pair: twelve bytes
    document = {
        "id": wide * limits.ID_CODEPOINTS_MAX,
        "title": wide * limits.TITLE_CODEPOINTS_MAX,
        "content": "\1" * limits.CONTENT_BYTES_MAX,
        "tags": [chr(ord(wide) + n) * limits.TAG_CODEPOINTS_MAX for n in range(limits.TAGS_MAX)],
        "relations": [
            {
                "src": chr(ord(wide) + n) * limits.NODE_CODEPOINTS_MAX,
                "rel": wide * limits.REL_CODEPOINTS_MAX,
                "dst": wide * limits.NODE_CODEPOINTS_MAX,
            }
            for n in range(limits.RELATIONS_MAX)
        ],
    }
    longest = len(json.dumps(document))
    assert longest <= limits.JSON_LINE_BYTES_MAX - limits.CONTENT_BYTES_MAX // 2
    assert longest > limits.JSON_LINE_BYTES_MAX - 2 * limits.CONTENT_BYTES_MAX
    store.refused("store_document", **document | {"tags": "no list"})
    [row] = store.audit()
    assert document["content"] == json.loads(row["args"])["content"]
