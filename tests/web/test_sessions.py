"""Sessions of the handshake era: so many at most, and not for ever."""

from tests.web.web import FAKE, Server, received
from tests.wire.process import initialize, request

PING = request(1, "ping")


def status(server, session, message=PING):
    return server.post(message, mcp_session_id=session).status


def test_the_session_used_longest_ago_makes_room(hasty):
    first, second, third = (hasty.open_session() for _ in range(3))
    assert status(hasty, first) == 200
    fourth = hasty.open_session()
    assert status(hasty, second) == 404
    assert [status(hasty, session) for session in (first, third, fourth)] == [200] * 3


def test_a_hundred_sessions_are_no_more_than_the_bound(hasty):
    sessions = [hasty.open_session() for _ in range(100)]
    assert [s for s in sessions if status(hasty, s) == 200] == sessions[-3:]


def test_an_ended_session_is_gone_and_makes_room(hasty):
    kept, other, ended = (hasty.open_session() for _ in range(3))
    connection = hasty.connect()
    connection.request("DELETE", "/mcp", headers={"mcp-session-id": ended})
    assert connection.getresponse().status == 200
    assert status(hasty, ended) == 404
    newer = hasty.open_session()
    assert [status(hasty, session) for session in (kept, other, newer)] == [200] * 3


def test_a_session_whose_end_was_refused_still_makes_room(hasty):
    first, second, third = (hasty.open_session() for _ in range(3))
    connection = hasty.connect()
    headers = {"mcp-session-id": first, "mcp-protocol-version": "2026-07-28"}
    connection.request("DELETE", "/mcp", headers=headers)
    assert connection.getresponse().status == 405
    assert status(hasty, first) == 200
    connection = hasty.connect()
    connection.request("DELETE", "/mcp", headers=headers | {"mcp-session-id": second})
    assert connection.getresponse().status == 405
    fourth = hasty.open_session()
    assert [status(hasty, s) for s in (first, second, third, fourth)] == [200, 404, 200, 200]


def test_a_refused_handshake_opens_none(hasty):
    kept, _, _ = (hasty.open_session() for _ in range(3))
    for _ in range(5):
        assert hasty.post(PING).status == 400
        assert hasty.post(initialize(), mcp_session_id="0" * 32).status == 404
    assert hasty.post(b"{", mcp_session_id=kept).status == 400
    assert status(hasty, kept) == 200


def test_an_idle_session_expires():
    with Server(*FAKE, "HEAD_SECONDS_MAX=0.6", "SESSION_IDLE_SECONDS=0.2") as server:
        session = server.open_session()
        assert status(server, session) == 200
        # A connection without a head is closed after three times as long.
        assert b"".join(received(server.socket())) == b""
        assert status(server, session) == 404
