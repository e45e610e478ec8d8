"""What two texts share, the slow and plain way."""

import sys
from collections.abc import Iterable
from typing import Protocol

PIECE_BYTES = 8


class Known(Protocol):
    """The kernel's `Pieces`."""

    def run(self, said: bytes, start: int, most: int) -> tuple[int, int] | None: ...


def runs_of(known: Known, said: bytes, most: int = sys.maxsize) -> list[tuple[int, int]]:
    """The kernel's stretches, each asked for from where the one before it ended."""
    found: list[tuple[int, int]] = []
    at = 0
    while run := known.run(said, at, most):
        found.append(run)
        at = run[1] - PIECE_BYTES + 1
    return found


def _pieces(text: bytes) -> list[bytes]:
    return [text[at : at + PIECE_BYTES] for at in range(len(text) - PIECE_BYTES + 1)]


def runs(
    texts: Iterable[bytes], said: bytes, dropped: Iterable[bytes] = ()
) -> list[tuple[int, int]]:
    """Every longest stretch of `said` of which all pieces are pieces of one of the texts, and none
    is one of a text that was dropped."""
    known = {piece for text in texts for piece in _pieces(text)}
    known -= {piece for text in dropped for piece in _pieces(text)}
    told = {at for at, piece in enumerate(_pieces(said)) if piece in known}
    starts = sorted(at for at in told if at - 1 not in told)
    ends = sorted(at + PIECE_BYTES for at in told if at + 1 not in told)
    return list(zip(starts, ends, strict=True))
