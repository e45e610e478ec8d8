"""The line: calls wait for the store in the order in which they came, so many at most.

One thread works through it, as the store takes one call at a time; the event loop never waits.
Knows nothing of HTTP.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

from hadano.service import Answer, Service

#: Calls that wait or run. The usual one takes some milliseconds and the slowest 2 s, and clients
#: give up after a minute.
CALLS_MAX: Final = 64


class Cancelled(Exception):
    """The call was taken back before it ran."""


class Turn:
    """One call's place in the line, and what became of it. Times are in milliseconds."""

    def __init__(self, line: "Line", arguments: object) -> None:
        self._line = line
        self._arguments = arguments
        self._came = time.perf_counter()
        self.cancelled = False
        #: Set where the line was closed before the turn came.
        self.turned_away = False
        #: What is cancelled then: the work of answering.
        self.answering: asyncio.Future[None] | None = None
        self.waited_ms: float | None = None
        self.worked_ms: float | None = None

    async def call(self, name: str) -> Answer:
        """The hall's answer. Raises UnknownTool, and Cancelled where the call was taken back. Gives
        the place up, so that no slow reader of the answer keeps it."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(
                self._line.worker, self._line.work, self, name, self._arguments
            )
        finally:
            self.leave()

    def leave(self) -> None:
        """Gives the place up, and takes the call back where it has not ended: it never runs, or is
        interrupted."""
        self._line.leave(self)

    def begin(self) -> None:
        self._began = time.perf_counter()
        self.waited_ms = (self._began - self._came) * 1000

    def end(self) -> None:
        self.worked_ms = (time.perf_counter() - self._began) * 1000


class Line:
    """The calls that wait, and the one that runs. `enter`, `leave` and `close` belong to the event
    loop's thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.worker = ThreadPoolExecutor(1, "hadano-calls")
        self._turns: set[Turn] = set()
        self._closed = False
        #: Guards `_running`, so that no call is cut in place of the one before it.
        self._changing = Lock()
        self._running: Turn | None = None

    def enter(self, arguments: object) -> Turn | None:
        """A place at the end of the line for a call with these arguments; None where the line is
        full, or closed."""
        if self._closed or len(self._turns) >= CALLS_MAX:
            return None
        turn = Turn(self, arguments)
        self._turns.add(turn)
        return turn

    def leave(self, turn: Turn) -> None:
        """See Turn.leave."""
        self._turns.discard(turn)
        with self._changing:
            turn.cancelled = True
            if self._running is turn:
                self._service.cancel()

    def close(self) -> None:
        """Lets the call that runs finish and turns away those that have not begun."""
        self._closed = True
        with self._changing:
            waiting = [turn for turn in self._turns if turn.waited_ms is None]
            for turn in waiting:
                turn.cancelled = turn.turned_away = True
        for turn in waiting:
            if turn.answering is not None:
                turn.answering.cancel()

    def work(self, turn: Turn, name: str, arguments: object) -> Answer:
        """Runs a call; in the worker's thread."""
        with self._changing:
            if turn.cancelled:
                raise Cancelled
            self._running = turn
            turn.begin()
        try:
            return self._service.call(name, arguments)
        finally:
            with self._changing:
                self._running = None
                turn.end()
