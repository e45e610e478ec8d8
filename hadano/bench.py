"""`python -m hadano.bench`: a store from a seed, and how fast it answers, beside published figures.

Builds the store as a user would, by restoring a dump, and marks it with a document of its own, so
that the same store is used again and no file that it did not make is touched. What is measured
stands in `_bench/`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final

import msgspec
from msgspec import Struct

from hadano import __version__, console
from hadano._bench import measure, page
from hadano._bench.corpus import PROFILES, QUERY_CLASSES, Corpus, Note, Profile
from hadano._bench.measure import Series
from hadano.errors import Code, HadanoError, invalid
from hadano.service import Service, bytes_by_table, glance
from hadano.types import EmbeddingsMode, Settings

#: The published figures (contract, section 10), in milliseconds.
SEARCH_P95_MS: Final = 1.79
COLD_START_MS: Final = 954.0

#: The mark's id; it stands before every note's.
_MARK_ID: Final = "hadano-bench"
#: Documents are as old as this; a store of one seed is the same file whenever it is made.
_TIME: Final = "2026-01-01T00:00:00.000Z"
_QUERIES_PER_REP: Final = 5

_Work = Callable[[measure.Store], list[Series]]


class Mark(Struct, frozen=True, forbid_unknown_fields=True):
    """What a store of the bench says of itself, as the content of a document in it."""

    profile: Profile
    scale: int
    seed: int
    corpus: int = 1


def build(path: str, mark: Mark, embeddings: EmbeddingsMode = "off") -> float | None:
    """Makes or enlarges the store, with vectors where embeddings are on; gives the seconds that
    took, None where it was there already.

    Raises E_VALIDATION for a file that holds anything else, which then is not touched.
    """
    if os.path.exists(path):
        docs, content = glance(path, _MARK_ID)
        found = _read_mark(content)
        if docs and (found is None or docs != found.scale + 1):
            raise invalid("--db", "the file holds documents that the bench did not make")
        if found == mark:
            return None
        if found and (found.scale > mark.scale or _resized(found, mark.scale) != mark):
            raise invalid("--db", f"the file holds another store of the bench: {_name(found)}")
    began = time.monotonic()
    _restore(path, mark, embeddings)
    return time.monotonic() - began


def _resized(mark: Mark, scale: int) -> Mark:
    return msgspec.structs.replace(mark, scale=scale)


def _read_mark(content: str | None) -> Mark | None:
    try:
        return msgspec.json.decode(content or "", type=Mark)
    except msgspec.DecodeError:
        return None


def _restore(path: str, mark: Mark, embeddings: EmbeddingsMode) -> None:
    command = [sys.executable, "-m", "hadano.dump", "--restore", "--db", path, "--in", "-"]
    corpus = Corpus(mark.seed, mark.profile)
    counts = {"docs": mark.scale + 1, "edges": corpus.relations_count(mark.scale)}
    header = {"format": "hadano-dump", "version": 1, **counts, "time": _TIME}
    about = Note(_MARK_ID, "made by python -m hadano.bench", _json(mark).decode(), [], [])
    environment = os.environ | {"HADANO_EMBEDDINGS": embeddings}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as restoring:
        assert restoring.stdin is not None
        try:
            restoring.stdin.write(_json(header) + b"\n" + _line(about))
            for note in corpus.notes(mark.scale):
                restoring.stdin.write(_line(note))
        except BrokenPipeError:
            pass  # It has said why on standard error, and its exit status says that it did.
    if restoring.returncode:
        raise HadanoError(Code.INTERNAL, "the store could not be built")


def _line(note: Note) -> bytes:
    relations = [{"src": src, "rel": rel, "dst": dst} for src, rel, dst in note.relations]
    fields = msgspec.structs.asdict(note) | {"relations": relations}
    return _json(fields | {"created_at": _TIME, "updated_at": _TIME}) + b"\n"


_json: Final = msgspec.json.Encoder().encode


def run(path: str, mark: Mark, reps: int, embeddings: EmbeddingsMode = "off") -> page.Report:
    """Builds the store where it is not there, and measures it."""
    built = build(path, mark, embeddings)
    corpus = Corpus(mark.seed, mark.profile)
    count = reps * _QUERIES_PER_REP
    queries = {kind: corpus.queries(kind, count, mark.scale) for kind in QUERY_CLASSES}
    steps = reps * (1 + 2 * _QUERIES_PER_REP * (len(QUERY_CLASSES) + 4))
    with console.Progress("measuring", steps, "calls") as progress:
        done = iter(range(1, sys.maxsize))

        def tick() -> None:
            progress.reach(next(done))

        ids = [corpus.note(n * 31 % mark.scale).id for n in range(count)]
        contents = [corpus.note(mark.scale + n).content for n in range(count)]
        # Reads come first: after a change the index is tidied in the background, beside the next
        # calls.
        works: list[_Work] = [
            lambda store: _read(store, queries, ids, tick),
            lambda store: measure.changes(store, contents, tick),
        ]
        series = [_cold_starts(path, queries["two"][:reps], embeddings, tick)]
        server_peak = 0
        for work in works:
            with measure.Server(path, embeddings) as server:
                series += _through("stdio", server, work)
            server_peak = max(server_peak, server.peak_bytes)
            with closing(Service(Settings(path=path, embeddings=embeddings))) as service:
                series += _through("in process", measure.Hall(service), work)
    about = _about(path, mark, built) | {"embeddings": embeddings}
    about["peak memory of the server"] = _megabytes(server_peak)
    about["peak memory in process"] = _megabytes(measure.own_peak_bytes())
    return page.Report(about, series, bytes_by_table(path))


def _cold_starts(
    path: str, queries: list[str], embeddings: EmbeddingsMode, tick: console.Tick
) -> Series:
    times = []
    for query in queries:
        times.append(measure.cold_start(path, query, embeddings))
        tick()
    return Series("cold start", "to the first search", times, COLD_START_MS)


def _through(door: str, store: measure.Store, work: _Work) -> list[Series]:
    """What is measured of a store that has settled, named after the way in."""
    measure.settle(store)
    series = work(store)
    for one in series:
        one.group = f"{one.group}, {door}"
    return series


def _read(
    store: measure.Store, queries: dict[str, list[str]], ids: list[str], tick: console.Tick
) -> list[Series]:
    searches = measure.searches(store, queries, tick)
    every = [time for one in searches for time in one.times]
    together = Series("search", "all classes", every, SEARCH_P95_MS)
    return [together, *searches, *measure.reads(store, ids, queries["two"], tick)]


def _about(path: str, mark: Mark, built: float | None) -> dict[str, str]:
    rate = (
        "there already" if built is None else f"{built:.1f} s, {mark.scale / built:,.0f} a second"
    )
    return {
        "store": _name(mark),
        "built in": rate,
        "file": _megabytes(os.path.getsize(path)),
        "Hadano": __version__,
        "Python": f"{platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores",
    }


def _name(mark: Mark) -> str:
    return f"{mark.scale:,} documents, profile {mark.profile}, seed {mark.seed}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size else "not known on this system"


def _work(arguments: argparse.Namespace) -> None:
    path = console.database("--db", arguments.db)
    for flag, given in (("--json", arguments.json), ("--plot", arguments.plot)):
        if given:  # Said now, and not after minutes of measuring.
            console.folder(flag, os.path.dirname(os.path.abspath(given)))
    mark = Mark(profile=arguments.profile, scale=arguments.scale, seed=arguments.seed)
    report = run(path, mark, arguments.reps, arguments.embeddings)
    print(page.table(report))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as stream:
            json.dump(page.as_json(report), stream, indent=1)
    if arguments.plot:
        with open(arguments.plot, "w", encoding="utf-8") as stream:
            stream.write(page.html(report))


def main(argv: list[str] | None = None) -> int:
    """The command; gives its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hadano.bench",
        description="Builds a store of made-up documents, always the same for one seed, and "
        "measures it beside the published figures. A store that is there already is used again.",
        epilog="notes: texts as long and as varied as real notes, some 500 MB at 100,000; short: "
        "one line each, some 50 MB. A file that holds anything else is refused and not touched.",
    )
    parser.add_argument("--db", required=True, metavar="FILE", help="where the store is to stand")
    parser.add_argument(
        "--scale", type=console.at_least(100), default=100_000, help="documents, at least 100"
    )
    parser.add_argument(
        "--reps", type=console.at_least(1), default=20, help="starts; of calls, five times as many"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the texts and the queries")
    parser.add_argument("--profile", choices=PROFILES, default="notes", help="kind of texts")
    parser.add_argument(
        "--embeddings", choices=("off", "local"), default="off", help="with local, vectors too"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures, for machines")
    parser.add_argument("--plot", metavar="FILE", help="also write a page for a browser")
    return console.run(parser, _work, argv)


if __name__ == "__main__":
    sys.exit(main())
