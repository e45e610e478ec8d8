"""A disk that fails when it is told to: a VFS of SQLite's that stands before the real one.

All of SQLite in this process goes through it while it is there. What fails, fails with nothing
written, as on a disk that is full or gone; what a loss of power tears is the business of
`test_crash.py`. Refuses to know what is written.
"""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw

NAME: Final = "failing"
SIDES: Final = ("", "-wal")


class Disk(apsw.VFS):
    """The n-th write, sync or truncation from `arm` on fails, and so do those after it where the
    disk is broken for good; or all that would make files larger than a quota do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0
        self._for_good = False
        self._quota: int | None = None
        self._sizes: dict[str, int] = {}
        #: How many operations have failed since `arm`.
        self.failed = 0
        #: The VFS that does the work; the default one until this one is made.
        self.real = apsw.vfs_names()[0]
        super().__init__(NAME, self.real, makedefault=True)

    def arm(self, n: int, *, for_good: bool) -> None:
        self._left, self._for_good, self.failed = n, for_good, 0

    def fill(self, more: int) -> None:
        """Leaves room for so many bytes."""
        self._quota, self.failed = sum(self._sizes.values()) + more, 0

    def mend(self) -> None:
        self._left, self._for_good, self._quota = 0, False, None

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return File(self, name, flags)

    def may(self, error: type[apsw.Error]) -> None:
        """Raises where the operation at hand is to fail."""
        with self._lock:
            self._left -= 1
            if self._left == 0 or (self._left < 0 and self._for_good):
                self.failed += 1
                raise error("as it was told")

    def grow(self, name: str, size: int) -> None:
        with self._lock:
            others = sum(held for other, held in self._sizes.items() if other != name)
            grows = size > self._sizes.get(name, 0)
            if self._quota is not None and grows and others + size > self._quota:
                self.failed += 1
                raise apsw.FullError("as it was told")
            self._sizes[name] = max(size, self._sizes.get(name, 0))

    def cut(self, name: str, size: int) -> None:
        self._sizes[name] = size


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__(disk.real, name, flags)
        disk.cut(self._name, self.xFileSize())

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.may(apsw.FullError)
        self._disk.grow(self._name, offset + len(data))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.may(apsw.IOError)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.may(apsw.IOError)
        super().xTruncate(size)
        self._disk.cut(self._name, size)


@contextmanager
def failing() -> Iterator[Disk]:
    disk = Disk()
    try:
        yield disk
    finally:
        disk.mend()
        disk.unregister()


def image(path: Path, target: Path) -> Path:
    """The files as they stand at this moment, as if the process had died."""
    for side in SIDES:
        Path(f"{target}{side}").unlink(missing_ok=True)
        if Path(f"{path}{side}").exists():
            shutil.copyfile(f"{path}{side}", f"{target}{side}")
    return target
