"""search_documents, stage 1: chunks by keyword, ranked, capped, merged into documents.

A pipe of three: terms (`plan`), their ranking (the compiled ranker, over FTS5's own index) and the
merge into documents (compiled, too). What stands here is what is asked of each, and what is shown.
"""

from hadano import limits
from hadano._native import fuse
from hadano.connection import Connection, listed
from hadano.plan import terms
from hadano.types import Found, FoundDocument, MatchedChunk, SearchDocuments


def search(db: Connection, it: SearchDocuments) -> Found:
    """The documents that match best."""
    chunks, docs = db.ranking(
        terms(it.query), per_doc=it.max_chunks_per_doc, ranks=limits.FUSION_RANKS_MAX
    )
    found, more = fuse(
        chunks,
        docs,
        it.max_chunks_per_doc,
        limits.FUSION_RANKS_MAX,
        limits.FUSION_CONSTANT,
        it.top_k,
    )
    return Found(documents=_shown(db, found), truncated=more)


def _shown(db: Connection, found: list[tuple[int, float, list[int]]]) -> list[FoundDocument]:
    """The ranked documents with what is shown of them.

    Numbers that are listed once each are joined, and not looked for with IN, for which SQLite makes
    a table of them first.
    """
    identity = {
        row[0]: row[1:]
        for row in db.rows(
            "SELECT n, d.id, title FROM json_each(?) CROSS JOIN docs AS d ON n = value",
            (listed(n for n, _, _ in found),),
        )
    }
    text = {
        row[0]: MatchedChunk(*row)
        for row in db.rows(
            "SELECT c.id, seq, text FROM json_each(?) CROSS JOIN chunks AS c ON c.id = value",
            (listed(c for _, _, chunks in found for c in chunks),),
        )
    }
    return [
        FoundDocument(
            doc_id=identity[n][0],
            title=identity[n][1],
            score=round(score, limits.SCORE_DECIMALS),
            matched_chunks=[text[chunk] for chunk in chunks],
        )
        for n, score, chunks in found
    ]
