"""The one place that knows APSW: opening the file, transactions, and SQLite's errors in our words.

What comes out of here is plain tuples and `HadanoError`. No rule of the contract's tools stands
here, and no SQL that a room could hold.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

import apsw

from hadano import limits, schema
from hadano._native import (
    ENTRY_POINT,
    LIBRARY,
    Agreement,
    Cancelled,
    DamagedIndex,
    Eraser,
    Ranker,
    StoreFailed,
)
from hadano.errors import Code, HadanoError
from hadano.pages import without_gap
from hadano.turns import turn

if TYPE_CHECKING:
    from array import array

    from hadano.blocks import Blocks

Row = tuple[Any, ...]

_FLAGS: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

#: How long until a lock is asked for again where SQLite does not wait for it.
_AGAIN_SECONDS: Final = 0.005

#: Between two tries for a lock, in milliseconds: the most at first, then less and less, and the
#: least once it has been waited for about so long.
_PAUSE_MS_MAX: Final = 8
_PAUSE_MS_MIN: Final = 1
_PAUSE_FALLS_MS: Final = 400

#: How many of SQLite's steps go by until a check asks whether it is to end: some milliseconds.
_STEPS_UNTIL_ASKED: Final = 10_000

#: SQLite's failures in the contract's codes. The first class that fits speaks.
_FAILURES: Final = (
    (apsw.InterruptError, Code.TIMEOUT, "the call was cut short and undone"),
    (apsw.BusyError, Code.TIMEOUT, "another process held the database for too long"),
    (apsw.LockedError, Code.TIMEOUT, "another process held the database for too long"),
    (apsw.NotADBError, Code.INTEGRITY, "the file is not a database"),
    (apsw.CorruptError, Code.INTEGRITY, "the database is damaged"),
    (apsw.FullError, Code.INTERNAL, "the disk is full"),
    (apsw.ReadOnlyError, Code.INTERNAL, "the database file cannot be written"),
    (apsw.CantOpenError, Code.INTERNAL, "the database file cannot be opened"),
    (apsw.PermissionsError, Code.INTERNAL, "the database file cannot be opened"),
    (apsw.IOError, Code.INTERNAL, "the disk cannot be read or written"),
    (apsw.NoMemError, Code.INTERNAL, "out of memory"),
)


def translated(error: apsw.Error) -> HadanoError:
    """The HadanoError that says to a client what `error` means; SQLite's own words stay here."""
    for kind, code, message in _FAILURES:
        if isinstance(error, kind):
            return HadanoError(code, message)
    return HadanoError(Code.INTERNAL, "the database refused a statement")


