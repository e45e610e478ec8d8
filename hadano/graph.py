"""query_graph: what is connected to a node.

Names are compared exactly, codepoint for codepoint: `US` is not `us`, `C` is not `C++`.
"""

from msgspec import UNSET

from hadano import limits
from hadano.connection import Connection
from hadano.types import Edge, Graph, QueryGraph
from hadano.walk import breadth_first, nodes_of


def query(db: Connection, it: QueryGraph) -> Graph:
    """The edges within `depth` hops of the node; empty lists for a node that no edge names."""
    edges, truncated = breadth_first(
        db,
        [],
        [it.node],
        hops=it.depth,
        most=limits.GRAPH_EDGES_MAX,
        rel=None if it.rel is UNSET else it.rel,
    )
    known = edges or db.row(
        "SELECT 1 WHERE EXISTS(SELECT 1 FROM edges WHERE src = ?1)"
        " OR EXISTS(SELECT 1 FROM edges WHERE dst = ?1)",
        (it.node,),
    )
    return Graph(
        nodes=sorted({it.node, *nodes_of(edges)}) if known else [],
        edges=[Edge(*edge) for edge in edges],
        truncated=truncated,
    )
