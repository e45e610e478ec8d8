"""Our wire beside the official SDK's server: the same transcript, the same answers.

What may differ, and why: the words of an error (ours say what was wrong; codes and data agree);
the data of invalid parameters (the SDK sends an empty string, which says nothing); the order of
answers (the SDK runs calls side by side, the contract one at a time).
"""

import pytest

from tests.wire import oracle
from tests.wire.process import (
    FAKE,
    Process,
    call,
    enveloped,
    initialize,
    notification,
    request,
)

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
READY = notification("notifications/initialized")
LAST = request("last", "tools/list")


def modern(*messages):
    return [enveloped(message) for message in messages]


def without(message, key):
    params = {name: value for name, value in message["params"].items() if name != key}
    return message | {"params": params}


CALLS = [
    request(1, "tools/list"),
    call(2, "echo"),
    call(3, "echo", text="検索 – ✓ ё 🎵"),
    call("four", "fail"),
    call(5, "nothing of that name"),
    request(6, "tools/list", cursor=None),
    request(7, "tools/list", cursor="abc"),
    request(8, "tools/list", cursor=9),
    request(9, "tools/call"),
    request(10, "tools/call", name=3),
    request(11, "tools/call", name="echo"),
    request(12, "tools/call", name="echo", arguments=None),
    call(13, "echo") | {"extra": "ignored"},
    request(14, "no/such"),
    request(15, "ping"),
    request(16, "logging/setLevel", level="info"),
    request(17, "server/discover"),
    request(18, "resources/list"),
    request(-(2**53), "tools/call", name="echo", _meta={"progressToken": "t"}),
    request("", "tools/list"),
]
#: What gets no answer, and changes none that follows.
QUIET = [
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    notification("notifications/no/such"),
    notification("notifications/cancelled", requestId="unknown"),
    {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}},
]

TRANSCRIPTS = {
    **{
        f"handshake {version}": [initialize(version), READY, *CALLS, *QUIET, LAST]
        for version in HANDSHAKES
    },
    "an unknown version": [initialize("1999-01-01"), READY, request(1, "ping")],
    "a version that is no date": [initialize("latest")],
    "the version of the other era": [initialize("2026-07-28"), request(1, "tools/list")],
    "no version": [without(initialize(), "protocolVersion"), request(1, "tools/list")],
    "a version that is no text": [request(1, "initialize", protocolVersion=1)],
    "no client": [without(initialize(), "clientInfo")],
    "no capabilities": [without(initialize(), "capabilities")],
    "no parameters": [{"jsonrpc": "2.0", "id": 1, "method": "initialize"}],
    "pings around the handshake": [request(1, "ping"), initialize(), request(2, "ping")],
    "a call before the handshake": [call(1, "echo"), request(2, "tools/list"), initialize()],
    "unknown before the handshake": [request(1, "no/such"), request(2, "server/discover")],
    "only the second half of the handshake": [READY, request(1, "tools/list")],
    "a handshake twice": [initialize("2024-11-05"), initialize("2025-06-18", ident=2)],
    "an envelope after a handshake": [
        initialize(),
        *modern(request(1, "tools/list"), request(2, "server/discover"), initialize(ident=3)),
    ],
    "the envelope": [*modern(request(0, "server/discover"), *CALLS), *QUIET, enveloped(LAST)],
    "the envelope without discovery": modern(call(1, "echo")),
    "no envelope after one": [*modern(request(0, "server/discover")), request(1, "tools/list")],
    "a handshake after an envelope": [*modern(request(0, "tools/list")), initialize()],
    "an unreadable handshake after an envelope": [
        *modern(request(0, "tools/list")),
        request(1, "initialize", protocolVersion=7),
    ],
    "an envelope of a version to come": [
        enveloped(request(1, "server/discover"), protocolVersion="2031-01-01"),
        enveloped(request(2, "tools/list")),
    ],
    "an envelope of a version of the other era": [
        enveloped(request(1, "tools/list"), protocolVersion="2025-11-25")
    ],
    "an envelope whose version is no text": [
        enveloped(request(1, "tools/list"), protocolVersion=None)
    ],
    "an envelope with broken capabilities": [
        enveloped(request(1, "tools/list"), clientCapabilities=[])
    ],
    "an envelope without a client": [enveloped(request(1, "tools/list"), clientInfo=None)],
    "an envelope with a broken client": [
        enveloped(request(1, "tools/list"), clientInfo={"name": "no version"})
    ],
    "half an envelope": [
        request(1, "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"})
    ],
    "initialize in an envelope": [enveloped(initialize()), request(1, "tools/list")],
}


def converse(messages):
    with Process(*FAKE) as process:
        return [process.ask(m) if oracle.is_request(m) else process.send(m) for m in messages]


def comparable(answer):
    if answer is None or "error" not in answer:
        return answer
    error = {key: value for key, value in answer["error"].items() if key in ("code", "data")}
    if not error.get("data"):
        error.pop("data", None)
    return answer | {"error": error}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_transcript_is_answered_as_the_sdk_answers_it(name):
    transcript = TRANSCRIPTS[name]
    theirs = oracle.converse(transcript)
    ours = converse(transcript)
    for message, their, our in zip(transcript, theirs, ours, strict=True):
        assert comparable(our) == comparable(their), message