class Connection:
    """One connection to one database file, used by one thread at a time.

    `stop` alone may be called from another thread. Every method that touches the file raises
    HadanoError, with the codes of `_FAILURES`.
    """

    def __init__(self, path: str, *, vectors: bool = False, reading: bool = False) -> None:
        """Opens the file that `path` names, making it (for its owner alone) where there is none,
        and brings it to the current schema; but a damaged file of an earlier one stays as it is,
        can be read, and refuses every change.

        With `vectors` the vector extension is loaded. With `reading` the file
        must be there, and nothing of it changes: not its schema, not its write-ahead log. Raises
        HadanoError: E_VALIDATION for a database that is not ours or is newer than this program,
        E_INTEGRITY for a file that is no database.
        """
        self.path = path
        #: Whether vectors are on for this connection, not only loaded to be deleted.
        self.vectors = vectors
        #: Pages in the write-ahead log after this connection's last commit.
        self.wal_pages = 0
        self.vec_version: str | None = None
        self._stopped: str | None = None
        self._ranker: Ranker | None = None
        self._eraser: Eraser | None = None
        #: Another connection's, whose decoded terms the next ranking takes over.
        self._warmth: Ranker | None = None
        self._blocks: Blocks | None = None
        #: How often this connection has been about to put vectors in or to take some out.
        self._vectors_written = 0
        self._durable = False
        #: Whether the file is too damaged to be brought to the current schema.
        self._outdated = False
        self._writes = not reading
        if not reading:
            _make_private(path)
        self._identity = _identity(path)
        self._copier: apsw.Connection | None = None
        self._patience_ms = limits.BUSY_MS_MAX
        try:
            self._flags = _reading_flags(path) if reading else _FLAGS
            self._db = apsw.Connection(path, flags=self._flags)
            self._db.set_busy_handler(self._patience())
            version = self._recognised()
            if reading:
                self._only_read(version)
            else:
                self._settle(version)
        except apsw.Error as error:
            raise translated(error) from error
        if vectors:
            self.load_vectors()

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
        self._db.set_wal_hook(self._note_wal)
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
                db.set_busy_handler(self._patience())
                db.drop_modules(None)
                db.set_progress_handler(lambda: self._stopped is not None, _STEPS_UNTIL_ASKED)
                return db.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
        except apsw.CorruptError:
            return False
        except apsw.Error as error:
            raise translated(error) from error

    def _note_wal(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def load_vectors(self) -> None:
        """Loads the vec0 extension into this connection, once."""
        if self.vec_version is not None:
            return
        self._load_extension(_vec0())
        self.vec_version = self.value("SELECT vec_version()")

    def _load_extension(self, library: str, entry_point: str | None = None) -> None:
        """Loads compiled code of ours into this connection; SQL can never load any."""
        try:
            self._db.enable_load_extension(True)
            self._db.load_extension(library, entry_point)
        except apsw.Error as error:
            raise HadanoError(Code.INTERNAL, "an extension cannot be loaded") from error
        finally:
            self._db.enable_load_extension(False)

    # Statements.

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of one statement."""
        self._go_on()
        try:
            return self._db.execute(sql, parameters).fetchall()
        except apsw.Error as error:
            raise translated(error) from error
        except UnicodeDecodeError as error:
            # Only UTF-8 is ever stored; SQLite itself does not look.
            raise HadanoError(Code.INTEGRITY, "the database is damaged") from error

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of one statement, as they are asked for."""
        self._go_on()
        try:
            yield from self._db.execute(sql, parameters)
        except apsw.Error as error:
            raise translated(error) from error
        except UnicodeDecodeError as error:
            # Only UTF-8 is ever stored; SQLite itself does not look.
            raise HadanoError(Code.INTEGRITY, "the database is damaged") from error

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row of one statement, None where there is none."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, None where there is none."""
        row = self.row(sql, parameters)
        return row[0] if row else None

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Runs a statement whose rows, if any, do not matter."""
        self.rows(sql, parameters)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement once for each of `rows`."""
        self._go_on()
        try:
            self._db.executemany(sql, rows)
        except apsw.Error as error:
            raise translated(error) from error

    def inserted(self) -> int:
        """The row number that the last INSERT of this connection made."""
        return self._db.last_insert_rowid()

    def changes(self) -> int:
        """How many rows this connection has changed since it was opened."""
        return self._db.total_changes()

    # The indexes, read by the compiled core.

    def ranking(
        self, terms: Sequence[tuple[int, str]], *, per_doc: int, ranks: int
    ) -> tuple["array[int]", "array[int]"]:
        """Ids of the chunks that match best, best first, and their documents' numbers beside them,
        as far as `ranks` ranks reach at `per_doc` chunks a document. Inside `snapshot` only.

        E_INTEGRITY where the full-text index breaks its own format.
        """
        self._go_on()
        with self._core_failures():
            if self._ranker is None:
                self._db.execute(schema.SEARCH_PRAGMAS)
            ranker = self._own_ranker()
            warmth = self._warmth
            if warmth is not None:  # Else it may be given at this moment, and stays for the next.
                self._warmth = None
                ranker.adopt(warmth)
            return ranker.rank(terms, per_doc, ranks)

    def _own_ranker(self) -> Ranker:
        if self._ranker is None:
            self._load_extension(LIBRARY, ENTRY_POINT)
            if self._outdated:  # nobody writes to it any more
                self._db.execute(schema.NOTHING_UNINDEXED)
            self._ranker = Ranker(self._db, cache_bytes=limits.RANKER_CACHE_BYTES_MAX)
        return self._ranker

    def decode(self, term: tuple[int, str]) -> None:
        """Decodes a term, for `give_warmth`. E_INTEGRITY as `ranking`."""
        with self.snapshot(), self._core_failures():
            self._own_ranker().rank([term], per_doc=1, ranks=1)

    def give_warmth(self, to: "Connection") -> None:
        """Leaves what this connection has decoded to another to the same file, which may be at work
        in another thread."""
        ranker, self._ranker = self._ranker, None
        if ranker is not None:
            ranker.close()
            to._warmth = ranker

    def differing(self, *, at_once: bool) -> list[int]:
        """Ids of the chunks of which the full-text index does not hold just what the view
        `chunks_indexed` has of them, to the last trigram and its place.

        With `at_once` all is compared in one snapshot; without, in many that are over in some
        milliseconds each, so that no erasure waits for them, and a chunk that is written meanwhile
        may be among those that differ. E_INTEGRITY where the index breaks its own format.
        """
        whole, part = (self.snapshot, nullcontext) if at_once else (nullcontext, self.snapshot)
        with self._core_failures():
            self._load_extension(LIBRARY, ENTRY_POINT)
            with closing(Agreement(self._db)) as agreement, whole():
                more = True
                while more:
                    self._go_on()
                    with part():
                        more = agreement.step()
            return agreement.differing()

    @contextmanager
    def _core_failures(self) -> Iterator[None]:
        """What the compiled core raises, in our words."""
        try:
            yield
        except Cancelled:
            raise HadanoError(Code.TIMEOUT, self._stopped or "the call was cut short") from None
        except DamagedIndex as error:
            raise HadanoError(Code.INTEGRITY, "the database is damaged") from error
        except StoreFailed as error:
            raise translated(_failure(error.args[0])) from error
        except apsw.Error as error:
            raise translated(error) from error

    def erase_from_index(
        self, rows: Iterable[int], *, leaves: int = sys.maxsize, seconds: float = math.inf
    ) -> bool:
        """Overwrites all that the full-text index has of these chunks, whose rows in the view
        `chunks_indexed` are still there, and all terms that only they had. Inside `change` only.

        False, and nothing done, where they have more than so many terms and those lie on more
        leaves of it than that, or it takes longer than so many seconds. E_INTEGRITY where the index
        breaks its own format or has not all that is in the chunks.
        """
        deadline = time.monotonic() + seconds
        # FTS5 writes down what it has gathered when a savepoint opens.
        self.run("SAVEPOINT erasing")
        with self._core_failures():
            done = self._erased(rows, leaves, deadline)
        if not done:
            self.run("ROLLBACK TO erasing")
        self.run("RELEASE erasing")
        return done

    def _erased(self, rows: Iterable[int], leaves: int, deadline: float) -> bool:
        if self._eraser is None:
            self._load_extension(LIBRARY, ENTRY_POINT)
            self._eraser = Eraser(self._db)
        self._eraser.begin(rows, leaves)
        while time.monotonic() < deadline:
            self._go_on()
            if self._eraser.step():
                continue
            if self._eraser.too_many:
                return False
            if self._eraser.lacking:
                raise HadanoError(Code.INTEGRITY, "the database is damaged")
            return True
        return False

    def nearest(self, seeds: list[bytes], most: int, remade: int) -> list[tuple[int, float]]:
        """Ids of up to `most` chunks whose vectors are nearest to one of `seeds`, and their best
        cosine similarities, best first. Inside `snapshot` only. While `remade` is the same, so is
        each chunk's vector, and what was read before need not be read again.

        E_INTEGRITY where the tables of vectors do not fit together.
        """
        from hadano.blocks import Blocks  # brings compiled code that most stores never need

        if self._blocks is None:
            self._db.execute(schema.SEARCH_PRAGMAS)
            self._blocks = Blocks(limits.VECTOR_BLOCKS_MAX)
        # Changes with every commit of another connection, but not with those of this one.
        state = self.value("PRAGMA data_version"), self._vectors_written
        try:
            return self._blocks.nearest(self.rows, seeds, most, remade=remade, state=state)
        except ValueError as error:
            raise HadanoError(Code.INTEGRITY, "the vectors are damaged") from error

    def write_vectors(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement that changes vectors once for each of `rows`; `nearest` then looks at
        the file again."""
        self._vectors_written += 1
        self.run_many(sql, rows)

    # Transactions.

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One state of the database for all the reads inside."""
        yield from self._transaction("BEGIN")

    @contextmanager
    def change(self, *, durable: bool = True) -> Iterator[None]:
        """All the writes inside, or none of them: committed at the end, undone on any exception.

        The write lock is taken first and waited for (see `wait_at_most`). With `durable` the
        commit has reached the disk before this returns; without, a loss of power can undo it,
        though nothing else can. E_INTERNAL where the path names this file no more: SQLite would
        write on into one that nobody can open. E_INTEGRITY for a damaged file of an earlier schema.
        """
        if self._outdated:
            raise HadanoError(Code.INTEGRITY, "the database is damaged")
        if not self._is_in_place():
            raise HadanoError(Code.INTERNAL, "the database file is gone, or is another")
        if durable != self._durable:
            self.run(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        yield from self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def step(self) -> Iterator[None]:
        """A `change` of many in a row, not durable; after it the write lock is left to others."""
        with turn(), self.change(durable=False):
            yield

    def _is_in_place(self) -> bool:
        """Whether the path still names the file that is open."""
        return _identity(self.path) == self._identity

    def _transaction(self, begin: str) -> Iterator[None]:
        self.run(begin)
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Ends a transaction that SQLite has not rolled back by itself (a full disk, an interrupt
        inside a write). `stop` can interrupt a ROLLBACK, too, before it has begun."""
        while self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK")
            except apsw.InterruptError:
                continue
            except apsw.Error as error:
                raise translated(error) from error

    def wait_at_most(self, milliseconds: int) -> None:
        """How long a lock is waited for from now on; never longer than `BUSY_MS_MAX`."""
        self._patience_ms = max(0, min(milliseconds, limits.BUSY_MS_MAX))

    def _patience(self) -> Callable[[int], bool]:
        """How a connection waits for a lock, and for how long. The longer it has waited the sooner
        it asks again, so that locks go to who came first, or nearly so. SQLite's own way is the
        other way round, up to a tenth of a second between two tries: late-comers go first, and of
        sixteen writers some wait in vain."""
        since = 0.0

        def ask_again(tries: int) -> bool:
            nonlocal since
            now = time.monotonic()
            if tries == 0:
                since = now
            waited_ms = (now - since) * 1000
            left_ms = self._patience_ms - waited_ms
            if left_ms <= 0 or self._stopped is not None:
                return False
            pause_ms = max(_PAUSE_MS_MIN, _PAUSE_MS_MAX * (1 - waited_ms / _PAUSE_FALLS_MS))
            time.sleep(min(left_ms, pause_ms) / 1000)
            return True

        return ask_again

    # Cutting a call short.

    def stop(self, why: str) -> None:
        """Interrupts the statement that runs, and refuses those that follow (E_TIMEOUT, with
        `why`) until `resume`. Safe to call from another thread, and more than once: SQLite forgets
        an interrupt that falls between two statements."""
        self._stopped = why
        for core in self._cores():
            core.cancel()
        for db in filter(None, (self._db, self._copier)):
            db.interrupt()

    def resume(self) -> None:
        self._stopped = None
        for core in self._cores():
            core.resume()

    def _cores(self) -> Iterator[Ranker | Eraser]:
        """The compiled readers and writers of the index that have been made. Each is read once:
        `give_warmth` takes the ranker away while another thread may be stopping it."""
        for core in (self._ranker, self._eraser):
            if core is not None:
                yield core

    def _go_on(self) -> None:
        if self._stopped is not None:
            raise HadanoError(Code.TIMEOUT, self._stopped)

    # Copying.

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
                with closing(_copying(path)) as target:
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

    def checkpoint(self, *, truncate: bool) -> bool:
        """Copies the write-ahead log back into the file; with `truncate`, empties it on disk.

        False where another process's snapshot or lock, or `stop`, did not let that be done to the
        end, and where the file is gone. SQLite does not wait for another checkpoint that is under
        way.
        """
        if not self._is_in_place():
            return False
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            frames, copied = self._own_copier().wal_checkpoint(mode=mode)
        except (apsw.BusyError, apsw.InterruptError):
            return False
        except apsw.Error as error:
            raise translated(error) from error
        return frames == copied

    def begin_log(self) -> None:
        """Begins a log that has been emptied, so that the next commit need not wait for the disk:
        SQLite has a log's header reach that before it writes anything behind it."""
        with self.change(durable=False):
            version: int = self.value("PRAGMA user_version")
            self.run(f"PRAGMA user_version = {version}")

    def _own_copier(self) -> apsw.Connection:
        """The connection that copies the log back, and zeroes gaps as it does; it alone, for every
        page that it handles passes through Python."""
        if self._copier is None:
            self._copier = _copying(self.path)
            self._copier.set_busy_handler(self._patience())
            # It knows of the log once it has read.
            self._copier.execute(schema.TAKE_SNAPSHOT).fetchall()
        return self._copier

    def size_bytes(self) -> int:
        """Bytes on disk: the file and its write-ahead log."""
        return sum(_file_bytes(self.path + suffix) for suffix in ("", "-wal"))

    def close(self) -> None:
        """Closes the file. The last connection to it also removes the write-ahead log."""
        self._stopped = None
        for core in self._cores():
            core.close()
        # What cannot be copied back stays in the log, for the next to open the file.
        with suppress(apsw.Error):
            if self._writes and self._is_in_place():
                self._own_copier()
            elif self._writes:
                self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        try:
            self._db.close()
        except apsw.Error as error:
            raise translated(error) from error
        with suppress(apsw.Error):
            if self._copier is not None:
                self._copier.close()


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


def _copying(path: str) -> apsw.Connection:
    """A connection whose writes to the file leave gaps empty. APSW takes SQLite's word that a path
    has links in it for an error, so it gets one without."""
    flags = apsw.SQLITE_OPEN_READWRITE
    return apsw.Connection(os.path.realpath(path), flags=flags, vfs=_COPYING.name)


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


def _failure(code: int) -> apsw.Error:
    """APSW's own exception for one of SQLite's result codes."""
    failure = apsw.exception_for(code)
    return failure if isinstance(failure, apsw.Error) else apsw.Error(str(failure))


def sqlite_version() -> str:
    """Version of the SQLite inside APSW."""
    return apsw.sqlite_lib_version()


def listed(numbers: Iterable[int]) -> str:
    """Whole numbers as a parameter for `json_each(?)`: one statement for lists of every length,
    which SQLite then compiles once."""
    return f"[{','.join(map(str, numbers))}]"


def _make_private(path: str) -> None:
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


def _reading_flags(path: str) -> int:
    """How to open a file so that reading leaves no trace: a connection that may write empties the
    log when it is the last to close, one that may not leaves behind an empty log that was not
    there. E_VALIDATION where there is no file."""
    if not os.path.exists(path):
        raise HadanoError(Code.VALIDATION, "there is no such database file")
    if os.path.exists(path + "-wal"):
        return apsw.SQLITE_OPEN_READONLY
    return apsw.SQLITE_OPEN_READWRITE


def _identity(path: str) -> tuple[int, int] | None:
    """What tells the file that a path names from all others; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _file_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
