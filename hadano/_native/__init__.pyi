"""The hatch to the compiled kernels; what each gives is told where it is declared."""

from hadano._native.chunk import windows
from hadano._native.fold import classes, search_form, short_words
from hadano._native.merge import fuse
from hadano._native.pieces import Pieces
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

__all__ = [
    "ENTRY_POINT",
    "LIBRARY",
    "Agreement",
    "Cancelled",
    "DamagedIndex",
    "Eraser",
    "Pieces",
    "Ranker",
    "StoreFailed",
    "classes",
    "fuse",
    "search_form",
    "short_words",
    "windows",
]
