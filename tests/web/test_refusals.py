"""What is refused, how, and that the next good call is served."""

import asyncio
import errno
import json
import signal
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from hadano import wire
from hadano.web import door, listener
from tests.web.web import FAKE, REAL, Server, begin, dashed, finish, post, received
from tests.wire.process import call, enveloped, initialize, posix

STATUS = call(1, "db_status")
ECHO = enveloped(call(1, "echo", text="hello"))
CHALLENGE = 'Bearer realm="hadano"'


@pytest.fixture(scope="module")
def token(tmp_path_factory):
    return tmp_path_factory.mktemp("token") / "token"


@pytest.fixture(scope="module")
def guarded(token, tmp_path_factory):
    """The server with a token, an extra name and an extra origin; a document is in its store."""
    token.touch(mode=0o600)
    token.write_text("t" * 43)
    options = ["--token-file", str(token), "--allow-host", "notes.example.org"]
    options += ["--allow-origin", "https://app.example.org"]
    path = tmp_path_factory.mktemp("guarded") / "store.db"
    with Server(*REAL, *options, environment={"HADANO_DB": str(path)}) as server:
        yield server


BEARER = {"authorization": "Bearer " + "t" * 43}


def is_served(server):
    return server.post(enveloped(STATUS), **BEARER).structured["docs"] == 0


def asked(server, method="POST", path="/mcp", body=b"{}", **headers):
    connection = server.connect()
    connection.request(method, path, body, dashed(headers))
    answer = connection.getresponse()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


@pytest.mark.parametrize(
    "authorization", [None, "Bearer wrong", "Bearer " + "t" * 42, "Basic dDo="]
)
def test_without_the_token_there_is_a_challenge_and_no_hint(guarded, authorization):
    headers = {} if authorization is None else {"authorization": authorization}
    status, said, body = asked(guarded, **headers)
    assert (status, said["www-authenticate"]) == (401, CHALLENGE)
    assert set(said) == {"date", "content-type", "content-length", "www-authenticate"}
    assert body == asked(guarded)[2]
    assert is_served(guarded)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "PATCH"])
def test_without_the_token_every_method_is_the_same(guarded, method):
    assert asked(guarded, method)[0] == 401


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp/x", "/MCP", "//mcp", "/docs", "/metrics"])
@pytest.mark.parametrize("headers", [{}, BEARER])
def test_there_is_one_path(guarded, path, headers):
    assert asked(guarded, path=path, **headers)[0] == 404
    assert is_served(guarded)


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "PATCH", "TRACE"])
def test_there_are_two_methods(guarded, method):
    status, headers, _ = asked(guarded, method, **BEARER)
    assert (status, headers["allow"]) == (405, "POST, DELETE")
    assert is_served(guarded)


def test_another_name_is_refused_and_a_given_one_is_not(guarded):
    for host in ("evil.example", f"evil.example:{guarded.port}", "localhost"):
        assert asked(guarded, host=host, **BEARER)[0] == 421
    reply = guarded.post(enveloped(STATUS), host="notes.example.org", **BEARER)
    assert reply.status == 200


def test_another_origin_is_refused_and_told_nothing(guarded):
    for origin in ("https://evil.example", "null", "http://localhost:1"):
        for method in ("POST", "OPTIONS"):
            status, headers, _ = asked(guarded, method, origin=origin, **BEARER)
            assert status == 403
            assert not [name for name in headers if name.startswith("access-control")]


def test_a_page_that_is_allowed_may_ask_first_and_read_the_answer(guarded):
    origin = "https://app.example.org"
    status, headers, body = asked(guarded, "OPTIONS", body=None, origin=origin)
    assert (status, body) == (204, b"")
    assert headers["access-control-allow-origin"] == origin
    assert "authorization" in headers["access-control-allow-headers"]
    reply = guarded.post(enveloped(STATUS), origin=origin, **BEARER)
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, origin)
    assert reply.headers["vary"] == "origin"


