"""`python -m hadano.server`: the MCP server on standard input and output, or with --http over HTTP.

It owns the process: descriptors, threads, signals, the way out. A reader thread takes lines and
cancellations while a call runs; the main thread answers in order. It refuses to know what a
message means (wire.py), what a tool does (service.py), and what HTTP is (web/), which is imported
when it is asked for.
"""

import io
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Condition, Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Final

from hadano import __version__, limits, wire
from hadano.errors import HadanoError, SettingsError, invalid
from hadano.service import TOOLS, Service, Tool
from hadano.types import Settings

if TYPE_CHECKING:
    import argparse

#: The descriptors of a client's pipes: requests are read from one, answers written to the other.
Pipes = tuple[int, int]

READ_BYTES: Final = 65_536
#: Of a line that is too long: enough of each end for an id in it.
KEPT_BYTES: Final = 1_024
#: Read ahead of the answers; past it the reader waits, and so does the client.
WAITING_BYTES_MAX: Final = 4 * limits.JSON_LINE_BYTES_MAX
#: What a short line costs in memory once it is read.
LINE_COST_BYTES: Final = 1_024
#: Texts for a standard error that nobody reads; older ones are dropped.
ERROR_TEXTS_MAX: Final = 1_000
#: From a signal to the end of the process, whatever still runs: within the 2 s clients allow.
EXIT_SECONDS_MAX: Final = 1.5
#: The same over HTTP, where the call in hand is finished first and no client waits to kill.
HTTP_EXIT_SECONDS_MAX: Final = 10
#: For the last words on standard error.
ERRORS_SECONDS_MAX: Final = 0.2


class Desk:
    """What was read and is not answered yet; between the reader and the main thread.

    `interrupt` is called from the reader, or from a signal, to stop the call that runs now.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._changed = Condition(Lock())
        self._waiting: deque[tuple[wire.Line, int]] = deque()
        self._bytes = 0
        self._taken = wire.Line([])
        self._running: wire.Request | None = None
        self._ended = False
        self._stopped = False

    def put(self, line: wire.Line, size: int) -> None:
        """Adds a line of `size` bytes; waits while too many bytes wait already."""
        cost = size + LINE_COST_BYTES
        with self._changed:
            while self._bytes > WAITING_BYTES_MAX and not self._stopped:
                self._changed.wait()
            self._waiting.append((line, cost))
            self._bytes += cost
            self._changed.notify()

    def take(self) -> wire.Line | None:
        """The next line, in order; None once there is none and none will come."""
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            if self._stopped or not self._waiting:
                return None
            self._taken, cost = self._waiting.popleft()
            self._bytes -= cost
            self._changed.notify()
            return self._taken

    def begin(self, request: wire.Request) -> bool:
        """Says that a request runs now; False where it was cancelled and must not."""
        with self._changed:
            if request.cancelled or self._stopped:
                return False
            self._running = request
            return True

    def finish(self, request: wire.Request) -> bool:
        """Says that a request has run; False where it was cancelled and gets no answer."""
        with self._changed:
            self._running = None
            return not request.cancelled

    def cancel(self, ident: wire.Id) -> None:
        """Takes back the requests of this id that are not answered yet."""
        with self._changed:
            for line in [self._taken, *(line for line, _ in self._waiting)]:
                for message in line.messages:
                    if isinstance(message, wire.Request) and wire.means(ident, message):
                        message.cancelled = True
            if self._running is not None and self._running.cancelled:
                self._interrupt()

    def end(self) -> None:
        """Nothing more will be read; what was read is still answered."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing more is begun, and what runs is interrupted."""
        with self._changed:
            self._ended = self._stopped = True
            self._changed.notify_all()
            if self._running is not None:
                self._interrupt()


def serve(session: wire.Session, desk: Desk, reading: int, writing: int) -> None:
    """Answers what comes in on one descriptor on another one, until input ends or is stopped.

    Also ends, in silence, once nobody reads the answers any more.
    """
    Thread(target=_read, args=(desk, reading), daemon=True).start()
    while (line := desk.take()) is not None:
        reply = _reply(session, desk, line)
        if reply and not _written(writing, reply):
            return


def _read(desk: Desk, descriptor: int) -> None:
    try:
        for line, size in _lines(descriptor):
            for message in line.messages:
                if (ident := wire.cancelled(message)) is not None:
                    desk.cancel(ident)
            desk.put(line, size)
    finally:
        desk.end()


def _lines(descriptor: int) -> Iterator[tuple[wire.Line, int]]:
    """The lines of a descriptor that are not blank, each with its length in bytes."""
    growing = _Growing()
    for block in _blocks(descriptor):
        *ends, rest = block.split(b"\n")
        for end in ends:
            growing.add(end)
            if not growing.blank:
                yield growing.line(), growing.size
            growing = _Growing()
        growing.add(rest)
    if not growing.blank:
        yield growing.line(), growing.size


