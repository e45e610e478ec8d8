"""Copying pages into a file, from its log or from another, and leaving nothing in their gaps.

A page in a file has no checksum, unlike one in its log, so on the way from the one to the other
bytes that no cell has can be overwritten (`pages.py` says why they must be).
"""

import os
from typing import Final

import apsw

from hadano import schema
from hadano.connection.pages import without_gap
from hadano.connection.patience import Patience


class _Copying(apsw.VFS):
    """The files of a connection that copies pages into a file: the default ones, but for gaps."""

    name: Final = "hadano-copying"

    def __init__(self) -> None:
        super().__init__(self.name, "")

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        return _Copied(name, flags)


class _Copied(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._database = bool(flags[0] & apsw.SQLITE_OPEN_MAIN_DB)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._database:
            data = without_gap(data, offset // len(data) + 1)
        super().xWrite(data, offset)


_COPYING: Final = _Copying()


def copying(path: str) -> apsw.Connection:
    """A connection whose writes to the file leave gaps empty. APSW takes SQLite's word that a path
    has links in it for an error, so it gets one without."""
    flags = apsw.SQLITE_OPEN_READWRITE
    return apsw.Connection(os.path.realpath(path), flags=flags, vfs=_COPYING.name)


class Copier:
    """Copies the log of one file back into it; it alone, for every page that it handles passes
    through Python. Raises apsw.Error."""

    def __init__(self, path: str, patience: Patience) -> None:
        self._path = path
        self._patience = patience
        self._db: apsw.Connection | None = None

    def open(self) -> apsw.Connection:
        """Opens the file, once."""
        if self._db is None:
            self._db = copying(self._path)
            self._db.set_busy_handler(self._patience.handler())
            # It knows of the log once it has read.
            self._db.execute(schema.TAKE_SNAPSHOT).fetchall()
        return self._db

    def copy_log(self, *, truncate: bool) -> bool:
        """Copies the log back, and with `truncate` empties it; whether all was copied."""
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            frames, copied = self.open().wal_checkpoint(mode=mode)
        except (apsw.BusyError, apsw.InterruptError):
            return False
        return frames == copied

    def interrupt(self) -> None:
        """Interrupts what runs; safe from another thread."""
        db = self._db
        if db is not None:
            db.interrupt()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
