"""The same tools behind the official SDK's low-level server: what an answer should look like.

Knows nothing of our wire.
"""

import json

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from hadano import wire
from hadano.service import UnknownTool
from tests.wire import fake

_SERVICE = fake.Service()


async def _list_tools(_, params):
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "unknown cursor")
    tools = [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            annotations=types.ToolAnnotations.model_validate(tool.annotations),
        )
        for tool in fake.TOOLS
    ]
    return types.ListToolsResult(tools=tools)


async def _call_tool(_, params):
    try:
        answer = _SERVICE.call(params.name, params.arguments)
    except UnknownTool:
        raise MCPError(types.INVALID_PARAMS, "unknown tool") from None
    text = answer.content.decode()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=json.loads(text),
        is_error=answer.is_error,
    )


_SERVER = Server(
    "hadano",
    version=wire.SERVER_INFO["version"],
    title=wire.SERVER_INFO["title"],
    instructions=wire.INSTRUCTIONS,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
)


async def _converse(messages: list[dict]) -> list[dict | None]:
    to_server, server_reads = anyio.create_memory_object_stream(1)
    server_writes, from_server = anyio.create_memory_object_stream(1)
    answers = []
    async with anyio.create_task_group() as tasks:
        options = _SERVER.create_initialization_options()
        tasks.start_soon(_SERVER.run, server_reads, server_writes, options)
        async with to_server, from_server:
            for message in messages:
                read = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
                await to_server.send(SessionMessage(read))
                answers.append(await _answer(from_server) if is_request(message) else None)
    return answers


async def _answer(from_server) -> dict:
    session_message = await from_server.receive()
    # As the SDK's own standard output does it.
    return session_message.message.model_dump(mode="json", by_alias=True, exclude_unset=True)


def is_request(message: dict) -> bool:
    return "id" in message and "method" in message


def converse(messages: list[dict]) -> list[dict | None]:
    """What the SDK's server answers to each message of one conversation."""
    return anyio.run(_converse, messages)
