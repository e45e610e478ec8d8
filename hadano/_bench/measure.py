"""Times of the store as its clients see them: through the server's pipes, and through the hall.

Each answer is looked at before its time counts. Refuses to know how texts are made (corpus.py) and
how figures are shown (page.py).
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, Final, Protocol, Self

from msgspec import Struct

from hadano._bench.corpus import TOPIC, TOPICS
from hadano.errors import Code, HadanoError
from hadano.service import Service
from hadano.types import EmbeddingsMode

Arguments = dict[str, Any]

#: How long what runs behind the first answers may take before it counts as failed, and how much
#: longer for each chunk: the check takes less than 0.1 ms for one of real notes.
_SETTLED_SECONDS_MAX: Final = 120.0
_SETTLED_SECONDS_A_CHUNK: Final = 0.001


class Series(Struct):
    """Times of one thing, in milliseconds."""

    group: str
    name: str
    times: list[float]
    #: The published figure to stand beside, in milliseconds, and what it is.
    published: float | None = None

    def at(self, share: float) -> float:
        """The time that `share` of the times do not exceed (nearest rank)."""
        ordered = sorted(self.times)
        return ordered[max(ceil(len(ordered) * share) - 1, 0)]


class Store(Protocol):
    """What calls can be made on: the hall, or a server behind its pipes."""

    def call(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        """The structured answer; HadanoError for one that is an error."""
        ...


class Hall:
    """The store in this process."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def call(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        answer = self._service.call(tool, arguments)
        return _answer(json.loads(answer.content), answer.is_error)


