"""A disk that fails at the n-th write, for n counting up until the call succeeds, and a full one.

After each failure the files are looked at as they stand, as if the process had died there: they
hold what they held before or what the call was to do, all of it where the call was acknowledged.
Then the disk is mended, and the same server must do the same call.
"""

import io
import random
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from hadano import backup
from hadano.connection import Connection
from hadano.dump import restore
from hadano.errors import Code, HadanoError
from tests.doors import kit
from tests.reliability.disk import Disk, failing, image
from tests.reliability.sound import State, quiet, state_of
from tests.tools.store import Store, no_erasing_at_once

# Where two callbacks fail in one call, Python reports the first as one that nobody can catch.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

EDGES = [{"src": "amber", "rel": "near", "dst": f"basil {n}"} for n in range(3)]
WORDS = "amber basil cedar delta ember fjord grove heron inlet".split()


def text(seed: int, words: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words)) + f" last{seed}"


DUMP = kit.as_dump(
    *(kit.line(id=f"d{n}", content=text(50 + n, 300), relations=EDGES[:n]) for n in range(3)),
    kit.line(id="z", content=text(60, 2_000)),
)


class Work(NamedTuple):
    """Something that is done to the file; it raises where it was refused."""

    do: Callable[[Store, Path], object]
    changes: bool = True


def tool(name: str, **arguments: object) -> Work:
    def do(store: Store, _: Path) -> None:
        content, is_error = store.answer(name, arguments)
        if is_error:
            assert content["error"]["code"] == "E_INTERNAL"
            raise OSError(content["error"]["message"])

    return Work(do)


def later(work: Work) -> Work:
    def do(store: Store, out: Path) -> None:
        with no_erasing_at_once():
            work.do(store, out)

    return Work(do)


