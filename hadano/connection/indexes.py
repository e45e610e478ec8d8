"""The full-text index and the vectors, as the compiled core reads them and erases from them.

It works on the connection itself, inside its transactions. It refuses to know what is searched for,
and why something is to go.
"""

import math
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

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
from hadano.connection.failures import failure, translated
from hadano.connection.statements import Statements
from hadano.errors import Code, HadanoError

if TYPE_CHECKING:
    from array import array

    from hadano.connection.blocks import Blocks


class Indexes(Statements):
    """A connection that also asks the indexes."""

    def __init__(self, path: str, flags: int) -> None:
        super().__init__(path, flags)
        self._ranker: Ranker | None = None
        self._eraser: Eraser | None = None
        #: Other connections', whose decoded terms the next ranking takes over. A thread may add one
        #: while another takes them.
        self._warmth: deque[Ranker] = deque()
        #: Bytes of decoded terms that were given to another.
        self._given = 0
        self._blocks: Blocks | None = None
        #: How often this connection has been about to put vectors in or to take some out.
        self._vectors_written = 0

    # The full-text index.

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
            while self._warmth:
                ranker.adopt(self._warmth.popleft())
            return ranker.rank(terms, per_doc, ranks)

    def _own_ranker(self) -> Ranker:
        if self._ranker is None:
            self._load_extension(LIBRARY, ENTRY_POINT)
            if self._outdated:  # nobody writes to it any more
                self._db.execute(schema.NOTHING_UNINDEXED)
            # Less than nothing where the newest chunks were deleted since some was given.
            room = max(self._room_for_decoded() - self._given, 0)
            self._ranker = Ranker(self._db, cache_bytes=room)
        return self._ranker

    def _room_for_decoded(self) -> int:
        newest: int = self.value("SELECT max(id) FROM chunks") or 0
        room = newest * limits.DECODED_BYTES_A_CHUNK
        return min(max(room, limits.DECODED_BYTES_MIN), limits.DECODED_BYTES_MAX)

    def decode(self, term: tuple[int, str]) -> bool:
        """Decodes a term, for `give_warmth`; False where there is no more room for any. E_INTEGRITY
        as `ranking`."""
        with self.snapshot(), self._core_failures():
            return self._own_ranker().make_ready(*term)

    @property
    def decoded_bytes(self) -> int:
        """What it keeps of decoded terms."""
        return self._ranker.cached_bytes if self._ranker else 0

    @property
    def has_taken_warmth(self) -> bool:
        """Whether all that was given to it is in use."""
        return not self._warmth

    def give_warmth(self, to: "Indexes") -> None:
        """Leaves what this connection has decoded to another to the same file, which may be at work
        in another thread. The most useful terms are to be decoded first: they are dropped last."""
        ranker, self._ranker = self._ranker, None
        if ranker is not None:
            self._given += ranker.cached_bytes
            ranker.close()
            to._warmth.append(ranker)

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
            raise translated(failure(error.args[0])) from error
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

    # Vectors.

    def nearest(self, seeds: list[bytes], most: int, remade: int) -> list[tuple[int, float]]:
        """Ids of up to `most` chunks whose vectors are nearest to one of `seeds`, and their best
        cosine similarities, best first. Inside `snapshot` only. While `remade` is the same, so is
        each chunk's vector, and what was read before need not be read again.

        E_INTEGRITY where the tables of vectors do not fit together.
        """
        # Brings compiled code that most stores never need.
        from hadano.connection.blocks import Blocks

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

    # Cutting a call short.

    def stop(self, why: str) -> None:
        super().stop(why)
        for core in self._cores():
            core.cancel()

    def resume(self) -> None:
        super().resume()
        for core in self._cores():
            core.resume()

    def _cores(self) -> Iterator[Ranker | Eraser]:
        """The compiled readers and writers of the index that have been made. Each is read once:
        `give_warmth` takes the ranker away while another thread may be stopping it."""
        for core in (self._ranker, self._eraser):
            if core is not None:
                yield core
