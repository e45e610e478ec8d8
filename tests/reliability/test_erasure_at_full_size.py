"""Notes of a full store deleted and replaced, forty for each reading of the whole file.

Needs a store of 100,000 notes, which is copied; to read its half a gigabyte takes some seconds,
and its index, which is read at the end, some minutes. After every call the files beside it are
read. How long the calls took is printed:

    export HADANO_TEST_STORE=notes.db
    python -m pytest -m slow -s tests/reliability/test_erasure_at_full_size.py
"""

import os
import random
import shutil
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.reliability import notes
from tests.reliability.examiner import (
    FILES,
    Words,
    kept,
    pieces,
    raw_traces,
    secret,
    seen,
    without,
    without_rows,
)
from tests.reliability.notes import NEW, insist, quote, traces_in_index
from tests.reliability.sound import quiet
from tests.tools.store import Store, settled, until

GIVEN = os.environ.get("HADANO_TEST_STORE")
GONE = 200
#: Of so many documents one reading looks for every piece.
BATCH = 40
#: Of a document that is there, a reading has found enough with so many pieces.
CONTROLS = 20
#: A start reads the whole file, which may be on a disk still.
START_SECONDS = 300
BESIDE = [suffix for suffix in FILES if suffix]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(GIVEN is None, reason="HADANO_TEST_STORE names no store"),
]


@pytest.fixture
def full(tmp_path) -> Iterator[Store]:
    with Store(Path(shutil.copy(GIVEN or "", tmp_path / "store.db"))) as store:
        until(lambda: settled(store.ask("db_status")["integrity_at_boot"]), START_SECONDS)
        quiet(store)
        yield store


def unique(pieces: Iterable[Words]) -> Words:
    return np.unique(np.concatenate(list(pieces)))


class Going:
    """Some notes of a full store, and the pieces that none of those has that stay."""

    def __init__(self, store: Store, count: int) -> None:
        held = store.rows("SELECT id, title, content FROM docs ORDER BY n")
        chosen = set(random.Random(1).sample(range(len(held)), count))
        self.documents = [notes.furnished(*held[n]) for n in sorted(chosen)]
        for document in self.documents:
            insist(store, "store_document", **document)
            quote(store, document)
        secrets = {it["id"]: secret(notes.texts(it)) for it in self.documents}
        bare: dict[str, Any] = {"tags": [], "relations": []}
        staying = (
            row
            for n, (id, title, content) in enumerate(held)
            if n not in chosen
            for row in notes.rows({"id": id, "title": title, "content": content, **bare})
        )
        schema = store.rows("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        # The audit log keeps the ids, which here are paths that the notes name.
        names = [*(sql for (sql,) in schema), *(held[n][0] for n in chosen)]
        told = kept(name.encode().lower() for name in names)
        left = without_rows(without(unique(secrets.values()), told), staying)
        self._own = {id: np.intersect1d(own, left) for id, own in secrets.items()}
        self._held = {it["id"]: kept(notes.rows(it)) for it in self.documents}

    def wanted(self, documents: list[dict[str, Any]], *there: Words) -> Words:
        """What nobody holds but these documents, which are gone from now on; `there` is kept."""
        for it in documents:
            self._held.pop(it["id"], None)
        own = unique(self._own[it["id"]] for it in documents)
        return without(own, *self._held.values(), *there)

    def control(self, document: dict[str, Any]) -> Words:
        """Some pieces that nobody holds but a document that is there."""
        spelled = pieces([document["content"].encode().lower()])
        others = (held for id, held in self._held.items() if id != document["id"])
        return without(np.intersect1d(spelled, self._own[document["id"]]), *others)[:CONTROLS]


@pytest.mark.parametrize("replacement", [None, NEW], ids=["deleted", "replaced"])
def test_nothing_of_200_notes_of_a_full_store_is_left(full: Store, replacement) -> None:
    going = Going(full, GONE + 1)
    controls = [some for it in going.documents if len(some := going.control(it))]
    assert np.isin(np.concatenate(controls), seen(full.path, unique(controls))).all()
    stays = next(it for it in going.documents if len(going.control(it)))
    documents = [it for it in going.documents if it is not stays]
    control = going.control(stays)
    there = () if replacement is None else (kept(notes.rows({**stays, **NEW})),)
    took, at_once, read = [], 0, []
    for start in range(0, GONE, BATCH):
        batch = documents[start : start + BATCH]
        for document in batch:
            if replacement is None:
                took.append(insist(full, "delete_document", id=document["id"]))
            else:
                took.append(insist(full, "store_document", id=document["id"], **replacement))
            if not full.rows("SELECT * FROM chores"):
                at_once += 1
                assert not len(seen(full.path, going.wanted([document], *there), BESIDE))
        until(lambda: not full.rows("SELECT name FROM chores"))
        wanted = going.wanted(batch, *there)
        began = time.perf_counter()
        found = seen(full.path, np.union1d(wanted, control))
        read.append(time.perf_counter() - began)
        assert len(wanted) > BATCH * CONTROLS
        assert np.isin(control, found).all()
        traces = np.setdiff1d(found, control)
        assert not len(traces) or raw_traces(full.path, traces) == []
    assert traces_in_index(full) == []
    cuts = statistics.quantiles(took, n=20)
    print(
        f"\n{GONE} calls, {at_once} erased at once: p50 {cuts[9] * 1000:.0f} ms, p95"
        f" {cuts[18] * 1000:.0f} ms; {len(controls)} of {GONE + 1} notes have pieces of their own;"
        f" {len(read)} readings of {full.path.stat().st_size:,} bytes, {max(read):.0f} s or less"
    )
