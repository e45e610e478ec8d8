"""The official Python SDK's client, in both its modes, over HTTP with a token."""

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import LATEST_MODERN_VERSION

from tests.web.web import REAL, Server
from tests.wire.walk import MODES, check_introduction, see_errors, walk


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text("t" * 43)
    environment = {"HADANO_DB": str(folder / "store.db")}
    with Server(*REAL, "--token-file", str(token), environment=environment) as server:
        yield server


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_walks_through_all_seven_tools(server, mode):
    async def ask():
        bearer = {"Authorization": "Bearer " + "t" * 43}
        async with httpx2.AsyncClient(headers=bearer) as http:
            transport = streamable_http_client(server.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                assert client.session.protocol_version == MODES[mode]
                if mode != LATEST_MODERN_VERSION:  # There, nothing is asked before the first call.
                    check_introduction(client)
                await walk(client)
                await see_errors(client)

    anyio.run(ask)
