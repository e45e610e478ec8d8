"""A store as its caller sees it, as another process sees it, and as somebody with a disk sees it.

What no tool shows (audit rows, index rows, raw bytes) is looked at from outside. Raw bytes are read
by a process of their own: to close a file drops every lock that its process holds on it.
"""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw
import pytest
import sqlite_vec

from hadano import limits
from hadano.service import Service
from hadano.types import Settings

#: A condition that has not come true by then never will; a process that is silent for so long
#: hangs.
PATIENCE_SECONDS = 30

T = TypeVar("T")

REQUEST_ID = re.compile("[0-9a-f]{32}")


@contextlib.contextmanager
def no_erasing_at_once() -> Iterator[None]:
    """Every document that goes inside is too large to be overwritten in the index at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "ERASE_AT_ONCE_LEAVES_MAX", 0)
        yield


class Store:
    """One server's view: calls in, answers out."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.service = Service(Settings(path=str(path), **settings))
        self._beside: apsw.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._beside is not None:
            self._beside.close()
        self.service.close()

    def answer(self, tool: str, arguments: object) -> tuple[dict[str, Any], bool]:
        """The structured answer, and whether it is an error."""
        answer = self.service.call(tool, arguments)
        content = json.loads(answer.content)
        assert REQUEST_ID.fullmatch(content["request_id"])
        return content, answer.is_error

    def ask(self, tool: str, **arguments: object) -> dict[str, Any]:
        """What a call that must succeed answers, but for its request_id."""
        content, is_error = self.answer(tool, arguments)
        assert not is_error, content
        del content["request_id"]
        return content

    def refusal(self, tool: str, **arguments: object) -> tuple[str, str]:
        """Code and message of a call that must fail."""
        content, is_error = self.answer(tool, arguments)
        assert is_error, content
        assert content.keys() == {"request_id", "error"}
        assert content["error"].keys() == {"code", "message"}
        return content["error"]["code"], content["error"]["message"]

    def refused(self, tool: str, **arguments: object) -> str:
        """Code of a call that must fail."""
        return self.refusal(tool, **arguments)[0]

    def put(self, content: str, title: str = "title", **more: object) -> str:
        """Stores a document; its id."""
        return self.ask("store_document", title=title, content=content, **more)["id"]

    def search(self, query: str, **more: object) -> list[dict[str, Any]]:
        return self.ask("search_documents", query=query, **more)["documents"]

    def found(self, query: str, **more: object) -> list[str]:
        """Ids of the documents that a search finds, best first."""
        return [document["doc_id"] for document in self.search(query, **more)]

    def hits(self, query: str) -> set[str]:
        """Ids of all documents that a search finds."""
        return set(self.found(query, top_k=100))

    def seed(self, id: str) -> int:
        """Id of a document's first chunk."""
        return self.value(
            "SELECT id FROM chunks WHERE seq = 0 AND doc = (SELECT n FROM docs WHERE id = ?)", id
        )

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """What a statement gives on a connection of the test's own; it can change things too."""
        if self._beside is None:
            self._beside = apsw.Connection(str(self.path))
            self._beside.set_busy_timeout(PATIENCE_SECONDS * 1000)
            self._beside.enable_load_extension(True)
            self._beside.load_extension(sqlite_vec.loadable_path())
        return self._beside.execute(sql, parameters).fetchall()

    def value(self, sql: str, *parameters: object) -> Any:
        return self.rows(sql, *parameters)[0][0]

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that is stored and derived, but for the audit log and what FTS5 keeps for itself."""
        tables = ("docs", "chunks", "edges", "chunks_fts_docsize")
        return {table: self.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables}

    def audit(self) -> list[dict[str, Any]]:
        """All audit rows, oldest first, those included that found the file locked for a moment."""
        until(lambda: not self.service._housekeeper._waiting)
        return self.audit_now()

    def audit_now(self) -> list[dict[str, Any]]:
        """The audit rows that are in the file."""
        columns = ("request_id", "time", "tool", "args", "row_count", "duration_ms", "outcome")
        return [
            dict(zip(columns, row, strict=True))
            for row in self.rows(f"SELECT {', '.join(columns)} FROM audit_log ORDER BY n")
        ]

    def integrity(self) -> str:
        """How the file fared at start-up, once that is known."""
        return until(lambda: settled(self.ask("db_status")["integrity_at_boot"]))

    def left(self, text: str, piece_bytes: int = 8) -> set[bytes]:
        """Pieces of a text, or of its lower case, that the file or its log still has."""
        return pieces_on_disk(self.path, text, piece_bytes)


def settled(integrity: str) -> str | None:
    return None if integrity == "checking" else integrity


def until(look: Callable[[], T | None], seconds: float = PATIENCE_SECONDS) -> T:
    """What `look` gives as soon as it gives anything."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if seen := look():
            return seen
    raise AssertionError("what was waited for did not come")


_READ = """
import os, sys
for path in sys.argv[1:]:
    if os.path.exists(path):
        sys.stdout.buffer.write(open(path, "rb").read() + bytes(64))
"""


def raw(path: Path) -> bytes:
    """All bytes of a write-ahead log and of its database file, in that order: what is copied from
    the one into the other meanwhile is seen in one of them."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", _READ, f"{path}-wal", path],
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    ).stdout


def pieces_on_disk(path: Path, text: str, piece_bytes: int) -> set[bytes]:
    """Which pieces of that many bytes of a text, or of its lower case, a file still has."""
    data = raw(path)
    on_disk = {data[at : at + piece_bytes] for at in range(len(data) - piece_bytes + 1)}
    wanted: set[bytes] = set()
    for spelled in (text.encode(), text.lower().encode()):
        wanted |= {spelled[at : at + piece_bytes] for at in range(len(spelled) - piece_bytes + 1)}
    return wanted & on_disk


_NEIGHBOUR = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
for sql in sys.stdin:
    print(len(db.execute(sql).fetchall()), flush=True)
"""


class Neighbour:
    """Another process that has the file open, and does to it what it is told."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NEIGHBOUR, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, sql: str) -> int:
        """Runs a statement over there; how many rows it gave."""
        self._process.stdin.write(sql + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def altered(path: Path):
    """A connection to a closed store's file that breaks what it likes."""
    db = apsw.Connection(str(path))
    try:
        yield db
    finally:
        db.close()
