"""Bodies that no client should send, through both doors: what one takes, the other takes too."""

import json

import pytest

from hadano import wire
from hadano.web import door
from tests.web.eras import ERAS, without_chance
from tests.wire import process
from tests.wire.process import Process, call, enveloped, initialize, request

#: Values of a parameter, as JSON or not quite.
VALUES = {
    "float without a fraction": b"1.0",
    "exponent": b"1E1",
    "negative zero": b"-0",
    "float": b"1.5",
    "integer of 400 digits": b"7" * 400,
    "integer of 5,000 digits": b"7" * 5_000,
    "float beyond all": b"1e999",
    "float below all": b"1e-999",
    "not a number": b"NaN",
    "infinity": b"-Infinity",
    "leading zero": b"01",
    "plus sign": b"+1",
    "hexadecimal": b"0x1",
    "no digit before the point": b".5",
    "single quotes": b"'1'",
    "comment": b"1/**/",
    "two values": b"1 2",
    "nothing": b"",
    "surrogate pair": b'"\\ud83c\\udfb5"',
    "half a pair": b'"\\ud83c"',
    "halves in the wrong order": b'"\\udfb5\\ud83c"',
    "half a pair in a name": b'{"\\udfb5": 1}',
    "NUL": b'"\\u0000"',
    "bare control character": b'"\x01"',
    "bare tab": b'"\t"',
    "unknown escape": b'"\\x41"',
    "no UTF-8": b'"\xff"',
    "overlong UTF-8": b'"\xc0\x80"',
    "half a pair in UTF-8": b'"\xed\xa0\xbc"',
    "cut UTF-8": b'"\xf0\x9f\x8e"',
    "noncharacter": '"\uffff"'.encode(),
    "unpaired quote": b'"',
    "comma at the end": b"[1,]",
    "nested 190 times": b"[" * 190 + b"]" * 190,
    "nested 210 times": b"[" * 210 + b"]" * 210,
    "nested 800 times": b"[" * 800 + b"]" * 800,
    "nested 100,000 times": b"[" * 100_000 + b"]" * 100_000,
    "nested without end": b"[" * 100_000,
    "same name twice": b'1, "top_k": 2',
    "same name spelled otherwise": b'1, "top\\u005fk": 0',
}

STATUS = request(1, "tools/call", name="db_status")
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"db_status"}}'
#: Whole messages of the handshake's era.
MESSAGES = {
    "byte order mark": b"\xef\xbb\xbf" + CALL,
    "UTF-16": CALL.decode().encode("utf-16"),
    "UTF-16 without a mark": CALL.decode().encode("utf-16-be"),
    "UTF-32": CALL.decode().encode("utf-32"),
    "Latin-1": CALL.replace(b"2.0", b"\xe9"),
    "white space": b" \t\r" + CALL + b"\r\t ",
    "other white space": b"\x0c" + CALL,
    "no-break space": b"\xc2\xa0" + CALL,
    "garbage behind": CALL + b"}",
    "two messages": CALL + CALL,
    "cut": CALL[:-1],
    "null": b"null",
    "number": b"7",
    "string": b'"tools/call"',
    "empty object": b"{}",
    "no version": CALL.replace(b'"jsonrpc":"2.0",', b""),
    "version 1.0": CALL.replace(b"2.0", b"1.0"),
    "version as a number": CALL.replace(b'"2.0"', b"2.0"),
    "id null": CALL.replace(b":1,", b":null,"),
    "id true": CALL.replace(b":1,", b":true,"),
    "id 1.5": CALL.replace(b":1,", b":1.5,"),
    "id 1.0": CALL.replace(b":1,", b":1.0,"),
    "id list": CALL.replace(b":1,", b":[],"),
    "id 0": CALL.replace(b":1,", b":0,"),
    "id negative": CALL.replace(b":1,", b":-1,"),
    "id of 30 digits": CALL.replace(b":1,", b":" + b"7" * 30 + b","),
    "id of 5,000 digits": CALL.replace(b":1,", b":" + b"7" * 5_000 + b","),
    "id empty": CALL.replace(b":1,", b':"",'),
    "id half a pair": CALL.replace(b":1,", b':"\\ud800",'),
    "id NUL": CALL.replace(b":1,", b':"\\u0000",'),
    "id twice": CALL.replace(b'"id":1,', b'"id":1,"id":2,'),
    "id twice, the second none": CALL.replace(b'"id":1,', b'"id":1,"id":null,'),
    "no method": CALL.replace(b'"method":"tools/call",', b""),
    "method a number": CALL.replace(b'"tools/call"', b"7"),
    "method empty": CALL.replace(b"tools/call", b""),
    "method unknown": CALL.replace(b"tools/call", b"tools/Call"),
    "method twice": CALL.replace(b'"method"', b'"method":"ping","method"'),
    "method twice, the first a call": CALL.replace(b"},", b'},"method":"ping",'),
    "method spelled with escapes": CALL.replace(b"method", b"m\\u0065thod"),
    "call spelled with escapes": CALL.replace(b"tools/call", b"tools\\/c\\u0061ll"),
    "name of a member in capitals": CALL.replace(b"method", b"Method"),
    "params a list": CALL.replace(b'{"name":"db_status"}', b"[]"),
    "params a string": CALL.replace(b'{"name":"db_status"}', b'"x"'),
    "params null": CALL.replace(b'{"name":"db_status"}', b"null"),
    "no params": CALL.replace(b',"params":{"name":"db_status"}', b""),
    "params twice": CALL.replace(b'"params"', b'"params":[],"params"'),
    "tool a number": CALL.replace(b'"db_status"', b"7"),
    "tool null": CALL.replace(b'"db_status"', b"null"),
    "tool unknown": CALL.replace(b"db_status", b"db_statuz"),
    "tool with NUL": CALL.replace(b"db_status", b"db_status\\u0000"),
    "arguments null": CALL.replace(b'"}', b'","arguments":null}'),
    "arguments a list": CALL.replace(b'"}', b'","arguments":[]}'),
    "arguments a string": CALL.replace(b'"}', b'","arguments":"{}"}'),
    "arguments a number": CALL.replace(b'"}', b'","arguments":1e999}'),
    "arguments twice": CALL.replace(b'"}', b'","arguments":7,"arguments":{}}'),
    "more members": CALL.replace(b'"id"', b'"x":[{}],"result":1,"error":2,"id"'),
    "meta a list": CALL.replace(b'"}', b'","_meta":[]}'),
    "meta null": CALL.replace(b'"}', b'","_meta":null}'),
    "meta with a progress token": CALL.replace(b'"}', b'","_meta":{"progressToken":"x"}}'),
    "meta with a wrong token": CALL.replace(b'"}', b'","_meta":{"progressToken":[]}}'),
    "meta with half a pair": CALL.replace(b'"}', b'","_meta":{"\\ud800":"\\udfff"}}'),
    "meta with half a pair in a value": CALL.replace(b'"}', b'","_meta":{"x":"\\udfff"}}'),
    "ping": b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "ping with meta": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{},"x":1}}',
    "cursor": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}',
}


