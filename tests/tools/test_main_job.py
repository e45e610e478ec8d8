"""The main job on real input: notes go in one by one through a real client, and are found."""

import json
import lzma
import os
from itertools import islice
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from hadano.plan import lower_ascii, terms
from tests.oracle.folding import search_form
from tests.wire.process import REAL

DATA = Path(__file__).parents[3] / "shared" / "data"
NOTES = DATA / "notes-100k.jsonl.xz"
QUERIES = DATA / "notes-100k.queries.json"
DOCUMENTS, ASKED_OF_EACH_KIND = 10_000, 20


def notes() -> list[dict[str, str]]:
    with lzma.open(NOTES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, DOCUMENTS)]


def questions() -> list[str]:
    """Twenty of each kind: one, two, three and five words, and Japanese."""
    kinds = json.loads(QUERIES.read_text(encoding="utf-8"))
    return [" ".join(words) for kind in kinds.values() for words in kind[:ASKED_OF_EACH_KIND]]


def holds(note: dict[str, str], query: str) -> bool:
    text = lower_ascii(search_form(note["title"] + "\n" + note["text"]))
    return any(term.text in text for term in terms(query))


@pytest.mark.slow
@pytest.mark.skipif(not NOTES.exists(), reason="the notes are not part of the repository")
def test_ten_thousand_notes_go_in_one_by_one_and_are_found(tmp_path) -> None:
    given = {note["id"]: note for note in notes()}
    given = os.environ | {"HADANO_DB": str(tmp_path / "store.db")}
    parameters = StdioServerParameters(command=REAL[0], args=list(REAL[1:]), env=given)

    async def work() -> None:
        async with Client(parameters) as client:

            async def ask(tool: str, **arguments: object) -> dict:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, (tool, result.structured_content)
                return result.structured_content

            chunks = 0
            for id, note in given.items():
                stored = await ask(
                    "store_document", id=id, title=note["title"], content=note["text"]
                )
                assert stored["id"] == id
                chunks += stored["chunks"]
            empty = 0
            for query in questions():
                found = (await ask("search_documents", query=query))["documents"]
                assert all(holds(given[document["doc_id"]], query) for document in found)
                empty += not found
                if not found:
                    assert not any(holds(note, query) for note in given.values())
            assert empty < len(questions()) / 2
            status = await ask("db_status")
            assert (status["docs"], status["chunks"]) == (len(given), chunks)
            for id in list(given)[:: len(given) // 50]:
                assert (await ask("get_document", id=id))["content"] == given[id]["text"]

    anyio.run(work)
