"""The hall's tools behind the official SDK's low-level server, for both protocol eras.

What a tool is and what it answers come from the table and the wire, word for word as standard
output has them, and the arguments of a call from its turn; the conversation itself is the SDK's.
"""

from collections.abc import Sequence
from typing import Any, Final

import mcp_types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from hadano import wire
from hadano.service import Tool, UnknownTool
from hadano.web.line import Cancelled, Turn

#: Where the scope of a request has its turn.
TURN: Final = "hadano.turn"
#: What the SDK answers a call with that was cancelled where it knows of it.
_CANCELLED: Final = -32800

Context = ServerRequestContext[Any, Any]


def server(tools: Sequence[Tool]) -> Server[Any]:
    """The SDK's server. A call of a tool finds its Turn in the scope of its request."""
    rows = [mcp_types.Tool.model_validate(wire.described(tool)) for tool in tools]

    async def list_tools(
        _: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(wire.INVALID_PARAMS, wire.ONE_PAGE)
        return mcp_types.ListToolsResult(tools=rows)

    return Server(
        name=wire.SERVER_INFO["name"],
        title=wire.SERVER_INFO["title"],
        version=wire.SERVER_INFO["version"],
        instructions=wire.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=_call,
    )


async def _call(
    context: Context, params: mcp_types.CallToolRequestParams
) -> mcp_types.CallToolResult:
    turn: Turn = context.request.scope[TURN]  # type: ignore[union-attr]  # HTTP has a request.
    try:
        answer = await turn.call(params.name)
    except UnknownTool:
        raise MCPError(wire.INVALID_PARAMS, wire.unknown_tool(params.name)) from None
    except Cancelled:
        raise MCPError(_CANCELLED, "Request cancelled") from None
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=answer.content.decode())],
        structured_content=msgspec.json.decode(answer.content),
        is_error=answer.is_error,
    )
