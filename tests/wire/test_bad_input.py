"""Whatever a line holds, the next request is served."""

import os
import sys
from pathlib import Path

import pytest

from hadano import limits
from tests.wire.process import FAKE, Process, as_line, call, initialize, notification, request

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
LONG = 20 * 1_048_576

#: A line, and the code and the id of the error that it gets.
REFUSED = {
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE_ERROR, None),
    "UTF-8 of a surrogate": (
        b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
        PARSE_ERROR,
        None,
    ),
    "UTF-16": ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), PARSE_ERROR, None),
    "brackets without end": (b"[" * 100_000, PARSE_ERROR, None),
    "nested too deeply": (b"[" * 100_000 + b"]" * 100_000, PARSE_ERROR, None),
    "half a message": (b'{"jsonrpc":"2.0","id":1,', PARSE_ERROR, None),
    "two messages": (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', PARSE_ERROR, None),
    "no JSON": (b"hello", PARSE_ERROR, None),
    "a NUL": (b"\0", PARSE_ERROR, None),
    "NaN": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
        PARSE_ERROR,
        None,
    ),
    "Infinity": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}',
        PARSE_ERROR,
        None,
    ),
    "a text": (b'"ping"', INVALID_REQUEST, None),
    "a number": (b"7", INVALID_REQUEST, None),
    "a 5,000-digit number": (b"7" * 5_000, INVALID_REQUEST, None),
    "null": (b"null", INVALID_REQUEST, None),
    "an empty object": ({}, INVALID_REQUEST, None),
    "an empty batch": ([], INVALID_REQUEST, None),
    "a batch": ([request(1, "ping")], INVALID_REQUEST, None),
    "no version": ({"id": 1, "method": "ping"}, INVALID_REQUEST, 1),
    "version 1.0": ({"jsonrpc": "1.0", "id": "a", "method": "ping"}, INVALID_REQUEST, "a"),
    "no method": ({"jsonrpc": "2.0", "id": 1}, INVALID_REQUEST, 1),
    "a method that is no text": (request(1, 5), INVALID_REQUEST, 1),
    "params that are a list": (request(1, "ping") | {"params": []}, INVALID_PARAMS, 1),
    "params that are a text": (request(1, "ping") | {"params": "x"}, INVALID_PARAMS, 1),
    "an id that is null": (request(None, "ping"), INVALID_REQUEST, None),
    "an id that is a fraction": (request(1.5, "ping"), INVALID_REQUEST, None),
    "an id that is a boolean": (request(True, "ping"), INVALID_REQUEST, None),
    "an id that is a list": (request([1], "ping"), INVALID_REQUEST, None),
    "an id that is an object": (request({}, "ping"), INVALID_REQUEST, None),
    "an id of 5,000 digits": (
        b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"7" * 5_000),
        INVALID_REQUEST,
        None,
    ),
    "an id that is a lone surrogate": (request("\ud83d", "ping"), INVALID_REQUEST, None),
    "a line of 20 MB, its id in front": (
        b'{"jsonrpc":"2.0","id":7,"method":"%s"}' % (b"x" * LONG),
        INVALID_REQUEST,
        7,
    ),
    "a line of 20 MB, its id at the end": (
        b'{"method":"%s","jsonrpc": "2.0", "id": "seven" }\r' % (b"x" * LONG),
        INVALID_REQUEST,
        "seven",
    ),
    "a line of 20 MB, its id inside": (
        b'{"method":"tools/call","id":7,"params":{"x":"%s"},"jsonrpc":"2.0"}' % (b"x" * LONG),
        INVALID_REQUEST,
        None,
    ),
    "a line of 20 MB that only quotes an id": (
        b'{"method":"%s\\",\\"id\\":7}"}' % (b"x" * LONG),
        INVALID_REQUEST,
        None,
    ),
    "a line of 20 MB whose id is no UTF-8": (
        b'{"jsonrpc":"2.0","id":"\xff","method":"%s"}' % (b"x" * LONG),
        INVALID_REQUEST,
        None,
    ),
    "20 MB of nothing": (b" " * LONG, INVALID_REQUEST, None),
}


def ended(line):
    return line + b"\n" if isinstance(line, bytes) else line


