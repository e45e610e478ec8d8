"""A database file as the system sees it: a name, what tells it from others, its size. Knows nothing
of what is in it."""

import os

from hadano.errors import Code, HadanoError


def make_private(path: str) -> None:
    """An empty file that only its owner can read, where there is none: SQLite's -wal and -shm
    files take their mode from it. A file that is there keeps its own mode, and is not opened:
    to close it again would drop the locks that this process's other connections hold on it."""
    try:
        os.close(os.open(os.path.realpath(path), os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        reason = (error.strerror or "refused").lower()
        raise HadanoError(Code.INTERNAL, f"the database file cannot be opened: {reason}") from error


def identity(path: str) -> tuple[int, int] | None:
    """What tells the file that a path names from all others; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def has_log(path: str) -> bool:
    """Whether there is a write-ahead log beside a file."""
    return os.path.exists(path + "-wal")


def size_bytes(path: str) -> int:
    """Bytes on disk: the file and its write-ahead log."""
    return sum(_file_bytes(path + suffix) for suffix in ("", "-wal"))


def _file_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
