"""search_knowledge, stage 2: from chunks that stage 1 found to what is near them.

Never searches the whole store on its own: without seeds there is nothing to expand.
"""

from hadano import limits, vectors
from hadano.connection import Connection, listed
from hadano.errors import Code, HadanoError
from hadano.types import Related, RelatedChunk, RelatedEdge, SearchKnowledge
from hadano.walk import EdgeRow, breadth_first, nodes_of


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
    by_vector = db.vectors and vectors.any_usable(db)
    edges = db.row("SELECT 1 FROM edges LIMIT 1") is not None
    return by_vector, edges or not by_vector


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
    """The chunks nearest to any of the seeds, by their best cosine similarity to one of them.

    The seeds are no finds, nor are the windows beside them, which share some of their text.
    """
    passed = _windows_at(db, seeds)
    # One more tells whether there are more.
    most = len(passed) + top_k + 1
    near = vectors.nearest(db, vectors.of(db, seeds), most)
    found = [(chunk_id, score) for chunk_id, score in near if chunk_id not in passed]
    return _shown(db, found[:top_k]), len(found) > top_k


def _windows_at(db: Connection, seeds: list[int]) -> set[int]:
    """The seeds, and the chunks before and after each in its document."""
    rows = db.rows(
        "SELECT w.id FROM chunks AS c JOIN chunks AS w ON w.doc = c.doc"
        " AND w.seq BETWEEN c.seq - 1 AND c.seq + 1"
        " WHERE c.id IN (SELECT value FROM json_each(?))",
        (listed(seeds),),
    )
    return {chunk_id for (chunk_id,) in rows}


def _shown(db: Connection, found: list[tuple[int, float]]) -> list[RelatedChunk]:
    """The chunks with what is shown of them."""
    texts = {
        row[0]: row[1:]
        for row in db.rows(
            "SELECT c.id, d.id, d.title, c.seq, c.text FROM chunks AS c"
            " JOIN docs AS d ON d.n = c.doc WHERE c.id IN (SELECT value FROM json_each(?))",
            (listed(chunk_id for chunk_id, _ in found),),
        )
    }
    if len(texts) < len(found):
        raise HadanoError(Code.INTEGRITY, "there are vectors of chunks that do not exist")
    chunks = []
    for chunk_id, score in found:
        doc_id, title, seq, text = texts[chunk_id]
        rounded = round(score, limits.SCORE_DECIMALS)
        chunks.append(RelatedChunk(chunk_id, doc_id, title, seq, text, rounded))
    return chunks
