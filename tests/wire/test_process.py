"""How the server starts, explains itself and ends."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import hadano
from tests.wire.process import REAL, ROOT, Process, as_line, call, initialize, posix, request

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def test_requests_read_before_the_end_of_input_are_answered(environment):
    with Process(*REAL, environment=environment) as server:
        status, answers, errors = server.finish(
            initialize(), call(1, "db_status"), request(2, "tools/list")
        )
    assert (status, errors) == (0, "")
    assert [answer["id"] for answer in answers] == ["init", 1, 2]


def test_the_write_ahead_log_is_empty_afterwards(real, database):
    real.ask(call(1, "store_document", title="t", content="c"))
    assert real.finish()[0] == 0
    assert not Path(f"{database}-wal").exists()


@posix
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_an_idle_server(fake, number):
    fake.signal(number)
    assert fake.wait() == 0
    fake.hear("closed")


@posix
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_interrupts_the_call_that_runs(fake, number):
    fake.send(call(1, "wait"), call(2, "wait"))
    fake.hear("waiting")
    fake.signal(number)
    assert fake.wait() == 0
    fake.hear("closed")


@posix
def test_a_signal_ends_a_server_whose_answers_nobody_reads(fake):
    fake.send(call(1, "echo", text="x" * 1_000_000))
    fake.peek()
    fake.signal(signal.SIGTERM)
    assert fake.wait() == 0


@posix
def test_a_signal_in_the_middle_of_a_store_leaves_it_complete_or_absent(real, database):
    real.send(
        request(1, "ping"), call(2, "store_document", id="a", title="t", content="x y " * 262_144)
    )
    assert real.receive()["id"] == 1
    real.signal(signal.SIGTERM)
    assert real.wait() == 0
    with sqlite3.connect(database) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = db.execute("SELECT length(content) FROM docs").fetchall()
        chunks = db.execute("SELECT count(*) FROM chunks").fetchone()
    db.close()
    assert (found, chunks) in [([], (0,)), ([(1_048_576,)], (1_498,))]


def test_a_client_that_reads_no_more_ends_the_server(fake):
    fake.stop_reading()
    fake.send(request(1, "ping"))
    assert fake.wait() == 0
    fake.hear("closed")


PARENT = """
import subprocess, sys
server = subprocess.Popen(
    [sys.executable, "-m", "tests.wire.fake"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
server.stdin.write(sys.stdin.buffer.readline())
server.stdin.flush()
sys.stdout.buffer.write(server.stdout.readline())
sys.stdout.flush()
server.wait()
"""


@posix
def test_a_server_whose_parent_was_killed_ends():
    with Process(sys.executable, "-c", PARENT) as parent:
        assert parent.ask(initialize())["id"] == "init"
        parent.signal(signal.SIGKILL)
        # The server has inherited this pipe: it ends when both have.
        status, _, errors = parent.finish()
    assert status == -signal.SIGKILL
    assert errors == "closed\n"


@posix
def test_in_a_terminal_it_explains_itself(environment, database):
    import pty

    terminal, side = pty.openpty()
    server = subprocess.Popen(
        REAL,
        stdin=side,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
    )
    os.write(terminal, as_line(request(1, "ping")) + b"\x04")
    out, err = server.communicate(timeout=60)
    os.close(side)
    os.close(terminal)
    said = err.decode()
    entry = json.loads(said[said.index("{") : said.rindex("}") + 1])["mcpServers"]["hadano"]
    assert server.returncode == 0
    assert json.loads(out)["id"] == 1
    assert f"Hadano {hadano.__version__}" in said
    assert entry["args"] == ["-m", "hadano.server"]
    assert Path(entry["command"]).samefile(sys.executable)
    assert entry["env"] == {"HADANO_DB": str(database)}


@pytest.mark.parametrize(
    ("arguments", "status", "out", "err"),
    [
        (["--version"], 0, f"hadano {hadano.__version__}\n", ""),
        (["--help"], 0, "usage: python -m hadano.server", ""),
        (["--no-such"], 2, "", "usage: python -m hadano.server"),
        (["stray"], 2, "", "usage: python -m hadano.server"),
    ],
)
def test_its_command_line(arguments, status, out, err):
    done = subprocess.run([*REAL, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == status
    assert done.stdout.startswith(out)
    assert done.stderr.startswith(err)
    assert bool(done.stdout) == bool(out)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HADANO_EMBEDDINGS", "on"),
        ("HADANO_REQUEST_LOG", ""),
        ("HADANO_DB", " "),
        ("HADANO_DB", "no/such/folder/x.db"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_in_one_line(environment, name, value):
    with Process(*REAL, environment=environment | {name: value}) as server:
        status, answers, errors = server.finish()
    assert (status, answers) == (2, [])
    assert errors.startswith(name)
    assert errors.count("\n") == 1


def test_a_refusal_is_written_in_utf8(environment):
    settings = environment | {"HADANO_EMBEDDINGS": "検索", "PYTHONIOENCODING": "ascii"}
    with Process(*REAL, environment=settings) as server:
        status, _, errors = server.finish()
    assert status == 2
    assert "検索" in errors


@posix
def test_a_refusal_stays_off_standard_output_when_standard_error_is_closed(environment):
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *REAL]
    with Process(*command, environment=environment | {"HADANO_EMBEDDINGS": "on"}) as server:
        assert server.finish() == (2, [], "")


def test_a_file_that_is_no_database_is_refused_in_one_line(environment, database):
    database.write_bytes(b"a letter to a friend" * 1_000)
    with Process(*REAL, environment=environment) as server:
        status, answers, errors = server.finish()
    assert (status, answers) == (1, [])
    assert errors.startswith("E_INTEGRITY: ")
    assert errors.count("\n") == 1
    assert database.read_bytes() == b"a letter to a friend" * 1_000
