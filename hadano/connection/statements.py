"""Statements, transactions, and cutting them short. Refuses to know what is in the file."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from hadano.connection.failures import REFUSALS, translated
from hadano.connection.patience import Patience
from hadano.connection.place import identity
from hadano.connection.turns import turn
from hadano.errors import Code, HadanoError

Row = tuple[Any, ...]


def sqlite_version() -> str:
    """Version of the SQLite inside APSW."""
    return apsw.sqlite_lib_version()


def listed(numbers: Iterable[int]) -> str:
    """Whole numbers as a parameter for `json_each(?)`: one statement for lists of every length,
    which SQLite then compiles once."""
    return f"[{','.join(map(str, numbers))}]"


class Statements:
    """A connection that runs statements. Every method that touches the file raises HadanoError,
    with the codes of `failures.py`."""

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self._identity = identity(path)
        self._stopped: str | None = None
        self._patience = Patience(lambda: self._stopped is not None)
        self._durable = False
        #: Whether the file is too damaged to be brought to the current schema.
        self._outdated = False
        try:
            self._db = apsw.Connection(path, flags=flags)
        except apsw.Error as error:
            raise translated(error) from error
        self._db.set_busy_handler(self._patience.handler())

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of one statement."""
        self._go_on()
        try:
            return self._db.execute(sql, parameters).fetchall()
        except REFUSALS as error:
            raise translated(error) from error

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of one statement, as they are asked for."""
        self._go_on()
        try:
            yield from self._db.execute(sql, parameters)
        except REFUSALS as error:
            raise translated(error) from error

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
        return identity(self.path) == self._identity

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
        self._patience.wait_at_most(milliseconds)

    # Cutting a call short.

    def stop(self, why: str) -> None:
        """Interrupts the statement that runs, and refuses those that follow (E_TIMEOUT, with
        `why`) until `resume`. Safe to call from another thread, and more than once: SQLite forgets
        an interrupt that falls between two statements."""
        self._stopped = why
        self._db.interrupt()

    def resume(self) -> None:
        """Takes back `stop`."""
        self._stopped = None

    def _go_on(self) -> None:
        if self._stopped is not None:
            raise HadanoError(Code.TIMEOUT, self._stopped)

    # Compiled code.

    def _load_extension(self, library: str, entry_point: str | None = None) -> None:
        """Loads compiled code of ours into this connection; SQL can never load any."""
        try:
            self._db.enable_load_extension(True)
            self._db.load_extension(library, entry_point)
        except apsw.Error as error:
            raise HadanoError(Code.INTERNAL, "an extension cannot be loaded") from error
        finally:
            self._db.enable_load_extension(False)
