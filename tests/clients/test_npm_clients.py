"""The TypeScript SDK's client, old and new, and the Inspector's command line, through both doors.

They come from the npm registry, so these tests run where they have been installed:

    npm install --prefix tests/clients
    python -m pytest -s tests/clients
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.web import REAL, Server

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
NODE = MODULES / ".bin" / "node"
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
SERVER = (sys.executable, "-m", "hadano.server")
TOKEN = "t" * 43

pytestmark = pytest.mark.skipif(
    not MODULES.exists(), reason="needs `npm install --prefix tests/clients`"
)


@pytest.fixture
def node(tmp_path):
    """Runs a script in Node on an empty store: its exit status and what it printed."""

    def run(script, *arguments):
        environment = os.environ | {"HADANO_DB": str(tmp_path / "store.db")}
        command = [NODE, script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        print(done.stdout, done.stderr)
        return done.returncode, done.stdout

    return run


@pytest.fixture(params=["stdio", "http"])
def server(request, tmp_path):
    """What a client is told to reach the server: a command, or an address and a token."""
    if request.param == "stdio":
        yield SERVER
        return
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN)
    environment = {"HADANO_DB": str(tmp_path / "store.db")}
    with Server(*REAL, "--token-file", str(token), environment=environment) as door:
        yield door.url, TOKEN


CLIENTS = ["v1", "v2-legacy", "v2-auto", "v2-pinned"]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_typescript_client_walks_through_all_seven_tools(node, client, server):
    status, said = node(HERE / "walk.mjs", client, *server)
    assert status == 0
    assert f"{client}: all seven tools answered" in said


@pytest.mark.parametrize("client", CLIENTS)
def test_the_typescript_client_sees_an_error_as_an_error(node, client, server):
    status, _ = node(HERE / "errors.mjs", client, *server)
    assert status == 0


@pytest.fixture
def inspect(node, tmp_path, server):
    """Asks the Inspector's command line: its exit status and the result that it printed."""

    def inspect(method, *options):
        chosen = ["--cli", "--method", method, *options]
        if server == SERVER:
            chosen += ["-e", f"HADANO_DB={tmp_path / 'store.db'}", "--", *SERVER]
        else:
            url, token = server
            chosen += ["--transport", "http", "--server-url", url]
            chosen += ["--header", f"Authorization: Bearer {token}"]
        status, said = node(INSPECTOR, *chosen)
        return status, json.loads(said)

    return inspect


@pytest.fixture
def call(inspect):
    """Calls a tool through the Inspector, with arguments as `name=value`."""

    def call(tool, *arguments):
        pairs = [part for pair in arguments for part in ("--tool-arg", pair)]
        status, result = inspect("tools/call", "--tool-name", tool, *pairs)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert (status == 0) != result["isError"]
        return result["structuredContent"]

    return call


def test_the_inspector_finds_the_list_of_tools_portable(inspect):
    status, listed = inspect("tools/list", "--strict")
    assert status == 0
    assert len(listed["tools"]) == 7


def test_the_inspector_walks_through_all_seven_tools(call):
    relations = json.dumps([{"src": "Rollback", "rel": "needs", "dst": "Backup"}])
    call(
        "store_document",
        "id=runbook",
        "title=Rollback",
        "content=How we roll a release back.",
        f"relations={relations}",
    )
    found = call("search_documents", "query=release", "top_k=5")
    seed = found["documents"][0]["matched_chunks"][0]["chunk_id"]
    assert len(call("search_knowledge", f"seed_chunk_ids=[{seed}]")["related_edges"]) == 1
    assert call("query_graph", "node=Backup")["nodes"] == ["Backup", "Rollback"]
    assert call("get_document", "id=runbook")["title"] == "Rollback"
    assert call("delete_document", "id=runbook")["deleted"] is True
    assert call("db_status")["docs"] == 0


def test_the_inspector_sees_an_error_as_an_error(call):
    assert call("get_document", "id=missing")["error"]["code"] == "E_NOT_FOUND"