def _blocks(descriptor: int) -> Iterator[bytes]:
    try:
        while block := os.read(descriptor, READ_BYTES):
            yield block
    except OSError:  # A terminal that has gone away: the same as its end.
        return


class _Growing:
    """A line on its way in. Of one that is too long no more than its two ends is held."""

    def __init__(self) -> None:
        self.size = 0
        self._held = bytearray()
        self._tail = b""

    def add(self, more: bytes) -> None:
        self.size += len(more)
        if self.size <= limits.JSON_LINE_BYTES_MAX:
            self._held += more
            return
        self._tail = ((self._tail or bytes(self._held[-KEPT_BYTES:])) + more)[-KEPT_BYTES:]
        del self._held[KEPT_BYTES:]

    @property
    def blank(self) -> bool:
        return self.size <= limits.JSON_LINE_BYTES_MAX and (not self._held or self._held.isspace())

    def line(self) -> wire.Line:
        if self.size > limits.JSON_LINE_BYTES_MAX:
            return wire.overlong(bytes(self._held), self._tail)
        return wire.read(self._held)


def _reply(session: wire.Session, desk: Desk, line: wire.Line) -> bytes | None:
    """The line that answers a line; None where nothing is to be said."""
    batch = line.batch and session.takes_batches
    messages = line.messages if line.batch == batch else [wire.NO_BATCHES]
    answers = [reply for message in messages if (reply := _answer(session, desk, message))]
    if not answers:
        return None
    return b"[" + b",".join(answers) + b"]\n" if batch else answers[0] + b"\n"


def _answer(session: wire.Session, desk: Desk, message: wire.Message) -> bytes | None:
    if not isinstance(message, wire.Request):
        return session.answer(message)
    if not desk.begin(message):
        return None
    answer = session.answer(message)
    return answer if desk.finish(message) else None


def _written(descriptor: int, reply: bytes) -> bool:
    """Writes all of a reply; False where its reader has gone."""
    left = memoryview(reply)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        return False
    return True


