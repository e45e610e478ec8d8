"""The HTTP door costs standard input and output nothing: none of it is imported there."""

import os
import subprocess
import sys

from tests.wire.process import ROOT, as_line, call, initialize

#: What the door brings with it; `http` and `ssl` are the standard library's.
ABSENT = {"mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "anyio", "asyncio", "http", "ssl"}


def test_a_server_on_pipes_imports_nothing_of_the_http_door(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "hadano.server"],
        input=as_line(initialize()) + as_line(call(1, "db_status")),
        env=os.environ | {"HADANO_DB": str(tmp_path / "store.db")},
        capture_output=True,
        cwd=ROOT,
    )
    assert ran.stdout.count(b"\n") == 2
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.decode().splitlines()}
    assert "hadano.wire" in imported
    assert {name.partition(".")[0] for name in imported} & ABSENT == set()
    assert not [name for name in imported if name.startswith("hadano.web")]


def test_making_a_token_waits_for_no_library(tmp_path):
    command = [sys.executable, "-X", "importtime", "-m", "hadano.server", "--make-token"]
    ran = subprocess.run([*command, tmp_path / "token"], capture_output=True, cwd=ROOT, text=True)
    assert ran.stdout == f"{tmp_path / 'token'}\n"
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert {name.partition(".")[0] for name in imported} & {"mcp", "uvicorn", "asyncio"} == set()
