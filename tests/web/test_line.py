"""Calls over HTTP: one at a time, so many in line, and taken back when nobody waits for them."""

import re
import signal

import pytest

from tests.web.web import FAKE, Server, begin, finish, received
from tests.wire.process import call, enveloped, notification, posix, request

ECHO = enveloped(call("echo", "echo"))
HOLD = enveloped(call("hold", "hold"))
WAIT = enveloped(call("wait", "wait"))
TIMING = r"wait;dur=(\d+\.\d\d), work;dur=(\d+\.\d\d)"


@pytest.fixture(scope="module")
def server():
    """A server in whose line three calls have room."""
    with Server(*FAKE, "CALLS_MAX=3") as server:
        yield server


@pytest.fixture
def mortal():
    """Another one, to be told to stop, and in haste to."""
    with Server(*FAKE, "CALLS_MAX=3", "HTTP_EXIT_SECONDS_MAX=1.0") as server:
        yield server


def begun(server, message, **headers):
    connection = server.connect()
    begin(connection, message, **headers)
    return connection


def full(server, message=ECHO):
    """Fills the line: gives the call that holds it up, and two that wait."""
    holding = begun(server, HOLD)
    server.hear("holding")
    waiting = [begun(server, message), begun(server, message)]
    session = server.open_session()
    for _ in range(10):  # Answered after both have come in.
        server.post(request(1, "ping"), mcp_session_id=session)
    return holding, waiting


def end(server, session):
    connection = server.connect()
    connection.request("DELETE", "/mcp", headers={"mcp-session-id": session})
    return finish(connection)


def release(server):
    server.send(b"\n")


def test_past_the_bound_a_call_is_told_to_come_back(server):
    holding, waiting = full(server)
    reply = server.post(ECHO)
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert "error" in reply.json
    release(server)
    assert [finish(connection).status for connection in [holding, *waiting]] == [200] * 3
    assert server.post(ECHO).status == 200


def test_a_full_line_stops_calls_alone(server):
    session = server.open_session()
    holding, waiting = full(server)
    listed = server.post(request(1, "tools/list"), mcp_session_id=session)
    assert len(listed.json["result"]["tools"]) == 9
    assert server.post(request(2, "ping"), mcp_session_id=session).status == 200
    assert end(server, session).status == 200
    release(server)
    assert [finish(connection).status for connection in [holding, *waiting]] == [200] * 3


def test_waiting_and_working_are_reported_apart(server):
    holding = begun(server, HOLD)
    server.hear("holding")
    behind = begun(server, ECHO)
    session = server.open_session()
    for _ in range(20):
        server.post(request(1, "ping"), mcp_session_id=session)
    release(server)
    assert finish(holding).status == 200
    timing = finish(behind).headers["server-timing"]
    waited, worked = map(float, re.fullmatch(TIMING, timing).groups())
    assert worked < waited


def test_a_client_that_goes_away_interrupts_its_call(server):
    gone = begun(server, WAIT)
    server.hear("waiting")
    gone.close()
    server.hear("cut")
    assert server.post(ECHO).status == 200


def test_a_client_of_the_handshake_era_that_goes_away_does_so_too(server):
    gone = begun(server, call(1, "wait"), mcp_session_id=server.open_session())
    server.hear("waiting")
    gone.close()
    server.hear("cut")
    assert server.post(ECHO).status == 200


def test_a_call_whose_client_has_gone_before_its_turn_never_runs(server):
    session = server.open_session()
    holding, waiting = full(server, HOLD)
    for connection in waiting:
        connection.close()
    for _ in range(10):  # Answered after the server has seen that.
        server.post(request(1, "ping"), mcp_session_id=session)
    release(server)
    assert finish(holding).structured["cut"] is False
    # Nothing else has begun, or it would wait for a line that nobody sends.
    assert server.post(ECHO).status == 200


def test_a_client_can_take_its_call_back(server):
    session = server.open_session()
    calling = begun(server, call(7, "wait"), mcp_session_id=session)
    server.hear("waiting")
    reason = notification("notifications/cancelled", requestId=7)
    assert server.post(reason, mcp_session_id=session).status == 202
    server.hear("cut")
    assert finish(calling).json["error"]["message"] == "Request cancelled"


def test_a_client_cannot_take_back_the_call_of_another(server):
    calling = begun(server, call(7, "hold"), mcp_session_id=server.open_session())
    server.hear("holding")
    other = server.open_session()
    server.post(notification("notifications/cancelled", requestId=7), mcp_session_id=other)
    server.post(request(1, "ping"), mcp_session_id=other)
    release(server)
    assert finish(calling).structured["cut"] is False


@pytest.mark.parametrize("ident", [7, "7"])
def test_an_id_that_is_being_answered_gets_no_other_answer(server, ident):
    session = server.open_session()
    calling = begun(server, call(7, "hold"), mcp_session_id=session)
    server.hear("holding")
    again = server.post(call(ident, "echo"), mcp_session_id=session)
    assert (again.status, again.json["id"]) == (400, ident)
    elsewhere = begun(server, call(ident, "echo"), mcp_session_id=server.open_session())
    release(server)
    assert finish(calling).structured["cut"] is False
    assert "said" in finish(elsewhere).structured
    assert server.post(call(ident, "echo"), mcp_session_id=session).status == 200


def test_a_session_that_is_ended_interrupts_its_call(server):
    session = server.open_session()
    calling = begun(server, call(7, "wait"), mcp_session_id=session)
    server.hear("waiting")
    assert end(server, session).status == 200
    server.hear("cut")
    assert finish(calling).status >= 400


def test_a_slow_reader_keeps_no_place(server):
    big = enveloped(call(1, "echo", text="x" * 6_000_000))
    for _ in range(4):
        begin(server.connect(), big)
    assert [server.post(ECHO).status for _ in range(3)] == [200] * 3


@posix
def test_a_signal_lets_the_call_in_hand_finish_and_turns_the_others_away(mortal):
    holding, waiting = full(mortal)
    mortal.signal(signal.SIGTERM)
    replies = [finish(connection) for connection in waiting]
    assert [(r.status, r.headers["retry-after"]) for r in replies] == [(503, "1")] * 2
    release(mortal)
    assert finish(holding).structured["cut"] is False
    assert mortal.wait() == 0
    mortal.hear("closed")


@posix
def test_a_signal_turns_away_what_is_still_on_its_way_in(mortal):
    sock = mortal.socket()
    head = f"POST /mcp HTTP/1.1\r\nhost: localhost:{mortal.port}\r\ncontent-length: 9\r\n"
    sock.sendall(head.encode() + b"expect: 100-continue\r\n\r\n")
    assert b" 100 " in sock.recv(100)
    mortal.signal(signal.SIGTERM)
    said = b"".join(received(sock))
    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in said
    sock.close()
    status, _, errors = mortal.finish()
    assert (status, errors.strip()) == (0, "closed")


@posix
def test_a_signal_ends_an_idle_server_with_its_sessions_and_connections(mortal):
    mortal.open_session()
    mortal.post(ECHO)
    idle = mortal.socket()
    mortal.signal(signal.SIGINT)
    assert mortal.wait() == 0
    assert idle.recv(1) == b""
    mortal.hear("closed")


@posix
def test_a_call_that_does_not_end_does_not_keep_the_server(mortal):
    begun(mortal, WAIT)
    mortal.hear("waiting")
    mortal.signal(signal.SIGTERM)
    assert mortal.wait() == 0
