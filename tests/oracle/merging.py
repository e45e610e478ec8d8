"""Capping and merging as the contract words them (7.5 and 7.6). Knows nothing of the kernel."""

from collections.abc import Sequence


def fuse(
    chunks: Sequence[int], docs: Sequence[int], per_doc: int, ranks: int, constant: int, top: int
) -> tuple[list[tuple[int, float, list[int]]], bool]:
    """The best documents of a ranking, and whether there were more."""
    held: dict[int, list[int]] = {}
    scores: dict[int, float] = {}
    rank = 0
    for chunk, doc in zip(chunks, docs, strict=True):
        if rank == ranks:
            break
        mine = held.setdefault(doc, [])
        if len(mine) == per_doc:
            continue
        rank += 1
        mine.append(chunk)
        scores[doc] = scores.get(doc, 0.0) + 1 / (constant + rank)
    # A dictionary keeps the order of the first rank and sorting is stable: that breaks ties.
    best = sorted(held, key=lambda doc: -scores[doc])
    return [(doc, scores[doc], held[doc]) for doc in best[:top]], len(best) > top
