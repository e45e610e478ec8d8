"""A server over HTTP to talk to, request by request, and in bytes where a client would not."""

import contextlib
import http.client
import json
import re
import socket
import sys
from collections.abc import Iterator
from typing import NamedTuple, Self

from tests.wire.process import ENVELOPE, PATIENCE_SECONDS, Process, enveloped, initialize

REAL = (sys.executable, "-m", "hadano.server", "--http", "0")
FAKE = (sys.executable, "-m", "tests.web.fake")
VERSION = "io.modelcontextprotocol/protocolVersion"


class Reply(NamedTuple):
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def structured(self) -> dict:
        return self.json["result"]["structuredContent"]


class Server(Process):
    """A server process, and where it listens."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._opened = contextlib.ExitStack()
        with self._patience():
            for line in self._process.stderr:
                if found := re.search(r" at http://(.*?):(\d+)/mcp", line.decode()):
                    self.host, self.port = found[1], int(found[2])
                    return self
        raise AssertionError("the server ended without saying where it listens")

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        super().__exit__()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/mcp"

    def socket(self) -> socket.socket:
        address = (self.host, self.port)
        sock = socket.create_connection(address, timeout=PATIENCE_SECONDS)
        return self._opened.enter_context(sock)

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)
        return self._opened.enter_context(contextlib.closing(connection))

    def post(self, message: object, **headers: str) -> Reply:
        with contextlib.closing(self.connect()) as connection:
            return post(connection, message, **headers)

    def open_session(self, **headers: str) -> str:
        return self.post(initialize(), **headers).headers["mcp-session-id"]


def post(connection: http.client.HTTPConnection, message: object, **headers: str) -> Reply:
    begin(connection, message, **headers)
    return finish(connection)


def begin(connection: http.client.HTTPConnection, message: object, **headers: str) -> None:
    """Sends a request whose answer `finish` waits for."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    connection.request("POST", "/mcp", body, _headers(message) | dashed(headers))


def finish(connection: http.client.HTTPConnection) -> Reply:
    answer = connection.getresponse()
    return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())


def dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _headers(message: object) -> dict[str, str]:
    """What every client sends, and what the envelope era's transport asks for besides."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if isinstance(message, dict) and VERSION in message.get("params", {}).get("_meta", {}):
        headers["mcp-protocol-version"] = message["params"]["_meta"][VERSION]
        headers["mcp-method"] = message["method"]
        if "name" in message["params"]:
            headers["mcp-name"] = message["params"]["name"]
    return headers


def received(sock: socket.socket) -> Iterator[bytes]:
    """What comes in on a socket until the server closes it."""
    try:
        while block := sock.recv(65_536):
            yield block
    except ConnectionResetError:
        return


__all__ = ["ENVELOPE", "FAKE", "REAL", "Reply", "Server", "begin", "enveloped", "finish", "post"]