class Errors(io.TextIOBase):
    """A standard error that never makes its writer wait and never fails.

    A client may close it or leave it unread: what does not fit is dropped. UTF-8 in any locale.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._texts: deque[str | None] = deque(maxlen=ERROR_TEXTS_MAX)
        self._more = Semaphore(0)
        self._writer = Thread(target=self._write_out, daemon=True)
        self._starting = Lock()

    def write(self, text: str) -> int:
        """Takes a text; it is written soon, or dropped."""
        with self._starting:
            if self._writer.ident is None:
                self._writer.start()
        self._texts.append(text)
        self._more.release()
        return len(text)

    def finish(self) -> None:
        """Waits for what was taken to be written, ERRORS_SECONDS_MAX at most."""
        if self._writer.ident is not None:
            self._texts.append(None)
            self._more.release()
            self._writer.join(ERRORS_SECONDS_MAX)

    def _write_out(self) -> None:
        while True:
            self._more.acquire()
            if not self._texts:  # Dropped meanwhile.
                continue
            text = self._texts.popleft()
            if text is None:
                return
            _written(self._descriptor, text.encode("utf-8", "backslashreplace"))


def claim_streams() -> Pipes:
    """Takes the client's two pipes for the wire alone.

    Afterwards descriptor 0 is at its end and descriptor 1 is standard error, so that nothing a
    library or a child process reads or prints can touch the wire. A standard descriptor that came
    closed is the null device: else the database file could be given its number. CPython itself
    sets all three to binary on Windows.
    """
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:
        null = os.dup(null)
    reading, writing = os.dup(0), os.dup(1)
    if sys.platform != "win32":  # A parent may have made its pipes for a loop that polls.
        os.set_blocking(reading, True)
        os.set_blocking(writing, True)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return reading, writing


def host(open_service: Callable[[], Service], tools: Sequence[Tool], pipes: Pipes) -> None:
    """Serves one client until its input ends, its pipe breaks or a signal comes; then closes."""
    desk = Desk(lambda: service.cancel())
    _stop_on_signals(desk.stop, EXIT_SECONDS_MAX)
    service = open_service()
    try:
        serve(wire.Session(service, tools), desk, *pipes)
    finally:
        service.close()


def _stop_on_signals(stop: Callable[[], None], seconds: float) -> None:
    """Calls `stop` on SIGTERM and SIGINT, even while the main thread is deep in compiled code.

    Python runs a signal's handler in the main thread, between two bytecodes; the wakeup descriptor
    is written at once, on Windows too. A process that has not ended in `seconds` (its client reads
    no answers and keeps the pipe open) is ended: the database stands that as it stands a crash.
    """
    waking, woken = os.pipe()
    if sys.platform != "win32":
        os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def watch() -> None:
        os.read(waking, 1)
        stop()
        time.sleep(seconds)
        os._exit(0)

    Thread(target=watch, daemon=True).start()


def _explain(path: str) -> None:
    """For a person who started this in a terminal: what it is, and how to add it to a client."""
    import json  # Not on the way to the first answer of a client.

    entry = {
        "command": sys.executable,
        "args": ["-m", "hadano.server"],
        "env": {"HADANO_DB": path},
    }
    configuration = json.dumps({"mcpServers": {"hadano": entry}}, indent=2, ensure_ascii=False)
    print(
        f"Hadano {__version__}, an MCP server: it talks to an AI client over standard input and "
        f"output, not to people.\nOpened {path}\n\nTo add it to a client, put this into the "
        f"client's configuration:\n\n{configuration}\n\nControl-C ends it.",
        file=sys.stderr,
    )


def _parse_arguments(arguments: Sequence[str]) -> "argparse.Namespace":
    """What was asked for. --help and --version print and exit 0, wrong usage exits 2."""
    import argparse  # Not on the way to the first answer of a client, which passes no arguments.

    from hadano.web.access import address, origin

    parser = argparse.ArgumentParser(
        prog="python -m hadano.server",
        description="The MCP server of Hadano, on standard input and output: a client starts it; "
        "started in a terminal, it shows how to add it to one. With --http it serves many clients "
        "at once.",
        epilog="HADANO_DB: path of the database file (hadano.db). HADANO_EMBEDDINGS: off or local "
        "(off). HADANO_REQUEST_LOG: full, redacted or off (full).",
    )
    parser.add_argument("--version", action="version", version=f"hadano {__version__}")
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=address,
        help="serve at http://HOST:PORT/mcp instead; HOST is 127.0.0.1 where it is left out, any "
        "other than this machine's own needs a token",
    )
    parser.add_argument(
        "--token-file",
        metavar="F",
        help="with --http: let in only who sends `Authorization: Bearer` and the token in this "
        "file, which nobody but its owner may be able to read",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="with --http: a further name that clients call this server by (Host), such as that "
        "of a reverse proxy; may be repeated",
    )
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        type=origin,
        action="append",
        default=[],
        help="with --http: a site whose pages may call, such as https://example.org; may be "
        "repeated",
    )
    parser.add_argument(
        "--make-token", metavar="F", help="write a new token to a new file, and end"
    )
    parsed = parser.parse_args(arguments)
    if parsed.http is None and (parsed.token_file or parsed.allow_host or parsed.allow_origin):
        parser.error("--token-file, --allow-host and --allow-origin need --http")
    if parsed.make_token is not None and len(arguments) > 2:
        parser.error("--make-token stands alone")
    return parsed


def _status(work: Callable[[], None]) -> int:
    """The exit status that some work comes to; a failure is said in one line."""
    try:
        work()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    except HadanoError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _serve_pipes(by_hand: bool, pipes: Pipes) -> None:
    settings = Settings.from_environment()
    host(partial(_opened, settings, by_hand), TOOLS, pipes)


def _opened(settings: Settings, by_hand: bool) -> Service:
    service = Service(settings)
    if by_hand:
        _explain(settings.path)
    return service


def _serve_http(asked: "argparse.Namespace") -> None:
    from hadano.web import access

    settings = Settings.from_environment()
    token = None if asked.token_file is None else access.read_token(asked.token_file)
    listening = access.bound(asked.http)
    access.check_reach(listening, token)
    where = access.Address(asked.http.host, listening.getsockname()[1])
    gate = access.Access(where, token, asked.allow_host, asked.allow_origin)

    from hadano.web import listener  # Most of a second: what can be refused was refused before.

    def opened() -> Service:
        service = Service(settings)
        callers = "whoever has the token" if token else "this machine"
        print(
            f"Hadano {__version__} serves {settings.path} at http://{where.authority}/mcp "
            f"to {callers}",
            file=sys.stderr,
        )
        return service

    stopping = partial(_stop_on_signals, seconds=HTTP_EXIT_SECONDS_MAX)
    listener.host(opened, TOOLS, listening, gate, stopping)


def _make_token(path: str) -> int:
    from hadano.web import access

    def make() -> None:
        try:
            print(access.make_token(path))
        except OSError as error:
            raise invalid("--make-token", f"{path}: {error.strerror}") from None

    return _status(make)


def main() -> int:
    """The exit status: 0 at the end of input or on a signal, 1 on a failure, 2 on wrong usage."""
    asked = _parse_arguments(sys.argv[1:]) if len(sys.argv) > 1 else None
    if asked is not None and asked.make_token is not None:
        return _make_token(asked.make_token)
    by_hand = os.isatty(0)
    pipes = claim_streams()
    errors = Errors(2)
    sys.stdout = sys.stderr = errors
    try:
        if asked is not None and asked.http is not None:
            return _status(partial(_serve_http, asked))
        return _status(partial(_serve_pipes, by_hand, pipes))
    finally:
        errors.finish()


if __name__ == "__main__":
    sys.exit(main())
