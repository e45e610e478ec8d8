"""The tool table as a client sees it: names, descriptions, schemas, annotations (section 11)."""

import re

import msgspec
import pytest

from hadano.service import TOOLS
from tests.tools.store import Store

BY_NAME = {tool.name: tool for tool in TOOLS}
READS = {"search_documents", "search_knowledge", "query_graph", "get_document", "db_status"}
#: Per parameter: required, type, default, least, most.
PARAMETERS = {
    "store_document": {
        "title": (True, "string", None, None, None),
        "content": (True, "string", None, None, None),
        "id": (False, "string", None, None, None),
        "tags": (False, "array", None, None, None),
        "relations": (False, "array", None, None, None),
    },
    "search_documents": {
        "query": (True, "string", None, None, None),
        "top_k": (False, "integer", 10, 1, 100),
        "max_chunks_per_doc": (False, "integer", 3, 1, 20),
    },
    "search_knowledge": {
        "seed_chunk_ids": (True, "array", None, None, None),
        "top_k": (False, "integer", 10, 1, 100),
        "mode": (False, "string", "auto", None, None),
    },
    "query_graph": {
        "node": (True, "string", None, None, None),
        "depth": (False, "integer", 1, 1, 3),
        "rel": (False, "string", None, None, None),
    },
    "get_document": {"id": (True, "string", None, None, None)},
    "delete_document": {"id": (True, "string", None, None, None)},
    "db_status": {},
}


def nodes(schema: object):
    """Every object inside a schema."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    if isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("name", PARAMETERS)
def test_an_input_schema_says_what_the_contract_says(name: str) -> None:
    schema = BY_NAME[name].input_schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", [])) == {
        field for field, (required, *_) in PARAMETERS[name].items() if required
    }
    got = {
        field: (
            field in schema.get("required", []),
            has.get("type"),
            has.get("default"),
            has.get("minimum"),
            has.get("maximum"),
        )
        for field, has in schema["properties"].items()
    }
    assert got == PARAMETERS[name]
    assert all(has.get("description") for has in schema["properties"].values())


def test_modes_seeds_and_relations_are_spelled_out() -> None:
    knowledge = BY_NAME["search_knowledge"].input_schema["properties"]
    assert sorted(knowledge["mode"]["enum"]) == ["auto", "both", "graph", "vector"]
    assert knowledge["seed_chunk_ids"]["items"] == {"type": "integer"}
    assert (knowledge["seed_chunk_ids"]["minItems"], knowledge["seed_chunk_ids"]["maxItems"]) == (
        1,
        3,
    )
    relation = BY_NAME["store_document"].input_schema["properties"]["relations"]["items"]
    assert set(relation["properties"]) == set(relation["required"]) == {"src", "rel", "dst"}


def test_schemas_have_one_plain_type_a_field_and_no_references() -> None:
    for tool in TOOLS:
        for schema in (tool.input_schema, tool.output_schema):
            for node in nodes(schema):
                assert not node.keys() & {"anyOf", "oneOf", "allOf", "$ref", "$defs"}
                assert isinstance(node.get("type", ""), str | dict)
                assert node.get("type") != "null"
            msgspec.json.encode(schema)


def test_annotations_are_honest() -> None:
    for tool in TOOLS:
        assert tool.annotations["readOnlyHint"] is (tool.name in READS)
        assert tool.annotations["destructiveHint"] is (tool.name not in READS)
        assert tool.annotations["openWorldHint"] is False
    assert BY_NAME["delete_document"].annotations["idempotentHint"] is True
    assert BY_NAME["store_document"].annotations["idempotentHint"] is False


def test_every_tool_and_parameter_that_a_description_names_exists() -> None:
    known = set(BY_NAME)
    for tool in TOOLS:
        for schema in (tool.input_schema, tool.output_schema):
            for node in nodes(schema):
                known |= node.get("properties", {}).keys()
    for tool in TOOLS:
        assert tool.title
        texts = [tool.description]
        for schema in (tool.input_schema, tool.output_schema):
            texts += [
                n["description"] for n in nodes(schema) if isinstance(n.get("description"), str)
            ]
        for text in texts:
            assert set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text)) <= known


def fits(value: object, schema: dict) -> bool:
    """Whether a value is what a schema (of our plain kind) says."""
    match schema.get("type"):
        case "object":
            assert isinstance(value, dict)
            assert set(schema.get("required", [])) <= set(value)
            return all(fits(value[name], schema["properties"][name]) for name in value)
        case "array":
            return isinstance(value, list) and all(fits(item, schema["items"]) for item in value)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, float | int)
    return True


def test_answers_are_what_their_output_schemas_say(store: Store) -> None:
    edge = {"src": "a", "rel": "r", "dst": "b"}
    for name, arguments in (
        ("store_document", {"id": "a", "title": "t", "content": "amber", "relations": [edge]}),
        ("search_documents", {"query": "amber"}),
        ("search_knowledge", {"seed_chunk_ids": [1]}),
        ("query_graph", {"node": "a"}),
        ("get_document", {"id": "a"}),
        ("db_status", {}),
        ("delete_document", {"id": "a"}),
    ):
        content, is_error = store.answer(name, arguments)
        assert not is_error
        schema = BY_NAME[name].output_schema
        assert "request_id" in schema["required"]
        assert set(content) == set(schema["properties"]) - {"error"}
        assert fits(content, schema)


def test_a_refusal_is_what_every_output_schema_allows(store: Store) -> None:
    for tool in TOOLS:
        content, is_error = store.answer(tool.name, {"no such parameter": 1})
        assert is_error
        assert set(content) <= set(tool.output_schema["properties"])
        assert fits(content, tool.output_schema)