def spelled(message, value):
    """A search with a value as it is written here."""
    return json.dumps(message).encode().replace(b'"HERE"', value)


SEARCH = call(1, "search_documents", query="q", top_k="HERE")
BODIES = {
    "handshake": MESSAGES | {name: spelled(SEARCH, value) for name, value in VALUES.items()},
    "envelope": {name: spelled(enveloped(SEARCH), value) for name, value in VALUES.items()},
}
HEADERS = {
    "mcp_protocol_version": "2026-07-28",
    "mcp_method": "tools/call",
    "mcp_name": "search_documents",
}


@pytest.fixture(scope="module")
def era(request):
    return request.param


@pytest.fixture(scope="module")
def doors(real, era, tmp_path_factory):
    """What each door answers to a body: standard output, and HTTP."""
    in_era, first = ERAS[era]
    end = in_era({"jsonrpc": "2.0", "id": "end", "method": "nothing", "params": {}})
    store = {"HADANO_DB": str(tmp_path_factory.mktemp("odd") / "store.db")}
    session = real.post(first).headers.get("mcp-session-id")
    headers = HEADERS if session is None else {"mcp_session_id": session}
    with Process(*process.REAL, environment=store) as stdio:
        stdio.ask(first)

        def answers(body):
            stdio.send(body + b"\n", end)
            lines = [stdio.line()]
            while b'"id":"end"' not in lines[-1]:
                lines.append(stdio.line())
            reply = real.post(body, **headers)
            return without_chance(b"".join(lines[:-1])), without_chance(reply.body)

        yield answers


@pytest.mark.parametrize(
    ("era", "name"), [(era, name) for era in BODIES for name in BODIES[era]], indirect=["era"]
)
def test_both_doors_say_the_same_to_an_odd_body(doors, era, name):
    piped, posted = doors(BODIES[era][name])
    assert posted == piped
    assert posted


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
@pytest.mark.parametrize("batch", [[STATUS], [STATUS, STATUS], [7]])
def test_over_http_there_are_no_batches(real, version, batch):
    session = real.post(initialize(version)).headers["mcp-session-id"]
    reply = real.post(batch, mcp_session_id=session)
    assert (reply.status, reply.json["error"]["code"]) == (400, wire.INVALID_REQUEST)
    assert "no batches over HTTP" in reply.json["error"]["message"]


#: What the SDK reads itself, with less patience: messages that are no calls.
UNREADABLE = [b'{"x": "\\ud800"}', b"7" * 5_000, b"[" * 250 + b"]" * 250]


@pytest.mark.parametrize("value", UNREADABLE)
def test_what_the_sdk_cannot_read_is_refused_in_our_words(real, value):
    session = real.open_session()
    body = spelled(request(1, "ping", secret="HERE"), value)
    reply = real.post(body, mcp_session_id=session)
    error = {"code": wire.PARSE_ERROR, "message": door._UNREADABLE_HERE}
    assert (reply.status, reply.json) == (400, {"jsonrpc": "2.0", "id": None, "error": error})


def test_a_call_is_nested_as_deep_as_pipes_take_it_or_refused(real):
    session = real.open_session()
    for depth in range(800, 1_000, 7):
        meta = spelled(
            request(1, "tools/call", name="db_status", _meta="HERE"), b"[" * depth + b"]" * depth
        )
        assert real.post(meta, mcp_session_id=session).status in (200, 400)
