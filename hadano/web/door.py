"""The door: what happens to one HTTP request before, around and after the SDK has it.

Before: who asks, for what, how large, and for a call a place in the line. Around: a client that
goes away takes its call back. After: the same bytes of JSON as standard output would have, and how
long the call waited and worked. A message is read as the wire reads a line, so that what one door
takes the other takes too; what it means is the SDK's to know, but for a call's arguments, which go
to the hall as they were read.
"""

import asyncio
import contextlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Final

import msgspec

from hadano import limits, wire
from hadano.web.access import Access, Headers
from hadano.web.line import Line, Turn
from hadano.web.tools import TURN

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH: Final = "/mcp"
METHODS: Final = "POST, DELETE"
SESSION: Final = b"mcp-session-id"

#: As long as a line of standard input may be: the largest legal document in its longest spelling.
BODY_BYTES_MAX: Final = limits.JSON_LINE_BYTES_MAX
#: From the head of a request to the end of its body: 250 KB a second for the longest.
BODY_SECONDS_MAX: Final = 30
#: A body of more than this is large, and only so many are in memory at once; others wait unread.
LARGE_BODY_BYTES: Final = 65_536
LARGE_BODIES_MAX: Final = 8
#: Past it the session that has been idle longest is ended: clients seldom say that they are done.
SESSIONS_MAX: Final = 512
#: Long, because the official clients do not open a new session by themselves where theirs is gone.
SESSION_IDLE_SECONDS: Final = 24 * 3_600
#: What a client is told to wait where there is no place.
RETRY_SECONDS: Final = 1

_ALLOWED_HEADERS: Final = (
    "authorization, content-type, accept, mcp-session-id, mcp-protocol-version, mcp-method, "
    "mcp-name, last-event-id"
)


#: What is said where the SDK says nothing, or in a text of its own.
_OUR_WORDS: Final = {
    400: "the content type must be application/json",
    405: "sessions end by DELETE in the handshake era alone",
    406: "answers are application/json: accept it",
}
#: How the SDK says that it cannot read a message; the rest of its words quotes what was sent.
_UNREADABLE: Final = "Parse error"
_UNREADABLE_HERE: Final = "Parse error: nested too deeply, a number too long, or half a surrogate"


class Refusal(Exception):
    """An HTTP answer that is an error, with what a person is told."""

    def __init__(self, status: int, said: str | wire.RpcError, **headers: str) -> None:
        if isinstance(said, str):
            said = wire.RpcError(wire.INVALID_REQUEST, said)
        super().__init__(said.message)
        self.status = status
        self.body = wire.refused(said)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class _Gone(Exception):
    """The client went away; nobody is left to answer."""


def come_back(why: str) -> Refusal:
    """What a client is told that is to come back soon."""
    return Refusal(503, why, retry_after=str(RETRY_SECONDS))


class Sessions:
    """The ids of open sessions, the one used last at the end."""

    def __init__(self, sdk: App) -> None:
        self._sdk = sdk
        self._ids: OrderedDict[bytes, None] = OrderedDict()

    def used(self, ident: bytes) -> None:
        self._ids[ident] = None
        self._ids.move_to_end(ident)

    def ended(self, ident: bytes) -> None:
        self._ids.pop(ident, None)

    async def make_room(self) -> None:
        """Ends the sessions that have been idle longest, until one more has room."""
        while len(self._ids) >= SESSIONS_MAX:
            ident, _ = self._ids.popitem(last=False)
            scope = {"type": "http", "method": "DELETE", "path": PATH, "query_string": b""}
            await self._sdk(scope | {"headers": [(SESSION, ident)]}, _nothing, _ignored)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignored(_: Message) -> None:
    pass


class UnderWay:
    """The requests of sessions that are being answered."""

    def __init__(self) -> None:
        self._known: set[tuple[bytes, str]] = set()

    @contextlib.contextmanager
    def one(self, session: bytes | None, ident: wire.Id) -> Iterator[None]:
        """Refuses the second of two requests with one id: the SDK, to which `7` and `"7"` are the
        same, would give the one's answer to the other, and keep the one waiting for ever."""
        if session is None:
            yield
            return
        known = (session, str(ident))
        if known in self._known:
            why = "a request with this id is being answered already"
            raise Refusal(400, wire.RpcError(wire.INVALID_REQUEST, why, ident=ident))
        self._known.add(known)
        try:
            yield
        finally:
            self._known.remove(known)


