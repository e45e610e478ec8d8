"""Real notes with everything that a document can have, made from their own words, and what they
go through in a store: they are quoted, deleted or replaced, and looked for in its index.

They lie beside the repository; who lacks them skips what needs them."""

import json
import lzma
import time
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hadano import limits
from hadano._native import search_form
from tests.oracle.chunking import windows
from tests.reliability.examiner import Finding, Words, index_traces, kept, opened
from tests.tools.store import Store

NOTES = Path(__file__).parents[3] / "shared" / "data" / "notes-100k.jsonl.xz"

#: What a note is replaced by.
NEW = {"title": "replaced", "content": "nothing of the old text"}

needed = pytest.mark.skipif(not NOTES.exists(), reason="the notes are not there")


def documents(count: int) -> list[dict[str, Any]]:
    """The first notes as arguments of store_document."""
    with lzma.open(NOTES, "rt", encoding="utf-8", newline="\n") as lines:
        read = [json.loads(line) for line in islice(lines, count)]
    return [furnished(f"n{n}", note["title"], note["text"]) for n, note in enumerate(read)]


def furnished(id: str, title: str, text: str) -> dict[str, Any]:
    """A note with tags and relations of its own words."""
    spread = [word[:64] for word in dict.fromkeys(text.split())]
    ends = spread[::5]
    return {
        "id": id,
        "title": title,
        "content": text,
        "tags": spread[3:40:9],
        "relations": [
            {"src": src, "rel": "is said with", "dst": f"{dst} by {title[:40]}"}
            for src, dst in pairwise(ends[:8])
        ],
    }


def largest(documents: list[dict[str, Any]]) -> str:
    """Their text, one after another, as long to the byte as a document may be."""
    text = "".join(document["content"] for document in documents).encode()
    assert len(text) >= limits.CONTENT_BYTES_MAX
    cut = text[: limits.CONTENT_BYTES_MAX].decode(errors="ignore")
    return cut + "." * (limits.CONTENT_BYTES_MAX - len(cut.encode()))


def texts(document: dict[str, Any]) -> list[str]:
    """All that counts as text of a document: each field by itself."""
    ends = [edge[end] for edge in document["relations"] for end in ("src", "rel", "dst")]
    return [document["title"], document["content"], *document["tags"], *ends]


def rows(document: dict[str, Any]) -> Iterator[bytes]:
    """What a file holds of a document that is stored: its rows, column after column, and the
    arguments that stored it; ASCII lowered. Where two columns meet, they make pieces of their own;
    the column before a chunk's text is its number, a byte."""
    columns = []
    chunks = windows(document["content"], 800, 700)
    for text in (document["title"], document["content"], *chunks):
        columns.append([text, search_form(text)])
        columns.append([search_form(text), text])
    columns += [[chr(seq), text] for seq, text in enumerate(chunks[:128])]
    for edge in document["relations"]:
        src, rel, dst = edge["src"], edge["rel"], edge["dst"]
        id = document["id"]
        columns += [id, src, rel, dst], [src, rel, dst, id], [dst, rel, src, id]
    columns.append([document["title"], json.dumps(document["tags"], ensure_ascii=False)])
    columns.append([msgspec.json.encode(document).decode()])
    for row in columns:
        yield "".join(row).encode().lower()


def held(store: Store, documents: list[dict[str, Any]]) -> Words:
    """What the file holds beside erased text: its schema, and these documents."""
    schema = store.rows("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    of_documents = [row for document in documents for row in rows(document)]
    return kept([*of_documents, *(sql.encode().lower() for (sql,) in schema)])


def traces_in_index(store: Store) -> list[Finding]:
    """What the index tells of erased text. The index of a long doclist may go on naming a chunk
    that headed one of its pages: a number, which is not used again."""
    db = opened(store.path)
    try:
        return [finding for finding in index_traces(db) if finding.place != "doclist index"]
    finally:
        db.close()


def quote(store: Store, document: dict[str, Any]) -> None:
    """Calls that put some of a document's text into the audit log, about no document."""
    words = document["content"].split()
    for query in (" ".join(words[3:9]), document["title"]):
        store.answer("search_documents", {"query": query[:1_024]})
    for edge in document["relations"][:1]:
        store.ask("query_graph", node=edge["src"], rel=edge["rel"])
    store.refused("store_document", title=" ", content=document["content"])


def insist(store: Store, tool: str, **arguments: object) -> float:
    """Calls until there was time enough: others may need the machine. How long the last call
    took."""
    while True:
        began = time.perf_counter()
        content, is_error = store.answer(tool, arguments)
        took = time.perf_counter() - began
        if not is_error:
            return took
        assert content["error"]["code"] == "E_TIMEOUT"
