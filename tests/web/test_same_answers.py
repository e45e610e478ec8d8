"""One transcript through both doors: the same answers, byte for byte but for request_id."""

import json

import pytest

from tests.web.eras import ERAS, without_chance
from tests.wire import process
from tests.wire.process import Process, call, notification, request

RELATION = {"src": "Rollback", "rel": "needs", "dst": "Backup"}
CALLS = [
    call(1, "db_status"),
    call(2, "store_document", id="a", title="Rollback", content="How we roll a release back."),
    call(
        "three", "store_document", id="b", title="検索 🎵", content="全文検索 é\x01\x7f\u2028 <&>"
    ),
    call(4, "store_document", id="c", title="t", content="release " * 5_000, relations=[RELATION]),
    call(5, "search_documents", query="release"),
    call(6, "search_documents", query="検索", top_k=1.0),
    call(7, "search_knowledge", seed_chunk_ids=[1]),
    call(8, "search_knowledge", seed_chunk_ids=[3], mode="graph"),
    call(9, "query_graph", node="Backup"),
    call(10, "get_document", id="b"),
    call(11, "get_document", id="missing"),
    call(12, "store_document", title="no content"),
    call(13, "store_document", id="a", title="t" * 513, content=""),
    call(14, "search_documents", query="release", top_k="10"),
    call(15, "search_documents", qeury="release"),
    call(16, "get_document", id="b", extra=None),
    request(17, "tools/call", name="db_status", arguments=None),
    request(18, "tools/call", name="db_status"),
    call(19, "no_such_tool"),
    call(20, "query_graph", node="Rollback", depth=10**30),
    call(21, "search_documents", query='\\ " \u0000'),
    call(22, "delete_document", id="a"),
    call(23, "delete_document", id="a"),
    call(24, "db_status"),
]


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The store behind standard input and output."""
    return {"HADANO_DB": str(tmp_path_factory.mktemp("other") / "store.db")}


@pytest.mark.parametrize("era", ERAS)
def test_both_doors_answer_with_the_same_bytes(real, other, era):
    in_era, first = ERAS[era]
    with Process(*process.REAL, environment=other) as stdio:
        opened = real.post(first)
        assert opened.json == stdio.ask(first)
        session = opened.headers.get("mcp-session-id")
        headers = {} if session is None else {"mcp_session_id": session}
        listing = in_era(request(1, "tools/list"))
        assert real.post(listing, **headers).json == stdio.ask(listing)
        for message in map(in_era, CALLS):
            stdio.send(message)
            reply = real.post(message, **headers)
            assert without_chance(reply.body) == without_chance(stdio.line()), message


def test_the_largest_legal_document_in_its_longest_spelling_fits(real):
    content = "\x01" * 1_048_576
    relations = [
        {"src": f"{n:03}" + "🎵" * 125, "rel": "🎵" * 64, "dst": "🎵" * 128} for n in range(100)
    ]
    message = call(
        1,
        "store_document",
        id="🎵" * 256,
        title="🎵" * 512,
        content=content,
        tags=[f"{n:02}" + "🎵" * 62 for n in range(20)],
        relations=relations,
    )
    reply = real.post(json.dumps(message).encode(), mcp_session_id=real.open_session())
    assert (reply.status, reply.structured["chunks"]) == (200, 1498)


def test_a_notification_is_taken_without_an_answer(real):
    session = real.open_session()
    reply = real.post(notification("notifications/initialized"), mcp_session_id=session)
    assert (reply.status, reply.body) == (202, b"")
