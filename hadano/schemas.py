"""JSON schemas of the tools, made from `types.py`: plain enough for every client.

Some clients reject a whole list of tools for one `$ref`, one union or one nullable type, so
definitions are put in place and each field has one type.
"""

from functools import cache
from typing import Any

import msgspec

from hadano.types import Refusal, Reply, Request


@cache
def of_request(kind: type[Request]) -> dict[str, Any]:
    """What a tool takes: types, ranges, defaults, descriptions; nothing else is let through."""
    return _schema(kind)


@cache
def of_reply(kind: type[Reply]) -> dict[str, Any]:
    """What a tool answers with: the fields of `kind`, or `error`; `request_id` with either.

    An error is structured content too, and there are clients that hold it to this schema and throw
    away what does not fit, so nothing but `request_id` is required.
    """
    schema = _schema(kind)
    schema["properties"]["request_id"].pop("default")
    schema["properties"]["error"] = _schema(Refusal)
    schema["required"] = ["request_id"]
    return schema


def _schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    (whole,), definitions = msgspec.json.schema_components([kind], ref_template="{name}")
    schema: dict[str, Any] = _plain(whole, definitions)
    return schema


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    """`node` with its definitions in place. A union (there is one, a version or null) loses its
    types: a schema without a type lets both through, and is understood by all."""
    if isinstance(node, list):
        return [_plain(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(definitions[node["$ref"]], definitions)
    return {
        key: {name: _plain(field, definitions) for name, field in value.items()}
        if key == "properties"
        else _plain(value, definitions)
        for key, value in node.items()
        if key not in ("title", "anyOf")
    }
