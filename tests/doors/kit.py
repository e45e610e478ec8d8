"""Stores to back up and dumps to restore, and commands run as a user runs them."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from hadano.connection import Connection
from hadano.dump import dump
from hadano.service import Service
from hadano.types import Settings

TIME = "2026-01-31T23:59:59.999Z"

#: One of everything that a document can hold, some of it awkward for lines of JSON.
DOCUMENTS: tuple[dict[str, Any], ...] = (
    {"id": "a", "title": "plain", "content": "The quick brown fox jumps over the lazy dog."},
    {
        "id": "b/日報",
        "title": "日報 1\u2028月",
        "content": "東京都庁で会議。\u0085\u2029\r\n\t\x1f 終",
    },
    {
        "id": "c d",
        "title": "with everything",
        "content": "word " * 400,
        "tags": ["two", "one"],
        "relations": [
            {"src": "hadano", "rel": "uses", "dst": "sqlite"},
            {"src": "c", "rel": "near", "dst": "d"},
        ],
    },
    {"id": "e", "title": "empty", "content": ""},
    {"id": "f\U0001f600", "title": 'quotes " and \\', "content": "😀 pi\u0303nata \ufeff end"},
)


def call(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a call that must succeed."""
    answer = service.call(tool, arguments)
    assert not answer.is_error, answer.content
    content: dict[str, Any] = json.loads(answer.content)
    return content


def store(path: Path, documents: tuple[dict[str, Any], ...] = DOCUMENTS) -> Path:
    """Stores the documents in the file at `path` as a client does."""
    with closing(Service(Settings(path=str(path)))) as service:
        for document in documents:
            call(service, "store_document", **document)
    return path


def dumped(path: Path) -> list[bytes]:
    """The lines of a dump but for the header, ends included."""
    lines: list[bytes] = []
    with closing(Connection(str(path), reading=True)) as db:
        dump(db, lines.append)
    return lines[1:]


def whole_dump(path: Path) -> bytes:
    """A dump with its header."""
    lines: list[bytes] = []
    with closing(Connection(str(path), reading=True)) as db:
        dump(db, lines.append)
    return b"".join(lines)


def command(name: str, *arguments: object, stdin: bytes = b"", **options: Any) -> Any:
    """`python -m hadano.<name>` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", f"hadano.{name}", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONUTF8": "1"},
        **options,
    )


def line(**changes: Any) -> dict[str, Any]:
    """A good line of a dump, some of its fields replaced; None takes a field out."""
    fields: dict[str, Any] = {
        "id": "x",
        "title": "title",
        "content": "content",
        "tags": [],
        "relations": [],
        "created_at": TIME,
        "updated_at": TIME,
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def as_dump(*lines: dict[str, Any] | bytes, **header: Any) -> bytes:
    """A dump of these lines; the header counts them unless told otherwise."""
    edges = sum(len(one.get("relations", ())) for one in lines if isinstance(one, dict))
    head = {"format": "hadano-dump", "version": 1, "docs": len(lines), "edges": edges, "time": TIME}
    every = [head | header, *lines]
    return b"".join(
        (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in every
    )
