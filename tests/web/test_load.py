"""Many clients, calls, sessions and connections; with `-m slow -s` they print their figures."""

import contextlib
import os
import random
import re
import sqlite3
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.web.web import REAL, Server, post, received
from tests.wire import process
from tests.wire.mixed import Shared, check, work
from tests.wire.process import Process, call, enveloped, initialize

pytestmark = pytest.mark.slow
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

CLIENTS = 32
CALLS = 200
SESSIONS = 2_000
CALLS_A_SESSION = 25
IDLE = 1_000


class Client:
    """One client on a connection of its own, of either era; it keeps what its calls took."""

    def __init__(self, server: Server, handshake: bool) -> None:
        self.connection = server.connect()
        self._handshake = handshake
        self._headers = {}
        if handshake:
            opened = post(self.connection, initialize())
            self._headers["mcp_session_id"] = opened.headers["mcp-session-id"]
        #: Milliseconds that each call waited, worked, and took from end to end.
        self.times: list[tuple[float, float, float]] = []

    def ask(self, ident: str, tool: str, arguments: dict) -> dict:
        message = call(ident, tool, **arguments)
        began = time.perf_counter()
        message = message if self._handshake else enveloped(message)
        reply = post(self.connection, message, **self._headers)
        took = (time.perf_counter() - began) * 1000
        assert (reply.status, reply.json["id"]) == (200, ident)
        waited, worked = re.findall(r"dur=([\d.]+)", reply.headers["server-timing"])
        self.times.append((float(waited), float(worked), took))
        return reply.structured

    def end(self) -> None:
        headers = {"mcp-session-id": self._headers["mcp_session_id"]}
        self.connection.request("DELETE", "/mcp", headers=headers)
        assert self.connection.getresponse().read() == b""


class Timed:
    """The one server on pipes, asked by a thread that keeps what its calls took."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.times: list[float] = []

    def ask(self, ident: str, tool: str, arguments: dict) -> dict:
        began = time.perf_counter()
        answer = self._shared.ask(ident, tool, arguments)
        self.times.append((time.perf_counter() - began) * 1000)
        return answer


def figures(name: str, times: list[float]) -> str:
    cuts = statistics.quantiles(times, n=100)
    return f"{name:28} p50 {cuts[49]:8.2f} ms   p95 {cuts[94]:8.2f} ms"


def together(clients) -> tuple[list, float]:
    """All clients at their mixed calls at once: what each left, and the seconds it took."""
    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as threads:
        done = [threads.submit(work, c, f"client {n}", CALLS) for n, c in enumerate(clients)]
        results = [result.result() for result in done]
    return results, time.perf_counter() - began


def worked(database: Path) -> list[float]:
    with contextlib.closing(sqlite3.connect(database)) as db:
        return [ms for (ms,) in db.execute("SELECT duration_ms FROM audit_log")]


def test_32_clients_lose_nothing_and_get_nothing_wrong(tmp_path):
    stores = {name: tmp_path / f"{name}.db" for name in ("http", "stdio")}
    with Server(*REAL, environment={"HADANO_DB": str(stores["http"])}) as server:
        clients = [Client(server, handshake=n % 2 == 0) for n in range(CLIENTS)]
        results, seconds = together(clients)
        server.signal(15)
        assert server.wait() == 0
    assert check(stores["http"], results) == CLIENTS * CALLS
    with Process(*process.REAL, environment={"HADANO_DB": str(stores["stdio"])}) as server:
        shared = Shared(server)
        timed = [Timed(shared) for _ in range(CLIENTS)]
        results, piped = together(timed)
        shared.close()
        assert server.wait() == 0
    assert check(stores["stdio"], results) == CLIENTS * CALLS
    print(
        f"\n{CLIENTS} clients x {CALLS} calls: {seconds:.1f} s over HTTP, {piped:.1f} s over pipes"
    )
    times = [time for client in clients for time in client.times]
    for n, name in enumerate(["waited", "worked", "from end to end"]):
        print(figures(f"HTTP, {name}", [time[n] for time in times]))
    print(figures("pipes, worked", worked(stores["stdio"])))
    print(figures("pipes, from end to end", [time for client in timed for time in client.times]))


def footprint(pid: int) -> tuple[int, int, int]:
    """KiB of memory, open descriptors and threads of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory, threads = (
        int(re.search(rf"{key}:\s+(\d+)", status)[1]) for key in ("VmRSS", "Threads")
    )
    return memory, len(os.listdir(f"/proc/{pid}/fd")), threads


