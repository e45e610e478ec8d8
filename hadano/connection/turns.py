"""Taking turns in long work: SQLite hands a lock to whoever asks first, and who waits for it pauses
between two tries, so whoever has just had it must not ask again at once.

Knows of no lock.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def turn() -> Iterator[None]:
    """After what is done inside, waits for half as long as that took."""
    began = time.monotonic()
    yield
    time.sleep((time.monotonic() - began) / 2)
