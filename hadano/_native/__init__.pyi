"""The hatch to the compiled kernels; what each gives is told where it is declared."""

from typing import Final

from hadano._native.chunk import windows
from hadano._native.fold import classes, search_form, short_words
from hadano._native.merge import fuse
from hadano._native.pieces import Pieces, beyond_ascii, lowered_lines, other_lines
from hadano._native.rank import (
    ENTRY_POINT,
    LIBRARY,
    Agreement,
    Cancelled,
    DamagedIndex,
    Eraser,
    Ranker,
    StoreFailed,
)

HINT: Final[str]

__all__ = [
    "ENTRY_POINT",
    "HINT",
    "LIBRARY",
    "Agreement",
    "Cancelled",
    "DamagedIndex",
    "Eraser",
    "Pieces",
    "Ranker",
    "StoreFailed",
    "beyond_ascii",
    "classes",
    "fuse",
    "lowered_lines",
    "other_lines",
    "search_form",
    "short_words",
    "windows",
]
