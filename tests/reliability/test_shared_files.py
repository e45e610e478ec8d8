"""Many processes on one file: nothing lost, nobody stuck, and a log that stays small."""

import os
import random
import statistics
import string
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from hadano import chores, ingest, limits
from hadano.connection import Connection, patience, turns
from hadano.errors import Code, HadanoError
from tests.reliability.mixed import WORDS, Contents, applied, write
from tests.reliability.sound import quiet, state_of
from tests.tools.store import Neighbour, Store, no_erasing_at_once, until
from tests.wire.process import REAL, Process, call, initialize

#: What a call may be refused with when many share a file.
IN_CONTRACT = {Code.NOT_FOUND, Code.TIMEOUT}
READS = ("search_documents", "query_graph", "get_document", "db_status")


class Client:
    """One server and its client, who writes documents of its own and reads anybody's."""

    def __init__(self, path: Path, number: int) -> None:
        self.chance = random.Random(number)
        self.names = [f"{number}/{n}" for n in range(20)]
        self.path = path
        self.held: Contents = {}
        self.codes: set[str] = set()
        self.seconds: dict[str, list[float]] = {}

    def run(self, calls: int, ended: threading.Event) -> None:
        with Process(*REAL, environment={"HADANO_DB": str(self.path)}) as server:
            server.ask(initialize())
            for n in range(calls):
                if ended.is_set():
                    break
                self._one(server, n)
            status, _, errors = server.finish()
            assert (status, errors) == (0, "")

    def _one(self, server: Process, n: int) -> None:
        tool, arguments = self._chosen()
        began = time.perf_counter()
        result = server.ask(call(n, tool, **arguments))["result"]
        self.seconds.setdefault(tool, []).append(time.perf_counter() - began)
        content = result["structuredContent"]
        if result["isError"]:
            self.codes.add(content["error"]["code"])
        elif tool in ("store_document", "delete_document"):
            self.held = applied(self.held, tool, arguments)
        elif tool == "get_document" and arguments["id"] in self.held:
            assert content["content"] == self.held[arguments["id"]]

    def _chosen(self) -> tuple[str, dict]:
        if self.chance.random() < 0.5:
            return write(self.chance, self.names)
        word = self.chance.choice(WORDS)
        arguments = {"query": word}, {"node": word}, {"id": self.chance.choice(self.names)}, {}
        return self.chance.choice(list(zip(READS, arguments, strict=True)))


def together(path: Path, clients: int, calls: int, seconds: float | None = None) -> list[Client]:
    """That many servers on one file at once; what they must have left has been checked."""
    everyone = [Client(path, number) for number in range(clients)]
    ended = threading.Event()
    if seconds is not None:
        threading.Timer(seconds, ended.set).start()
    with ThreadPoolExecutor(clients) as threads:
        for done in [threads.submit(client.run, calls, ended) for client in everyone]:
            done.result()
    expected: Contents = {}
    for client in everyone:
        expected |= client.held
        assert client.codes <= IN_CONTRACT
    assert {id: document[1] for id, document in state_of(path).items()} == expected
    return everyone


def test_four_servers_on_one_file_lose_nothing(tmp_path) -> None:
    together(tmp_path / "store.db", 4, 40)


@pytest.mark.slow
def test_sixteen_servers_on_one_file_for_five_minutes_lose_nothing(tmp_path) -> None:
    """HADANO_TEST_SECONDS makes it shorter or longer."""
    seconds = float(os.environ.get("HADANO_TEST_SECONDS", "300"))
    everyone = together(tmp_path / "store.db", 16, 1_000_000, seconds)
    print(f"\ncodes: {sorted(set().union(*(client.codes for client in everyone)))}")
    for tool in ("store_document", "delete_document", *READS):
        times = [second for client in everyone for second in client.seconds.get(tool, [])]
        cuts = statistics.quantiles(times, n=100)
        p50, p95, p99 = (round(cuts[at] * 1000) for at in (49, 94, 98))
        print(f"{tool}: {len(times):,} calls, p50 {p50}, p95 {p95}, p99 {p99} ms")


# Locks of others.


@pytest.fixture
def path(tmp_path) -> Path:
    with Store(tmp_path / "store.db") as store:
        for n in range(10):
            store.put(f"amber lamp {n}", id=f"d{n}")
        quiet(store)
    return tmp_path / "store.db"


def test_a_server_starts_and_reads_while_another_process_holds_the_write_lock(path) -> None:
    """However long: nothing here waits for the lock, but the write does, as long as a call may."""
    with Neighbour(path) as other:
        other.run("BEGIN IMMEDIATE")
        with Store(path) as store:
            assert store.ask("db_status")["docs"] == 10
            assert store.found("amber lamp 7", top_k=1) == ["d7"]
            assert store.ask("get_document", id="d3")["content"] == "amber lamp 3"
            assert store.integrity() == "ok"
            assert store.refused("store_document", title="t", content="text") == Code.TIMEOUT
            asked = len(store.audit_now())
            other.run("COMMIT")
            store.put("text", id="later")
            until(lambda: len(store.audit_now()) > asked + 4)
    assert "later" in state_of(path)


