"""The ranker's slow twin: occurrences as FTS5's own vocabulary tells them, every score in Python.

It knows FTS5's formula (fts5_aux.c, fts5Bm25Function) to the order of its additions, so equals are
the same equals, and nothing of how the index is stored. Connections come as arguments; the kinds of
terms are the planner's numbers.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from tests.oracle.folding import ascii_lower

SUBSTRING, WORD, ANYWHERE = range(3)
K1, B, IDF_MIN = 1.2, 0.75, 1e-6

Term = tuple[int, str]
#: Trigram → (row, column) → offsets
Spots = dict[str, dict[tuple[int, str], set[int]]]


def unit(text: str) -> str:
    """A whole word of one or two codepoints as the trigram that stands for it."""
    return f"\x1f{text}" if len(text) == 2 else f"\x1f{text}\x1f"


def match(terms: Iterable[Term]) -> str:
    """The same query in FTS5's language; SUBSTRING and WORD terms only."""
    phrases = []
    for kind, text in terms:
        columns, text = ("words", unit(text)) if kind == WORD else ("{text title}", text)
        quoted = text.replace('"', '""')
        phrases.append(f'{columns} : "{quoted}"')
    return " OR ".join(phrases)


def by_fts5(db: Any, terms: Iterable[Term], most: int = -1) -> list[int]:
    """The rows in FTS5's own order, equals by row."""
    sql = "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank, rowid LIMIT ?"
    return [row for (row,) in db.execute(sql, (match(terms), most))]


def spots(db: Any) -> Spots:
    """Where every trigram stands."""
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.spots USING fts5vocab(main, chunks_fts, instance)"
    )
    found: Spots = defaultdict(lambda: defaultdict(set))
    for term, row, column, offset in db.execute("SELECT term, doc, col, offset FROM temp.spots"):
        found[term][row, column].add(offset)
    return found


def frequencies(index: Spots, kind: int, text: str) -> Counter[int]:
    """Row → occurrences of one term."""
    text = ascii_lower(text)
    found: Counter[int] = Counter()
    if kind == ANYWHERE:
        for trigram in index:
            if trigram.startswith(text):
                for (row, column), offsets in index[trigram].items():
                    found[row] += len(offsets) if column != "words" else 0
        return +found
    if kind == WORD:
        text = unit(text)
    trigrams = [text[i : i + 3] for i in range(len(text) - 2)]
    if any(trigram not in index for trigram in trigrams):
        return found
    for (row, column), offsets in index[trigrams[0]].items():
        if (column == "words") is (kind == WORD):
            for i, trigram in enumerate(trigrams):
                offsets = offsets & {o - i for o in index[trigram].get((row, column), ())}
            found[row] += len(offsets)
    return +found


def lengths(db: Any) -> dict[int, int]:
    """Row → tokens of all its columns."""
    return {
        row: sum(varints(sizes)) for row, sizes in db.execute("SELECT * FROM chunks_fts_docsize")
    }


def varints(record: bytes) -> list[int]:
    """The numbers of a record of SQLite varints (all below 2**56)."""
    numbers, value = [], 0
    for byte in record:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers


def order(found: Sequence[Counter[int]], sizes: dict[int, int]) -> list[int]:
    """The rows that hold any term best first, equals by row; `found` has a term's rows each."""
    rows = len(sizes)
    average = sum(sizes.values()) / rows if rows else 1.0
    scores: dict[int, float] = dict.fromkeys(set().union(*found), 0.0)
    for counts in found:
        idf = math.log((rows - len(counts) + 0.5) / (len(counts) + 0.5))
        if idf <= 0.0:
            idf = IDF_MIN
        for row, tf in counts.items():
            norm = K1 * (1 - B + B * float(sizes[row]) / average)
            scores[row] += idf * ((tf * (K1 + 1.0)) / (tf + norm))
    return sorted(scores, key=lambda row: (-scores[row], row))


def by_counting(db: Any, terms: Iterable[Term]) -> list[int]:
    """The rows in the order that FTS5's formula gives, terms of all kinds."""
    index = spots(db)
    return order([frequencies(index, *term) for term in terms], lengths(db))
