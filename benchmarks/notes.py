"""Stage 1 on real notes beside plain FTS5 and tantivy, in one run.

    python -m benchmarks.notes NOTES.jsonl QUERIES.json [FOLDER]

NOTES has an object with `id`, `title` and `text` a line; QUERIES an object of lists of queries,
each a list of words. What is built stays in FOLDER and is used again. With 100,000 notes: 4 minutes
the first time, 3 after.

A query is asked `first` by a server that has just settled and has answered one search, in the order
of the file, so that the words of former queries are warm and its own mostly are not; and `again`.
Wall clock until the answer's JSON is there, in milliseconds, and the calling thread's CPU. `plain`
is FTS5 over the same windows, in a file of documents, windows and index, and asked for the best
hundred; `tantivy` its index of whole words, where the package is installed. Of the two, every third
query. `stdio` is the queries of each kind asked first of a server over its pipes, by the client's
clock, until the answer is parsed; its CPU is the client's. A cold start is from a server's spawn to
its first search answer, with the file in the system's cache.
"""

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Final

from hadano import limits
from hadano._bench import measure
from hadano._native import windows
from hadano.dump import FORMAT, VERSION, restore
from hadano.service import Service
from hadano.types import Settings

LONG: Final = 50
STORED: Final = 200
RIVALS_TAKE: Final = 3
SEARCHES: Final = 10_000
STARTS: Final = 9
TIME: Final = "2026-01-01T00:00:00.000Z"

Note = dict[str, str]
Queries = dict[str, list[str]]

PLAIN: Final = """
PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
CREATE TABLE docs(n INTEGER PRIMARY KEY, id TEXT UNIQUE, title TEXT, content TEXT);
CREATE TABLE chunks(id INTEGER PRIMARY KEY, doc INTEGER, title TEXT, text TEXT);
CREATE VIRTUAL TABLE plain USING fts5(
  text, title, content='chunks', content_rowid='id', tokenize='trigram'
);
"""
PLAIN_SEARCH: Final = "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 100"


def main(notes_path: str, queries_path: str, folder: str | None = None) -> None:
    """Prints a table and the figures beside it."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(folder or made)
        home.mkdir(exist_ok=True)
        notes = read(notes_path)
        given = json.loads(Path(queries_path).read_text(encoding="utf-8"))
        queries = {name: [" ".join(words) for words in kind] for name, kind in given.items()}
        long = dict(_long(notes))
        ours, plain = home / "hadano.db", home / "plain.db"
        _built(ours, "restore", lambda path: restored(path, notes))
        _built(plain, "plain FTS5's build", lambda path: _plainly(path, notes))
        _print_searches(ours, queries | long)
        _print_stdio(ours, queries | long)
        _print_starts(ours, queries)
        _print_rival("plain", _plain_search(plain), queries)
        _print_rival("tantivy", _tantivy_search(home / "tantivy", plain), queries)
        _print_stores(ours, plain, notes)
        # By a process that is small: a server's peak is no less than that of what started it.
        command = [sys.executable, "-m", __spec__.name, "--memory", ours, notes_path]
        subprocess.run(command, check=True)


def _built(path: Path, what: str, build: Callable[[Path], None]) -> None:
    if not path.exists():
        began = time.process_time()
        build(path)
        print(f"{what}: {time.process_time() - began:.1f} s of CPU")


def read(path: str) -> list[Note]:
    """The notes of a file, an object a line."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def restored(path: Path, notes: list[Note]) -> None:
    """Makes a store of notes, without vectors."""
    ordered = sorted(notes, key=lambda note: note["id"])
    header = {"format": FORMAT, "version": VERSION, "docs": len(notes), "edges": 0, "time": TIME}
    lines = [header]
    lines += [
        {
            "id": note["id"],
            "title": note["title"] or "untitled",
            "content": note["text"],
            "tags": [],
            "relations": [],
            "created_at": TIME,
            "updated_at": TIME,
        }
        for note in ordered
    ]
    restore(str(path), BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))