WORKS = {
    "store": tool("store_document", id="new", title="t", content=text(1, 400), relations=EDGES),
    "replace": tool("store_document", id="d1", title="t", content=text(2, 400)),
    "retitle": tool("store_document", id="d1", title="another", content=text(11, 300)),
    "delete": tool("delete_document", id="d1"),
    "delete a large one": tool("delete_document", id="large"),
    "delete one to be erased later": later(tool("delete_document", id="large")),
    "restore": Work(lambda store, _: restore(str(store.path), io.BytesIO(DUMP))),
    "backup": Work(lambda store, out: backup.backup(str(store.path), str(out)), changes=False),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store."""
    path = tmp_path_factory.mktemp("base") / "store.db"
    with Store(path) as store:
        for n in range(4):
            store.put(text(10 + n, 300), "title", id=f"d{n}", relations=EDGES)
        store.put(text(20, 7_000), id="large")
    return path


def settled(path: Path) -> Store:
    """An open store whose own start is over."""
    store = Store(path)
    quiet(store)
    return store


def done(base: Path, folder: Path, work: Work) -> State:
    """What the work leaves where nothing fails."""
    path = Path(shutil.copy(base, folder / "done.db"))
    with settled(path) as store:
        work.do(store, folder)
    return state_of(path)


def attempt(store: Store, work: Work, out: Path) -> bool:
    """Whether the work was acknowledged."""
    try:
        work.do(store, out)
    except (HadanoError, OSError):
        return False
    return True


def as_it_stands(store: Store, folder: Path) -> Path:
    """A copy of an open store's files, made while nobody copies its log back."""
    with store.service._housekeeper.copying:
        return image(store.path, folder / "dead.db")


class Trial(NamedTuple):
    """One kind of work, what there is before it and after it, and how the disk fails."""

    work: Work
    base: Path
    folder: Path
    before: State
    after: State
    good: bool

    def fails_at(self, disk: Disk, n: int) -> bool:
        """Does the work with the n-th operation failing; False where it needed fewer."""
        path = Path(shutil.copy(self.base, self.folder / "store.db"))
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        with settled(path) as store:
            disk.arm(n, for_good=self.good)
            acknowledged = attempt(store, self.work, out)
            failed, dead = disk.failed, as_it_stands(store, self.folder)
            disk.mend()
            found = state_of(dead)
            assert found == self.after or (found == self.before and not acknowledged)
            self._copies_are_good(out)
            if self.work.changes and not acknowledged:
                assert attempt(store, self.work, out)
                assert state_of(as_it_stands(store, self.folder)) == self.after
        assert state_of(path) == (self.after if self.work.changes else self.before)
        return failed > 0

    def _copies_are_good(self, out: Path) -> None:
        for copy in out.iterdir():
            assert state_of(copy) == self.before
            copy.unlink()


def points(*, all_of_them: bool) -> Iterator[int]:
    """1, 2, 3 ...; or every one of the first few, and then fewer and fewer."""
    if all_of_them:
        yield from count(1)
    n = 1
    while True:
        yield n
        n += max(1, n // 2)


def every_failure(base: Path, folder: Path, name: str, *, all_of_them: bool, good: bool) -> int:
    """How many points of failure were tried; there must be some."""
    work = WORKS[name]
    trial = Trial(work, base, folder, state_of(base), done(base, folder, work), good)
    with failing() as disk:
        for tried, n in enumerate(points(all_of_them=all_of_them)):
            if not trial.fails_at(disk, n):
                assert tried > 0
                return tried
    raise AssertionError("counting has no end")


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("good", [False, True], ids=["once", "for good"])
def test_whatever_fails_the_file_holds_all_or_nothing(base, tmp_path, name, good) -> None:
    every_failure(base, tmp_path, name, all_of_them=False, good=good)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("good", [False, True], ids=["once", "for good"])
def test_at_every_point_the_file_holds_all_or_nothing(base, tmp_path, name, good) -> None:
    print(f"\n{name}: {every_failure(base, tmp_path, name, all_of_them=True, good=good)}")


def made(path: Path) -> bool:
    """Whether a new file could be made."""
    try:
        Connection(str(path)).close()
    except HadanoError as refused:
        return refused.code is not Code.INTERNAL
    return True


@pytest.mark.parametrize("good", [False, True], ids=["once", "for good"])
def test_a_new_file_that_cannot_be_made_is_made_when_it_can(tmp_path, good) -> None:
    with failing() as disk:
        for n in count(1):
            path = tmp_path / f"{n}.db"
            disk.arm(n, for_good=good)
            at_once, failed = made(path), disk.failed
            disk.mend()
            assert state_of(path) == {}
            assert at_once or failed
            if not failed:
                break
    assert n > 10


@pytest.mark.parametrize("room", [0, 5_000, 50_000, 200_000])
def test_on_a_full_disk_writes_are_refused_and_what_was_taken_stays(base, tmp_path, room) -> None:
    path = Path(shutil.copy(base, tmp_path / "store.db"))
    before = state_of(base).keys()
    with failing() as disk, settled(path) as store:
        disk.fill(room)
        taken = set()
        for n in range(40):
            work = tool("store_document", id=f"n{n}", title="t", content=text(n, 200))
            if attempt(store, work, tmp_path):
                taken.add(f"n{n}")
        assert disk.failed
        dead = as_it_stands(store, tmp_path)
        disk.mend()
        assert state_of(dead).keys() == before | taken
        assert store.ask("get_document", id="d1")["content"] == text(11, 300)
        store.put("again", id="again")
    assert state_of(path).keys() == before | taken | {"again"}


def test_a_full_disk_is_told_by_name(base, tmp_path) -> None:
    path = Path(shutil.copy(base, tmp_path / "store.db"))
    with failing() as disk, settled(path) as store:
        disk.fill(0)
        refusal = store.refusal("store_document", title="t", content="text")
        disk.mend()
    assert refusal == ("E_INTERNAL", "the disk is full")
