"""A server process to talk to, line by line: it is waited for by its pipes and its exit alone."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

ROOT = Path(__file__).parents[2]
FAKE = (sys.executable, "-m", "tests.wire.fake")
REAL = (sys.executable, "-m", "hadano.server")

#: A server that says nothing for this long hangs; it is killed, and its test fails.
PATIENCE_SECONDS = 60

CLIENT = {"name": "a test", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}

#: For a test that starts its server from a shell.
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


def request(ident: object, method: str, **params: object) -> dict:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def notification(method: str, **params: object) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialize(version: str = "2025-11-25", ident: object = "init") -> dict:
    return request(ident, "initialize", protocolVersion=version, capabilities={}, clientInfo=CLIENT)


def call(ident: object, tool: str, **arguments: object) -> dict:
    return request(ident, "tools/call", name=tool, arguments=arguments)


def enveloped(message: dict, **changes: object) -> dict:
    """The message in the envelope of 2026-07-28; `changes` are to its keys, by their last part."""
    meta = ENVELOPE | {f"io.modelcontextprotocol/{key}": value for key, value in changes.items()}
    return message | {"params": message["params"] | {"_meta": meta}}


def as_line(message: object) -> bytes:
    """The line that a message is sent as; bytes are sent as they are."""
    return message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"


class Process:
    """A server as its client sees it: two pipes, an exit status, and what it says on the side."""

    def __init__(self, *command: str, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | (environment or {}),
            cwd=ROOT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            # A dead server may never have read what a test had sent.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """Whatever is waited for inside, the server's death ends it."""
        timer = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, *messages: object) -> None:
        with self._patience():
            self._process.stdin.write(b"".join(map(as_line, messages)))
            self._process.stdin.flush()

    def receive(self) -> object:
        """The next line of the answers; None at their end."""
        line = self.line()
        return None if line is None else json.loads(line.decode())

    def line(self) -> bytes | None:
        """The same, as it was written."""
        with self._patience():
            line = self._process.stdout.readline()
        if not line:
            return None
        assert line.endswith(b"\n")
        assert not line.endswith(b"\r\n")
        return line[:-1]

    def ask(self, message: object) -> object:
        self.send(message)
        return self.receive()

    def peek(self) -> None:
        """Waits until the server has begun to write an answer."""
        with self._patience():
            self._process.stdout.peek(1)

    def hear(self, text: str) -> None:
        """Waits until a line of standard error has the text."""
        with self._patience():
            for line in self._process.stderr:
                if text in line.decode():
                    return
        raise AssertionError(f"the server ended without saying {text!r}")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def stop_reading(self) -> None:
        self._process.stdout.close()

    def end_input(self) -> None:
        self._process.stdin.close()

    def wait(self, seconds: float | None = None) -> int:
        """The exit status, the input still open and the output unread; TimeoutExpired where there
        is none after so many seconds."""
        with self._patience():
            return self._process.wait(seconds)

    def finish(self, *messages: object) -> tuple[int, list[object], str]:
        """Sends the last messages and ends the input: exit status, answers left, rest of errors."""
        with self._patience():
            out, err = self._process.communicate(b"".join(map(as_line, messages)))
        return self._process.returncode, list(map(json.loads, out.splitlines())), err.decode()
