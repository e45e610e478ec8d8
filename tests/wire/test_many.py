"""Two servers on one file, four client threads each: nothing is lost, every call leaves its row."""

import contextlib
import random
import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from hadano.errors import Code
from tests.wire.process import REAL, Process, call, initialize

THREADS = 4
CALLS = 250  # of each thread
WORDS = ["amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet"]


class Shared:
    """One server process that several threads ask at once."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._waiting: dict[str, Future] = {}
        process.ask(initialize())
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def ask(self, ident: str, tool: str, arguments: dict) -> dict:
        """A tool's structured answer."""
        answer = self._waiting[ident] = Future()
        with self._lock:
            self._process.send(call(ident, tool, **arguments))
        return answer.result()["result"]["structuredContent"]

    def close(self) -> None:
        self._process.end_input()
        self._reader.join()

    def _read(self) -> None:
        while (answer := self._process.receive()) is not None:
            self._waiting.pop(answer["id"]).set_result(answer)
        for unanswered in self._waiting.values():
            unanswered.set_exception(EOFError("the server ended"))


def document(chance: random.Random) -> dict:
    words = chance.choices(WORDS, k=chance.randint(0, 400))
    return {
        "title": chance.choice(WORDS),
        "content": " ".join(words),
        "relations": [{"src": chance.choice(WORDS), "rel": "near", "dst": chance.choice(WORDS)}],
    }


def work(server: Shared, thread: str, calls: int = CALLS) -> tuple[dict[str, str], list[str]]:
    """Mixed calls on documents of this thread's own: what they must leave, and error codes.

    `server` is anything that has `ask`.
    """
    chance = random.Random(thread)
    kept: dict[str, str] = {}
    errors = []
    for n in range(calls):
        name = f"{thread}/{chance.randint(0, 20)}"
        tool, arguments = chance.choice(
            [
                ("store_document", {"id": name, **document(chance)}),
                ("store_document", {"id": name, **document(chance)}),
                ("search_documents", {"query": chance.choice(WORDS)}),
                ("query_graph", {"node": chance.choice(WORDS), "depth": 2}),
                ("search_knowledge", {"seed_chunk_ids": [chance.randint(1, 50)]}),
                ("get_document", {"id": name}),
                ("delete_document", {"id": name}),
                ("db_status", {}),
            ]
        )
        answer = server.ask(f"{thread}:{n}", tool, arguments)
        if "error" in answer:
            errors.append(answer["error"]["code"])
        elif tool == "store_document":
            kept[name] = arguments["content"]
        elif tool == "delete_document":
            del kept[name]
        elif tool == "get_document":
            assert answer["content"] == kept[name]
    return kept, errors


def test_two_servers_and_eight_threads_lose_nothing(environment, database):
    with (
        Process(*REAL, environment=environment) as one,
        Process(*REAL, environment=environment) as other,
        ThreadPoolExecutor(2 * THREADS) as threads,
    ):
        servers = [Shared(one), Shared(other)]
        done = [
            threads.submit(work, server, f"{number}-{thread}")
            for number, server in enumerate(servers)
            for thread in range(THREADS)
        ]
        results = [result.result() for result in done]
        for server in servers:
            server.close()
        assert [one.wait(), other.wait()] == [0, 0]
    assert check(database, results) == 2 * THREADS * CALLS


def check(database, results: list[tuple[dict[str, str], list[str]]]) -> int:
    """Holds a file to what threads left in it and gives the number of its audit rows."""
    kept = {name: content for documents, _ in results for name, content in documents.items()}
    errors = {code for _, codes in results for code in codes}
    assert errors <= {Code.NOT_FOUND, Code.TIMEOUT}
    with contextlib.closing(sqlite3.connect(database)) as db:
        assert dict(db.execute("SELECT id, content FROM docs")) == kept
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (rows,) = db.execute("SELECT count(*) FROM audit_log").fetchone()
    return rows
