"""The compiled ranker on 100,000 real notes, where those lie beside the repository: the order of
every query's chunks as FTS5 and a plain scan give it."""

import io
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hadano._native import Ranker
from hadano.dump import restore
from hadano.plan import Kind, Term, lower_ascii, terms
from tests.doors import kit
from tests.native.ranked import loaded
from tests.oracle import postings

DATA = Path(__file__).parents[3] / "shared" / "data"
NOTES = DATA / "notes-100k.jsonl.xz"
RANKS = 1_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not NOTES.exists(), reason="the notes are not part of the repository"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    with lzma.open(NOTES, "rt", encoding="utf-8", newline="\n") as notes:
        taken = sorted((json.loads(line) for line in notes), key=lambda note: note["id"])
    lines = [kit.line(id=it["id"], title=it["title"], content=it["text"]) for it in taken]
    path = str(tmp_path_factory.mktemp("notes") / "notes.db")
    restore(path, io.BytesIO(kit.as_dump(*lines)))
    return path


def queries() -> Iterator[list[Term]]:
    kinds = json.loads((DATA / "notes-100k.queries.json").read_text(encoding="utf-8"))
    for kind in kinds.values():
        yield from (terms(" ".join(words)) for words in kind)


def by_scanning(texts: dict[int, str], asked: list[Term]) -> list[Counter[int]]:
    """Each term's rows, overlapping occurrences counted; no whole words."""
    found = []
    for _, text in asked:
        pattern = re.compile(f"(?={re.escape(text)})")
        counts = {n: len(pattern.findall(it)) for n, it in texts.items() if text in it}
        found.append(Counter(counts))
    return found


def test_the_order_of_every_query_is_fts5s_or_a_plain_scans(path: str) -> None:
    with closing(loaded(path)) as db:
        sizes = postings.lengths(db)
        texts = {
            n: lower_ascii(text + title)
            for n, text, title in db.execute("SELECT id, text, title FROM chunks_indexed")
        }
        ranker = Ranker(db)
        right = 0
        for asked in queries():
            with db:
                found = list(ranker.rank(asked, 3, RANKS)[0])
            if any(kind is Kind.ANYWHERE for kind, _ in asked):
                assert all(kind is not Kind.WORD for kind, _ in asked)
                expected = postings.order(by_scanning(texts, asked), sizes)
            else:
                expected = postings.by_fts5(db, asked, len(found) + 1)
            assert found == expected[: len(found)]
            assert len(found) >= min(RANKS, len(expected))
            right += 1
        assert right == 750
        ranker.close()
