"""The listener: sockets and HTTP, by uvicorn, with the time-outs and the bound that it lacks.

Knows nothing of MCP. Sources: RFC 9112; uvicorn's own protocol, which is extended here at the
methods that asyncio calls.
"""

import asyncio
import contextlib
import logging
import socket
import traceback
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final, cast

import h11
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from hadano.service import Service, Tool
from hadano.web import tools as sdk
from hadano.web.access import Access
from hadano.web.door import (
    BODY_BYTES_MAX,
    SESSION_IDLE_SECONDS,
    SESSIONS_MAX,
    Door,
    Refusal,
    come_back,
)
from hadano.web.line import Line

#: Past it the connection that has been idle longest is closed. Below the 256 descriptors that some
#: systems give a process.
CONNECTIONS_MAX: Final = 128
#: Connections that are taken in at once.
BACKLOG: Final = 16
#: Connections that the system holds until then: of a burst of more, Linux resets some. Many systems
#: hold fewer than they are asked to.
WAITING_MAX: Final = 1_024
#: From a connection's beginning, or the first byte of a further request, to the end of its head.
HEAD_SECONDS_MAX: Final = 10
#: Between two requests of a connection; longer than proxies keep theirs (nginx: 60 s).
IDLE_SECONDS_MAX: Final = 75
#: For a client to take in what it was sent.
WRITE_SECONDS_MAX: Final = 30
#: From the first signal on, for the call in hand and the answers on their way: a call's two
#: seconds, and one.
DRAIN_SECONDS_MAX: Final = 3
#: For a client to take in why its connection ends, and to end it too.
PARTING_SECONDS_MAX: Final = 1
#: Connections without a place that are told so; past it they are closed without a word.
TURNED_AWAY_MAX: Final = 96


def _last_words(refusal: Refusal) -> bytes:
    """A whole answer where none of uvicorn's can be sent, or may be."""
    lines = {"content-type": "application/json", "content-length": str(len(refusal.body))}
    lines |= refusal.headers | {"connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    status = HTTPStatus(refusal.status)
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n".encode() + refusal.body


class Connection(H11Protocol):
    """uvicorn's connection, which neither waits for ever nor is one too many."""

    _turned_away: ClassVar[set["Connection"]] = set()
    _clock: asyncio.TimerHandle | None = None
    _write_clock: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _parting = False

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def idle(self) -> bool:
        """Whether nothing is under way: no request, no answer, no bytes that wait to be read."""
        return not (self.busy or self.transport.get_write_buffer_size() or self._has_unread())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Makes room for itself, or says that there is none."""
        if self._make_room():
            super().connection_made(transport)
            self._idle_since = self.loop.time()
            self._expect_head()
            return
        self.transport = transport
        if len(self._turned_away) < TURNED_AWAY_MAX:
            self._turned_away.add(self)
            self._part(come_back("too many connections are busy"))
        else:
            transport.abort()

    def _make_room(self) -> bool:
        others = cast("set[Connection]", self.connections)
        while len(others) >= CONNECTIONS_MAX:
            by_age = sorted(others, key=lambda other: other._idle_since)
            longest = next((other for other in by_age if other.idle), None)
            if longest is None:
                return False
            others.discard(longest)  # At once: more may come before it is lost.
            longest.transport.abort()
        return True

    def _has_unread(self) -> bool:
        """Whether the client has sent something that was not read yet, as those have that came
        in a burst. Closed now, their systems would take it for a broken connection."""
        if self.transport.is_closing():
            return False
        try:
            with self.transport.get_extra_info("socket").dup() as sock:
                return bool(sock.recv(1, socket.MSG_PEEK))
        except OSError:  # Nothing there, or nobody.
            return False

    def _part(self, refusal: Refusal) -> None:
        """Refuses, unless an answer has begun already, and closes once the client does: were it
        closed before all was read, the client's system might drop the answer (RFC 9112, 9.6)."""
        self._parting = True
        self._stop_expecting()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_last_words(refusal))
        try:
            self.transport.write_eof()
        except OSError:  # Its last words have found the client gone.
            self.transport.abort()
            return
        self.loop.call_later(PARTING_SECONDS_MAX, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._parting or self.transport.is_closing():
            return
        super().data_received(data)
        if self.busy:
            self._stop_expecting()
        elif self._clock is None and not self._parting:
            self._expect_head()

    def send_400_response(self, _: str) -> None:
        """Ends the connection of what is no HTTP."""
        self._part(Refusal(400, "this is not HTTP/1.1"))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._idle_since = self.loop.time()
        if self.transport.is_closing():
            self.loop.call_later(WRITE_SECONDS_MAX, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._turned_away.discard(self)
        self._stop_expecting()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_clock = self.loop.call_later(WRITE_SECONDS_MAX, self.transport.abort)

    def resume_writing(self) -> None:
        if self._write_clock is not None:
            self._write_clock.cancel()
            self._write_clock = None
        if self.flow is not None:
            super().resume_writing()

    def shutdown(self) -> None:
        """Ends what has no request; one that is still on its way in would find the line closed."""
        if self.busy and self.cycle.more_body:
            self._part(come_back("the server is stopping"))
        elif not self._parting:
            super().shutdown()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _expect_head(self) -> None:
        self._clock = self.loop.call_later(HEAD_SECONDS_MAX, self.transport.abort)

    def _stop_expecting(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


class _Uvicorn(uvicorn.Server):
    """uvicorn's server, which leaves signals to the process, and has more wait than it takes in at
    once: asyncio has one number for both."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(WAITING_MAX)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _WithoutContent(logging.Formatter):
    """What libraries report, without the words of exceptions: those can quote what was stored."""

    def formatException(self, ei: Any) -> str:  # noqa: N802
        kind, _, trace = ei
        return "".join([*traceback.format_tb(trace), kind.__name__])


def host(
    open_service: Callable[[], Service],
    tools: Sequence[Tool],
    listening: socket.socket,
    access: Access,
    on_stop: Callable[[Callable[[], None]], None],
) -> None:
    """Serves on a socket until stopped, then finishes the call in hand and closes the service.

    `on_stop` is given what stops it, which may be called from any thread.
    """
    _log_without_content()
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        stopping = asyncio.Event()
        on_stop(lambda: _call_soon(loop, stopping.set))
        with contextlib.closing(open_service()) as service:
            runner.run(_serve(Line(service), tools, listening, access, stopping))


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # The loop has ended.
        loop.call_soon_threadsafe(callback)


def _log_without_content() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_WithoutContent("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[handler])


async def _serve(
    line: Line,
    tools: Sequence[Tool],
    listening: socket.socket,
    access: Access,
    stopping: asyncio.Event,
) -> None:
    manager = StreamableHTTPSessionManager(
        sdk.server(tools),
        json_response=True,
        session_idle_timeout=SESSION_IDLE_SECONDS,
        max_request_body_size=BODY_BYTES_MAX,
        # The door makes room; those that open at once come on top.
        max_sessions=SESSIONS_MAX + CONNECTIONS_MAX,
    )
    server = _Uvicorn(_config(Door(access, line, manager.handle_request)))

    async def stop() -> None:
        await stopping.wait()
        line.close()
        server.should_exit = True

    async with manager.run():
        watching = asyncio.ensure_future(stop())
        try:
            await server.serve(sockets=[listening])
        finally:
            watching.cancel()
            line.worker.shutdown()


def _config(app: Door) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="off",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS_MAX,
        timeout_graceful_shutdown=DRAIN_SECONDS_MAX,
    )
