"""search_knowledge, stage 2: from chunks that stage 1 found to what is near them.

Never searches the whole store on its own: without seeds there is nothing to expand.
"""

from typing import Final

from hadano import limits
from hadano.connection import Connection, Row, listed
from hadano.errors import Code, HadanoError
from hadano.types import Related, RelatedChunk, RelatedEdge, SearchKnowledge
from hadano.walk import EdgeRow, breadth_first, nodes_of

#: The most rows that vec0 gives in one answer.
VEC0_ROWS_MAX: Final = 4_096


def expand(db: Connection, it: SearchKnowledge) -> Related:
    """The seeds' neighbours by vectors, by the relation graph, or both (contract, section 8)."""
    seeds = _seeds(db, it.seed_chunk_ids)
    by_vector, by_graph = _ways(db, it.mode)
    chunks, more_chunks = _nearest(db, it.seed_chunk_ids, it.top_k) if by_vector else ([], False)
    edges, more_edges = _neighbourhood(db, seeds, it.top_k) if by_graph else ([], False)
    return Related(
        related_chunks=chunks,
        related_edges=[RelatedEdge(*edge) for edge in edges],
        truncated=more_chunks or more_edges,
    )


def _seeds(db: Connection, chunk_ids: list[int]) -> list[str]:
    """Ids of the seeds' documents, in the seeds' order, each once."""
    documents = []
    for chunk_id in chunk_ids:
        # Beyond 64 bits there is no row number, and SQLite takes no such integer.
        known = -(2**63) <= chunk_id < 2**63
        doc_id = known and db.value(
            "SELECT d.id FROM chunks AS c JOIN docs AS d ON d.n = c.doc WHERE c.id = ?", (chunk_id,)
        )
        if not doc_id:
            raise HadanoError(Code.NOT_FOUND, f"seed_chunk_ids: there is no chunk {chunk_id}")
        documents.append(doc_id)
    return list(dict.fromkeys(documents))


def _ways(db: Connection, mode: str) -> tuple[bool, bool]:
    """Whether to go by vectors, and whether by the graph."""
    if mode != "auto":
        return db.vectors and mode in ("vector", "both"), mode in ("graph", "both")
    vectors = db.vectors and db.row("SELECT 1 FROM vec_chunks LIMIT 1") is not None
    edges = db.row("SELECT 1 FROM edges LIMIT 1") is not None
    return vectors, edges or not vectors


def _neighbourhood(db: Connection, documents: list[str], top_k: int) -> tuple[list[EdgeRow], bool]:
    """Edges of the seeds' own documents, then those that share a node with them, and so on."""
    own = [
        edge
        for doc_id in documents
        for edge in db.rows(
            "SELECT src, rel, dst, doc_id FROM edges WHERE doc_id = ? ORDER BY src, rel, dst",
            (doc_id,),
        )
    ]
    return breadth_first(db, own, nodes_of(own), hops=limits.HOPS_MAX - 1, most=top_k)


def _nearest(db: Connection, seeds: list[int], top_k: int) -> tuple[list[RelatedChunk], bool]:
    """The chunks nearest to any of the seeds, by their best cosine similarity to one of them."""
    best: dict[int, float] = {}
    for seed in seeds:
        vector = db.value("SELECT embedding FROM vec_chunks WHERE chunk_id = ?", (seed,))
        if vector is None:
            raise HadanoError(Code.INTEGRITY, f"chunk {seed} has no vector")
        # The seeds themselves can be among the nearest, and one more tells whether there are more.
        for chunk_id, distance in _neighbours(db, vector, top_k + len(seeds) + 1):
            if chunk_id not in seeds:
                best[chunk_id] = max(best.get(chunk_id, -1.0), 1.0 - distance)
    ranking = sorted(best, key=lambda chunk_id: (-best[chunk_id], chunk_id))
    shown = ranking[:top_k]
    texts = {
        row[0]: row[1:]
        for row in db.rows(
            "SELECT c.id, d.id, d.title, c.seq, c.text FROM chunks AS c"
            " JOIN docs AS d ON d.n = c.doc WHERE c.id IN (SELECT value FROM json_each(?))",
            (listed(shown),),
        )
    }
    found = []
    for chunk_id in shown:
        doc_id, title, seq, text = texts[chunk_id]
        score = round(best[chunk_id], limits.SCORE_DECIMALS)
        found.append(RelatedChunk(chunk_id, doc_id, title, seq, text, score))
    return found, len(ranking) > top_k


def _neighbours(db: Connection, vector: bytes, wanted: int) -> list[Row]:
    """The chunks nearest to a vector, with their cosine distances; more than `wanted` at times.

    A vector of zeros has no direction, and so no distance: it is nobody's neighbour. vec0 gives
    those first, and so has to be asked for more until there are enough others.
    """
    asked = wanted
    while True:
        rows = db.rows(
            "SELECT chunk_id, distance FROM vec_chunks WHERE embedding MATCH vec_int8(?) AND k = ?",
            (vector, asked),
        )
        near = [row for row in rows if row[1] is not None]
        if len(near) >= wanted or len(rows) < asked or asked == VEC0_ROWS_MAX:
            return near
        asked = min(asked * 4, VEC0_ROWS_MAX)
