"""Mixed calls that several threads make of one server, and what they must leave in its file."""

import contextlib
import random
import sqlite3
import threading
from concurrent.futures import Future

from hadano.errors import Code
from tests.wire.process import Process, call, initialize

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


def work(server: Shared, thread: str, calls: int) -> tuple[dict[str, str], list[str]]:
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
