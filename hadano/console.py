"""What the commands share: how they fail, how they end, and the bar that says how far they are.

Knows the ground only: nothing of databases, and nothing of what a command does.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Final, Never, Self

from hadano.errors import Code, HadanoError, SettingsError, invalid
from hadano.types import database_path

#: Says that one more of the things that a bar counts is done.
Tick = Callable[[], None]

#: How often the bar is drawn at most, in seconds.
_REDRAW_SECONDS: Final = 0.1
_BAR_CELLS: Final = 24


def database(flag: str, given: str) -> str:
    """The absolute path of the database file that a flag names; E_VALIDATION where none can be."""
    try:
        return database_path(given, flag)
    except SettingsError as error:
        raise HadanoError(Code.VALIDATION, str(error)) from None


def folder(flag: str, given: str) -> str:
    """The absolute path of the folder that a flag names; E_VALIDATION where there is none."""
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.isdir(path):
        kind = "is a file, not a folder" if os.path.exists(path) else "does not exist"
        raise invalid(flag, f"the folder {path} {kind}")
    return path


@contextmanager
def reading(flag: str, given: str) -> Iterator[IO[bytes]]:
    """The file that a flag names, `-` for standard input; E_VALIDATION where there is none."""
    if given == "-":
        yield sys.stdin.buffer
        return
    path = os.path.expanduser(given)
    if not os.path.exists(path):
        raise invalid(flag, f"there is no file {path}")
    if os.path.isdir(path):
        raise invalid(flag, f"{path} is a folder, not a file")
    with open(path, "rb") as stream:
        yield stream


def at_least(least: int) -> Callable[[str], int]:
    """What makes a flag's value a whole number of at least `least`; for argparse's `type`."""

    def number(given: str) -> int:
        value = int(given)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return number


def run(
    parser: argparse.ArgumentParser,
    work: Callable[[argparse.Namespace], None],
    argv: list[str] | None = None,
) -> int:
    """Runs a command and gives its exit status: 0, or 1 after one line `E_CODE: message`.

    Wrong usage ends in argparse, with status 2. To be told to stop (Ctrl-C, SIGTERM) is a failure
    like any other: what was begun is undone, and whoever says so again does not cut that short.
    """
    arguments = parser.parse_args(argv)
    before = {which: signal.signal(which, _stop) for which in _told_to_stop_by()}
    try:
        work(arguments)
        sys.stdout.flush()
    except HadanoError as error:
        return _failed(error.code, error.message)
    except KeyboardInterrupt:
        return _failed(Code.INTERNAL, "interrupted before the end")
    except BrokenPipeError:
        # Python flushes standard output once more at the end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _failed(Code.INTERNAL, "nobody reads standard output any more")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return _failed(Code.INTERNAL, f"{error.filename}: {reason}" if error.filename else reason)
    except Exception as error:
        return _failed(Code.INTERNAL, f"a bug worth reporting: {error!r}")
    finally:
        for which, handler in before.items():
            if signal.getsignal(which) is _stop:
                signal.signal(which, handler)
    return 0


def _told_to_stop_by() -> Iterator[signal.Signals]:
    """SIGTERM, and Ctrl-C unless whoever started the command has it ignored."""
    yield signal.SIGTERM
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield signal.SIGINT


def _stop(*_: object) -> Never:
    """Interrupts what runs; from then on, to the end of the process, nothing does."""
    for which in _told_to_stop_by():
        signal.signal(which, signal.SIG_IGN)
    raise KeyboardInterrupt


def _failed(code: Code, message: str) -> int:
    print(f"{code}: {' '.join(message.splitlines())}", file=sys.stderr)
    return 1


class Progress:
    """A bar on standard error, with the rate and the time left; nothing where that is no terminal.

    A context manager: the line is clear again at its end.
    """

    def __init__(self, label: str, total: int, unit: str) -> None:
        self._label, self._total, self._unit = label, total, unit
        self._shown = sys.stderr.isatty()
        self._began = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def reach(self, done: int, total: int | None = None) -> None:
        """Says how much is done; `total` where it has become known or has changed."""
        if not self._shown:
            return
        self._total = self._total if total is None else total
        moment = time.monotonic()
        if moment - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = moment
        print("\r\x1b[K" + self._line(done, moment), end="", file=sys.stderr, flush=True)

    def _line(self, done: int, moment: float) -> str:
        share = min(done / self._total, 1.0) if self._total else 0.0
        rate = done / max(moment - self._began, 1e-9)
        left = max(self._total - done, 0) / rate if rate else 0.0
        full = round(share * _BAR_CELLS)
        return (
            f"{self._label} [{'#' * full}{'.' * (_BAR_CELLS - full)}] {share:4.0%}"
            f"  {done:,} of {self._total:,} {self._unit}, {rate:,.0f}/s, {left:.0f} s left"
        )
