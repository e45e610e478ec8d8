"""A session that works: searches between stores, replacements and deletions of real notes.

    python -m benchmarks.session STORE NOTES.jsonl QUERIES.json [ROUNDS]

STORE is a store of the notes as `benchmarks.notes` makes it; it is copied. A round is one write (a
note under a new id, another note's text under an id that is there, a deletion, by turns), five
searches and a pause, in which the server does what it does behind the calls. Wall clock, in
milliseconds, and the calling thread's CPU.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from benchmarks.notes import Note, copy, read
from hadano._bench import measure
from hadano.service import Service
from hadano.types import Settings

ROUNDS: Final = 300
SEARCHES: Final = 5
PAUSE_SECONDS: Final = 0.03

Call = tuple[str, measure.Arguments]


def main(store: str, notes_path: str, queries_path: str, rounds: str = str(ROUNDS)) -> None:
    """Prints a row for the searches and one for each kind of write."""
    given = json.loads(Path(queries_path).read_text(encoding="utf-8"))
    queries = [" ".join(words) for kind in given.values() for words in kind]
    random.Random(3).shuffle(queries)
    asked = cycle(queries)
    times: dict[str, tuple[list[float], list[float]]] = {}
    with copy(Path(store)) as path, closing(Service(Settings(path=str(path)))) as service:
        hall = measure.Hall(service)
        measure.settle(hall)
        for name, write in islice(_writes(read(notes_path)), int(rounds)):
            searches = [("search_documents", {"query": next(asked)}) for _ in range(SEARCHES)]
            for kind, call in [(name, write), *(("search", one) for one in searches)]:
                began, spent = time.perf_counter(), time.thread_time()
                hall.call(*call)
                wall, cpu = times.setdefault(kind, ([], []))
                cpu.append((time.thread_time() - spent) * 1e3)
                wall.append((time.perf_counter() - began) * 1e3)
            time.sleep(PAUSE_SECONDS)
    print(f"{'':10} {'p50':>7} {'p95':>7} {'p99':>7} {'max':>7} {'CPU p95':>8}")
    for kind, (wall, cpu) in times.items():
        series = measure.Series("", kind, wall)
        row = " ".join(f"{series.at(share):7.2f}" for share in (0.5, 0.95, 0.99, 1))
        print(f"{kind:10} {row} {measure.Series('', kind, cpu).at(0.95):8.2f}")


def _writes(notes: list[Note]) -> Iterator[tuple[str, Call]]:
    chance = random.Random(4)
    there = [note["id"] for note in notes]
    n = 0
    while True:
        n += 1
        for kind, id in (("store", f"new {n}"), ("replace", chance.choice(there))):
            note = chance.choice(notes)
            title = note["title"] or "untitled"
            yield kind, ("store_document", {"id": id, "title": title, "content": note["text"]})
        yield "delete", ("delete_document", {"id": there.pop(chance.randrange(len(there)))})


if __name__ == "__main__":
    main(*sys.argv[1:])
