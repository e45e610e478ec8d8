"""BM25 as section 7.4 words it, by scanning every row for every term. Knows no index.

The formula and its floor are those of FTS5's bm25() (its manual, "The bm25() function"): k1 1.2, b
0.75, inverse document frequency never below 1e-6. A row's length is its number of trigrams.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

K1, B, IDF_MIN = 1.2, 0.75, 1e-6
TRIGRAM = 3


class Row(NamedTuple):
    """A chunk as it is indexed: search forms that end in two newlines, and its short words."""

    chunk: int
    text: str
    title: str
    words: str


def occurrences(term: str, text: str) -> int:
    """How often a term stands in a text; it may overlap itself."""
    return sum(text.startswith(term, at) for at in range(len(text)))


def frequency(row: Row, term: str, whole_word: bool) -> int:
    if whole_word:
        return row.words.split("\x1f").count(term)
    return sum(occurrences(term, column.lower()) for column in (row.text, row.title))


def length(row: Row) -> int:
    return sum(max(len(column) - TRIGRAM + 1, 0) for column in row[1:])


def scores(rows: Sequence[Row], terms: Iterable[tuple[str, bool]]) -> dict[int, float]:
    """Each matching chunk's score; of a term, its text and whether it must be a whole word."""
    mean = sum(map(length, rows)) / len(rows) if rows else 0.0
    found: dict[int, float] = {}
    for text, whole_word in terms:
        hits = {row: tf for row in rows if (tf := frequency(row, text, whole_word))}
        idf = math.log((len(rows) - len(hits) + 0.5) / (len(hits) + 0.5))
        weight = idf if idf > 0 else IDF_MIN
        for row, tf in hits.items():
            norm = K1 * (1 - B + B * length(row) / mean)
            score = weight * (tf * (K1 + 1)) / (tf + norm)
            found[row.chunk] = found.get(row.chunk, 0.0) + score
    return found


def ranking(scored: dict[int, float]) -> list[int]:
    """Chunks best first, the smaller id first among equals."""
    return sorted(scored, key=lambda chunk: (-scored[chunk], chunk))