class Door:
    """The ASGI application."""

    def __init__(self, access: Access, line: Line, sdk: App) -> None:
        self._access = access
        self._line = line
        self._sdk = sdk
        self._sessions = Sessions(sdk)
        self._under_way = UnderWay()
        self._large_bodies = asyncio.Semaphore(LARGE_BODIES_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        reply = _Reply(scope, send)
        try:
            self._check(scope, reply)
            if scope["method"] == "OPTIONS":
                await reply.say(204, b"", _preflight())
            else:
                await self._read(scope, receive, reply)
        except Refusal as refusal:
            await reply.refuse(refusal)
        except _Gone:
            return

    def _check(self, scope: Scope, reply: "_Reply") -> None:
        headers: Headers = scope["headers"]
        length = _header(headers, b"content-length")
        if length is not None and _header(headers, b"transfer-encoding") is not None:
            # A proxy that ends the message where the length says would take the rest of it for
            # another request, of somebody else's (RFC 9112, section 6.1).
            raise Refusal(400, "a message has one length", connection="close")
        if not self._access.knows_host(headers):
            raise Refusal(421, "this server has another name")
        if not self._access.knows_origin(headers):
            raise Refusal(403, "this origin is not allowed")
        reply.allow_origin()
        if scope["path"] != PATH:
            raise Refusal(404, "there is nothing here")
        if scope["method"] == "OPTIONS":
            return
        if not self._access.knows_caller(headers):
            raise Refusal(401, "unauthorized", www_authenticate='Bearer realm="hadano"')
        if scope["method"] not in ("POST", "DELETE"):
            raise Refusal(405, f"only {METHODS}", allow=METHODS)
        # Digits alone, and not too many to be a number: the HTTP server saw to that.
        if length is not None and int(length) > BODY_BYTES_MAX:
            raise _too_large()

    async def _read(self, scope: Scope, receive: Receive, reply: "_Reply") -> None:
        large = _Large(self._large_bodies)
        try:
            body = await _body(receive, large)
            if scope["method"] == "DELETE":
                await self._pass(scope, body, receive, reply)
            else:
                await self._take(scope, body, receive, reply)
        finally:
            large.release()

    async def _take(self, scope: Scope, body: bytes, receive: Receive, reply: "_Reply") -> None:
        """Has a message answered, a call when its turn comes."""
        message = _message(body)
        if isinstance(message, wire.Notification):
            await self._pass(scope, body, receive, reply)
            return
        session = _header(scope["headers"], SESSION)
        if session is None and message.method == "initialize":
            await self._sessions.make_room()
        with self._under_way.one(session, message.id):
            if message.method == "tools/call":
                await self._call(scope, message, receive, reply)
            else:
                await self._pass(scope, body, receive, reply)

    async def _call(
        self, scope: Scope, request: wire.Request, receive: Receive, reply: "_Reply"
    ) -> None:
        arguments = request.params.pop("arguments", None)
        body = _without_arguments(request)
        turn = self._line.enter(arguments)
        if turn is None:
            raise come_back("too many calls wait already")
        scope[TURN] = reply.turn = turn
        try:
            await self._pass(scope, body, receive, reply)
        finally:
            turn.leave()

    async def _pass(self, scope: Scope, body: bytes, receive: Receive, reply: "_Reply") -> None:
        """Has the SDK answer, for as long as the client is there and its turn may come."""
        gone = asyncio.ensure_future(_gone(receive))
        serving = asyncio.ensure_future(self._sdk(scope, _replay(body, gone), reply.collect))
        turn = reply.turn
        if turn is not None:
            turn.answering = serving
        try:
            await asyncio.wait((gone, serving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, serving):
                task.cancel()
            outcomes = await asyncio.gather(gone, serving, return_exceptions=True)
        self._remember(_header(scope["headers"], SESSION), reply)
        if turn is not None and turn.turned_away:
            raise come_back("the server is stopping")
        if isinstance(outcomes[1], asyncio.CancelledError):
            raise _Gone
        if isinstance(outcomes[1], BaseException):
            raise outcomes[1]
        await reply.finish()

    def _remember(self, session: bytes | None, reply: "_Reply") -> None:
        named = reply.header(SESSION)
        if session is not None and reply.ended_session:
            self._sessions.ended(session)
        elif named is not None:
            self._sessions.used(named)


def _preflight() -> dict[str, str]:
    return {
        "access-control-allow-methods": METHODS,
        "access-control-allow-headers": _ALLOWED_HEADERS,
        "access-control-max-age": "600",
    }


def _header(headers: Headers, name: bytes) -> bytes | None:
    return next((value for key, value in headers if key == name), None)


def _too_large() -> Refusal:
    return Refusal(413, f"a message has at most {BODY_BYTES_MAX:,} bytes")


class _Large:
    """One of the places for large bodies, once it is needed."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._held = False

    async def take(self) -> None:
        if not self._held:
            await self._places.acquire()
            self._held = True

    def release(self) -> None:
        if self._held:
            self._places.release()


async def _body(receive: Receive, large: _Large) -> bytes:
    """The whole body, within its limits of size and time."""
    body = bytearray()
    left = float(BODY_SECONDS_MAX)
    more = True
    while more:
        if len(body) > LARGE_BODY_BYTES:
            await large.take()
        message, left = await _next(receive, left)
        if message["type"] != "http.request":
            raise _Gone
        body += message.get("body", b"")
        if len(body) > BODY_BYTES_MAX:
            raise _too_large()
        more = message.get("more_body", False)
    return bytes(body)


async def _next(receive: Receive, left: float) -> tuple[Message, float]:
    """The next part of a body, and the seconds that are left for the others."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(left):
            message = await receive()
    except TimeoutError:
        raise Refusal(
            408, f"a message takes at most {BODY_SECONDS_MAX} s", connection="close"
        ) from None
    return message, left - (loop.time() - began)


def _message(body: bytes) -> wire.Request | wire.Notification:
    """The message, read as a line of standard input is, and refused in the same words."""
    line = wire.read(body)
    if line.batch:
        raise Refusal(400, "a message is one object; there are no batches over HTTP")
    if not line.messages:
        raise Refusal(400, "neither a request nor a notification")
    (message,) = line.messages
    if isinstance(message, wire.RpcError):
        raise Refusal(400, message)
    return message


def _without_arguments(call: wire.Request) -> bytes:
    """The call as the SDK gets it; refused where it is none. The SDK's readers of JSON take less
    than the wire does, and each of them something else: the arguments are the hall's alone, and
    half a surrogate pair in what is left is a question mark."""
    message = {"jsonrpc": "2.0", "id": call.id, "method": call.method, "params": call.params}
    try:
        wire.check_call(call.params)
        return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    except wire.RpcError as error:
        raise Refusal(400, wire.RpcError(error.code, error.message, ident=call.id)) from None
    except RecursionError:
        raise Refusal(400, "nested too deeply") from None


async def _gone(receive: Receive) -> None:
    """Returns once the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _replay(body: bytes, gone: "asyncio.Future[None]") -> Receive:
    """The body, once more, and then the client's going away."""
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if parts:
            return parts.pop()
        await asyncio.shield(gone)
        return {"type": "http.disconnect"}

    return receive


class _Reply:
    """The answer to one request on its way out."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._cors: dict[str, str] = {}
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = b""
        self.status = 0
        self.turn: Turn | None = None

    @property
    def ended_session(self) -> bool:
        """Whether the session of the request is no more. A refused DELETE ends none."""
        deleted = self._scope["method"] == "DELETE" and 200 <= self.status < 300
        return self.status == 404 or deleted

    def header(self, name: bytes) -> bytes | None:
        return _header(self._headers, name)

    def allow_origin(self) -> None:
        """Lets the page that asks read the answer; its origin has been checked."""
        origin = _header(self._scope["headers"], b"origin")
        if origin is not None:
            self._cors = {
                "access-control-allow-origin": origin.decode("latin-1"),
                "access-control-expose-headers": "mcp-session-id, retry-after, server-timing",
                "vary": "origin",
            }

    async def collect(self, message: Message) -> None:
        """What the SDK sends: one answer, whole."""
        if message["type"] == "http.response.start":
            self.status, self._headers = message["status"], list(message.get("headers", []))
            if self.status >= 400 and _header(self._scope["headers"], SESSION) is None:
                # The SDK names the session that it did not open.
                self._headers = [line for line in self._headers if line[0].lower() != SESSION]
        else:
            self._body += message.get("body", b"")

    async def finish(self) -> None:
        """Sends what was collected."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in self._headers
            if name.lower() != b"content-length"
        }
        if self.status == 503:
            headers["retry-after"] = str(RETRY_SECONDS)
        if self.turn is not None and self.turn.worked_ms is not None:
            headers["server-timing"] = (
                f"wait;dur={self.turn.waited_ms:.2f}, work;dur={self.turn.worked_ms:.2f}"
            )
        body = _as_the_wire_writes(self._body)
        if self.status >= 400 and headers.get("content-type") != "application/json":
            said = _OUR_WORDS.get(self.status, "refused")
            body = wire.refused(wire.RpcError(wire.INVALID_REQUEST, said))
            headers["content-type"] = "application/json"
        await self.say(self.status, body, headers)

    async def refuse(self, refusal: Refusal) -> None:
        headers = {"content-type": "application/json"} | refusal.headers
        await self.say(refusal.status, refusal.body, headers)

    async def say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        lines = headers | self._cors
        if status != 204:
            lines["content-length"] = str(len(body))
        encoded = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in lines.items()
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})
        await self._send({"type": "http.response.body", "body": body})


def _as_the_wire_writes(body: bytes) -> bytes:
    """JSON without escapes that it does not need, as standard output has it."""
    try:
        return msgspec.json.encode(_in_our_words(msgspec.json.decode(body)))
    except msgspec.DecodeError:  # None, text, or a lone surrogate that an error quotes.
        return body


def _in_our_words(answer: Any) -> Any:
    """The answer, its message ours where the SDK could not read what was sent."""
    if "error" in answer and answer["error"]["message"].startswith(_UNREADABLE):
        answer["error"]["message"] = _UNREADABLE_HERE
    return answer
