"""From spawn to the first answers, beside a bare server on the official SDK, in one run.

    python -m benchmarks.spawn [NOTES.jsonl]

The SDK's server has one tool, which does nothing; ours searches: an empty store, and with NOTES
(an object with `id`, `title` and `text` a line) one of 50 MB. Medians, in milliseconds, of
processes started by turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from hadano.service import Service
from hadano.types import Settings

RUNS: Final = 11
STORE_BYTES: Final = 50_000_000

SDK: Final = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, Tool

async def list_tools(context, params):
    return ListToolsResult(tools=[Tool(name="nothing", input_schema={"type": "object"})])

async def call_tool(context, params):
    return CallToolResult(content=[])

async def main():
    server = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""

INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "spawn", "version": "1"},
    },
}
SEARCH: Final = {"name": "search_documents", "arguments": {"query": "release notes"}}
NOTHING: Final = {"name": "nothing", "arguments": {}}


def filled(path: Path, notes: Path) -> None:
    """Stores notes one by one until the file has STORE_BYTES."""
    service = Service(Settings(path=str(path), request_log="off"))
    with notes.open(encoding="utf-8") as lines:
        for line in lines:
            note = json.loads(line)
            document = {"id": note["id"], "title": note["title"], "content": note["text"]}
            service.call("store_document", document)
            if path.stat().st_size >= STORE_BYTES:
                break
    service.close()


def spawned(command: list[str], store: Path | None, call: dict) -> tuple[float, float]:
    """Milliseconds from the spawn to the answer of the handshake, and to that of the first call."""
    environment = os.environ | ({"HADANO_DB": str(store)} if store else {})
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as server:
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        server.stdout.readline()
        greeted = time.perf_counter()
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        answered = time.perf_counter()
        if answer["result"].get("isError"):
            raise SystemExit(f"no answer: {answer}")
    return (greeted - started) * 1000, (answered - started) * 1000


def main() -> None:
    ours = [sys.executable, "-m", "hadano.server"]
    with tempfile.TemporaryDirectory() as folder:
        servers = {
            "bare SDK server": ([sys.executable, "-c", SDK], None, NOTHING),
            "Hadano, empty store": (ours, Path(folder, "empty.db"), SEARCH),
        }
        if len(sys.argv) > 1:
            full = Path(folder, "full.db")
            filled(full, Path(sys.argv[1]))
            servers[f"Hadano, {full.stat().st_size / 1e6:.0f} MB"] = (ours, full, SEARCH)
        times = {name: [] for name in servers}
        for _ in range(RUNS):
            for name, server in servers.items():
                times[name].append(spawned(*server))
        print(f"median of {RUNS}, ms{'':17}handshake   first call")
        for name, measured in times.items():
            greeted, answered = map(statistics.median, zip(*measured, strict=True))
            print(f"{name:32}{greeted:8.1f}{answered:13.1f}")


if __name__ == "__main__":
    main()
