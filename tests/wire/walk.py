"""A walk through the seven tools with the official Python SDK's client, over any transport."""

import json

import pytest
from mcp import MCPError
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from hadano import wire
from hadano.service import TOOLS

#: The client's modes, and the version that each agrees on.
MODES = {
    "legacy": LATEST_HANDSHAKE_VERSION,
    "auto": LATEST_MODERN_VERSION,
    LATEST_MODERN_VERSION: LATEST_MODERN_VERSION,
}


def answer(result):
    """The structured answer, which the text says too."""
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def walk(client):
    """Stores, finds, expands and deletes a document; the store must be empty, and is again."""
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]

    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        return answer(result)

    relation = {"src": "Rollback", "rel": "needs", "dst": "Backup"}
    stored = await call(
        "store_document",
        id="runbook",
        title="Rollback",
        content="How we roll a release back.",
        tags=["ops"],
        relations=[relation],
    )
    assert (stored["id"], stored["chunks"]) == ("runbook", 1)
    found = await call("search_documents", query="release")
    (chunk,) = found["documents"][0]["matched_chunks"]
    related = await call("search_knowledge", seed_chunk_ids=[chunk["chunk_id"]])
    assert related["related_edges"] == [relation | {"doc_id": "runbook", "source": "graph"}]
    graph = await call("query_graph", node="Backup")
    assert graph["nodes"] == ["Backup", "Rollback"]
    document = await call("get_document", id="runbook")
    assert document["content"] == chunk["text"]
    assert (await call("delete_document", id="runbook"))["deleted"] is True
    assert (await call("db_status"))["docs"] == 0


async def see_errors(client):
    """A tool's error is a result, a tool that is none an error."""
    missing = await client.call_tool("get_document", {"id": "missing"})
    assert missing.is_error
    assert answer(missing)["error"]["code"] == "E_NOT_FOUND"
    with pytest.raises(MCPError, match="Unknown tool: no_such_tool") as refused:
        await client.call_tool("no_such_tool", {})
    assert refused.value.error.code == wire.INVALID_PARAMS


def check_introduction(client):
    """The client was told who serves, and how to use it."""
    server = client.server_info
    assert (server.name, server.title, server.version) == tuple(wire.SERVER_INFO.values())
    assert client.instructions == wire.INSTRUCTIONS