class Server:
    """The store behind `python -m hadano.server`; a context manager that ends the process."""

    def __init__(self, path: str, embeddings: EmbeddingsMode = "off") -> None:
        environment = os.environ | {"HADANO_DB": path}
        environment |= {"HADANO_EMBEDDINGS": embeddings, "HADANO_REQUEST_LOG": "full"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hadano.server"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._id = 0
        #: Bytes of memory that the process held at most, known once it has ended; 0 where the
        #: system does not say.
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        client = {"name": "hadano-bench", "version": "1"}
        self._ask(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        )
        self._send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.read()
        self.peak_bytes = _reap(process)
        process.stdout.close()

    def call(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        return _answer(result["structuredContent"], result["isError"])

    def _ask(self, method: str, params: Arguments) -> Any:
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            reply = json.loads(line)
            if reply.get("id") == self._id:
                return reply["result"]
        raise HadanoError(Code.INTERNAL, "the server ended before it answered")

    def _send(self, message: Arguments) -> None:
        assert self._process.stdin is not None
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()


def _answer(content: dict[str, Any], is_error: bool) -> dict[str, Any]:
    if is_error:
        raise HadanoError(Code(content["error"]["code"]), content["error"]["message"])
    return content


def _reap(process: subprocess.Popen[bytes]) -> int:
    """Waits for the process; gives the memory that it held at most, in bytes."""
    if sys.platform == "win32":
        process.wait()
        return 0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return _peak(usage.ru_maxrss)


def own_peak_bytes() -> int:
    """Bytes of memory that this process has held at most; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0
    import resource

    return _peak(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _peak(maxrss: int) -> int:
    """getrusage counts in bytes on macOS and in KiB elsewhere."""
    return maxrss if sys.platform == "darwin" else maxrss * 1024


def cold_start(path: str, query: str, embeddings: EmbeddingsMode = "off") -> float:
    """Milliseconds from spawning a server to its first search answer, the check of the file's
    structure inside."""
    began = time.perf_counter()
    with Server(path, embeddings) as server:
        server.call("search_documents", {"query": query})
        return (time.perf_counter() - began) * 1e3


def settle(store: Store) -> None:
    """Waits until the check that runs behind the first answers is over, for it takes a core, and
    with embeddings on until every chunk has its vector. HadanoError where the check finds the file
    damaged, or either does not end."""
    began = time.monotonic()
    while _is_busy(status := store.call("db_status", {})):
        most = _SETTLED_SECONDS_MAX + _SETTLED_SECONDS_A_CHUNK * status["chunks"]
        if time.monotonic() - began > most:
            raise HadanoError(Code.TIMEOUT, "the integrity check or the vectors do not end")
        time.sleep(0.05)
    if status["integrity_at_boot"] != "ok":
        raise HadanoError(Code.INTEGRITY, "the integrity check failed")


def _is_busy(status: dict[str, Any]) -> bool:
    if status["integrity_at_boot"] == "failed":
        return False
    if status["embeddings_mode"] == "local" and status["vectors"] < status["chunks"]:
        return True
    checking: bool = status["integrity_at_boot"] == "checking"
    return checking


def timed(store: Store, tool: str, arguments: Arguments) -> tuple[float, dict[str, Any] | None]:
    """One call's milliseconds, and its answer: None where it was cut short by its budget, which
    is a time like any other."""
    began = time.perf_counter()
    answer = None
    try:
        answer = store.call(tool, arguments)
    except HadanoError as error:
        if error.code is not Code.TIMEOUT:
            raise
    return (time.perf_counter() - began) * 1e3, answer


def searches(store: Store, queries: dict[str, list[str]], tick: Callable[[], None]) -> list[Series]:
    """Each query once, after a first run that is not counted; a series a class.

    HadanoError where a class finds what it should not (`none`) or nothing at all.
    """
    series = []
    for kind, texts in queries.items():
        for query in texts[: max(len(texts) // 10, 1)]:
            timed(store, "search_documents", {"query": query})
        times = []
        for query in texts:
            milliseconds, answer = timed(store, "search_documents", {"query": query})
            if answer is not None and bool(answer["documents"]) == (kind == "none"):
                raise HadanoError(Code.INTERNAL, f"search: {kind} found what it should not")
            times.append(milliseconds)
            tick()
        series.append(Series("search", kind, times))
    return series


@contextmanager
def visiting(store: Store, ids: list[str]) -> Iterator[None]:
    """Documents of these ids are away again at the end, whatever happens inside."""
    try:
        yield
    finally:
        for id in ids:
            with contextlib.suppress(HadanoError):
                store.call("delete_document", {"id": id})


def changes(store: Store, texts: list[str], tick: Callable[[], None]) -> list[Series]:
    """Stores documents, replaces each by the next one's text, and deletes them again."""
    ids = [f"hadano-bench-visitor-{n}" for n in range(len(texts))]
    stored, replaced, deleted = (
        Series("change", name, []) for name in ("store", "replace", "delete")
    )
    with visiting(store, ids):
        for shift, series in ((0, stored), (1, replaced)):
            for n, id in enumerate(ids):
                content = texts[(n + shift) % len(texts)]
                given = {"id": id, "title": "visitor", "content": content}
                series.times.append(timed(store, "store_document", given)[0])
                tick()
        for id in ids:
            deleted.times.append(timed(store, "delete_document", {"id": id})[0])
            tick()
    return [stored, replaced, deleted]


def reads(
    store: Store, ids: list[str], queries: list[str], tick: Callable[[], None]
) -> list[Series]:
    """get_document, query_graph of busy nodes, and search_knowledge from what a search found."""
    fetched, walked, expanded = (
        Series("read", name, []) for name in ("get_document", "query_graph", "search_knowledge")
    )
    for n, (id, query) in enumerate(zip(ids, queries, strict=True)):
        fetched.times.append(timed(store, "get_document", {"id": id})[0])
        node = {"node": f"{TOPIC} {n % TOPICS}", "depth": 2}
        walked.times.append(timed(store, "query_graph", node)[0])
        _, answer = timed(store, "search_documents", {"query": query})
        found = answer["documents"][:3] if answer is not None else []
        seeds = [document["matched_chunks"][0]["chunk_id"] for document in found] or [1]
        expanded.times.append(timed(store, "search_knowledge", {"seed_chunk_ids": seeds})[0])
        tick()
    return [fetched, walked, expanded]
