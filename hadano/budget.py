"""Two seconds for a call: the watchdog that cuts one short.

One thread for all calls. It is woken only to start waiting, at most once in a budget's length, so
that a call pays no thread switch for being watched.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: How often a cut is repeated until the call has ended: an interrupt that falls between two
#: statements is lost on SQLite.
_AGAIN_SECONDS: Final = 0.005


class Watchdog:
    """Calls `stop` with a reason, again and again, while a call is past its time or cancelled."""

    def __init__(self, seconds: float, stop: Callable[[str], None]) -> None:
        self._seconds = seconds
        self._stop = stop
        self._changed = threading.Condition()
        self._deadline: float | None = None
        self._called = False
        self._cancelled = False
        self._idle = True
        self._closed = False
        self._thread = threading.Thread(target=self._watch, name="hadano-watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Everything inside has the budget's time."""
        with self._changed:
            self._deadline = time.monotonic() + self._seconds
            if self._cancelled:
                self._cut()
            if self._idle:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadline = None

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        """What `cancel` takes back: a call from its beginning, also before its time runs."""
        with self._changed:
            self._called, self._cancelled = True, False
        try:
            yield
        finally:
            with self._changed:
                self._called = False

    def left_ms(self) -> int:
        """Milliseconds left of the running call's time, never negative."""
        deadline = self._deadline
        return 0 if deadline is None else max(0, int((deadline - time.monotonic()) * 1000))

    def cancel(self) -> None:
        """Cuts the running call short, if there is one."""
        with self._changed:
            if self._called:
                self._cancelled = True
                self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _watch(self) -> None:
        with self._changed:
            while not self._closed:
                if self._deadline is None:
                    self._idle = True
                    self._changed.wait()
                    self._idle = False
                    continue
                left = self._deadline - time.monotonic()
                if left > 0 and not self._cancelled:
                    self._changed.wait(left)
                    continue
                self._cut()
                self._changed.wait(_AGAIN_SECONDS)

    def _cut(self) -> None:
        late = f"the call took longer than {self._seconds * 1000:,.0f} ms and was undone"
        self._stop("the client cancelled the call" if self._cancelled else late)