@pytest.mark.slow
def test_a_write_lock_held_for_30_seconds_holds_up_writes_alone(path) -> None:
    with Neighbour(path) as other, Store(path) as store:
        other.run("BEGIN IMMEDIATE")
        until_then = time.monotonic() + 30
        slowest, refused = 0.0, 0
        while time.monotonic() < until_then:
            began = time.perf_counter()
            store.found("amber")
            store.ask("db_status")
            slowest = max(slowest, time.perf_counter() - began)
            refused += store.refused("store_document", title="t", content="x") == Code.TIMEOUT
        other.run("COMMIT")
        store.put("text", id="later")
        print(f"\n{refused} writes refused; slowest search and status {slowest * 1000:.0f} ms")
    assert "later" in state_of(path)


def test_the_longer_a_lock_is_waited_for_the_sooner_it_is_asked_for_again(
    path, monkeypatch
) -> None:
    """For five seconds in all, by a clock that pauses alone move on."""
    pauses: list[float] = []
    fake = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    with closing(Connection(str(path))) as db, Neighbour(path) as other:
        other.run("BEGIN IMMEDIATE")
        monkeypatch.setattr(patience, "time", fake)
        with pytest.raises(HadanoError) as refused, db.change():
            pass
    assert refused.value.code == Code.TIMEOUT
    assert sum(pauses) == pytest.approx(limits.BUSY_MS_MAX / 1000)
    until_the_last = pauses[:-1]
    assert until_the_last == sorted(until_the_last, reverse=True)
    assert until_the_last[0] > until_the_last[-1]


def wal_bytes(path: Path) -> int:
    return os.stat(f"{path}-wal").st_size


@pytest.mark.slow
def test_the_log_returns_after_5000_documents_under_an_open_snapshot(path) -> None:
    with Neighbour(path) as other, Store(path) as store:
        other.run("BEGIN")
        other.run("SELECT * FROM docs")
        for n in range(5_000):
            store.put(" ".join(random.Random(n).choices(WORDS, k=60)), id=f"n{n}")
        most = wal_bytes(path)
        assert most > 10 * limits.WAL_IDLE_BYTES_MAX
        other.run("COMMIT")
        until(lambda: store.put("more") and wal_bytes(path) <= limits.WAL_IDLE_BYTES_MAX)
        print(f"\nlog: {most / 1e6:.0f} MB, then {wal_bytes(path) / 1e6:.1f} MB")


def test_a_long_erasure_does_not_let_the_log_grow(tmp_path, monkeypatch) -> None:
    """The whole index is written anew, in steps; between them the log is copied back. Nobody looks
    into the file meanwhile: while somebody reads, the log cannot be emptied."""
    sizes = []
    ended = threading.Event()

    def watched(db, pages):
        for _ in ingest.erase_owed(db, pages):
            sizes.append(wal_bytes(path) // 4_120)
            yield
        if sizes:
            ended.set()

    monkeypatch.setattr(limits, "WAL_PAGES_MAX", 200)
    doing = {"erase_owed": watched, "merge_scattered": ingest.merge_scattered}
    monkeypatch.setattr(chores, "ingest", type("Watched", (), doing))
    path = tmp_path / "store.db"
    with Store(path) as store:
        for n in range(50):
            letters = random.Random(n).choices(
                string.ascii_lowercase, k=40_000 if n == 7 else 25_000
            )
            store.put("".join(letters), id=str(n))
        quiet(store)
        with no_erasing_at_once():
            assert store.ask("delete_document", id="7")["erased"] is False
        until(ended.is_set)
        index = store.value("SELECT count(*) FROM chunks_fts_data")
    assert index > 800
    assert len(sizes) > 10
    # A step writes more than the pages it merges: those it reads are overwritten, too.
    assert max(sizes) < 200 + 10 * limits.MERGE_PAGES


def test_a_long_erasure_leaves_the_lock_to_others_between_its_steps(store, monkeypatch) -> None:
    """By a clock on which every step takes a second."""
    pauses = []
    clock = iter(range(10**6))
    fake = SimpleNamespace(monotonic=lambda: next(clock), sleep=pauses.append)
    monkeypatch.setattr(turns, "time", fake)
    store.put("".join(random.Random(0).choices(string.ascii_lowercase, k=60_000)), id="large")
    with no_erasing_at_once():
        store.ask("delete_document", id="large")
    until(lambda: not store.rows("SELECT * FROM chores"))
    assert pauses
    assert set(pauses) == {0.5}
