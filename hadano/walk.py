"""Breadth-first walks over the relation graph, for the two rooms that need one.

Edges are followed in both directions; an edge is met once, however many ways lead to it. Edges of
one node come out of the index in its order (relation, other end, document), outgoing ones first,
so the same store gives the same walk.
"""

from collections.abc import Iterable

from hadano.connection import Connection

#: src, rel, dst, doc_id
EdgeRow = tuple[str, str, str, str]

_OUT = "SELECT src, rel, dst, doc_id FROM edges WHERE src = ?1{} ORDER BY rel, dst, doc_id LIMIT ?2"
_IN = "SELECT src, rel, dst, doc_id FROM edges WHERE dst = ?1{} ORDER BY rel, src, doc_id LIMIT ?2"


def nodes_of(edges: Iterable[EdgeRow]) -> list[str]:
    """Both ends of the edges, each once, in the order in which they are met."""
    return list(dict.fromkeys(node for src, _, dst, _ in edges for node in (src, dst)))


def breadth_first(
    db: Connection,
    edges: Iterable[EdgeRow],
    nodes: Iterable[str],
    *,
    hops: int,
    most: int,
    rel: str | None = None,
) -> tuple[list[EdgeRow], bool]:
    """`edges`, then the edges within `hops` of `nodes`, nearest first, at most `most`; and whether
    that cut anything. With `rel`, only edges of that name are followed."""
    found = dict.fromkeys(edges)
    seen = dict.fromkeys(nodes)
    frontier = list(seen)
    for _ in range(hops):
        fresh: list[str] = []
        for node in frontier:
            for edge in _edges_at(db, node, rel, most + 1):
                if edge in found:
                    continue
                if len(found) >= most:
                    return list(found)[:most], True
                found[edge] = None
                for end in (edge[0], edge[2]):
                    if end not in seen:
                        seen[end] = None
                        fresh.append(end)
        frontier = fresh
    return list(found)[:most], len(found) > most


def _edges_at(db: Connection, node: str, rel: str | None, most: int) -> list[EdgeRow]:
    """Edges that touch `node`. `most` of each direction are enough for a walk that stops at as
    many: of `most + 1` edges at least one is new."""
    condition, parameters = (
        ("", (node, most)) if rel is None else (" AND rel = ?3", (node, most, rel))
    )
    return db.rows(_OUT.format(condition), parameters) + db.rows(_IN.format(condition), parameters)