def one_session(server: Server, number: int) -> None:
    """Opens a session, calls, and says that it is done; every second one just goes away."""
    chance = random.Random(number)
    client = Client(server, handshake=True)
    with contextlib.closing(client.connection):
        for n in range(CALLS_A_SESSION):
            name = f"{chance.randint(0, 50)}"
            tool, arguments = chance.choice(
                [
                    ("store_document", {"id": name, "title": name, "content": "amber basil " * 30}),
                    ("search_documents", {"query": "amber"}),
                    ("query_graph", {"node": name}),
                    ("get_document", {"id": name}),
                    ("db_status", {}),
                ]
            )
            client.ask(f"{number}:{n}", tool, arguments)
        if number % 2:
            client.end()


def fill_page_cache(server: Server) -> None:
    """Has the store take most of the memory that it keeps pages in: the rows of 64,000 calls."""
    for n in range(12):
        document = {"title": "t", "content": f"amber {n} ".ljust(500_000, ".")}
        message = enveloped(call(1, "store_document", **document))
        assert server.post(message).structured["chunks"] == 715


@linux
def test_50_000_calls_and_2_000_sessions_take_no_more_than_some(tmp_path):
    with Server(*REAL, environment={"HADANO_DB": str(tmp_path / "store.db")}) as server:
        fill_page_cache(server)
        print("\n  calls  sessions  KiB of memory  descriptors  threads")
        prints = []
        for done in range(0, SESSIONS, SESSIONS // 10):
            with ThreadPoolExecutor(4) as threads:
                numbers = range(done, done + SESSIONS // 10)
                list(threads.map(lambda number: one_session(server, number), numbers))
            prints.append(footprint(server.pid))
            sessions = done + SESSIONS // 10
            print(
                f"{sessions * CALLS_A_SESSION:7,} {sessions:9,}",
                "{:14,} {:12} {:8}".format(*prints[-1]),
            )
    memory, descriptors, threads = zip(*prints, strict=True)
    # Memory grows until as many sessions are open as may be and the store's caches are full; a
    # bound that began before failed in a run. From 40,000 calls on it grew by 0.2 and 0.3 MB in two
    # runs. What the bound lets pass is a leak of some 120 bytes a call.
    assert max(memory[8:]) < 1.01 * memory[7]
    assert max(descriptors[1:]) <= descriptors[0] + 4
    assert len(set(threads)) == 1


def test_1_000_idle_connections_keep_nobody_out(tmp_path):
    with Server(*REAL, environment={"HADANO_DB": str(tmp_path / "store.db")}) as server:
        idle = [server.socket() for _ in range(IDLE)]
        began = time.perf_counter()
        assert server.post(enveloped(call(1, "db_status"))).status == 200
        served = (time.perf_counter() - began) * 1000
        before = footprint(server.pid) if sys.platform == "linux" else None
        began = time.perf_counter()
        assert [b"".join(received(sock)) for sock in idle] == [b""] * IDLE
        closed = time.perf_counter() - began
        assert server.post(enveloped(call(1, "db_status"))).status == 200
    print(f"\n{IDLE:,} idle connections: a call took {served:.1f} ms; footprint {before}; ")
    print(f"the last of them was closed after {closed:.1f} s more")