@pytest.fixture(scope="module")
def server():
    with Process(*FAKE) as process:
        process.ask(initialize())
        yield process


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_line_gets_its_error_and_the_next_request_is_served(server, name):
    line, code, ident = REFUSED[name]
    answer = server.ask(ended(line))
    assert (answer["error"]["code"], answer["id"]) == (code, ident)
    assert server.ask(request("next", "ping")) == {"jsonrpc": "2.0", "id": "next", "result": {}}


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b" \t\r\n",
        as_line(notification("notifications/no/such")),
        as_line(notification("ping")),
        as_line({"jsonrpc": "2.0", "method": "notifications/initialized", "params": [1]}),
        as_line({"jsonrpc": "2.0", "id": 1, "result": {}}),
        as_line({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": ""}}),
    ],
)
def test_a_blank_line_a_notification_and_a_response_get_no_answer(server, line):
    assert server.ask(line + as_line(request("next", "ping")))["id"] == "next"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (b'{"text":"\\ud83d"}', "{'text': '\\ud83d'}"),
        (b'{"text":"\\ud83d\\ude00"}', "{'text': '😀'}"),
        (b'{"n":%s}' % (b"7" * 5_000), "{'n': inf}"),
        (b'{"n":1e999}', "{'n': inf}"),
        (b'{"n":1,"n":2}', "{'n': 2}"),
        (b'["no","object"]', "['no', 'object']"),
        (b'"text"', "'text'"),
        (b"null", "None"),
    ],
)
def test_what_json_permits_reaches_the_hall(server, arguments, said):
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":%s}}'
    answer = server.ask(line % arguments + b"\r\n")
    assert answer["result"]["structuredContent"]["said"] == said


@pytest.mark.parametrize("ident", [0, -1, 2**53, 2**64, 2**70, "", "7", "検索", "x" * 10_000])
def test_an_id_comes_back_as_it_was_sent(server, ident):
    assert server.ask(request(ident, "ping")) == {"jsonrpc": "2.0", "id": ident, "result": {}}


def test_an_error_quotes_a_name_that_cannot_be_encoded(server):
    answer = server.ask(call(1, "\ud83d"))
    assert answer["error"] == {"code": INVALID_PARAMS, "message": "Unknown tool: \ud83d"}
    assert server.ask(request(2, "\ud83d"))["error"]["data"] == "\ud83d"


def sized(bytes_in_line):
    empty = len(as_line(call(1, "size", text="")))
    return as_line(call(1, "size", text="x" * (bytes_in_line - empty + 1)))


def test_the_longest_line_is_served_and_one_byte_more_is_refused(server):
    longest = sized(limits.JSON_LINE_BYTES_MAX)
    assert len(longest) == limits.JSON_LINE_BYTES_MAX + len(b"\n")
    assert "result" in server.ask(longest)
    assert server.ask(sized(limits.JSON_LINE_BYTES_MAX + 1))["error"]["code"] == INVALID_REQUEST


def test_half_of_a_surrogate_pair_in_a_name_is_no_bug(server):
    for method in ("tools/call", "tools/list", "ping"):
        answer = server.ask(request(1, method, **{"\ud800": 1}))
        assert "result" in answer or answer["error"]["code"] == INVALID_PARAMS
    assert server.ask(request(2, "ping"))["result"] == {}


def test_a_bug_is_an_internal_error_that_shows_nothing(server):
    answer = server.ask(call(1, "crash"))
    assert answer["error"] == {"code": -32603, "message": "Internal error"}
    server.hear("ZeroDivisionError: secret")


def test_a_batch_is_served_in_the_one_version_that_has_batches():
    with Process(*FAKE) as server:
        server.ask(initialize("2025-03-26"))
        batch = [call(1, "echo"), notification("x"), request(2, "ping"), {"id": 3}, call(4, "fail")]
        answers = server.ask(batch)
        assert [answer["id"] for answer in answers] == [1, 2, 3, 4]
        assert answers[2]["error"]["code"] == INVALID_REQUEST
        server.send([notification("x")])
        assert server.ask(request(5, "ping"))["id"] == 5
        assert server.ask([])["error"]["code"] == INVALID_REQUEST


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's own account of memory")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="AddressSanitizer keeps what was freed, to see who reads it still",
)
def test_a_line_without_end_is_not_held_in_memory():
    def peak_kib(process):
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])

    with Process(*FAKE) as server:
        server.ask(initialize())
        server.ask(sized(limits.JSON_LINE_BYTES_MAX))
        before = peak_kib(server)
        for _ in range(200):
            server.send(b"x" * 1_048_576)
        assert server.ask(b"\n")["error"]["code"] == INVALID_REQUEST
        assert peak_kib(server) - before < 16 * 1024
