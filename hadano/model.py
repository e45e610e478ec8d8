"""The model that ships with this version, a table of embeddings: its name, and vectors by it.

Knows nothing of stores. A vector means something only beside vectors of the same table, so whoever
keeps vectors keeps the table's hash with them. Imported where embeddings are on, and only there.
"""

import mmap
from functools import cache
from pathlib import Path
from typing import Final

from hadano._native.vectors import Embedder

NAME: Final = "universal-sentence-encoder-multilingual-3, static, 256"
#: Of the file, lower-case hex: the tests compare it, for to read 23 MB at start-up takes too long.
SHA256: Final = "1710db1b272e1521ca4e3e55281015450af3a44ec4a56c9c81c80efa6dc4a26d"
FILE: Final = Path(__file__).with_name("data") / "embedding.bin"


def embed(text: str) -> bytes:
    """The direction of a text: 256 signed bytes, all of them 0 where nothing in it is known.

    Raises OSError where the table is missing, ValueError where it is not whole.
    """
    return _embedder().embed(text)


@cache
def _embedder() -> Embedder:
    """Over the table as a memory map: processes share it, and pages that no text needs are never
    read."""
    with FILE.open("rb") as file:
        return Embedder(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
