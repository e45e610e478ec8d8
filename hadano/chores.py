"""Work behind the calls: integrity and common words at start-up, then the write-ahead log, audit
rows, erasure, vectors, and the index's segments.

One thread with a connection of its own, so that no call waits for a disk or for another process
on account of any of it. Whatever it owes stands in the database or is paid before `close` returns.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain

from hadano import audit, ingest, limits, status, vectors, warming
from hadano.connection import Connection
from hadano.errors import Code, HadanoError
from hadano.said import Said
from hadano.types import IntegrityState

#: How long until work that could not be done is tried again, in seconds: at first, and at most.
_AGAIN_SECONDS = 0.05
_AGAIN_SECONDS_MAX = 5.0
#: With embeddings on, how often the file is looked at for chunks that another server has put in
#: without vectors.
_LOOK_SECONDS = 1.0
#: How long no call must have come before the index's segments are merged, in seconds.
_IDLE_SECONDS = 0.5
#: For so long the next word to be made ready waits for a call under way.
_CALL_SECONDS_MAX = 0.1
#: How long another process is waited for to make the tables of vectors before the first call.
_SET_UP_MS_MAX = 500


class _Owed:
    """Kinds of work that were asked for and are not done yet, under a lock: the calls' thread asks
    while the housekeeper's takes. Work that is asked for while it is being done is owed again."""

    def __init__(self, *works: str) -> None:
        self._lock = threading.Lock()
        self._works = set(works)

    def ask(self, *works: str) -> None:
        with self._lock:
            self._works.update(works)

    def take(self, *works: str) -> set[str]:
        """Those of these that are owed; they no longer are."""
        with self._lock:
            taken = self._works.intersection(works)
            self._works -= taken
        return taken

    def owes(self, *works: str) -> bool:
        with self._lock:
            return not self._works.isdisjoint(works)


#: To copy the log back, to empty it too, to finish erasures, and to merge the index's segments.
_COPY, _EMPTY, _ERASE, _MERGE = "copy", "empty", "erase", "merge"


