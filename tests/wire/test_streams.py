"""Only messages on standard output, in UTF-8, whatever the process is given to live with."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from tests.wire.process import FAKE, REAL, ROOT, Process, as_line, call, initialize, posix, request

TEXT = "検索 – ✓ ё 🎵"

LOCALES = {
    "a Japanese code page": {"PYTHONIOENCODING": "cp932"},
    "a Western code page": {"PYTHONIOENCODING": "cp1252:strict"},
    "no locale": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "UTF-16": {"PYTHONIOENCODING": "utf-16"},
}


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_text_survives_any_locale_and_line_end(environment, locale, line_end):
    with Process(*REAL, environment=environment | LOCALES[locale]) as server:
        for message in (initialize(), call(1, "store_document", id="a", title=TEXT, content=TEXT)):
            assert "result" in server.ask(as_line(message).rstrip() + line_end)
        found = server.ask(call(2, "get_document", id="a"))["result"]
        assert found["structuredContent"]["content"] == TEXT
        assert TEXT in found["content"][0]["text"]


def test_whatever_is_printed_goes_to_standard_error(fake):
    answer = fake.ask(call(1, "noise"))
    assert answer["result"]["structuredContent"]["heard"] == ""
    status, answers, errors = fake.finish(request(2, "ping"))
    assert (status, [answer["id"] for answer in answers]) == (0, [2])
    for said in ("a library speaks 検索", "and again", "and past Python", "a child speaks"):
        assert said in errors


def test_every_line_is_a_message_with_all_warnings_on(environment):
    with Process(
        sys.executable, "-X", "dev", "-W", "default", *REAL[1:], environment=environment
    ) as server:
        calls = [
            call(1, "store_document", title="t", content="some text", tags=["a"]),
            call(2, "store_document", title=1),
            call(3, "search_documents", query="text"),
            call(4, "search_knowledge", seed_chunk_ids=[999]),
            call(5, "query_graph", node="nobody", depth=9),
            call(6, "get_document", id="missing"),
            call(7, "delete_document", id="missing"),
            call(8, "db_status", no="such"),
            call(9, "no_such_tool"),
            b"no message\n",
        ]
        status, answers, errors = server.finish(initialize(), *calls)
    assert status == 0
    assert [answer["id"] for answer in answers] == ["init", 1, 2, 3, 4, 5, 6, 7, 8, 9, None]
    assert "Traceback" not in errors
    assert "Warning" not in errors


def test_nobody_reads_standard_error(fake):
    assert "result" in fake.ask(call(1, "flood"))
    assert fake.ask(request(2, "ping"))["id"] == 2
    assert fake.finish()[0] == 0


def closed(descriptors, command):
    return "sh", "-c", f"exec {shlex.join(command)} {descriptors}"


@posix
def test_standard_error_is_closed():
    with Process(*closed("2>&-", FAKE)) as server:
        calls = [call(1, "noise"), call(2, "flood"), call(3, "crash"), call(4, "echo")]
        status, answers, errors = server.finish(initialize(), *calls)
    assert status == 0
    assert [answer["id"] for answer in answers] == ["init", 1, 2, 3, 4]
    assert errors == ""


@posix
def test_a_closed_standard_descriptor_is_nothing_and_no_file():
    with Process(*closed("2>&-", FAKE)) as server:
        _, answers, _ = server.finish(initialize(), call(1, "errors"))
    assert answers[1]["result"]["structuredContent"]["null"] is True


@posix
@pytest.mark.parametrize("descriptors", ["<&-", "</dev/null", "<&- >&- 2>&-"])
def test_no_input_is_the_end_of_the_input(environment, descriptors):
    with Process(*closed(descriptors, REAL), environment=environment) as server:
        assert server.wait() == 0


@posix
def test_pipes_that_do_not_block_are_pipes_like_any_other():
    server_reads, to_server = os.pipe()
    from_server, server_writes = os.pipe()
    for end in (server_reads, server_writes):
        os.set_blocking(end, False)
    with subprocess.Popen(FAKE, stdin=server_reads, stdout=server_writes, cwd=ROOT) as server:
        os.close(server_reads)
        os.close(server_writes)
        with open(to_server, "wb") as requests, open(from_server, "rb") as answers:
            requests.write(as_line(initialize()) + as_line(call(1, "echo", text="x" * 200_000)))
            requests.flush()
            assert [json.loads(answers.readline())["id"] for _ in range(2)] == ["init", 1]
            requests.close()
            assert server.wait() == 0


@pytest.mark.parametrize("size", [65_000, 65_537, 1_000_000])
def test_a_long_document_comes_back_whole(real, size):
    text = ("0123456789" * size)[:size]
    real.ask(call(1, "store_document", id="long", title="t", content=text))
    assert (
        real.ask(call(2, "get_document", id="long"))["result"]["structuredContent"]["content"]
        == text
    )


def test_a_document_past_the_limit_is_the_halls_to_refuse(real):
    answer = real.ask(call(1, "store_document", title="t", content="x" * 5_000_000))
    assert answer["result"]["isError"] is True
    assert answer["result"]["structuredContent"]["error"]["code"] == "E_TOO_LARGE"


def test_the_largest_legal_document_fits_in_its_worst_spelling(real):
    content = "".join(f"\\u{1 + i % 0x7F:04x}" for i in range(1_048_576))
    line = as_line(call(1, "store_document", title="t", content="HERE")).replace(
        b"HERE", content.encode()
    )
    assert real.ask(line)["result"]["structuredContent"]["chunks"] == 1498


def test_every_pipelined_request_is_answered_in_order_however_many_wait(fake):
    small = [request(n, "ping") for n in range(3_000)]
    large = [call(n, "size", text="x" * 1_048_576) for n in range(3_000, 3_060)]
    status, answers, _ = fake.finish(*small, *large, request("last", "ping"))
    assert status == 0
    assert [answer["id"] for answer in answers] == [*range(3_060), "last"]


def test_the_last_line_needs_no_line_end(fake):
    status, answers, _ = fake.finish(as_line(request(1, "ping")).rstrip())
    assert (status, answers) == (0, [{"jsonrpc": "2.0", "id": 1, "result": {}}])
