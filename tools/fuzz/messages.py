"""Feeds of messages: to the wire, over HTTP, and to the tools behind both.

Knows what messages and arguments look like when they are good, so that most of what is fed comes
far. Refuses to know what is stored.
"""

import contextlib
import json
import random
from contextlib import closing
from http.client import BadStatusLine
from typing import Any, Final

from hadano import wire
from hadano.errors import Code
from hadano.service import TOOLS, Service
from tests.web.web import Server, post
from tests.wire import fake
from tests.wire.process import call, enveloped, initialize, notification, request
from tools.fuzz.chance import Round, mutated, text, value

VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "x")
METHODS: Final = ("ping", "tools/list", "tools/call", "server/discover", "initialize", "x")
HEADERS: Final = {
    "accept": ("*/*", "application/json", "text/event-stream", "x"),
    "content-type": ("application/json", "application/json; charset=utf-16", "text/plain", ""),
    "mcp-protocol-version": VERSIONS,
    "mcp-session-id": ("x", "a" * 32, ""),
    "mcp-method": METHODS,
    "mcp-name": ("db_status", "x", "=?base64?eA==?="),
    "origin": ("null", "https://evil.example"),
    "host": ("evil.example", "localhost"),
}


# The wire.


def arguments(chance: random.Random, tool: Any) -> Any:
    """Arguments for a tool, most of them of its own names."""
    if chance.random() < 0.05:
        return value(chance)
    names = list(tool.input_schema["properties"])
    return {
        chance.choice([name] * 60 + ["idd"]): _argument(chance, name)
        for name in names
        if chance.random() < 0.9
    }


def _argument(chance: random.Random, name: str) -> Any:
    if chance.random() < 0.04:
        return value(chance)
    match name:
        case "top_k" | "max_chunks_per_doc" | "depth":
            return chance.randint(-1, 101)
        case "seed_chunk_ids":
            return [chance.randrange(40) for _ in range(chance.randrange(5))]
        case "title" | "query" | "node" | "rel":
            return chance.choice("n ") + text(chance, 60)
        case "tags":
            return [text(chance, 60) for _ in range(chance.randrange(4))]
        case "relations":
            ends = ("src", "rel", "dst")
            return [{end: text(chance, 60) for end in ends} for _ in range(chance.randrange(4))]
        case "id":
            return chance.choice(("a", "b", "c", "d", text(chance, 60)))
        case "mode":
            return chance.choice(("auto", "graph", "vector", "both", "none"))
    return text(chance)


def on_the_wire(chance: random.Random) -> str:
    session = wire.Session(fake.Service(), fake.TOOLS)
    if opening := chance.choice((None, initialize(chance.choice(VERSIONS)))):
        answered(session, json.dumps(opening).encode())
    for _ in range(chance.randrange(1, 5)):
        line = json.dumps(_message(chance)).encode()
        if chance.random() < 0.5:
            line = mutated(chance, line)
        answered(session, line)
    for message in wire.overlong(line[: chance.randrange(99)], line[-9:]).messages:
        assert json.loads(session.answer(message))["error"]["code"] == wire.INVALID_REQUEST
    return "answered"


def _message(chance: random.Random) -> Any:
    tool = chance.choice(TOOLS)
    asked = request(
        chance.choice((1, "a", value(chance))),
        chance.choice(METHODS),
        **chance.choice(({}, {"cursor": value(chance)}, {"_meta": value(chance)})),
    )
    called = call(value(chance), chance.choice(("echo", "fail", tool.name)), x=value(chance))
    return chance.choice(
        (
            initialize(chance.choice(VERSIONS)),
            asked,
            enveloped(asked),
            called,
            enveloped(called),
            notification("notifications/cancelled", requestId=value(chance)),
            notification(text(chance, 7), x=value(chance)),
            {"jsonrpc": "2.0", "id": value(chance), "method": text(chance, 7), "params": {}},
            {"jsonrpc": "2.0", "id": 1, "result": value(chance)},
            [asked, called, value(chance)],
            value(chance),
        )
    )


def answered(session: wire.Session, line: bytes) -> None:
    """Takes a line as a server does."""
    read = wire.read(line)
    waiting: list[wire.Request] = []
    for message in read.messages:
        ident = wire.cancelled(message)
        if ident is not None:
            assert not any(wire.means(ident, one) for one in waiting if one.method == "initialize")
        if isinstance(message, wire.Request):
            waiting.append(message)
        answer = session.answer(message)
        assert (answer is None) == isinstance(message, wire.Notification)
        if answer is not None:
            assert b"\n" not in answer
            said = json.loads(answer)
            assert said["jsonrpc"] == "2.0"
            assert ("result" in said) != ("error" in said)
            assert "result" in said or said["error"]["code"] != wire.INTERNAL_ERROR


# HTTP.


def over_http(server: Server) -> Round:
    """Requests of both eras, whole, with odd headers and mangled; then a good one."""

    def round_(chance: random.Random) -> str:
        try:
            return _over_http(chance, server)
        finally:
            status = server.post(enveloped(call(1, "db_status"))).structured
            assert status["integrity_at_boot"] in ("ok", "checking")

    return round_


def _over_http(chance: random.Random, server: Server) -> str:
    tool = chance.choice(TOOLS)
    called = call(1, tool.name)
    called["params"]["arguments"] = arguments(chance, tool)
    body = json.dumps(chance.choice((called, enveloped(called), _message(chance)))).encode()
    if chance.random() < 0.3:
        return _over_a_socket(server, mutated(chance, _as_request(body)))
    message = chance.choice((called, enveloped(called), body, mutated(chance, body)))
    odd = {name: chance.choice(values) for name, values in HEADERS.items() if chance.random() < 0.1}
    if chance.random() < 0.2:
        odd["mcp-session-id"] = server.open_session()
    with closing(server.connect()) as connection:
        reply = post(connection, message, **odd)
    assert reply.status < 500 or reply.status == 503, reply
    if reply.body and reply.headers.get("content-type") == "application/json":
        assert reply.json["jsonrpc"] == "2.0"
    return str(reply.status)


def _as_request(body: bytes) -> bytes:
    return (
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"accept: application/json, text/event-stream\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )


def _over_a_socket(server: Server, data: bytes) -> str:
    """Sends bytes and takes what comes at once, if anything does."""
    with closing(server.socket()) as sock, contextlib.suppress(TimeoutError, ConnectionError):
        sock.settimeout(0.1)
        sock.sendall(data)
        if (said := sock.recv(65_536)) and not said.startswith(b"HTTP/1.1 "):
            raise BadStatusLine(repr(said))
    return "bytes"


# The tools.


def on_the_tools(service: Service) -> Round:
    def round_(chance: random.Random) -> str:
        tool = chance.choice(TOOLS)
        answer = service.call(tool.name, arguments(chance, tool))
        said = json.loads(answer.content)
        if not answer.is_error:
            return f"{tool.name}: ok"
        code = said["error"]["code"]
        assert code in set(Code) - {Code.INTERNAL}, said
        return f"{tool.name}: {code}"

    return round_
