"""Servers, restores and backups killed at any moment, and write-ahead logs torn anywhere."""

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hadano.dump import restore
from tests.doors import kit
from tests.reliability.disk import image
from tests.reliability.mixed import WORDS, Contents, applied, content, possible, write
from tests.reliability.sound import quiet, state_of
from tests.tools.store import Store, until
from tests.wire.process import REAL, Process, call, initialize

NAMES = [f"doc {n}" for n in range(30)]


def contents(path: Path) -> Contents:
    return {id: document[1] for id, document in state_of(path).items()}


#: A write takes as long, most of the time.
WRITE_SECONDS = 0.02


class Killing:
    """One file, and servers that write to it until they are killed."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.chance = random.Random(seed)
        self.held: Contents = {}
        self.answered = 0
        #: How many kills, by what was under way then.
        self.kills: Counter[str] = Counter()

    @property
    def kills_in_writes(self) -> int:
        return sum(self.kills[kind] for kind in ("store", "replacement", "delete"))

    def round(self, writes: int) -> None:
        """Sends so many writes at once, reads some of the answers, and kills the server at some
        moment of what it does then."""
        sent = [write(self.chance, NAMES) for _ in range(writes)]
        with Process(*REAL, environment={"HADANO_DB": str(self.path)}) as server:
            server.ask(initialize())
            server.send(*(call(n, tool, **given) for n, (tool, given) in enumerate(sent)))
            answers = self.chance.randrange(writes)
            for n, (tool, given) in enumerate(sent[:answers]):
                answer = server.receive()
                assert answer["id"] == n
                if not answer["result"]["isError"]:
                    self.held = applied(self.held, tool, given)
                else:
                    assert tool == "delete_document"
                    assert given["id"] not in self.held
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(self.chance.random() * WRITE_SECONDS)
            server.signal(9)
            server.wait()
        states = possible(self.held, sent[answers:])
        found = contents(self.path)
        assert found in states
        self.held = found
        self.answered += answers
        self.kills[self._under_way(*sent[answers:][states.index(found) :])] += 1

    def _under_way(self, *writes: tuple[str, dict[str, Any]]) -> str:
        """The kind of the first of the writes of which the file has nothing yet."""
        for tool, given in writes:
            if tool == "store_document":
                return "replacement" if given["id"] in self.held else "store"
            if given["id"] in self.held:
                return "delete"
        return "nothing"

    def restore_round(self) -> None:
        """Kills a restore when the log has grown by some chance size; it may be over by then."""
        lines = {name: content(self.chance) for name in sorted(self.chance.sample(NAMES, 10))}
        dump = kit.as_dump(*(kit.line(id=name, content=text) for name, text in lines.items()))
        source = self.path.with_name("restored.jsonl")
        source.write_bytes(dump)
        self.kills["restore"] += 1
        self._kill_command("dump", "--restore", "--db", self.path, "--in", source)
        found = contents(self.path)
        assert found in (self.held, self.held | lines)
        self.held = found

    def backup_round(self) -> None:
        """Kills a backup; a copy that has its name is good."""
        out = self.path.with_name("copies")
        out.mkdir(exist_ok=True)
        self.kills["backup"] += 1
        self._kill_command("backup", "--db", self.path, "--out", out)
        assert contents(self.path) == self.held
        for copy in out.glob("store-*.db"):
            assert contents(copy) == self.held
        shutil.rmtree(out)

    def _kill_command(self, name: str, *arguments: object) -> None:
        wanted = self.chance.randrange(200_000)
        process = subprocess.Popen(
            [sys.executable, "-m", f"hadano.{name}", *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: process.poll() is not None or self._written() > wanted)
        process.kill()
        process.wait()

    def _written(self) -> int:
        """Bytes in the log and in drafts of copies, which may go at any moment."""
        written = 0
        for path in (Path(f"{self.path}-wal"), *self.path.parent.glob("copies/.*")):
            with contextlib.suppress(FileNotFoundError):
                written += os.stat(path).st_size
        return written


def test_a_server_killed_between_writes_has_lost_none_that_it_acknowledged(tmp_path) -> None:
    killing = Killing(tmp_path / "store.db", 0)
    for _ in range(3):
        killing.round(12)
    killing.restore_round()
    killing.backup_round()


@pytest.mark.slow
def test_a_thousand_writes_and_200_kills_in_writes_lose_none_that_was_acknowledged(
    tmp_path,
) -> None:
    killing = Killing(tmp_path / "store.db", 1)
    while killing.answered < 1_000 or killing.kills_in_writes < 200:
        for _ in range(4):
            killing.round(12)
        killing.restore_round()
        killing.backup_round()
    print(f"\n{dict(killing.kills)}, {killing.answered} writes answered, {len(killing.held)} there")


# Torn logs.


@pytest.fixture(scope="module")
def torn(tmp_path_factory) -> tuple[Path, list[Contents]]:
    """Files as a crash left them, all of a store's writes still in the log; and what there was
    after each of them."""
    folder = tmp_path_factory.mktemp("torn")
    held: Contents = {}
    states = [held]
    chance = random.Random(3)
    with Store(folder / "store.db") as store:
        quiet(store)
        for n in range(12):
            given = {
                "id": f"d{n}",
                "title": "t",
                "content": " ".join(chance.choices(WORDS, k=150)),
            }
            store.ask("store_document", **given)
            held = applied(held, "store_document", given)
            states.append(held)
        dead = image(store.path, folder / "dead.db")
    return dead, states


def fractions(size: int, seed: int, count: int) -> list[int]:
    return sorted(random.Random(seed).sample(range(size), count))


def test_a_log_cut_anywhere_gives_a_state_that_there_was(torn, tmp_path) -> None:
    dead, states = torn
    size = os.stat(f"{dead}-wal").st_size
    seen = []
    for cut in fractions(size, 0, 25):
        path = image(dead, tmp_path / "store.db")
        os.truncate(f"{path}-wal", cut)
        seen.append(states.index(contents_of_crash(path)))
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_a_log_with_a_byte_changed_gives_a_state_that_there_was(torn, tmp_path) -> None:
    dead, states = torn
    size = os.stat(f"{dead}-wal").st_size
    for at in fractions(size, 1, 25):
        path = image(dead, tmp_path / "store.db")
        with open(f"{path}-wal", "r+b") as log:
            log.seek(at)
            byte = log.read(1)[0]
            log.seek(at)
            log.write(bytes([byte ^ 0x55]))
        assert contents_of_crash(path) in states


def contents_of_crash(path: Path) -> Contents:
    """A log that was cut to nothing can leave a file without tables, which is a new one."""
    found = contents(path)
    path.unlink()
    return found


def test_a_restore_over_a_crashed_file_reads_its_log_first(torn, tmp_path) -> None:
    dead, states = torn
    path = image(dead, tmp_path / "store.db")
    restore(str(path), io.BytesIO(kit.as_dump(kit.line(id="d1", content="restored"))))
    assert contents(path) == states[-1] | {"d1": "restored"}
