"""What vectors cost and what they find, on real notes: each line of one table, in one run.

    python -m benchmarks.vectors NOTES.jsonl

NOTES has an object with `id`, `title` and `text` a line. Milliseconds are a client's, in process;
`off` and `local` take turns. Pages: the parts of a manual's page in two languages, `LANGUAGE/...#N`
under MANUAL with the same `permalink`, count as one translation; a page is compared with another by
the mean, over its windows, of the best cosine to one of the other's.
"""

import itertools
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.notes import Note, read, restored
from hadano import limits, model
from hadano._bench import measure
from hadano._native import windows
from hadano.service import Service, bytes_by_table
from hadano.types import EmbeddingsMode, Settings

STORED: Final = 1_000
#: How often those are stored. Of a thousand times the median is steady; the 95th percentile, which
#: is merging and the disk, has differed by up to a half between two stores that are alike.
STORE_ROUNDS: Final = 5
SEARCHES: Final = 300
STARTS: Final = 15
MANUAL: Final = "obsidianmd+obsidian-help/"

Times = dict[EmbeddingsMode, list[float]]


def main() -> None:
    notes = read(sys.argv[1])
    say("kernel, one thread", f"{kernel(notes):,.0f} chunks a second")
    with tempfile.TemporaryDirectory() as folder:
        paths: dict[EmbeddingsMode, str] = {
            "off": os.path.join(folder, "off.db"),
            "local": os.path.join(folder, "local.db"),
        }
        restored(Path(paths["off"]), notes)
        shutil.copyfile(paths["off"], paths["local"])
        seconds, chunks, searches = backfilled(paths["local"])
        # Not the file's growth: a restored file has free pages, which vectors take first.
        size = sum(size for name, size in bytes_by_table(paths["local"]).items() if "vec_" in name)
        say(f"backfill of {chunks:,} chunks", f"{seconds:.1f} s")
        say("their tables", f"{size / chunks:.0f} bytes a chunk")
        say("search_knowledge, vector, 3 seeds", quantiles(searches))
        for mode, times in starts(paths).items():
            say(f"cold start, {mode}", f"median {statistics.median(times):.0f} ms")
        times = stores(paths, notes[:: -(-len(notes) // STORED)])
        for mode in times:
            say(f"store_document, {mode}", quantiles(times[mode]))
        say("store_document, local to off", ratios(times))
    for language in ("ja", "zh", "de", "ko"):
        rank, pages = translations(notes, language)
        say(f"{language} to en, {pages} pages", f"mean reciprocal rank {rank:.3f}")


def say(what: str, figure: str) -> None:
    print(f"{what:36}{figure}", flush=True)


def quantiles(times: list[float]) -> str:
    at = measure.Series("", "", times).at
    return f"p50 {at(0.5):.2f}, p95 {at(0.95):.2f}, max {at(1):.1f} ms"


def ratios(times: Times) -> str:
    off, local = (measure.Series("", "", times[mode]) for mode in ("off", "local"))
    return ", ".join(
        f"p{share * 100:.0f} {local.at(share) / off.at(share):.2f}" for share in (0.5, 0.95)
    )


def cut(text: str) -> list[str]:
    return windows(text, limits.CHUNK_CODEPOINTS_MAX, limits.CHUNK_STRIDE_CODEPOINTS)


def kernel(notes: list[Note]) -> float:
    """Chunks a second of processor time, of every fifth note."""
    chunks = [chunk for note in notes[::5] for chunk in cut(note["text"])]
    began = time.thread_time()
    for chunk in chunks:
        model.embed(chunk)
    return len(chunks) / (time.thread_time() - began)


@contextmanager
def opened(path: str, mode: EmbeddingsMode) -> Iterator[measure.Hall]:
    with closing(Service(Settings(path=path, embeddings=mode))) as service:
        store = measure.Hall(service)
        measure.settle(store)
        yield store


def stores(paths: dict[EmbeddingsMode, str], notes: list[Note]) -> Times:
    """Milliseconds of storing each note some more times, with vectors and without, by turns; which
    of the two begins, and finds nothing of the note in the processor's caches, is by turns too."""
    times: Times = {"off": [], "local": []}
    turns = itertools.cycle([("off", "local"), ("local", "off")])
    with opened(paths["off"], "off") as off, opened(paths["local"], "local") as local:
        halls = {"off": off, "local": local}
        for note, turn in zip(notes * STORE_ROUNDS, turns, strict=False):
            document = {"title": note["title"], "content": note["text"]}
            for mode in turn:
                times[mode].append(measure.timed(halls[mode], "store_document", document)[0])
    return times


def backfilled(path: str) -> tuple[float, int, list[float]]:
    """Seconds until a store has all its vectors, how many those are, and milliseconds of searches
    from three chunks each."""
    began = time.perf_counter()
    with closing(Service(Settings(path=path, embeddings="local"))) as service:
        store = measure.Hall(service)
        measure.settle(store)
        seconds = time.perf_counter() - began
        chunks: int = store.call("db_status", {})["vectors"]
        chance = random.Random(1)
        seeds = [chance.sample(range(1, chunks + 1), 3) for _ in range(SEARCHES)]
        asked = [{"seed_chunk_ids": three, "mode": "vector"} for three in seeds]
        times = [measure.timed(store, "search_knowledge", each)[0] for each in asked]
    return seconds, chunks, times


def starts(paths: dict[EmbeddingsMode, str]) -> Times:
    """Milliseconds from spawning a server to its first search answer, by turns."""
    times: Times = {"off": [], "local": []}
    for _ in range(STARTS):
        for mode, path in paths.items():
            times[mode].append(measure.cold_start(path, "release notes", mode))
    return times


def translations(notes: list[Note], language: str) -> tuple[float, int]:
    """Mean reciprocal rank of a page's English version among all English pages, and how many pages
    have one."""
    english = {name: directions(body) for name, body in pages(notes, "en").items()}
    ranks = []
    for name, body in pages(notes, language).items():
        if name in english:
            page = directions(body)
            near = {other: (page @ there.T).max(1).mean() for other, there in english.items()}
            ranks.append(1 / sum(likeness >= near[name] for likeness in near.values()))
    return statistics.mean(ranks), len(ranks)


def pages(notes: list[Note], language: str) -> dict[str, str]:
    """The bodies of a manual's whole pages in one language, by permalink."""
    parts: dict[str, dict[int, str]] = defaultdict(dict)
    for note in notes:
        if note["id"].startswith(f"{MANUAL}{language}/"):
            name, _, part = note["id"].rpartition("#")
            parts[name][int(part)] = note["text"]
    bodies = {}
    for page in parts.values():
        text = "\n".join(page[part] for part in sorted(page))
        body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        permalink = re.search(r"^permalink:\s*(\S+)", text, re.MULTILINE)
        if permalink and body.strip() and 0 in page:
            bodies[permalink[1]] = body
    return bodies


def directions(text: str) -> np.ndarray:
    """The vectors of a text's windows, a row each, of length 1."""
    rows = np.array([np.frombuffer(model.embed(window), np.int8) for window in cut(text)], float)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)


if __name__ == "__main__":
    main()