def test_a_caller_without_the_token_hears_it_in_an_allowed_page_too(guarded):
    status, headers, _ = asked(guarded, origin="https://app.example.org")
    assert (status, headers["www-authenticate"]) == (401, CHALLENGE)


def test_a_body_that_says_it_is_too_large_is_not_read(guarded):
    connection = guarded.connect()
    connection.putrequest("POST", "/mcp")
    for name, value in (BEARER | {"content-length": str(door.BODY_BYTES_MAX + 1)}).items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    assert is_served(guarded)


def test_a_body_that_grows_too_large_is_refused_while_it_does(guarded):
    connection = guarded.connect()
    blocks = [b" " * 65_536] * (door.BODY_BYTES_MAX // 65_536 + 1)
    connection.request("POST", "/mcp", iter(blocks), BEARER, encode_chunked=True)
    assert connection.getresponse().status == 413
    assert is_served(guarded)


@pytest.mark.parametrize("id", ["1.5", "null", "true", "[1]", "{}"])
def test_a_request_whose_id_is_none_is_refused_and_no_notification(guarded, id):
    session = guarded.open_session(**BEARER)
    body = f'{{"jsonrpc": "2.0", "id": {id}, "method": "ping"}}'.encode()
    reply = guarded.post(body, mcp_session_id=session, **BEARER)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)


def test_a_body_of_the_largest_size_is_read(guarded):
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.ljust(door.BODY_BYTES_MAX)
    reply = guarded.post(body, mcp_session_id=guarded.open_session(**BEARER), **BEARER)
    assert (reply.status, reply.json["result"]) == (200, {})


MALFORMED = [
    b"\r\n\r\n\x00\xff",
    b"GET\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost : x\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50 + b"\n\n",
]


