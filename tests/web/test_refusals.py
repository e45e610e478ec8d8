"""What is refused, how, and that the next good call is served."""

import json

import pytest

from hadano import wire
from hadano.web import door
from tests.web.web import FAKE, REAL, Server, begin, dashed, finish, post, received
from tests.wire.process import call, enveloped, initialize

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
    said = b"".join(received(sock))
    assert said.startswith(b"HTTP/1.1 400 ")
    assert is_served(guarded)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", wire.PARSE_ERROR),
        (b"{", wire.PARSE_ERROR),
        (b"\xff", wire.PARSE_ERROR),
        (b"[" * 100_000, wire.PARSE_ERROR),
        (b"[]", None),
        (b"7", None),
        (b'{"jsonrpc": "2.0", "id": 1}', None),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', None),
    ],
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_message_that_is_none_is_400_and_a_json_rpc_error(guarded, body, code, version):
    reply = guarded.post(body, mcp_protocol_version=version, **BEARER)
    assert (reply.status, "error" in reply.json) == (400, True)
    if code is not None:
        assert reply.json["error"]["code"] == code
    assert is_served(guarded)


SURROGATE = json.dumps(call(1, "db_status", secret="\ud800")).encode()
NO_OBJECT = json.dumps(STATUS | {"params": "secret"}).encode()
DEEP = json.dumps(call(1, "db_status", secret="X")).replace('"X"', "[" * 990 + "]" * 990).encode()


@pytest.mark.parametrize(
    ("body", "code", "beginning"),
    [
        (b'{"secret"', wire.PARSE_ERROR, "Parse error"),
        (SURROGATE, wire.PARSE_ERROR, "Parse error"),
        (DEEP, wire.PARSE_ERROR, "Parse error"),
        (json.dumps([STATUS, STATUS]).encode(), wire.INVALID_PARAMS, "Validation error"),
        (b'{"jsonrpc": "2.0", "id": 1, "secret": 1}', wire.INVALID_PARAMS, "Validation error"),
        (NO_OBJECT, wire.INVALID_PARAMS, "Validation error"),
    ],
)
def test_what_the_sdk_cannot_take_is_refused_in_our_words(guarded, body, code, beginning):
    session = guarded.open_session(**BEARER)
    reply = guarded.post(body, mcp_session_id=session, **BEARER)
    error = {"code": code, "message": door._OUR_WORDS[beginning]}
    assert (reply.status, reply.json) == (400, {"jsonrpc": "2.0", "id": None, "error": error})


def test_arguments_that_are_no_object_are_a_json_rpc_error(guarded):
    message = enveloped(STATUS)
    message["params"]["arguments"] = []
    assert guarded.post(message, **BEARER).json["error"]["code"] == wire.INVALID_PARAMS


@pytest.mark.parametrize(
    "spelled",
    [
        lambda text: text.replace('"LIMIT"', "NaN").encode(),
        lambda text: text.replace('"LIMIT"', "1e999").encode(),
        lambda text: text.replace('"LIMIT"', "7" * 5_000).encode(),
        lambda text: text.replace("LIMIT", "\\ud800").encode(),
        lambda text: text.encode("utf-16"),
    ],
    ids=["NaN", "infinity", "digits", "surrogate", "UTF-16"],
)
def test_json_that_is_read_in_two_ways_is_refused_by_somebody(guarded, spelled):
    message = call(1, "search_documents", query="q", top_k="LIMIT")
    modern = enveloped(message)
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call"}
    headers |= {"mcp_name": "search_documents"} | BEARER
    session = guarded.open_session(**BEARER)
    for reply in (
        guarded.post(spelled(json.dumps(modern)), **headers),
        guarded.post(spelled(json.dumps(message)), mcp_session_id=session, **BEARER),
    ):
        answer = reply.json
        if "result" in answer:
            assert answer["result"]["structuredContent"]["error"]["code"] == "E_VALIDATION"
        else:
            assert answer["error"]["code"] in (wire.PARSE_ERROR, wire.INVALID_PARAMS)
    assert is_served(guarded)


def test_a_call_without_a_session_or_in_one_that_is_none_is_refused(guarded):
    assert guarded.post(STATUS, **BEARER).status == 400
    assert guarded.post(STATUS, mcp_session_id="0" * 32, **BEARER).status == 404
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


def test_where_every_connection_is_busy_a_further_one_is_told_to_come_back(small):
    for sock in [small.socket() for _ in range(3)]:
        head = (HEAD % small.port).replace(b"content", b"expect: 100-continue\r\ncontent")
        sock.sendall(head)
        assert b"100" in sock.recv(100)
    said = b"".join(received(small.socket()))
    assert b" 503 " in said
    assert b"retry-after: 1" in said
