"""Every tool with the worst that it may be asked, on a large store: its budget and 100 ms.

Needs a store of 100,000 notes, which is copied. The time of a call is the only thing here that a
test can fail for, for it is the contract's own number. This prints the table:

    HADANO_TEST_STORE=notes.db python -m pytest -m slow -s tests/reliability/test_budget.py
"""

import json
import os
import random
import shutil
import string
import time
from pathlib import Path
from typing import Any

import pytest

from hadano import limits
from tests.reliability.sound import quiet
from tests.tools.store import Store, altered

GIVEN = os.environ.get("HADANO_TEST_STORE")
#: With 100,000 documents they make a hub of a million.
EDGES_OF_EACH = 10
OVER_MS = 100

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(GIVEN is None, reason="HADANO_TEST_STORE names no store"),
]


def filled(text: str, most: int = limits.CONTENT_BYTES_MAX) -> str:
    return (text * (most // len(text.encode()) + 1)).encode()[:most].decode(errors="ignore")


CHANCE = random.Random(0)
LETTERS = "".join(CHANCE.choices(string.ascii_letters + string.digits + " ", k=1_048_576))
HAN = "".join(map(chr, CHANCE.choices(range(0x4E00, 0x9FA5), k=349_525)))
COMMON = "the and ing ion ent for tio ere her ate ver ter all ith are ess con pro sta com res "
RELATIONS = [
    {"src": "hub", "rel": "r" * 64, "dst": f"{n}".rjust(128, "x")}
    for n in range(limits.RELATIONS_MAX)
]
VOCABULARY = ["".join(CHANCE.choices(string.ascii_lowercase, k=7)) for _ in range(5_000)]
CONTENTS = {
    "words by chance": " ".join(CHANCE.choices(VOCABULARY, k=131_072))[: limits.CONTENT_BYTES_MAX],
    "letters by chance": LETTERS,
    "one character": filled("a"),
    "one bullet": filled("•"),
    "Han by chance": HAN,
    "a word": filled("configuration "),
    "letters that fold longer": filled("ﬃ"),
}
QUERIES = {
    "common trigrams": filled(COMMON, 1_024),
    "one letter each": " ".join(string.ascii_lowercase * 20)[:1_024],
    "two letters each": filled("in of to is it on as at by or an we if no do go ", 1_024),
    "one character": "a" * 1_024,
    "Han": HAN[:1_024],
    "kana": "のにはをがでと" * 146,
    "symbols": "-> => :: ## // .. == -- && || " * 34,
    "chance": LETTERS[:1_024],
}


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Store:
    path = Path(shutil.copy(GIVEN or "", tmp_path_factory.mktemp("large") / "store.db"))
    with Store(path) as store:
        store.put("the document of the hub", id="hub", relations=RELATIONS)
    with altered(path) as db:
        db.execute(
            "INSERT INTO edges"
            " SELECT d.id, 'hub', 'near', 'spoke ' || d.n || ' ' || k.value"
            " FROM docs AS d, json_each(?) AS k WHERE d.id <> 'hub'",
            (json.dumps(list(range(EDGES_OF_EACH))),),
        )
    with Store(path) as store:
        quiet(store)
        yield store


def timed(store: Store, what: str, tool: str, **arguments: object) -> dict[str, Any]:
    began = time.perf_counter()
    content, is_error = store.answer(tool, arguments)
    milliseconds = (time.perf_counter() - began) * 1000
    outcome = content["error"]["code"] if is_error else "ok"
    if "erased" in content:
        outcome += f", erased {content['erased']}".lower()
    print(f"\n| {tool} | {what} | {milliseconds:,.0f} ms | {outcome} |", end="")
    assert milliseconds <= limits.CALL_MS_MAX + OVER_MS
    return content


@pytest.mark.parametrize("what", CONTENTS)
def test_the_largest_documents(large, what) -> None:
    given = {"id": "large", "title": "t" * limits.TITLE_CODEPOINTS_MAX, "content": CONTENTS[what]}
    given["tags"] = [f"{n}".rjust(limits.TAG_CODEPOINTS_MAX, "t") for n in range(limits.TAGS_MAX)]
    timed(large, f"new, {what}", "store_document", **given, relations=RELATIONS)
    timed(large, what, "get_document", id="large")
    timed(large, f"replaced, {what}", "store_document", **{**given, "content": LETTERS[::-1]})
    timed(large, f"after {what}", "delete_document", id="large")


@pytest.mark.parametrize("kib", [32, 64, 128, 512])
def test_documents_at_the_border_of_erasing_at_once(large, kib) -> None:
    for name, text in (("letters", LETTERS), ("Han", HAN)):
        large.put(filled(text, kib * 1_024), id="border")
        content = timed(large, f"{kib} KiB of {name}", "delete_document", id="border")
        assert content["erased"] or kib > 32


@pytest.mark.parametrize("what", QUERIES)
def test_the_longest_queries(large, what) -> None:
    most = {"top_k": limits.TOP_K_MAX, "max_chunks_per_doc": limits.CHUNKS_PER_DOC_MAX}
    timed(large, what, "search_documents", query=QUERIES[what][:1_024], **most)


def test_a_hub_of_a_million_edges(large) -> None:
    timed(large, "the hub, three hops", "query_graph", node="hub", depth=3)
    timed(large, "a spoke, three hops", "query_graph", node="spoke 7 1", depth=3, rel="near")
    timed(large, "the hub, a relation it lacks", "query_graph", node="hub", depth=3, rel="none")
    seed = large.seed("hub")
    timed(large, "a document at the hub", "search_knowledge", seed_chunk_ids=[seed], top_k=100)
    timed(large, "a million edges", "db_status")
    timed(large, "a document at the hub", "delete_document", id="hub")
