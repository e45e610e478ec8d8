"""Any bytes at all: reading never raises, and every answer is a JSON-RPC message on one line."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano import wire
from tests.wire import fake
from tests.wire.process import enveloped, initialize

TEXTS = st.text(st.characters(), max_size=20)  # Lone surrogates too.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "server/discover", "no/such", 7]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["echo", "fail", "no such", "\ud83d"]) | VALUES,
        "arguments": VALUES,
        "cursor": VALUES,
        "protocolVersion": st.sampled_from(wire.HANDSHAKE_VERSIONS) | VALUES,
        "capabilities": VALUES,
        "clientInfo": VALUES,
        "_meta": st.dictionaries(
            st.sampled_from([wire.VERSION_KEY, wire.CAPABILITIES_KEY, "progressToken"]), VALUES
        ),
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | VALUES},
    optional={"id": st.integers() | TEXTS | VALUES, "method": METHODS, "params": PARAMS | VALUES},
)
OPENINGS = {
    "handshake": initialize(),
    "batches": initialize("2025-03-26"),
    "envelope": enveloped({"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {}}),
}


def answered(session, line):
    return [session.answer(message) for message in wire.read(line).messages]


def check(answer):
    if answer is None:
        return
    assert b"\n" not in answer
    message = json.loads(answer.decode())
    assert message["jsonrpc"] == "2.0"
    assert ("result" in message) != ("error" in message)
    assert message["id"] is None or isinstance(message["id"], int | str)


@settings(max_examples=500, deadline=None)
@given(line=st.binary() | st.text().map(str.encode))
def test_any_line_is_read(line):
    for answer in answered(wire.Session(fake.Service(), fake.TOOLS), line):
        check(answer)


@pytest.mark.parametrize("opening", OPENINGS)
@settings(max_examples=500, deadline=None)
@given(message=MESSAGES | st.lists(MESSAGES, max_size=3))
def test_anything_like_a_message_is_answered(opening, message):
    session = wire.Session(fake.Service(), fake.TOOLS)
    for line in (OPENINGS[opening], message):
        for answer in answered(session, json.dumps(line).encode()):
            check(answer)


@settings(deadline=None)
@given(head=st.binary(max_size=60), tail=st.binary(max_size=60), ident=st.binary(max_size=8))
def test_any_ends_of_a_long_line_are_refused(head, tail, ident):
    for front in (head, b'{"jsonrpc":"2.0","id":' + ident + b","):
        for end in (tail, b',"id":' + ident + b"}"):
            (refusal,) = wire.overlong(front, end).messages
            assert refusal.code == wire.INVALID_REQUEST
            check(wire.Session(fake.Service(), ()).answer(refusal))
