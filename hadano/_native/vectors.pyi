"""The second hatch: the kernels of vectors; what each gives is told where it is declared."""

from hadano._native.embed import Embedder
from hadano._native.near import nearest, signs

__all__ = ["Embedder", "nearest", "signs"]
