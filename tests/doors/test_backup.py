"""Backup: a name that stands is a good copy, whatever goes on meanwhile."""

import os
import shutil
import stat
import subprocess
import sys
from contextlib import closing
from datetime import tzinfo
from pathlib import Path

import pytest

from hadano import backup, files, status
from hadano.connection import Connection
from hadano.errors import Code, HadanoError
from hadano.service import Service
from hadano.types import Settings
from tests.doors import kit

#: Stores documents 0, 1, 2, ... as fast as it can until its input ends; a line after each.
WRITER = """
import sys, threading
from contextlib import closing
from datetime import tzinfo
from hadano.service import Service
from hadano.types import Settings

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
with closing(Service(Settings(path=sys.argv[1]))) as service:
    n = 0
    while not ended.is_set():
        given = {"id": f"{n:06d}", "title": f"number {n}", "content": f"text of number {n}"}
        assert not service.call("store_document", given).is_error
        n += 1
        print(n, flush=True)
"""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "copies"
    folder.mkdir()
    return folder


def test_a_copy_stands_alone_and_holds_every_document(source: Path, out: Path) -> None:
    copy = Path(backup.backup(str(source), str(out)))
    assert os.listdir(out) == [copy.name]
    assert kit.dumped(copy) == kit.dumped(source)


def test_what_is_only_in_the_log_is_in_the_copy(source: Path, out: Path) -> None:
    with closing(Service(Settings(path=str(source)))) as service:
        kit.call(service, "store_document", id="new", title="new", content="in the log alone")
        copy = Path(backup.backup(str(source), str(out)))
    assert b"in the log alone" in b"".join(kit.dumped(copy))
    assert not list(out.glob("*-wal"))


def test_the_name_says_what_was_copied_and_when(source: Path, out: Path) -> None:
    copy = Path(backup.backup(str(source), str(out)))
    name, stamp = copy.stem.split("-")
    assert name == "notes"
    assert copy.suffix == ".db"
    assert len(stamp) == len("20260131T235959Z")
    assert stamp[8] == "T"
    assert stamp[-1] == "Z"


def test_copies_of_one_second_do_not_collide(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Still(files.datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Still":
            return cls(2026, 1, 31, 23, 59, 59, tzinfo=tz)

    monkeypatch.setattr(files, "datetime", Still)
    names = [os.path.basename(backup.backup(str(source), str(out))) for _ in range(3)]
    assert names == [f"notes-20260131T235959Z{again}.db" for again in ("", "-2", "-3")]
    assert sorted(os.listdir(out)) == sorted(names)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_copy_is_for_its_owner_alone(source: Path, out: Path) -> None:
    before = os.umask(0o022)
    try:
        copy = backup.backup(str(source), str(out))
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(copy).st_mode) == 0o600


def test_a_log_that_a_crash_left_is_copied_and_left_as_it_is(source: Path, out: Path) -> None:
    crashed = source.with_name("crashed.db")
    with (
        closing(Service(Settings(path=str(source)))) as service,
        service._housekeeper.copying,  # which would copy the log back between the two
    ):
        kit.call(service, "store_document", id="new", title="new", content="not yet copied back")
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", f"{crashed}{suffix}")
    before = [Path(f"{crashed}{suffix}").read_bytes() for suffix in ("", "-wal")]
    copy = backup.backup(str(crashed), str(out))
    assert before == [Path(f"{crashed}{suffix}").read_bytes() for suffix in ("", "-wal")]
    assert b"not yet copied back" in b"".join(kit.dumped(Path(copy)))


def test_a_source_that_nobody_has_open_is_left_without_a_trace(source: Path, out: Path) -> None:
    before = source.read_bytes()
    backup.backup(str(source), str(out))
    assert source.read_bytes() == before
    assert sorted(os.listdir(source.parent)) == ["copies", "notes.db"]


def test_a_write_between_two_steps_neither_starts_the_copy_over_nor_gets_into_it(
    source: Path, out: Path
) -> None:
    before = kit.dumped(source)
    copy = out / "copy.db"
    copy.touch()
    with (
        closing(Connection(str(source), reading=True)) as reader,
        closing(Service(Settings(path=str(source)))) as writer,
    ):
        reached = []
        for done, _ in reader.copy(str(copy), 1):
            reached.append(done)
            kit.call(writer, "store_document", id=f"z{done}", title="z", content="later")
    assert reached == list(range(1, reached[-1] + 1))
    assert kit.dumped(copy) == before


def test_while_another_process_writes_without_a_pause_the_copy_is_a_prefix_of_its_writes(
    tmp_path: Path, out: Path
) -> None:
    source = kit.store(tmp_path / "busy.db", ())
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for _ in range(10):
            writer.stdout.readline()
        copy = Path(backup.backup(str(source), str(out)))
        after = [writer.stdout.readline() for _ in range(10)]
        writer.stdin.close()
        written = int([*after, *writer.stdout.readlines()][-1])
    assert writer.returncode == 0
    copied = len(kit.dumped(copy))
    assert 10 <= copied <= written
    assert kit.dumped(copy) == kit.dumped(source)[:copied]
    with closing(Connection(str(copy), reading=True)) as db:
        assert db.structure_holds()
        assert status.index_agrees(db)


def test_a_damaged_source_gives_no_copy(source: Path, out: Path) -> None:
    with closing(Connection(str(source))) as db:
        db.run("DELETE FROM chunks WHERE seq = 1")
    with pytest.raises(HadanoError) as refused:
        backup.backup(str(source), str(out))
    assert refused.value.code is Code.INTEGRITY
    assert os.listdir(out) == []


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
def test_a_full_disk_leaves_nothing_behind(source: Path, out: Path) -> None:
    import resource

    half = source.stat().st_size // 2
    ended = kit.command(
        "backup",
        "--db",
        source,
        "--out",
        out,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (half, half)),
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"E_INTERNAL: the disk ")
    assert ended.stderr.count(b"\n") == 1
    assert os.listdir(out) == []


def test_a_file_of_the_copys_name_is_never_overwritten(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file system has no links."""

    def no_links(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    first = Path(backup.backup(str(source), str(out)))
    held = first.read_bytes()
    taken = [out / first.name.replace(".db", f"-{n}.db") for n in range(2, 60)]
    for path in taken:
        path.write_bytes(b"mine")
    backup.backup(str(source), str(out))
    assert first.read_bytes() == held
    assert all(path.read_bytes() == b"mine" for path in taken)
