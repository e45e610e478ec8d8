"""A database file from its opening to its closing: its schema, its soundness, its copies, its log.

It knows what a file must be to be worked with, not what stands in its tables.
"""

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final

import apsw

from hadano import limits, schema
from hadano.connection import place
from hadano.connection.copying import Copier, copying
from hadano.connection.failures import translated
from hadano.connection.indexes import Indexes
from hadano.errors import Code, HadanoError

_FLAGS: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

#: How long until a lock is asked for again where SQLite does not wait for it.
_AGAIN_SECONDS: Final = 0.005

#: How many of SQLite's steps go by until a check asks whether it is to end: some milliseconds.
_STEPS_UNTIL_ASKED: Final = 10_000


class Connection(Indexes):
    """One connection to one database file, used by one thread at a time.

    `stop` alone may be called from another thread. Every method that touches the file raises
    HadanoError, with the codes of `failures.py`.
    """

    def __init__(self, path: str, *, vectors: bool = False, reading: bool = False) -> None:
        """Opens the file that `path` names, making it (for its owner alone) where there is none,
        and brings it to the current schema; but a damaged file of an earlier one stays as it is,
        can be read, and refuses every change.

        With `vectors` the vector extension is loaded. With `reading` the file must be there, and
        nothing of it changes: not its schema, not its write-ahead log. Raises HadanoError:
        E_VALIDATION for a database that is not ours or is newer than this program, E_INTEGRITY for
        a file that is no database.
        """
        if not reading:
            place.make_private(path)
        self._flags = _reading_flags(path) if reading else _FLAGS
        super().__init__(path, self._flags)
        #: Whether vectors are on for this connection, not only loaded to be deleted.
        self.vectors = vectors
        self.vec_version: str | None = None
        #: Pages in the write-ahead log after this connection's last commit.
        self.wal_pages = 0
        self._writes = not reading
        self._copier = Copier(path, self._patience)
        try:
            version = self._recognised()
            if reading:
                self._only_read(version)
            else:
                self._settle(version)
        except apsw.Error as error:
            raise translated(error) from error
        if vectors:
            self.load_vectors()

    # Opening.

    def _recognised(self) -> int:
        """The file's schema version, 0 for an empty file; refuses what is not ours, unchanged."""
        with self.snapshot():  # another process may be making the file
            application: int = self.value("PRAGMA application_id")
            version: int = self.value("PRAGMA user_version")
            tables = self.value("SELECT count(*) FROM sqlite_schema")
        if application == schema.APPLICATION_ID:
            _check_known(version)
            return version
        if application or version or tables:
            raise HadanoError(Code.VALIDATION, "the file is a database that Hadano did not make")
        return 0

    def _settle(self, version: int) -> None:
        self._set_up()
        # The last connection to a file copies its log back when it closes; that is the copier's.
        self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._db.set_wal_hook(self._note_log)
        if version < schema.VERSION:
            self._outdated = not self._brought_up(version)

    def _set_up(self) -> None:
        """Makes the settings of `schema.PRAGMAS`.

        SQLite does not wait for a lock when it turns a new file to WAL, for two processes that both
        read it and both want that would wait for each other: one of them has to try again.
        """
        deadline = time.monotonic() + limits.BUSY_MS_MAX / 1000
        while True:
            try:
                # Read to the end: one of the settings answers with a row, and those after it wait.
                self._db.execute(schema.PRAGMAS).fetchall()
                return
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_AGAIN_SECONDS)

    def _only_read(self, version: int) -> None:
        if version == 0:
            raise HadanoError(Code.VALIDATION, "the file is empty, no database of Hadano's")
        self._db.execute("PRAGMA query_only = ON")

    def _brought_up(self, version: int) -> bool:
        """Brings the file to the current schema. False, and nothing written, where it is damaged:
        that could destroy what can still be saved."""
        if version and not self.structure_holds():
            return False
        self._migrate()
        return True

    def _migrate(self) -> None:
        """Another process may be at it too, and know later versions: the version that counts is
        read under the lock."""
        with self.change():
            version: int = self._db.pragma("user_version")
            _check_known(version)
            if version < schema.VERSION:
                for step in schema.MIGRATIONS[version:]:
                    self._db.execute(step).fetchall()
                self._db.pragma("application_id", schema.APPLICATION_ID)
                self._db.pragma("user_version", schema.VERSION)

    def load_vectors(self) -> None:
        """Loads the vec0 extension into this connection, once."""
        if self.vec_version is not None:
            return
        self._load_extension(_vec0())
        self.vec_version = self.value("SELECT vec_version()")

    # Soundness.

    def structure_holds(self) -> bool:
        """Whether every page of the file has its place, and but one: in a b-tree that is well
        formed (pages, cells, order, overflow chains), or in the list of those that are free. A page
        that were in both would be overwritten by the next document.

        Asked of a connection that has no virtual tables: to check the whole file, SQLite would
        also have FTS5 read its index to the end.
        """
        if self._outdated:
            return False
        self._go_on()
        try:
            with closing(apsw.Connection(self.path, flags=self._flags)) as db:
                db.set_busy_handler(self._patience.handler())
                db.drop_modules(None)
                db.set_progress_handler(lambda: self._stopped is not None, _STEPS_UNTIL_ASKED)
                return db.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
        except apsw.CorruptError:
            return False
        except apsw.Error as error:
            raise translated(error) from error

    # Copies.

    def copy(self, path: str, pages: int) -> Iterator[tuple[int, int]]:
        """Copies the database, as it is now, into the empty file `path` names, `pages` pages a
        step; gives (pages copied, pages in all) after each. The copy needs no log beside it.

        SQLite starts a copy over when another process writes between two steps. It reads one
        snapshot all through when the source has one open, and then nothing can make it start over;
        a writer is not held up, only the log grows until the end.
        """
        with self.snapshot():
            self.value(schema.TAKE_SNAPSHOT)
            try:
                with closing(copying(path)) as target:
                    # A copy that fails is thrown away, and the caller syncs one that does not.
                    target.execute("PRAGMA journal_mode = OFF").fetchall()
                    target.execute("PRAGMA synchronous = OFF")
                    with target.backup("main", self._db, "main") as backup:
                        while not backup.done:
                            backup.step(pages)
                            yield backup.page_count - backup.remaining, backup.page_count
            except apsw.Error as error:
                raise translated(error) from error

    # The write-ahead log.

    def _note_log(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def checkpoint(self, *, truncate: bool) -> bool:
        """Copies the write-ahead log back into the file; with `truncate`, empties it on disk.

        False where another process's snapshot or lock, or `stop`, did not let that be done to the
        end, and where the file is gone. SQLite does not wait for another checkpoint that is under
        way.
        """
        if not self._is_in_place():
            return False
        try:
            return self._copier.copy_log(truncate=truncate)
        except apsw.Error as error:
            raise translated(error) from error

    def begin_log(self) -> None:
        """Begins a log that has been emptied, so that the next commit need not wait for the disk:
        SQLite has a log's header reach that before it writes anything behind it."""
        with self.change(durable=False):
            version: int = self.value("PRAGMA user_version")
            self.run(f"PRAGMA user_version = {version}")

    def size_bytes(self) -> int:
        """Bytes on disk: the file and its write-ahead log."""
        return place.size_bytes(self.path)

    # The end.

    def stop(self, why: str) -> None:
        super().stop(why)
        self._copier.interrupt()

    def close(self) -> None:
        """Closes the file. The last connection to it also removes the write-ahead log."""
        self._stopped = None
        for core in self._cores():
            core.close()
        # What cannot be copied back stays in the log, for the next to open the file.
        with suppress(apsw.Error):
            if self._writes and self._is_in_place():
                self._copier.open()
            elif self._writes:
                self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        try:
            self._db.close()
        except apsw.Error as error:
            raise translated(error) from error
        with suppress(apsw.Error):
            self._copier.close()


def _vec0() -> str:
    """Where the vec0 extension lies, which `sqlite_vec.loadable_path()` tells too: but to import
    that module is to import numpy, some 100 ms of start-up and 14 MB."""
    from importlib.util import find_spec  # most stores never need it

    found = find_spec("sqlite_vec")
    folders = found.submodule_search_locations if found else None
    if not folders:
        raise HadanoError(Code.INTERNAL, "the vector extension is not installed")
    return os.path.join(folders[0], "vec0")


def _check_known(version: int) -> None:
    if version > schema.VERSION:
        raise HadanoError(
            Code.VALIDATION,
            f"the database has schema version {version}, made by a newer Hadano; "
            f"this one knows versions up to {schema.VERSION}",
        )


def _reading_flags(path: str) -> int:
    """How to open a file so that reading leaves no trace: a connection that may write empties the
    log when it is the last to close, one that may not leaves behind an empty log that was not
    there. E_VALIDATION where there is no file."""
    if not os.path.exists(path):
        raise HadanoError(Code.VALIDATION, "there is no such database file")
    if place.has_log(path):
        return apsw.SQLITE_OPEN_READONLY
    return apsw.SQLITE_OPEN_READWRITE
