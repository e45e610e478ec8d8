"""Stores of three sizes: searching by class of query, changing, dumping, restoring, starting.

Figures are tracked and not timed where a percentile is what was promised, or where a call cannot
be repeated on the same state.
"""

import os
import shutil
import subprocess
import sys
import time
from contextlib import closing
from typing import Final

from hadano._bench import measure
from hadano._bench.corpus import QUERY_CLASSES, Corpus
from hadano.bench import Mark, build
from hadano.service import Service
from hadano.types import EmbeddingsMode, Settings

QUERIES: Final = 100
ROUNDS: Final = 5
CHANGES: Final = 20
STARTS: Final = 5
SEED: Final = 1


def built(scale: int, profile: str = "notes") -> str:
    """The path of a new store of the bench, in asv's folder for this commit."""
    path = os.path.abspath(f"{profile}-{scale}.db")
    build(path, Mark(profile=profile, scale=scale, seed=SEED))
    return path


def p95(times: list[float]) -> float:
    return measure.Series("", "", times).at(0.95)


class _Searches:
    """The 95th percentile of each class of query, in process, in milliseconds.

    A query's time is the best of several rounds, each in a store just opened: the machine can only
    make a call slower, and a term that is kept from an earlier round would hide what it costs to
    read one.
    """

    scale: int
    params = ("all", *QUERY_CLASSES)
    param_names = ("queries",)
    timeout = 600

    def setup(self, _: str, kind: str) -> None:
        corpus = Corpus(SEED, "notes")
        kinds = QUERY_CLASSES if kind == "all" else (kind,)
        self.queries = {one: corpus.queries(one, QUERIES, self.scale) for one in kinds}

    def track_search_p95(self, path: str, _: str) -> float:
        rounds = [self._round(path) for _ in range(ROUNDS)]
        return p95([min(times) for times in zip(*rounds, strict=True)])

    def _round(self, path: str) -> list[float]:
        with closing(Service(Settings(path=path))) as service:
            store = measure.Hall(service)
            measure.settle(store)
            series = measure.searches(store, self.queries, lambda: None)
        return [milliseconds for one in series for milliseconds in one.times]

    track_search_p95.unit = "ms"


class _Rest:
    """All that is not a search. The store is copied where it is changed, and is as it was after."""

    scale: int
    timeout = 900

    def setup(self, _: str) -> None:
        self.corpus = Corpus(SEED, "notes")
        texts = [self.corpus.note(self.scale + n).content for n in range(CHANGES)]
        self.texts = [text[:3_000] for text in texts]

    def _change(self, path: str, what: str) -> float:
        with closing(Service(Settings(path=path))) as service:
            store = measure.Hall(service)
            measure.settle(store)
            series = measure.changes(store, self.texts, lambda: None)
        return next(one for one in series if one.name == what).at(0.5)

    def track_store_p50(self, path: str) -> float:
        return self._change(path, "store")

    track_store_p50.unit = "ms"

    def track_replace_p50(self, path: str) -> float:
        return self._change(path, "replace")

    track_replace_p50.unit = "ms"

    def track_delete_p50(self, path: str) -> float:
        return self._change(path, "delete")

    track_delete_p50.unit = "ms"

    def track_cold_start(self, path: str) -> float:
        """To the first search answer, the check of the file's structure inside."""
        return _cold_start(path, self.corpus.queries("two", STARTS, self.scale))

    track_cold_start.unit = "ms"

    def track_dump(self, path: str) -> float:
        return _seconds("hadano.dump", "--db", path, "--out", "dump.jsonl")

    track_dump.unit = "seconds"

    def track_backup(self, path: str) -> float:
        os.makedirs("copies", exist_ok=True)
        try:
            return _seconds("hadano.backup", "--db", path, "--out", "copies")
        finally:
            shutil.rmtree("copies")

    track_backup.unit = "seconds"

    def track_restore(self, path: str) -> float:
        _seconds("hadano.dump", "--db", path, "--out", "dump.jsonl")
        try:
            return _seconds("hadano.dump", "--restore", "--db", "back.db", "--in", "dump.jsonl")
        finally:
            os.unlink("back.db")

    track_restore.unit = "seconds"

    def track_file_bytes(self, path: str) -> int:
        return os.path.getsize(path)

    track_file_bytes.unit = "bytes"

    def track_peak_memory(self, path: str) -> int:
        with measure.Server(path) as server:
            measure.settle(server)
            for query in self.corpus.queries("question", STARTS, self.scale):
                server.call("search_documents", {"query": query})
        return server.peak_bytes

    track_peak_memory.unit = "bytes"


def _cold_start(path: str, queries: list[str], embeddings: EmbeddingsMode = "off") -> float:
    times = sorted(measure.cold_start(path, query, embeddings) for query in queries)
    return times[len(queries) // 2]


def _seconds(module: str, *arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - began


# asv knows what setup_cache made by the line at which it stands, so each class has one of its own.


class SearchAt1000(_Searches):
    scale = 1_000

    def setup_cache(self) -> str:
        return built(self.scale)


class SearchAt10000(_Searches):
    scale = 10_000

    def setup_cache(self) -> str:
        return built(self.scale)


class SearchAt100000(_Searches):
    """`all` of this class is the first of the two published figures: 1.79 ms."""

    scale = 100_000

    def setup_cache(self) -> str:
        return built(self.scale)

    setup_cache.timeout = 1_800


class RestAt1000(_Rest):
    scale = 1_000

    def setup_cache(self) -> str:
        return built(self.scale)


class RestAt10000(_Rest):
    scale = 10_000

    def setup_cache(self) -> str:
        return built(self.scale)


class RestAt100000(_Rest):
    scale = 100_000

    def setup_cache(self) -> str:
        return built(self.scale)

    setup_cache.timeout = 1_800


class VectorsAt10000:
    """A store with embeddings on: what its vectors cost, and how soon they find."""

    timeout = 900

    def setup_cache(self) -> str:
        path = os.path.abspath("vectors-10000.db")
        build(path, Mark(profile="notes", scale=10_000, seed=SEED), "local")
        return path

    def track_expand_p95(self, path: str) -> float:
        """search_knowledge by vectors from three chunks."""
        with closing(Service(Settings(path=path, embeddings="local"))) as service:
            store = measure.Hall(service)
            measure.settle(store)
            times = [
                measure.timed(
                    store,
                    "search_knowledge",
                    {"seed_chunk_ids": [n, n + 3_000, n + 6_000], "mode": "vector"},
                )[0]
                for n in range(1, QUERIES + 1)
            ]
        return p95(times)

    track_expand_p95.unit = "ms"

    def track_backfill(self, _: str) -> float:
        """Until a store that was filled without has all its vectors."""
        shutil.copyfile(built(10_000), "bare.db")
        with closing(Service(Settings(path="bare.db", embeddings="local"))) as service:
            began = time.perf_counter()
            measure.settle(measure.Hall(service))
            return time.perf_counter() - began

    track_backfill.unit = "seconds"

    def track_cold_start(self, path: str) -> float:
        return _cold_start(path, Corpus(SEED, "notes").queries("two", STARTS, 10_000), "local")

    track_cold_start.unit = "ms"


class Published50MBAt100000:
    """The second of the two published figures: 954 ms from cold on a file of 50 MB."""

    timeout = 600

    def setup_cache(self) -> str:
        return built(100_000, "short")

    setup_cache.timeout = 1_800

    def track_cold_start(self, path: str) -> float:
        return _cold_start(path, Corpus(SEED, "short").queries("two", STARTS, 100_000))

    track_cold_start.unit = "ms"
