# cython: language_level=3
"""First stand-in of the merging kernel, to be replaced."""


def fuse(const long long[::1] chunks, const long long[::1] docs, int per_doc, int ranks,
         int constant, int top):
    held = {}
    rank = 0
    for chunk, doc in zip(chunks, docs, strict=True):
        if rank == ranks:
            break
        mine = held.setdefault(doc, [0.0, []])
        if len(mine[1]) == per_doc:
            continue
        rank += 1
        mine[0] += 1 / (constant + rank)
        mine[1].append(chunk)
    order = sorted(held, key=lambda doc: -held[doc][0])
    return [(doc, held[doc][0], held[doc][1]) for doc in order[:top]], len(order) > top
