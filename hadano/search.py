"""search_documents, stage 1: chunks by keyword, ranked, capped, merged into documents.

The ranking is FTS5's own (contract, section 7.4): `chunks_fts` is asked for whatever it can
express, and what it cannot (terms of one or two codepoints anywhere) is scored by the same formula
over the same index.
"""

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable

from hadano import limits
from hadano._native import fuse
from hadano.connection import Connection, listed
from hadano.plan import Kind, Term, terms
from hadano.types import Found, FoundDocument, MatchedChunk, SearchDocuments
from hadano.varints import varints

# FTS5's bm25(), fts5_aux.c: the constants, and the least weight that a term has.
K1, B, IDF_MIN = 1.2, 0.75, 1e-6

_TERMS = """
CREATE VIRTUAL TABLE IF NOT EXISTS temp.chunks_terms USING fts5vocab(main, chunks_fts, instance)
"""
_ANYWHERE = (
    "SELECT doc, count(*) FROM chunks_terms WHERE term >= ? AND term < ? AND col <> 'words'"
    " GROUP BY doc"
)


def search(db: Connection, it: SearchDocuments) -> Found:
    """The documents that match best."""
    chunks, docs = ranking(db, terms(it.query))
    found, more = fuse(
        chunks,
        docs,
        it.max_chunks_per_doc,
        limits.FUSION_RANKS_MAX,
        limits.FUSION_CONSTANT,
        it.top_k,
    )
    return Found(documents=_shown(db, found), truncated=more)


def ranking(db: Connection, wanted: Iterable[Term]) -> tuple["array[int]", "array[int]"]:
    """Ids of all matching chunks, best first, and their documents' numbers beside them."""
    native = [term for term in wanted if term.kind is not Kind.ANYWHERE]
    scores: dict[int, float] = defaultdict(float)
    if native:
        scores.update(
            db.rows(
                "SELECT rowid, rank FROM chunks_fts WHERE chunks_fts MATCH ?", (_match(native),)
            )
        )
    _add_anywhere(db, [term.text for term in wanted if term.kind is Kind.ANYWHERE], scores)
    ranked = sorted(scores, key=lambda chunk: (scores[chunk], chunk))
    doc_of: dict[int, int] = dict(
        db.rows(
            "SELECT id, doc FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
            (listed(ranked),),
        )
    )
    return array("q", ranked), array("q", (doc_of[chunk] for chunk in ranked))


def _match(native: Iterable[Term]) -> str:
    """FTS5's query for the terms that it can express."""
    quoted = []
    for kind, text in native:
        if kind is Kind.SUBSTRING:
            quoted.append('{title text} : "' + text.replace('"', '""') + '"')
        else:
            quoted.append('words : "' + word_trigram(text).replace('"', '""') + '"')
    return " OR ".join(quoted)


def word_trigram(word: str) -> str:
    """The one trigram that stands for a whole word of one or two codepoints in column `words`."""
    return f"\x1f{word}\x1f"[:3]


def _add_anywhere(db: Connection, texts: list[str], scores: dict[int, float]) -> None:
    """Adds to `scores` what bm25() would give for terms of one or two codepoints, each found at the
    head of every trigram that begins with it. Scores are negative, as FTS5's are."""
    if not texts:
        return
    db.run(_TERMS)
    rows, tokens = _averages(db)
    for text in texts:
        hits = db.rows(_ANYWHERE, (text, text + "\U0010ffff"))
        if not hits:
            continue
        idf = math.log((rows - len(hits) + 0.5) / (len(hits) + 0.5))
        idf = idf if idf > 0.0 else IDF_MIN
        lengths = _lengths(db, [chunk for chunk, _ in hits])
        for chunk, frequency in hits:
            norm = K1 * (1 - B + B * lengths[chunk] / (tokens / rows))
            scores[chunk] -= idf * (frequency * (K1 + 1.0)) / (frequency + norm)


def _averages(db: Connection) -> tuple[int, int]:
    """Rows of the index and tokens in them, from FTS5's averages record: varints, the number of
    rows, then the tokens of each column."""
    rows, *columns = varints(db.value("SELECT block FROM chunks_fts_data WHERE id = 1")) or [0]
    return rows, sum(columns)


def _lengths(db: Connection, chunks: list[int]) -> dict[int, int]:
    """Tokens of each chunk in all columns, as FTS5 counted them when it indexed the chunk."""
    return {
        chunk: sum(varints(sizes))
        for chunk, sizes in db.rows(
            "SELECT id, sz FROM chunks_fts_docsize WHERE id IN (SELECT value FROM json_each(?))",
            (listed(chunks),),
        )
    }


def _shown(db: Connection, found: list[tuple[int, float, list[int]]]) -> list[FoundDocument]:
    """The ranked documents with what is shown of them."""
    identity = {
        row[0]: row[1:]
        for row in db.rows(
            "SELECT n, id, title FROM docs WHERE n IN (SELECT value FROM json_each(?))",
            (listed(n for n, _, _ in found),),
        )
    }
    text = {
        row[0]: MatchedChunk(*row)
        for row in db.rows(
            "SELECT id, seq, text FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
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
