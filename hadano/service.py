"""The hall: the only way to the seven tools. validate, budget, call, audit, in that order.

Knows what a tool is called, what it takes and which room answers; nothing of how it is asked
(`wire.py`) and nothing of how it is done.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from hadano import (
    audit,
    expand,
    graph,
    ingest,
    limits,
    quotes,
    schemas,
    search,
    status,
    validate,
    vectors,
)
from hadano.budget import Watchdog
from hadano.chores import Housekeeper
from hadano.connection import Connection
from hadano.errors import Code, HadanoError
from hadano.said import Said
from hadano.types import (
    DbStatus,
    Deleted,
    DeleteDocument,
    Document,
    Found,
    GetDocument,
    Graph,
    QueryGraph,
    Refusal,
    Related,
    Reply,
    Request,
    SearchDocuments,
    SearchKnowledge,
    Settings,
    Status,
    Stored,
    StoreDocument,
)


class UnknownTool(LookupError):
    """There is no tool of that name: the caller's mistake, not a call."""


def _one(_: Reply) -> int:
    return 1


class Tool(Struct, frozen=True, kw_only=True):
    """One row of the tool table."""

    name: str
    title: str
    description: str
    request: type[Request]
    reply: type[Reply]
    #: Reads: (connection, request) -> reply. Writes: the same -> (reply, the text that went away
    #: or None).
    run: Callable[[Connection, Any], Any]
    #: What the audit log counts as the answer's rows.
    rows: Callable[[Any], int]
    writes: bool = False
    destructive: bool = False
    idempotent: bool = True
    #: Tells how the file fared at start-up, and so answers for a damaged one too.
    tells_integrity: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        return schemas.of_request(self.request)

    @property
    def output_schema(self) -> dict[str, Any]:
        return schemas.of_reply(self.reply)

    @property
    def annotations(self) -> dict[str, Any]:
        """Hints in MCP's terms. The store is closed: no tool reaches outside its file."""
        return {
            "title": self.title,
            "readOnlyHint": not self.writes,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": False,
        }


TOOLS: Final = (
    Tool(
        name="store_document",
        title="Store document",
        description=(
            "Saves a document so that it can be found again, or replaces the document of the given "
            "id whole: tags and relations that are not given are removed. Without an id a new one "
            "is made. Relations are edges of a graph that query_graph and search_knowledge follow."
        ),
        request=StoreDocument,
        reply=Stored,
        run=ingest.store,
        rows=lambda reply: reply.chunks,
        writes=True,
        destructive=True,
        idempotent=False,
    ),
    Tool(
        name="search_documents",
        title="Search documents",
        description=(
            "Stage 1: finds documents by keyword. Ask with the words that the text is likely to "
            "hold; whole questions work too, rare words count most. A word of three or more "
            "letters is found inside longer words as well. Answers with the matching chunks; "
            "their chunk_id values are seeds for search_knowledge."
        ),
        request=SearchDocuments,
        reply=Found,
        run=search.search,
        rows=lambda reply: len(reply.documents),
    ),
    Tool(
        name="search_knowledge",
        title="Search knowledge",
        description=(
            "Stage 2: expands from one to three chunks that search_documents found to what is "
            "related to them, by vectors or by the relation graph. It does not search by itself: "
            "call search_documents first and pass chunk_id values of its answer."
        ),
        request=SearchKnowledge,
        reply=Related,
        run=expand.expand,
        rows=lambda reply: len(reply.related_chunks) + len(reply.related_edges),
    ),
    Tool(
        name="query_graph",
        title="Query graph",
        description=(
            "Lists the relations around a node, breadth first and in both directions. Names are "
            "compared exactly as they were stored, upper and lower case included."
        ),
        request=QueryGraph,
        reply=Graph,
        run=graph.query,
        rows=lambda reply: len(reply.edges),
    ),
    Tool(
        name="get_document",
        title="Get document",
        description=(
            "Gives a document's title, content and tags back, exactly as they were stored. Its "
            "relations are not among them: query_graph lists those, and storing the document again "
            "without them removes them."
        ),
        request=GetDocument,
        reply=Document,
        run=ingest.get,
        rows=_one,
    ),
    Tool(
        name="delete_document",
        title="Delete document",
        description=(
            "Deletes a document for good, with its chunks, index entries, vectors and relations, "
            "and overwrites its text on disk. There is no way back."
        ),
        request=DeleteDocument,
        reply=Deleted,
        run=ingest.delete,
        rows=_one,
        writes=True,
        destructive=True,
    ),
    Tool(
        name="db_status",
        title="Database status",
        description="Says what the database holds and whether it is sound.",
        request=DbStatus,
        reply=Status,
        run=status.status,
        rows=_one,
        tells_integrity=True,
    ),
)

