"""How well the stages find: nDCG@10 on a collection of ours, and on those beside the repository.

    python -m benchmarks.quality

A collection is a folder of `docs.jsonl` (id, title, text), `queries.jsonl` (id, text) and
`qrels.tsv` (query, document, grade; a line of names first) in ../shared/data/eval. The five that
the manual quotes take a minute.

Documents are judged whole, so a document counts by its best chunk (max_chunks_per_doc 1; the manual
says why). nDCG: gain = grade, discount = log2(rank + 1), ideal from all judgements (Järvelin and
Kekäläinen, TOIS 2002); a query that finds nothing counts 0.

A text as a query is judged by the first 1,024 codepoints of each document that is relevant to a
query: the other documents that are relevant to it should be found. Grades count as one there.

Stage 2 by vectors is judged as it is used: of the first ten documents that stage 1 finds, up to
three relevant ones give the seeds, and what counts is where search_knowledge puts the other
relevant documents, each by its nearest chunk. Queries without a seed, or with no relevant document
besides the seeds', are left out.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import log2
from pathlib import Path
from typing import Any

from hadano import limits
from hadano.service import Service
from hadano.types import EmbeddingsMode, Settings

OURS = Path(__file__).parent / "collection"
OTHERS = Path(__file__).parent.parent.parent / "shared" / "data" / "eval"

#: The best ten, and one more for the document that is the query itself.
TOP = 11

Judgements = dict[str, dict[str, int]]


def collections() -> dict[str, Path]:
    """The collections that are there, by name."""
    others = sorted(OTHERS.iterdir()) if OTHERS.is_dir() else []
    return {"ours": OURS} | {path.name: path for path in others if (path / "qrels.tsv").exists()}


def ndcg(found: list[str], relevant: dict[str, int], most: int = 10) -> float:
    """From 0, nothing found, to 1, the best order there is; grades are positive."""
    gain = sum(relevant.get(id, 0) / log2(rank + 1) for rank, id in enumerate(found[:most], 1))
    best = sorted(relevant.values(), reverse=True)[:most]
    return gain / sum(grade / log2(rank + 1) for rank, grade in enumerate(best, 1))


def judged(path: Path, per_doc: int = 1) -> float:
    """Mean nDCG@10 over a collection's queries, at so many chunks a document."""
    with _stored(path, "off") as service:
        scores = [
            ndcg(list(_found(service, text, per_doc)), relevant)
            for text, relevant in _queries(path)
        ]
    return sum(scores) / len(scores)


def judged_by_texts(path: Path) -> float | None:
    """Mean nDCG@10 of documents as queries; None where no two are relevant to one query."""
    texts = {it["id"]: it["text"] for it in _lines(path / "docs.jsonl")}
    fellows: Judgements = {}
    for relevant in _judgements(path).values():
        for id in relevant:
            others = {other: 1 for other in relevant if other != id}
            fellows.setdefault(id, {}).update(others)
    scores = []
    with _stored(path, "off") as service:
        for id, others in fellows.items():
            if others and texts.get(id):
                found = _found(service, texts[id][: limits.QUERY_CODEPOINTS_MAX])
                scores.append(ndcg([it for it in found if it != id], others))
    return sum(scores) / len(scores) if scores else None


def judged_from_seeds(path: Path) -> float:
    """Mean nDCG@10 of what is near to relevant chunks."""
    scores = []
    with _stored(path, "local") as service:
        for text, relevant in _queries(path):
            found = _found(service, text)
            seeds = [id for id in list(found)[:10] if id in relevant][: limits.SEEDS_MAX]
            rest = {id: grade for id, grade in relevant.items() if id not in seeds}
            if seeds and rest:
                near = _near(service, [found[id] for id in seeds])
                scores.append(ndcg([id for id in near if id not in seeds], rest))
    return sum(scores) / len(scores)


@contextmanager
def _stored(path: Path, embeddings: EmbeddingsMode) -> Iterator[Service]:
    """A store of a collection's documents."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(path=os.path.join(folder, "store.db"), embeddings=embeddings)
        with closing(Service(settings)) as service:
            for document in _lines(path / "docs.jsonl"):
                _call(
                    service,
                    "store_document",
                    id=document["id"],
                    title=document["title"].strip() or document["id"],
                    content=document["text"],
                )
            yield service


def _queries(path: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """The texts of the queries that something is relevant to, and what."""
    judgements = _judgements(path)
    for query in _lines(path / "queries.jsonl"):
        if relevant := judgements.get(query["id"]):
            yield query["text"], relevant


def _judgements(path: Path) -> Judgements:
    judgements: Judgements = {}
    with open(path / "qrels.tsv", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            query, document, grade = line.split("\t")
            if int(grade) > 0:
                judgements.setdefault(query, {})[document] = int(grade)
    return judgements


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with open(path, encoding="utf-8", newline="\n") as lines:
        yield from map(json.loads, lines)


def _found(service: Service, query: str, per_doc: int = 1) -> dict[str, int]:
    """Ids of the documents, best first, and of each its chunk."""
    answer = _call(service, "search_documents", query=query, max_chunks_per_doc=per_doc, top_k=TOP)
    return {
        document["doc_id"]: document["matched_chunks"][0]["chunk_id"]
        for document in answer["documents"]
    }


def _near(service: Service, seeds: list[int]) -> list[str]:
    """Ids of the documents that are near, nearest first."""
    answer = _call(
        service, "search_knowledge", seed_chunk_ids=seeds, mode="vector", top_k=limits.TOP_K_MAX
    )
    return list(dict.fromkeys(chunk["doc_id"] for chunk in answer["related_chunks"]))


def _call(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = service.call(tool, arguments)
    content: dict[str, Any] = json.loads(answer.content)
    if answer.is_error:
        raise RuntimeError(content["error"]["message"])
    return content


class Quality:
    params = tuple(collections())
    param_names = ("collection",)
    timeout = 1_800

    def track_ndcg_at_10(self, name: str) -> float:
        return judged(collections()[name])

    track_ndcg_at_10.unit = "nDCG@10"


class QualityFromSeeds:
    """Of the collections only one has several relevant documents a query."""

    params = tuple(name for name in collections() if name == "cranfield")
    param_names = ("collection",)
    timeout = 1_800

    def track_ndcg_at_10(self, name: str) -> float:
        return judged_from_seeds(collections()[name])

    track_ndcg_at_10.unit = "nDCG@10"


def main() -> None:
    """Prints a table."""
    print(f"{'nDCG@10':12} 1 chunk a document, 3, texts as queries")
    for name, path in collections().items():
        by_texts = judged_by_texts(path)
        shown = "" if by_texts is None else f"{by_texts:.3f}"
        print(f"{name:12} {judged(path):.3f} {judged(path, 3):.3f} {shown}", flush=True)


if __name__ == "__main__":
    main()
