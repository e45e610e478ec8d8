"""The hatch to the compiled kernels: nothing else of hadano imports what lies behind it.

It knows no plain Python stand-ins. Without the compiled code it stops, for a copy that is quietly
a hundred times slower would be worse.
"""

#: What to do where compiled code is missing.
HINT = (
    "run `pip install --force-reinstall hadano`, or, in a source tree, `pip install -e .` "
    "(this needs a C compiler; with a plain `pip install .`, run Python from another folder)."
)

try:
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
except ImportError as error:
    raise ImportError(
        f"hadano's compiled core is missing or was built for another Python: {HINT}"
    ) from error

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
