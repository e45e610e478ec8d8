"""Each command says in one line what is wrong, and ends with the right status."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hadano import console
from hadano.connection import Connection
from tests.doors import kit

COMMANDS = ("backup", "dump", "restore", "bench")


def run(command: str, path: Path, folder: Path) -> "subprocess.CompletedProcess[bytes]":
    """The command on the database at `path`, with all else in order."""
    good = folder / "good.jsonl"
    good.write_bytes(kit.as_dump(kit.line()))
    arguments = {
        "backup": ("backup", "--db", path, "--out", folder),
        "dump": ("dump", "--db", path, "--out", "-"),
        "restore": ("dump", "--restore", "--db", path, "--in", good),
        "bench": ("bench", "--db", path, "--scale", 100, "--reps", 1),
    }
    return kit.command(*arguments[command])


def refused(ended: "subprocess.CompletedProcess[bytes]", code: str) -> str:
    """The message of a command that failed as commands must."""
    errors = ended.stderr.decode()
    assert ended.returncode == 1, errors
    assert ended.stdout == b""
    assert errors.startswith(f"{code}: ")
    assert errors.count("\n") == 1
    return errors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "out"
    path.mkdir()
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_text_file_is_refused_and_not_touched(command: str, tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("plain text, and enough of it to be more than a header\n" * 40)
    before = path.read_bytes()
    refused(run(command, path, folder), "E_INTEGRITY")
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_of_another_program_is_refused_and_not_touched(
    command: str, tmp_path: Path, folder: Path
) -> None:
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE docs(id)")
    before = path.read_bytes()
    refused(run(command, path, folder), "E_VALIDATION")
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["foreign.db", "out"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_of_a_newer_hadano_is_refused_and_not_touched(
    command: str, tmp_path: Path, folder: Path
) -> None:
    path = kit.store(tmp_path / "newer.db")
    with closing(Connection(str(path))) as db:
        db.run("PRAGMA user_version = 999")
    before = path.read_bytes()
    assert "newer" in refused(run(command, path, folder), "E_VALIDATION")
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_is_no_database(command: str, tmp_path: Path, folder: Path) -> None:
    assert "--db names a folder" in refused(run(command, tmp_path, folder), "E_VALIDATION")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_is_not_there_is_said_to_be_missing(
    command: str, tmp_path: Path, folder: Path
) -> None:
    path = tmp_path / "nowhere" / "notes.db"
    assert "does not exist" in refused(run(command, path, folder), "E_VALIDATION")


@pytest.mark.parametrize("command", ["backup", "dump"])
def test_what_is_not_there_is_not_made_to_be_copied(
    command: str, tmp_path: Path, folder: Path
) -> None:
    path = tmp_path / "missing.db"
    refused(run(command, path, folder), "E_VALIDATION")
    assert not path.exists()


@pytest.mark.parametrize("command", ["backup", "dump"])
def test_an_empty_file_is_no_database_to_copy(command: str, tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    refused(run(command, path, folder), "E_VALIDATION")
    assert path.read_bytes() == b""


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="modes do not bind an administrator"
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_read_only_file_is_read_and_not_written(
    command: str, tmp_path: Path, folder: Path
) -> None:
    path = kit.store(tmp_path / "fixed.db")
    path.chmod(0o400)
    before = path.read_bytes()
    ended = run(command, path, folder)
    assert ended.returncode == (0 if command in ("backup", "dump") else 1)
    assert b"Traceback" not in ended.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("out", ["nowhere", "a-file"])
def test_a_backup_wants_a_folder_that_is_there(tmp_path: Path, out: str) -> None:
    (tmp_path / "a-file").touch()
    path = kit.store(tmp_path / "notes.db")
    refused(kit.command("backup", "--db", path, "--out", tmp_path / out), "E_VALIDATION")


def test_a_backup_never_goes_over_its_source(tmp_path: Path) -> None:
    path = kit.store(tmp_path / "notes.db")
    before = path.read_bytes()
    refused(kit.command("backup", "--db", path, "--out", path), "E_VALIDATION")
    assert path.read_bytes() == before


@pytest.mark.parametrize("given", ["missing.jsonl", "."])
def test_a_restore_wants_a_dump_that_is_there(tmp_path: Path, given: str) -> None:
    target = tmp_path / "new.db"
    ended = kit.command("dump", "--restore", "--db", target, "--in", tmp_path / given)
    refused(ended, "E_VALIDATION")
    assert not target.exists()


@pytest.mark.parametrize(
    "name", ["a?b.db", "a#b.db", "a%42.db", "a b.db", "店.db", "x?mode=memory"]
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_odd_names_are_names_like_any_other(tmp_path: Path, folder: Path, name: str) -> None:
    path = kit.store(tmp_path / name)
    copied, dumped = run("backup", path, folder), run("dump", path, folder)
    assert (copied.returncode, dumped.returncode) == (0, 0)
    assert kit.dumped(Path(copied.stdout.decode().strip())) == kit.dumped(path)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "out"])


@pytest.mark.parametrize("command", ["backup", "dump", "bench"])
def test_help_is_no_failure(command: str) -> None:
    ended = kit.command(command, "--help")
    assert ended.returncode == 0
    assert f"python -m hadano.{command}".encode() in ended.stdout
    assert ended.stderr == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ("backup",),
        ("backup", "--db", "x"),
        ("backup", "--db", "x", "--out", "y", "z"),
        ("dump", "--db", "x"),
        ("dump", "--db", "x", "--in", "y"),
        ("dump", "--db", "x", "--restore", "--out", "y"),
        ("dump", "--db", "x", "--restore", "--in", "y", "--out", "z"),
        ("bench",),
        ("bench", "--db", "x", "--scale", "99"),
        ("bench", "--db", "x", "--reps", "many"),
        ("bench", "--db", "x", "--profile", "other"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_status_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ended = kit.command(*arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"usage: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_a_reader_that_goes_away_ends_a_dump_in_one_line(tmp_path: Path) -> None:
    big = ({"id": "big", "title": "big", "content": "word " * 100_000},)
    path = kit.store(tmp_path / "notes.db", big)
    with subprocess.Popen(
        [sys.executable, "-m", "hadano.dump", "--db", str(path), "--out", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as dumping:
        assert dumping.stdout is not None
        assert dumping.stderr is not None
        dumping.stdout.read(1)
        dumping.stdout.close()
        errors = dumping.stderr.read()
    assert dumping.returncode == 1
    assert errors.startswith(b"E_INTERNAL: ")
    assert errors.count(b"\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_restore_that_is_told_to_stop_changes_nothing(tmp_path: Path, which: int) -> None:
    path = kit.store(tmp_path / "notes.db")
    before = kit.dumped(path)
    with subprocess.Popen(
        [sys.executable, "-m", "hadano.dump", "--restore", "--db", str(path), "--in", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as restoring:
        assert restoring.stdin is not None
        assert restoring.stderr is not None
        text = kit.as_dump(*(kit.line(id=f"z{n:04d}", content="x" * 9_000) for n in range(100)))
        # More than a pipe holds: once it is written, the restore has read some of it.
        restoring.stdin.write(text)
        restoring.stdin.flush()
        restoring.send_signal(which)
        errors = restoring.stderr.read()
    assert restoring.returncode == 1
    assert errors == b"E_INTERNAL: interrupted before the end\n"
    assert kit.dumped(path) == before


UNDONE = """
import argparse, signal, sys
from hadano import console

def work(arguments):
    try:
        signal.raise_signal({which})
    finally:
        signal.raise_signal({which})
        print("undone")

status = console.run(argparse.ArgumentParser(), work, [])
signal.raise_signal({which})
sys.exit(status)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("which", ["signal.SIGINT", "signal.SIGTERM"])
def test_to_be_told_twice_to_stop_is_to_be_told_once(which: str) -> None:
    ended = subprocess.run([sys.executable, "-c", UNDONE.format(which=which)], capture_output=True)
    assert ended.returncode == 1
    assert ended.stdout == b"undone\n"
    assert ended.stderr == b"E_INTERNAL: interrupted before the end\n"


def test_the_bar_is_drawn_on_a_terminal_and_nowhere_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with console.Progress("copying", 10, "pages") as progress:
        progress.reach(5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with console.Progress("copying", 10, "pages") as progress:
        progress.reach(5)
    drawn = capsys.readouterr().err
    assert "copying [############............]  50%  5 of 10 pages, " in drawn
    assert drawn.endswith("\r\x1b[K")
