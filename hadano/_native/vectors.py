"""The second hatch: the kernels of vectors, which only a store with embeddings on needs.

Apart from the first, so that a server without them loads none of this. It stops as that one does
where the compiled code is missing.
"""

from hadano._native import HINT

try:
    from hadano._native.embed import Embedder
    from hadano._native.near import nearest, signs
except ImportError as error:
    raise ImportError(
        f"hadano's compiled core for vectors is missing or was built for another Python: {HINT}"
    ) from error

__all__ = ["Embedder", "nearest", "signs"]