def _plainly(path: Path, notes: list[Note]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(PLAIN)
        with _transaction(db):
            for note in notes:
                _insert_plainly(db, note, note["id"])
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    yield
    db.execute("COMMIT")


def _insert_plainly(db: sqlite3.Connection, note: Note, id: str) -> None:
    text = note["text"]
    doc = db.execute(
        "INSERT INTO docs(id, title, content) VALUES(?, ?, ?)", (id, note["title"], text)
    ).lastrowid
    cut = windows(text, limits.CHUNK_CODEPOINTS_MAX, limits.CHUNK_STRIDE_CODEPOINTS)
    for seq, window in enumerate(cut):
        row = ("" if seq else note["title"], window)
        chunk = db.execute(
            "INSERT INTO chunks(doc, title, text) VALUES(?, ?, ?)", (doc, *row)
        ).lastrowid
        db.execute("INSERT INTO plain(rowid, title, text) VALUES(?, ?, ?)", (chunk, *row))


def _long(notes: list[Note]) -> Iterator[tuple[str, list[str]]]:
    """Queries longer than words: pieces of the notes, always the same ones."""
    chance = random.Random(1)
    texts = [note["text"] for note in notes if len(note["text"]) > 1_100]
    taken = [chance.choice(texts) for _ in range(LONG)]
    yield "20 words", [" ".join(text.split()[10:30]) for text in taken]
    yield "300 codepoints", [text[50:350] for text in taken]
    yield "1,024 codepoints", [text[:1024] for text in taken]
    han = [note["text"] for note in notes if _han(note["text"]) > 200]
    sentences = [
        max(chance.choice(han).split("\n"), key=_han)[:40] for _ in range(LONG if han else 0)
    ]
    yield "CJK sentence", sentences


def _han(text: str) -> int:
    return sum("\u3040" <= c <= "\u9fff" for c in text)


def _print_searches(path: Path, queries: Queries) -> None:
    print(f"\n{'hadano':18} first p50   p95   max (CPU p95)   again p50   p95   max (CPU p95)")
    for name, kind in queries.items():
        with closing(Service(Settings(path=str(path)))) as service:
            hall = measure.Hall(service)
            measure.settle(hall)
            hall.call("search_documents", {"query": "the first search"})
            first, again = _row(_asked(service), kind), _row(_asked(service), kind)
            print(f"{name:18} {first}   {again}", flush=True)


def _asked(service: Service) -> Callable[[str], object]:
    def search(query: str) -> object:
        answer = service.call("search_documents", {"query": query})
        if answer.is_error:
            raise RuntimeError(answer.content.decode())
        return answer

    return search


def _print_stdio(path: Path, queries: Queries) -> None:
    print(f"\n{'stdio':18} first p50   p95   max (CPU p95)")
    for name, kind in queries.items():
        with measure.Server(str(path)) as server:
            measure.settle(server)
            server.call("search_documents", {"query": "the first search"})
            print(f"{name:18} {_row(partial(_searched, server), kind)}", flush=True)


def _searched(server: measure.Server, query: str) -> object:
    return server.call("search_documents", {"query": query})


def _print_starts(path: Path, queries: Queries) -> None:
    asked = [query for kind in queries.values() for query in kind[:STARTS]]
    chosen = random.Random(3).sample(asked, min(STARTS, len(asked)))
    print(f"\n{'cold start':18} {_row(partial(measure.cold_start, str(path)), chosen)}")


def _print_rival(name: str, search: Callable[[str], object] | str, queries: Queries) -> None:
    if isinstance(search, str):
        print(f"\n{name} left out: {search}")
        return
    print(f"\n{name:18}       p50   p95   max (CPU p95)")
    for kind, asked in queries.items():
        print(f"{kind:18} {_row(search, asked[::RIVALS_TAKE])}", flush=True)


def _row(search: Callable[[str], object], queries: list[str]) -> str:
    wall, cpu = [], []
    for query in queries:
        began, spent = time.perf_counter(), time.thread_time()
        search(query)
        cpu.append((time.thread_time() - spent) * 1e3)
        wall.append((time.perf_counter() - began) * 1e3)
    times = measure.Series("", "", wall)
    p95 = measure.Series("", "", cpu).at(0.95)
    return f"{times.at(0.5):9.2f} {times.at(0.95):5.2f} {times.at(1):5.1f} ({p95:7.2f})"


def _plain_search(path: Path) -> Callable[[str], object]:
    db = sqlite3.connect(path)

    def search(query: str) -> object:
        quoted = (f'''"{word.replace('"', '""')}"''' for word in query.split())
        return db.execute(PLAIN_SEARCH, (" OR ".join(quoted),)).fetchall()

    return search


def _tantivy_search(path: Path, plain: Path) -> Callable[[str], object] | str:
    try:
        import tantivy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return "the package is not installed"
    schema = tantivy.SchemaBuilder().add_text_field("text").build()
    if path.exists():
        index = tantivy.Index(schema, path=str(path))
    else:
        path.mkdir()
        index = tantivy.Index(schema, path=str(path))
        writer = index.writer(heap_size=128 << 20, num_threads=1)
        with closing(sqlite3.connect(plain)) as db:
            for title, text in db.execute("SELECT title, text FROM chunks"):
                writer.add_document(tantivy.Document(text=f"{title}\n{text}"))
        writer.commit()
        writer.wait_merging_threads()
    index.reload()
    searcher: Any = index.searcher()

    def search(query: str) -> object:
        words = (tantivy.Query.term_query(schema, "text", w.lower()) for w in query.split())
        either = tantivy.Query.boolean_query([(tantivy.Occur.Should, word) for word in words])
        return searcher.search(either, 100, count=False).hits

    return search


def _print_stores(ours: Path, plain: Path, notes: list[Note]) -> None:
    """Notes of the same texts under new ids, one transaction each; into copies."""
    print(f"\nfile: {os.path.getsize(ours) / os.path.getsize(plain):.2f} times plain FTS5's")
    taken = random.Random(2).sample(notes, min(STORED, len(notes)))
    with copy(ours) as path, closing(Service(Settings(path=str(path)))) as service:
        hall = measure.Hall(service)
        measure.settle(hall)
        rows = iter(taken)

        def store(id: str) -> None:
            note = next(rows)
            arguments = {"id": id, "title": note["title"] or "untitled", "content": note["text"]}
            hall.call("store_document", arguments)

        print(f"{'store':18} {_row(store, [f'new {n}' for n in range(len(taken))])}")
    with copy(plain) as path, closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = FULL")
        others = iter(taken)

        def insert(id: str) -> None:
            with _transaction(db):
                _insert_plainly(db, next(others), id)

        print(f"{'plain insert':18} {_row(insert, [f'new {n}' for n in range(len(taken))])}")


@contextmanager
def copy(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(path.read_bytes())
        yield copy


def print_memory(path: str, notes_path: str) -> None:
    """What searches of which no two are alike make of a server's memory."""
    asked = 0
    with measure.Server(path) as server:
        measure.settle(server)
        for query in _of_all_notes(notes_path):
            server.call("search_documents", {"query": query[: limits.QUERY_CODEPOINTS_MAX]})
            asked += 1
    print(f"\na server's memory at most, after {asked:,} searches: {server.peak_bytes >> 20} MiB")


def _of_all_notes(path: str) -> Iterator[str]:
    """One to five words of one note each, from all over the file."""
    chance = random.Random(1)
    with open(path, encoding="utf-8", newline="\n") as lines:
        every = max(sum(1 for _ in lines) // SEARCHES, 1)
        lines.seek(0)
        for line in islice(lines, 0, None, every):
            if words := re.findall(r"\w{3,}", json.loads(line)["text"]):
                yield " ".join(chance.choices(words, k=chance.randint(1, 5)))


if __name__ == "__main__":
    if sys.argv[1] == "--memory":
        print_memory(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
