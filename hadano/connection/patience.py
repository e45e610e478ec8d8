"""How a lock is waited for. Knows of no lock, and not what is behind it."""

import time
from collections.abc import Callable
from typing import Final

from hadano import limits

#: Between two tries for a lock, in milliseconds: the most at first, then less and less, and the
#: least once it has been waited for about so long.
_PAUSE_MS_MAX: Final = 8
_PAUSE_MS_MIN: Final = 1
_PAUSE_FALLS_MS: Final = 400


class Patience:
    """How long, and how, those wait who share it; until `ended` says that they need not any more.

    The longer one has waited the sooner it asks again, so that locks go to who came first, or
    nearly so. SQLite's own way is the other way round, up to a tenth of a second between two tries:
    late-comers go first, and of sixteen writers some wait in vain.
    """

    def __init__(self, ended: Callable[[], bool]) -> None:
        self._ended = ended
        self._milliseconds = limits.BUSY_MS_MAX

    def wait_at_most(self, milliseconds: int) -> None:
        """How long a lock is waited for from now on; never longer than `BUSY_MS_MAX`."""
        self._milliseconds = max(0, min(milliseconds, limits.BUSY_MS_MAX))

    def handler(self) -> Callable[[int], bool]:
        """What SQLite calls, for one connection, with the number of tries so far: pauses, and says
        whether to ask again."""
        since = 0.0

        def ask_again(tries: int) -> bool:
            nonlocal since
            now = time.monotonic()
            if tries == 0:
                since = now
            waited_ms = (now - since) * 1000
            left_ms = self._milliseconds - waited_ms
            if left_ms <= 0 or self._ended():
                return False
            pause_ms = max(_PAUSE_MS_MIN, _PAUSE_MS_MAX * (1 - waited_ms / _PAUSE_FALLS_MS))
            time.sleep(min(left_ms, pause_ms) / 1000)
            return True

        return ask_again