@pytest.mark.parametrize("sent", MALFORMED)
def test_malformed_http_is_400_and_the_end_of_the_connection(guarded, sent):
    sock = guarded.socket()
    sock.sendall(sent)
    head, _, body = b"".join(received(sock)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert is_a_refusal(head, body)
    assert is_served(guarded)


def is_a_refusal(head, body):
    """Whether a refusal has the one shape that all have, and nothing of what was sent."""
    answer = json.loads(body)
    assert b"content-type: application/json" in head.lower()
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["error"].keys() == {"code", "message"}
    return answer["id"] is None and b"secret" not in head + body


REFUSED = {
    "nothing": (400, b"", {}),
    "no JSON": (400, b'{"secret"', {}),
    "no message": (400, b'{"secret": 1}', {}),
    "a response": (400, b'{"jsonrpc": "2.0", "id": 1, "result": {"secret": 1}}', {}),
    "an error": (400, b'{"jsonrpc": "2.0", "id": 1, "error": {"secret": 1}}', {}),
    "a batch": (400, b'["secret"]', {}),
    "a type that is another": (400, json.dumps(STATUS).encode(), {"content-type": "text/secret"}),
    "an answer that is another": (406, json.dumps(STATUS).encode(), {"accept": "text/secret"}),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_what_is_no_message_or_cannot_be_answered_is_refused_in_one_shape(guarded, name, version):
    expected, body, headers = REFUSED[name]
    connection = guarded.connect()
    given = {"content-type": "application/json", "accept": "application/json"}
    given |= {"mcp-protocol-version": version} | BEARER | headers
    connection.request("POST", "/mcp", body, given)
    answer = connection.getresponse()
    assert answer.status == expected
    assert is_a_refusal(answer.headers.as_bytes(), answer.read())
    assert is_served(guarded)


def test_there_is_no_session_to_end_in_the_envelopes_era(guarded):
    connection = guarded.connect()
    headers = BEARER | {"mcp-protocol-version": "2026-07-28", "mcp-session-id": "secret"}
    connection.request("DELETE", "/mcp", headers=headers)
    answer = connection.getresponse()
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert is_a_refusal(answer.headers.as_bytes(), answer.read())


def smuggled(server, lengths, body):
    """What a request is answered whose body ends in one of two places, and one behind it."""
    head = f"POST /mcp HTTP/1.1\r\nhost: localhost:{server.port}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in (BEARER | lengths).items())
    sock = server.socket()
    sock.sendall(head.encode() + b"\r\n" + body)
    return b"".join(received(sock))


@pytest.mark.parametrize("order", [1, -1])
def test_a_message_with_two_lengths_is_refused_and_nothing_behind_it_is_read(guarded, order):
    lengths = {"content-length": "5", "transfer-encoding": "chunked"}
    behind = f"GET /secret HTTP/1.1\r\nhost: localhost:{guarded.port}\r\n\r\n".encode()
    said = smuggled(guarded, dict(list(lengths.items())[::order]), b"0\r\n\r\n" + behind)
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in head.lower()
    assert is_a_refusal(head, body)
    assert is_served(guarded)


def test_a_call_without_a_session_or_in_one_that_is_none_is_refused(guarded):
    nowhere = guarded.post(STATUS, **BEARER)
    unknown = guarded.post(STATUS, mcp_session_id="0" * 32, **BEARER)
    assert (nowhere.status, unknown.status) == (400, 404)
    for reply in (nowhere, unknown):
        assert reply.json["error"]["code"] == wire.INVALID_REQUEST
        assert "mcp-session-id" not in reply.headers
    assert is_served(guarded)


def test_standard_error_has_nothing_of_what_was_sent_but_where_a_bug_is():
    with Server(*FAKE) as server:
        for body in (b"{", b'{"method": "tools/call", "params": "secret"}'):
            server.post(body)
            server.post(body, mcp_protocol_version="2026-07-28")
        server.post(enveloped(call(1, "echo", text="secret")))
        asked(server, authorization="Bearer secret", path="/secret")
        sock = server.socket()
        sock.sendall(b"secret\r\n\r\n")
        assert b"400" in b"".join(received(sock))
        reply = server.post(enveloped(call(1, "crash", text="secret")))
        assert reply.json["error"]["code"] == wire.INTERNAL_ERROR
        assert b"secret" not in reply.body
        server.signal(15)
        status, _, errors = server.finish()
    assert status == 0
    assert errors.count("Traceback") + errors.count("ZeroDivisionError") == 2
    assert errors.replace('ZeroDivisionError("secret")', "").count("secret") == 0


HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost:%d\r\ncontent-length: 9\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HT"])
def test_a_head_that_does_not_come_ends_the_connection(hasty, sent):
    sock = hasty.socket()
    sock.sendall(sent)
    assert b"".join(received(sock)) == b""
    assert post(hasty.connect(), ECHO).status == 200


def test_a_further_head_that_does_not_come_ends_the_connection(hasty):
    connection = hasty.connect()
    post(connection, ECHO)
    connection.sock.sendall(b"POST /mcp")
    assert b"".join(received(connection.sock)) == b""


def test_a_body_that_comes_byte_by_byte_is_not_waited_for(hasty):
    sock = hasty.socket()
    sock.sendall(HEAD % hasty.port + b"{")
    said = b"".join(received(sock))
    assert said.startswith(b"HTTP/1.1 408 ")
    assert post(hasty.connect(), ECHO).status == 200


def test_slow_bodies_hold_up_nobody(hasty):
    for _ in range(20):
        hasty.socket().sendall(HEAD % hasty.port)
    assert post(hasty.connect(), ECHO).status == 200


def test_an_answer_that_is_not_read_is_not_kept(hasty):
    connection = hasty.connect()
    begin(connection, enveloped(call(1, "echo", text="x" * 6_000_000)))
    connection.sock.recv(1)
    for _ in range(3):  # Three times the patience with a head is more than that with a reader.
        assert b"".join(received(hasty.socket())) == b""
    assert sum(map(len, received(connection.sock))) < 12_000_000
    assert post(hasty.connect(), ECHO).status == 200


def test_requests_sent_at_once_are_answered_in_their_order(guarded):
    sock = guarded.socket()
    body = json.dumps(enveloped(STATUS)).encode()
    head = "\r\n".join(
        [
            "POST /mcp HTTP/1.1",
            f"host: localhost:{guarded.port}",
            "content-type: application/json",
            "accept: application/json",
            f"authorization: {BEARER['authorization']}",
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: tools/call",
            "mcp-name: db_status",
            f"content-length: {len(body)}",
        ]
    )
    last = b"GET /nothing HTTP/1.1\r\nhost: localhost:%d\r\nconnection: close\r\n\r\n"
    sock.sendall((head.encode() + b"\r\n\r\n" + body) * 3 + last % guarded.port)
    said = b"".join(received(sock))
    assert said.count(b"HTTP/1.1 200 OK") == 3
    assert b"HTTP/1.1 404" in said[said.rindex(b"200 OK") :]


def test_large_bodies_wait_for_one_another_and_all_are_read(hasty):
    connections = [hasty.connect() for _ in range(4)]
    for connection in connections:
        begin(connection, enveloped(call(1, "size", text="x" * 200_000)))
    assert {finish(c).structured["codepoints"] for c in connections} == {200_000}


def test_the_connection_that_is_idle_longest_makes_room(small):
    first = small.socket()
    kept = small.connect()
    assert post(kept, initialize()).status == 200
    others = [small.connect() for _ in range(2)]
    assert [post(other, ECHO).status for other in others] == [200, 200]
    assert b"".join(received(first)) == b""
    assert post(kept, ECHO).status == 200


def test_an_answer_on_its_way_is_not_cut_for_a_newcomer(small):
    reading = small.connect()
    begin(reading, enveloped(call(1, "echo", text="x" * 6_000_000)))
    answer = reading.getresponse()
    for _ in range(6):
        assert post(small.connect(), ECHO).status == 200
    assert len(answer.read()) > 12_000_000


@posix
def test_in_a_burst_everybody_is_answered():
    """Stopped, the server finds all of them at once, more than it has room for."""
    with Server(*FAKE, "CONNECTIONS_MAX=8") as server:
        server.signal(signal.SIGSTOP)
        connections = [server.connect() for _ in range(100)]
        for connection in connections:
            begin(connection, ECHO)
        server.signal(signal.SIGCONT)
        statuses = [finish(connection).status for connection in connections]
        assert set(statuses) == {200, 503}
        assert post(server.connect(), ECHO).status == 200


def test_where_every_connection_is_busy_a_further_one_is_told_to_come_back(small):
    for sock in [small.socket() for _ in range(3)]:
        head = (HEAD % small.port).replace(b"content", b"expect: 100-continue\r\ncontent")
        sock.sendall(head)
        assert b"100" in sock.recv(100)
    said = b"".join(received(small.socket()))
    head, _, body = said.partition(b"\r\n\r\n")
    assert b" 503 " in head
    assert b"retry-after: 1" in head
    assert is_a_refusal(head, body)


def test_what_is_no_http_behind_a_refusal_ends_the_connection_in_silence():
    with Server(*FAKE) as server:
        sock = server.socket()
        sock.sendall(b"POST /mcp HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        assert sock.recv(65_536).startswith(b"HTTP/1.1 421 ")
        sock.sendall(b"no number\r\n")
        assert b"HTTP/1.1" not in b"".join(received(sock))
        server.signal(15)
        assert server.finish()[2].strip() == "closed"


def test_who_is_gone_before_the_end_of_a_refusal_is_let_go_of():
    """A moment that no client can be told to hit: the refusal was sent, and nobody is there any
    more to be told that it was all."""
    gone = Mock(asyncio.Transport)
    gone.is_closing.return_value = False
    gone.write_eof.side_effect = OSError(errno.ENOTCONN, "not connected")

    async def talk():
        config = uvicorn.Config(Mock(), log_config=None)
        config.load()
        connection = listener.Connection(config, ServerState(), {})
        connection.connection_made(gone)
        connection.data_received(b"no HTTP\r\n\r\n")

    asyncio.run(talk())
    assert gone.write.call_args.args[0].startswith(b"HTTP/1.1 400 ")
    gone.abort.assert_called_once_with()
