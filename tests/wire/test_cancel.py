"""Cancelled requests get no answer, all others get theirs, in order."""

import pytest

from hadano.server import Desk
from hadano.wire import Line, Request, cancelled, read
from tests.wire.process import as_line, call, initialize, notification, request


def cancel(ident):
    return notification("notifications/cancelled", requestId=ident, reason="a test")


def test_a_running_call_is_interrupted_and_gets_no_answer(fake):
    fake.send(call(1, "wait"))
    fake.hear("waiting")
    fake.send(cancel(1))
    assert fake.ask(request(2, "ping"))["id"] == 2


def test_a_waiting_request_is_never_begun(fake):
    fake.send(call(1, "wait"), call(2, "wait"), request(3, "tools/list"), request(4, "ping"))
    fake.hear("waiting")
    fake.send(cancel(3), cancel(2), cancel(1))
    assert fake.receive()["id"] == 4
    status, answers, errors = fake.finish()
    assert (status, answers, errors) == (0, [], "closed\n")


def test_a_cancellation_that_comes_late_or_means_nothing_changes_nothing(fake):
    fake.ask(call(1, "echo"))
    fake.send(cancel(1), cancel("unknown"), cancel(None), cancel({}), cancel(1.0))
    fake.send(notification("notifications/cancelled"), request(9, "notifications/cancelled"))
    assert fake.receive()["error"]["code"] == -32601
    assert "result" in fake.ask(call(1, "echo"))


def test_a_handshake_cannot_be_cancelled(fake):
    fake.send(call(1, "wait"), initialize(ident=2))
    fake.hear("waiting")
    fake.send(cancel(2), cancel(1))
    assert fake.receive()["id"] == 2


def test_an_id_sent_as_text_means_the_number(fake):
    fake.send(call(1, "wait"))
    fake.hear("waiting")
    fake.send(cancel("1"))
    assert fake.ask(request(2, "ping"))["id"] == 2


@pytest.mark.parametrize("ident", [True, 1.0, None, [1], {"id": 1}])
def test_no_other_type_means_a_request(ident):
    (message,) = read(as_line(cancel(ident))).messages
    assert cancelled(message) is None


def test_a_call_in_a_batch_is_cancelled_alone(fake):
    fake.ask(initialize("2025-03-26"))
    fake.send([request(1, "ping"), call(2, "wait"), call(3, "wait"), request(4, "ping")])
    fake.hear("waiting")
    fake.send(cancel(3), cancel(2))
    assert [answer["id"] for answer in fake.receive()] == [1, 4]


def test_an_interrupt_never_reaches_the_next_call():
    interrupted = []
    desk = Desk(lambda: interrupted.append(desk))
    first, second = Request(1, "tools/call", {}), Request(2, "tools/call", {})
    desk.put(Line([first]), 1)
    desk.put(Line([second]), 1)
    assert desk.take().messages == [first]
    assert desk.begin(first)
    assert desk.finish(first)
    desk.cancel(1)
    assert desk.take().messages == [second]
    assert desk.begin(second)
    desk.cancel(1)
    assert interrupted == []
    desk.cancel(2)
    assert interrupted == [desk]
    assert not desk.finish(second)


def test_two_hundred_cancelled_stores_are_complete_or_absent(real):
    content = "a document that takes its time. " * 625
    for n in range(200):
        real.send(
            call(f"store {n}", "store_document", id=f"doc-{n}", title="t", content=content),
            # Takes the reader longer each time, so that the cancellation comes before the store
            # has begun, while it runs, and after its answer.
            notification("notifications/padding", padding="x" * (10_000 * n)),
            cancel(f"store {n}"),
            call(f"get {n}", "get_document", id=f"doc-{n}"),
        )
        answer = real.receive()
        stored = answer["id"] == f"store {n}"
        if stored:
            answer = real.receive()
        assert answer["id"] == f"get {n}"
        found = answer["result"]["structuredContent"]
        if stored or "error" not in found:
            assert found["content"] == content
        else:
            assert found["error"]["code"] == "E_NOT_FOUND"
    stored = real.ask(call("more", "store_document", title="t", content="still writable"))
    assert stored["result"]["isError"] is False