class Housekeeper:
    """The thread, and what the hall may ask of it. All methods can be called from any thread."""

    def __init__(
        self,
        path: str,
        *,
        said: Said,
        embedding: bool = False,
        warmed: Connection | None = None,
    ) -> None:
        """`said` forgets what is taken out of the audit log; `warmed` is the connection that is
        given the commonest words decoded."""
        self._path = path
        self._said = said
        self._warmed = warmed
        self._embedding = embedding
        #: SQLite's number of the state of the file in which its vectors were last looked at.
        self._looked_at: int | None = None
        self._integrity: IntegrityState = "checking"
        self._structure_holds = False
        #: Held while the write-ahead log is copied back: there cannot be two at that at once, and
        #: the second would fail.
        self.copying = threading.Lock()
        self._structure_checked = threading.Event()
        self._wake = threading.Event()
        self._closing = False
        # A server that ended may have left text in the log that was to be erased.
        self._owed = _Owed(_COPY, _EMPTY, _ERASE, _MERGE)
        self._no_call = threading.Event()
        self._no_call.set()
        #: A merge under way, and when the last call was answered.
        self._merge: Iterator[None] | None = None
        self._answered = time.monotonic()
        self._waiting: deque[audit.Entry] = deque()
        #: Held from when the rows that wait are read until they no longer do.
        self._writing = threading.Lock()
        #: What `close` interrupts, and what is held to do so: no interrupt may meet a closed file.
        self._db: Connection | None = None
        self._interrupting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="hadano-chores", daemon=True)
        self._thread.start()

    @property
    def integrity(self) -> IntegrityState:
        """How the file fared at start-up; waits until the structure of its b-trees is known."""
        self._structure_checked.wait()
        return self._integrity

    @property
    def structure_holds(self) -> bool:
        """Whether the b-trees of the file were sound at start-up; where not, nothing may be written
        to it, for that could destroy what can still be saved. Waits until that is known."""
        self._structure_checked.wait()
        return self._structure_holds

    def log_later(self, entry: audit.Entry) -> None:
        """Takes an audit row that found the write lock held by another process.

        Raises E_TIMEOUT once `AUDIT_WAITING_MAX` rows wait.
        """
        if len(self._waiting) >= limits.AUDIT_WAITING_MAX:
            raise HadanoError(Code.TIMEOUT, "another process held the database for too long")
        self._waiting.append(entry)
        self._wake.set()

    @contextmanager
    def change(self, db: Connection, *, durable: bool = True) -> Iterator[None]:
        """`db.change` that first writes the audit rows that wait: in the order of the calls, and
        before an erasure in it looks for the text that they hold.

        The lock is taken inside the transaction, and so by one at a time, and outlives it.
        """
        with ExitStack() as written:
            with db.change(durable=durable):
                written.enter_context(self._writing)
                entries = list(self._waiting)
                audit.write(db, entries)
                yield
            for _ in entries:
                self._waiting.popleft()

    def wal_grew(self) -> None:
        """Has the write-ahead log copied back into the file."""
        self._owed.ask(_COPY)
        self._wake.set()

    def erase(self, *, empty_log: bool) -> None:
        """Has erasures finished, where some of one is owed; with `empty_log` the log is emptied
        too."""
        self._owed.ask(_ERASE, *([_EMPTY] if empty_log else []))
        self._wake.set()

    @contextmanager
    def call(self) -> Iterator[None]:
        """A call goes before what is made ready for later ones."""
        self._no_call.clear()
        try:
            yield
        finally:
            self._no_call.set()

    def answered(self, *, wrote: bool) -> None:
        """Notes that a call was answered: what can wait for a pause between calls waits for it."""
        self._answered = time.monotonic()
        if wrote:
            self._owed.ask(_MERGE)
            self._wake.set()

    def owes_log(self) -> bool:
        """Whether the write-ahead log is still to be copied back."""
        return self._owed.owes(_COPY, _EMPTY)

    def close(self) -> None:
        """Ends the thread, then writes the audit rows that still wait, on a connection of their
        own: they are there whatever the thread ended of. HadanoError where that cannot be done."""
        self._closing = True
        self._wake.set()
        while self._thread.is_alive():
            with self._interrupting:
                if self._db is not None:
                    self._db.stop("closing")
            self._thread.join(_AGAIN_SECONDS)
        if self._waiting:
            with closing(Connection(self._path)) as db:
                self._write_waiting(db)

    def _run(self) -> None:
        try:
            with (
                closing(Connection(self._path, vectors=self._embedding)) as db,
                self._interruptible(db),
            ):
                self._check(db)
                self._keep_house(db)
        except Exception:
            if not self._closing:
                self._integrity = "failed"
                sys.excepthook(*sys.exc_info())
        finally:
            self._structure_checked.set()

    @contextmanager
    def _interruptible(self, db: Connection) -> Iterator[None]:
        """`close` can cut short what `db` does inside."""
        with self._interrupting:
            self._db = db
        try:
            yield
        finally:
            with self._interrupting:
                self._db = None

    def _check(self, db: Connection) -> None:
        if self._closing:
            return
        self._structure_holds = db.structure_holds()
        if not self._structure_holds:
            self._integrity = "failed"
        elif self._embedding:
            self._set_up_vectors(db)
        self._structure_checked.set()
        if self._structure_holds:
            self._warm(db)
            self._integrity = "ok" if status.index_agrees(db) else "failed"

    def _warm(self, db: Connection) -> None:
        """Has the commonest words decoded; a call, or work that cannot wait, goes before it."""
        if self._warmed is None:
            return
        # What is damaged is told by the check that comes next; who has no room does without.
        with suppress(HadanoError, MemoryError):
            for is_part in warming.warm(db):
                if is_part and self._warmed.has_taken_warmth:
                    db.give_warmth(self._warmed)
                self._no_call.wait(_CALL_SECONDS_MAX)
                if self._closing:
                    return
                self._write_waiting(db)
        db.give_warmth(self._warmed)

    def _set_up_vectors(self, db: Connection) -> None:
        """Makes the tables of vectors, so that the first call's chunks get theirs at once. Where
        another process holds the file, that is left to `vectors.keep`."""
        db.wait_at_most(_SET_UP_MS_MAX)
        with suppress(HadanoError):
            if not vectors.has_tables(db):
                with db.change():
                    vectors.set_up(db)
        db.wait_at_most(limits.BUSY_MS_MAX)

    def _keep_house(self, db: Connection) -> None:
        delay = _AGAIN_SECONDS
        while not self._closing:
            owed = self._work(db)
            self._wake.wait(delay if owed else _LOOK_SECONDS if self._embedding else None)
            self._wake.clear()
            delay = min(delay * 2, _AGAIN_SECONDS_MAX) if owed else _AGAIN_SECONDS

    def _work(self, db: Connection) -> bool:
        """Does what is owed; True where something could not be done yet."""
        if not self._structure_holds:
            return False
        try:
            self._write_waiting(db)
            if self._integrity == "ok":
                self._erase(db)
                self._keep_vectors(db)
                self._merge_segments(db)
            return not self._copy_log(db) or self._owed.owes(_MERGE)
        except HadanoError:
            # Held by another process, a full disk, or closing: the work stays owed.
            return True

    def _write_waiting(self, db: Connection) -> None:
        while self._waiting:
            with self.change(db, durable=False):
                pass

    def _erase(self, db: Connection) -> None:
        """Takes what is owed in erasures out of the audit log, then out of the index, in small
        transactions."""
        if not self._owed.take(_ERASE):
            return
        try:
            forgotten = audit.forget_owed(db, self._said)
            for _ in chain(forgotten, ingest.erase_owed(db, limits.MERGE_PAGES)):
                self._owed.ask(_EMPTY)
                self._between_steps(db)
        except HadanoError:
            self._owed.ask(_ERASE)
            raise

    def _keep_vectors(self, db: Connection) -> None:
        """Makes the vectors that are owed, if any are, in small transactions."""
        if not self._embedding:
            return
        state: int = db.value("PRAGMA data_version")
        if state == self._looked_at:
            return
        for _ in vectors.keep(db):
            self._between_steps(db)
        self._looked_at = state

    def _merge_segments(self, db: Connection) -> None:
        """Merges the index's segments, where that is due, as long as no call comes."""
        if not self._is_idle() or not self._owed.take(_MERGE):
            return
        steps = self._merge or ingest.merge_scattered(db, limits.MERGE_PAGES)
        self._merge = None
        try:
            for _ in steps:
                self._between_steps(db)
                if not self._is_idle():
                    self._merge = steps
                    self._owed.ask(_MERGE)
                    return
        except HadanoError:
            self._owed.ask(_MERGE)
            raise

    def _is_idle(self) -> bool:
        return not self._closing and time.monotonic() - self._answered >= _IDLE_SECONDS

    def _between_steps(self, db: Connection) -> None:
        """What cannot wait for the end of long work: audit rows, and a log that grows."""
        self._write_waiting(db)
        if db.wal_pages > limits.WAL_PAGES_MAX:
            self._owed.ask(_COPY)
            self._copy_log(db)

    def _copy_log(self, db: Connection) -> bool:
        """Copies the write-ahead log into the file, and empties it where text is to be erased or it
        has grown past what may lie idle. False where another process still needs some of it."""
        # Taken under the lock: what is owed no more and not under way either has been done.
        with self.copying:
            owed = self._owed.take(_COPY, _EMPTY)
            if not owed:
                return True
            done = False
            # To wait for a reader is to hold up all writers; this is tried again instead.
            db.wait_at_most(0)
            try:
                done = db.checkpoint(truncate=_EMPTY in owed)
            finally:
                db.wait_at_most(limits.BUSY_MS_MAX)
                if not done:
                    self._owed.ask(*owed)
        return done
