from array import array

def fuse(
    chunks: array[int] | memoryview,
    docs: array[int] | memoryview,
    per_doc: int,
    ranks: int,
    constant: int,
    top: int,
) -> tuple[list[tuple[int, float, list[int]]], bool]:
    """The best documents of a ranking of chunks, and whether there were more than `top`.

    `chunks` and `docs` are parallel and contiguous arrays of 64-bit integers, best chunk first:
    a chunk's id and the number of its document. A chunk whose document already holds `per_doc`
    chunks is passed over and takes no rank; the others take the ranks 1, 2, 3 … up to `ranks` and
    add 1 / (`constant` + rank) to their document's score (reciprocal rank fusion: Cormack, Clarke
    and Büttcher, SIGIR 2009).

    Each document comes as (number, score, ids of its chunks in rank order): the higher score
    first, among equals the one whose best chunk ranks higher.

    Raises ValueError for arrays of unequal length, for per_doc below 1 and for other limits
    below 0.
    """
