"""Real notes with tags and relations, deleted and replaced one by one, and looked for each time.

By far most of the time goes into looking. The long run says on standard output how long the calls
took: `python -m pytest -m slow -s tests/reliability/test_erasure_of_real_notes.py`.
"""

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from hadano import audit
from tests.reliability import notes
from tests.reliability.examiner import Words, kept, raw_traces, secret, without
from tests.reliability.notes import NEW, held, insist, quote, traces_in_index
from tests.reliability.sound import quiet
from tests.tools.store import Store, no_erasing_at_once, until

pytestmark = notes.needed

#: The index is read to its end after every so many documents, and after the last.
INDEX_EVERY = 40


class Erasures:
    """A store of notes of which some go, and what each of these must not leave."""

    def __init__(self, store: Store, count: int, gone: int) -> None:
        self.store = store
        documents = notes.documents(count)
        for document in documents:
            store.ask("store_document", **document)
        assert store.integrity() == "ok"
        for document in documents:
            quote(store, document)
        chosen = set(random.Random(0).sample(range(count), gone))
        self.going = [documents[n] for n in sorted(chosen)]
        stay = [document for n, document in enumerate(documents) if n not in chosen]
        self._stay = held(store, stay)
        self._held = {it["id"]: kept(notes.rows(it)) for it in self.going}
        self.seconds: list[float] = []
        self.at_once = 0

    def each(self, replacement: dict[str, Any] | None) -> Iterator[None]:
        """Deletes or replaces the chosen ones; looks for each after the call."""
        for n, document in enumerate(self.going, 1):
            del self._held[document["id"]]
            began = time.perf_counter()
            if replacement is None:
                erased = self.store.ask("delete_document", id=document["id"])["erased"]
            else:
                self.store.ask("store_document", id=document["id"], **replacement)
                erased = True
            self.seconds.append(time.perf_counter() - began)
            if not erased:  # a disk with much else to do: the log was not emptied in time
                until(lambda: not self.store.rows("SELECT * FROM chores"))
                quiet(self.store)
            self.at_once += erased
            wanted = self._wanted(document, replacement)
            assert raw_traces(self.store.path, wanted) == []
            if n % INDEX_EVERY == 0 or n == len(self.going):
                assert traces_in_index(self.store) == []
            yield

    def _wanted(self, document: dict[str, Any], replacement: dict[str, Any] | None) -> Words:
        new = kept(notes.rows({"id": "", "tags": [], "relations": [], **(replacement or _NONE)}))
        return without(secret(notes.texts(document)), self._stay, new, *self._held.values())


_NONE: dict[str, Any] = {"title": "", "content": ""}


def run(store: Store, replacement: dict[str, Any] | None, count: int, gone: int) -> None:
    erasures = Erasures(store, count, gone)
    assert len(list(erasures.each(replacement))) == gone
    cuts = statistics.quantiles(erasures.seconds, n=20)
    p50, p95 = (round(cuts[at] * 1000) for at in (9, 18))
    print(f"\n{gone} calls, {erasures.at_once} erased at once: p50 {p50} ms, p95 {p95} ms")


@pytest.mark.parametrize("replacement", [None, NEW], ids=["deleted", "replaced"])
def test_nothing_of_a_real_note_is_left(store: Store, replacement) -> None:
    run(store, replacement, 150, 8)


def test_quotes_left_in_the_audit_log_would_be_found(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(audit, "forget", lambda *_, **__: True)
    with pytest.raises(AssertionError, match="leaf of a table"):
        run(store, None, 20, 8)


@pytest.mark.slow
@pytest.mark.parametrize("replacement", [None, NEW], ids=["deleted", "replaced"])
def test_nothing_of_200_real_notes_is_left(store: Store, replacement) -> None:
    run(store, replacement, 2_000, 200)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "in the background"])
def test_nothing_of_a_document_of_a_mebibyte_is_left(store: Store, at_once) -> None:
    documents = notes.documents(3_000)
    for document in documents[:1_000]:
        store.ask("store_document", **document)
    text = notes.largest(documents[1_000:])
    stay = held(store, documents[:1_000])
    # The log has a call's tool and the id side by side: "store_documentlarge" would be a trace.
    insist(store, "store_document", id="n1000", title="a large document", content=text)
    began = time.perf_counter()
    with nullcontext() if at_once else no_erasing_at_once():
        insist(store, "delete_document", id="n1000")
    answered = time.perf_counter()
    assert (store.rows("SELECT * FROM chores") == []) is at_once
    wanted = without(secret([text]), stay)
    until(lambda: not store.rows("SELECT * FROM chores"))
    until(lambda: not raw_traces(store.path, wanted))
    gone = time.perf_counter()
    assert traces_in_index(store) == []
    print(
        f"\n{len(text.encode()):,} bytes: answered after {(answered - began) * 1000:.0f} ms,"
        f" found clean after {gone - began:.1f} s"
    )