_BY_NAME: Final = {tool.name: tool for tool in TOOLS}

#: Of a call's time, what emptying the write-ahead log may take after an erasure.
_TRUNCATE_MS_MAX: Final = 500


class Answer(Struct, frozen=True):
    """What a call came to: the JSON of the structured answer, request_id inside."""

    content: bytes
    is_error: bool


class _Call(Struct):
    """A call under way, with what its audit row needs."""

    tool: Tool
    arguments: object
    request_id: str
    time: str
    started: float


class Service:
    """The store behind its seven tools. Calls run one at a time; others wait."""

    def __init__(self, settings: Settings) -> None:
        """Opens the database; HadanoError where it cannot be used at all."""
        self._settings = settings
        embedding = settings.embeddings == "local"
        if embedding:
            vectors.load()
        self._db = Connection(settings.path, vectors=embedding)
        self._one_at_a_time = threading.Lock()
        self._watchdog = Watchdog(limits.CALL_MS_MAX / 1000, self._db.stop)
        self._said = Said(limits.SAID_BYTES_MAX)
        self._housekeeper = Housekeeper(
            settings.path, embedding=embedding, warmed=self._db, said=self._said
        )

    def call(self, name: str, arguments: object) -> Answer:
        """Answers one call: never raises for what a client sent, but for a tool that is none
        (UnknownTool)."""
        tool = _BY_NAME.get(name)
        if tool is None:
            raise UnknownTool(name)
        with self._one_at_a_time, self._watchdog.cancellable(), self._housekeeper.call():
            call = _Call(tool, arguments, os.urandom(16).hex(), ingest.now(), time.perf_counter())
            try:
                reply = self._answer(call)
            except HadanoError as error:
                return self._refusal(call, error)
            except Exception:
                _report()
                return self._refusal(call, HadanoError(Code.INTERNAL, "a bug; it was reported"))
        reply.request_id = call.request_id
        return Answer(msgspec.json.encode(reply), is_error=False)

    def cancel(self) -> None:
        """Cuts the call short that runs now, if any. Safe to call from another thread."""
        self._watchdog.cancel()

    def close(self) -> None:
        """Ends the background work, writes what waits, and empties the write-ahead log."""
        with self._one_at_a_time, contextlib.closing(self._db):
            self._watchdog.close()
            self._housekeeper.close()
            if self._housekeeper.structure_holds:
                self._db.wait_at_most(_TRUNCATE_MS_MAX)
                self._db.checkpoint(truncate=True)

    def _answer(self, call: _Call) -> Reply:
        """The tool's answer, its audit row written."""
        integrity = self._housekeeper.integrity
        if integrity == "failed" and not call.tool.tells_integrity:
            raise HadanoError(
                Code.INTEGRITY, "the database failed its check at start-up; see db_status"
            )
        request = validate.request(call.tool.request, call.arguments)
        try:
            with self._watchdog.watch():
                self._db.wait_at_most(self._watchdog.left_ms())
                reply = (
                    self._write(call, request) if call.tool.writes else self._read(call, request)
                )
        finally:
            self._db.resume()
        if self._db.wal_pages > limits.WAL_PAGES_MAX:
            self._housekeeper.wal_grew()
        self._housekeeper.answered(wrote=call.tool.writes)
        return reply

    def _read(self, call: _Call, request: Request) -> Reply:
        # Where a b-tree is damaged, a transaction that met it fails at its end, too.
        sound = self._housekeeper.structure_holds
        with self._db.snapshot() if sound else contextlib.nullcontext():
            reply: Reply = call.tool.run(self._db, request)
        if call.tool.tells_integrity:
            cast("Status", reply).integrity_at_boot = self._housekeeper.integrity
        self._log(self._entry(call, rows=call.tool.rows(reply)))
        return reply

    def _write(self, call: _Call, request: Request) -> Reply:
        with self._housekeeper.change(self._db):
            reply: Stored | Deleted
            reply, gone = call.tool.run(self._db, request)
            if gone is not None:
                self._forget(reply, gone)
            audit.write(self._db, [self._entry(call, rows=call.tool.rows(reply), doc_id=reply.id)])
        if gone is not None:
            self._said.committed()
            self._finish_erasure(reply)
        return reply

    def _forget(self, reply: Stored | Deleted, gone: quotes.Gone) -> None:
        """Takes text that went away out of the audit log, as far as the call's time allows: the
        rest is owed, and all of it where the index owes some too."""
        audit.scrub(self._db, reply.id)
        owes = isinstance(reply, Deleted) and not reply.erased
        left_ms = 0 if owes else self._watchdog.left_ms() - _TRUNCATE_MS_MAX
        until = time.monotonic() + left_ms / 1000
        forgotten = audit.forget(self._db, gone, self._said, until=until)
        if isinstance(reply, Deleted):
            reply.erased &= forgotten

    def _finish_erasure(self, reply: Reply) -> None:
        """Old text also stands in the write-ahead log, until that is copied back and emptied.

        Only an answer that says whether it is waits for a reader that still needs it: the wait
        holds up all writers. The change is committed, so what fails here is owed and no error.
        """
        patience = _TRUNCATE_MS_MAX if isinstance(reply, Deleted) else 0
        patience = min(self._watchdog.left_ms(), patience)
        self._db.wait_at_most(patience)
        emptied = False
        if self._housekeeper.copying.acquire(timeout=patience / 1000):
            try:
                emptied = self._db.checkpoint(truncate=True)
            except HadanoError:
                emptied = False
            finally:
                self._housekeeper.copying.release()
        if isinstance(reply, Deleted):
            reply.erased = reply.erased and emptied
        if emptied:
            self._db.wait_at_most(0)
            with contextlib.suppress(HadanoError):  # whoever holds the lock begins the log
                self._db.begin_log()
        self._housekeeper.erase(empty_log=not emptied)

    def _refusal(self, call: _Call, error: HadanoError) -> Answer:
        """The error as an answer, its audit row written if that can be done at all."""
        try:
            self._log(self._entry(call, outcome=error.code))
        except HadanoError:
            _report()
        body = {
            "request_id": call.request_id,
            "error": Refusal(error.code, error.message),
        }
        return Answer(msgspec.json.encode(body), is_error=True)

    def _entry(
        self, call: _Call, *, rows: int = 0, outcome: str = "ok", doc_id: str | None = None
    ) -> audit.Entry:
        mode = self._settings.request_log
        traced, sha256 = audit.trace(mode, call.arguments, doc_id)
        return audit.Entry(
            request_id=call.request_id,
            time=call.time,
            tool=call.tool.name,
            doc_id=traced,
            sha256=sha256,
            args=audit.arguments(mode, call.arguments),
            row_count=rows,
            duration_ms=round((time.perf_counter() - call.started) * 1000, 3),
            outcome=outcome,
        )

    def _log(self, entry: audit.Entry) -> None:
        """Writes an audit row, waiting neither for a disk nor for another process's lock; none to
        a file whose b-trees are damaged."""
        if not self._housekeeper.structure_holds:
            return
        self._db.wait_at_most(0)
        try:
            with self._housekeeper.change(self._db, durable=False):
                audit.write(self._db, [entry])
        except HadanoError as error:
            if error.code is not Code.TIMEOUT:
                raise
            self._housekeeper.log_later(entry)


def glance(path: str, id: str) -> tuple[int, str | None]:
    """How many documents the file at `path` holds, and the content of the one of that id, None
    where there is none. Nothing of the file changes. HadanoError where it cannot be read."""
    with contextlib.closing(Connection(path, reading=True)) as db, db.snapshot():
        try:
            content = ingest.get(db, GetDocument(id=id)).content
        except HadanoError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            content = None
        return status.status(db, DbStatus()).docs, content


def bytes_by_table(path: str) -> dict[str, int]:
    """How many bytes each table and index of the file at `path` takes, largest first."""
    with contextlib.closing(Connection(path, reading=True)) as db:
        return status.bytes_by_table(db)


def _report() -> None:
    """The exception at hand, with its trace, to standard error, which may be closed."""
    import traceback

    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            traceback.print_exc(file=sys.stderr)
