"""The official Python SDK's client, in both its modes, against the server as a user starts it."""

import os

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.wire.process import REAL
from tests.wire.walk import MODES, check_introduction, see_errors, walk


@pytest.fixture
def parameters(environment):
    """With all of this environment, for the SDK hands on little: not the library that a core
    compiled with sanitizers needs."""
    given = os.environ | environment
    return StdioServerParameters(command=REAL[0], args=list(REAL[1:]), env=given)


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_walks_through_all_seven_tools(parameters, mode):
    async def ask():
        async with Client(parameters, mode=mode) as client:
            assert client.session.protocol_version == MODES[mode]
            await walk(client)

    anyio.run(ask)


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_sees_errors_as_errors(parameters, mode):
    async def ask():
        async with Client(parameters, mode=mode) as client:
            await see_errors(client)

    anyio.run(ask)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdk_client_is_told_who_serves_and_how(parameters, mode):
    async def ask():
        async with Client(parameters, mode=mode) as client:
            check_introduction(client)

    anyio.run(ask)
