"""How well stage 1 finds: nDCG@10 on a collection of ours, and on those beside the repository.

Documents are judged whole, so a document counts by its best chunk (max_chunks_per_doc 1; the manual
says why). nDCG: gain = grade, discount = log2(rank + 1), ideal from all judgements (Järvelin and
Kekäläinen, TOIS 2002); a query that finds nothing counts 0.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from math import log2
from pathlib import Path
from typing import Any

from hadano.service import Service
from hadano.types import Settings

OURS = Path(__file__).parent / "collection"
OTHERS = Path(__file__).parent.parent.parent / "shared" / "data" / "eval"

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


def judged(path: Path) -> float:
    """Mean nDCG@10 over a collection's queries."""
    judgements = _judgements(path)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Service(Settings(path=os.path.join(folder, "store.db")))) as service,
    ):
        for document in _lines(path / "docs.jsonl"):
            _call(
                service,
                "store_document",
                id=document["id"],
                title=document["title"].strip() or document["id"],
                content=document["text"],
            )
        scores = [
            ndcg(_found(service, query["text"]), judgements[query["id"]])
            for query in _lines(path / "queries.jsonl")
            if judgements.get(query["id"])
        ]
    return sum(scores) / len(scores)


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


def _found(service: Service, query: str) -> list[str]:
    answer = _call(service, "search_documents", query=query, max_chunks_per_doc=1)
    return [document["doc_id"] for document in answer["documents"]]


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
