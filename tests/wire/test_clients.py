"""The official Python SDK's client, in both its modes, against the server as a user starts it."""

import json

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from hadano import wire
from tests.wire.process import REAL

TOOLS = [
    "store_document",
    "search_documents",
    "search_knowledge",
    "query_graph",
    "get_document",
    "delete_document",
    "db_status",
]
MODES = {
    "legacy": LATEST_HANDSHAKE_VERSION,
    "auto": LATEST_MODERN_VERSION,
    LATEST_MODERN_VERSION: LATEST_MODERN_VERSION,
}


@pytest.fixture
def parameters(environment):
    return StdioServerParameters(command=REAL[0], args=list(REAL[1:]), env=environment)


def answer(result):
    """The structured answer, which the text says too."""
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_walks_through_all_seven_tools(parameters, mode):
    async def walk():
        async with Client(parameters, mode=mode) as client:
            assert client.session.protocol_version == MODES[mode]
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == TOOLS

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

    anyio.run(walk)


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_sees_errors_as_errors(parameters, mode):
    async def ask():
        async with Client(parameters, mode=mode) as client:
            missing = await client.call_tool("get_document", {"id": "missing"})
            assert missing.is_error
            assert answer(missing)["error"]["code"] == "E_NOT_FOUND"
            with pytest.raises(MCPError, match="Unknown tool: no_such_tool") as refused:
                await client.call_tool("no_such_tool", {})
            assert refused.value.error.code == wire.INVALID_PARAMS

    anyio.run(ask)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdk_client_is_told_who_serves_and_how(parameters, mode):
    async def ask():
        async with Client(parameters, mode=mode) as client:
            return client.server_info, client.instructions

    server, instructions = anyio.run(ask)
    assert (server.name, server.title, server.version) == tuple(wire.SERVER_INFO.values())
    assert instructions == wire.INSTRUCTIONS
