"""Files that appear whole or not at all, readable by their owner alone.

A draft has a name of its own beside the place where it is to stand; it is synced before it takes
its name, so a name that stands is a good file, after a loss of power too. Knows nothing of what is
in a file.
"""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Final

#: What SQLite may leave beside a database that is thrown away.
_BESIDE: Final = ("", "-journal", "-wal", "-shm")
#: How a file system says that it has no hard links.
_NO_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}


def is_free(path: str) -> bool:
    """Whether a database can get this name: none has it, and nothing lies there that SQLite would
    play over one."""
    return not any(os.path.lexists(path + suffix) for suffix in _BESIDE)


@contextmanager
def draft(folder: str, name: str) -> Iterator[str]:
    """The path of a new, empty file in `folder`, gone at the end unless it was given its name."""
    descriptor, path = tempfile.mkstemp(prefix=f".{name}-", suffix=".partial", dir=folder)
    os.close(descriptor)
    try:
        yield path
    finally:
        for suffix in _BESIDE:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + suffix)


def publish(path: str, name: str) -> None:
    """Gives a draft its name, in place of what stood there."""
    _sync(path)
    os.replace(path, name)
    _sync_folder(os.path.dirname(name))


def publish_new(path: str, name: str) -> bool:
    """Gives a draft its name; False where that is taken already."""
    _sync(path)
    try:
        os.link(path, name)
    except FileExistsError:
        return False
    except OSError as error:
        # Memory sticks have no links. Between the question and the renaming another process can
        # take the name; its own would have to be the same to the second.
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(name):
            return False
        os.rename(path, name)
    _sync_folder(os.path.dirname(name))
    return True


def stamped(name: str) -> str:
    """`name-YYYYMMDDTHHMMSSZ`: a name that tells this moment, in UTC."""
    return f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def publish_numbered(path: str, folder: str, name: str) -> str:
    """Gives a draft the name `name.db` in `folder`, with a number where that is taken; its path."""
    for copy in count(1):
        again = f"-{copy}" if copy > 1 else ""
        target = os.path.join(folder, f"{name}{again}.db")
        if publish_new(path, target):
            return target
    raise AssertionError("counting has no end")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(path: str) -> None:
    """Names of files are kept by the folder. Windows has no way to sync one, and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
