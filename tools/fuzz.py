"""Feeds whatever chance makes to the wire, the tools, the kernels and the ranker, for so long.

    python tools/fuzz.py --seconds 3600

Each round has a number; `--first N` begins with the round that failed. What must hold of every
round: the wire answers JSON-RPC on one line; a tool answers JSON with no code but the contract's
six, and never E_INTERNAL; the ranker, over an index of which bytes were changed, ranks or raises
E_INTEGRITY; the kernels agree with their twins. `tools/sanitized.py` runs it, and the tests, on a
core that is compiled with the address and undefined-behaviour sanitizers.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hadano import limits, wire  # noqa: E402
from hadano._native import Pieces, classes, fuse, search_form, short_words, windows  # noqa: E402
from hadano.connection import Connection  # noqa: E402
from hadano.errors import Code, HadanoError  # noqa: E402
from hadano.plan import terms  # noqa: E402
from hadano.service import TOOLS, Service  # noqa: E402
from hadano.types import Settings  # noqa: E402
from tests.oracle import chunking, pieces  # noqa: E402
from tests.wire import fake  # noqa: E402
from tests.wire.process import call, enveloped, initialize, notification, request  # noqa: E402

Round = Callable[[random.Random], str]

ALPHABETS: Final = (
    range(0x20, 0x7F),
    range(0x100),
    range(0x300, 0x370),
    range(0x600, 0x700),
    range(0xE00, 0xE80),
    range(0x1100, 0x1200),
    range(0x2000, 0x2100),
    range(0x3040, 0x3100),
    range(0x4E00, 0x9FFF),
    range(0xAC00, 0xD7A4),
    range(0xD800, 0xE000),
    range(0xFB00, 0xFFFF),
    range(0x1F300, 0x1F700),
    range(0x110000),
)
COUNTS: Final = (0, 1, 2, 3, 7, 60, 799, 800, 801, 1_500, 5_000)
SCALARS: Final = (None, True, 0, -1, 1, 10.0, 1.5, 2**63, 2**64, -(2**70), 1e308, "", " ", "1")
QUERIES: Final = ("amber lamp", "a b c 東京", "go", "の", "a" * 60, "configuration")
VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "x")
METHODS: Final = ("ping", "tools/list", "tools/call", "server/discover", "initialize", "x")
WORDS: Final = ("amber", "lamp", "go", "東京の塔", "configuration")


def text(chance: random.Random, most: int = 5_000) -> str:
    count = min(chance.choice(COUNTS), most)
    alphabets = chance.sample(ALPHABETS, chance.randint(1, 3))
    made = "".join(chr(chance.choice(chance.choice(alphabets))) for _ in range(count))
    if chance.random() < 0.1:
        return made
    return made.encode(errors="ignore").decode().replace("\0", "")


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(6 if depth < 4 else 4)
    if kind < 2:
        return text(chance, 60)
    if kind < 4:
        return chance.choice(SCALARS)
    if kind == 4:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {text(chance, 7): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def mutated(chance: random.Random, data: bytes) -> bytes:
    """Bytes replaced, taken out, doubled and put elsewhere."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(out) + 1)
        end = min(len(out), at + chance.choice((1, 1, 2, 8, 100)))
        piece = out[at:end]
        out[at:end] = chance.choice(
            (b"", piece * 2, chance.randbytes(len(piece)), bytes(reversed(piece)), b'"', b"{[" * 50)
        )
    return bytes(out)


# The wire.


def arguments(chance: random.Random, tool: Any) -> Any:
    """Arguments for a tool, most of them of its own names."""
    if chance.random() < 0.05:
        return value(chance)
    names = list(tool.input_schema["properties"])
    return {
        chance.choice([name] * 60 + ["idd"]): _argument(chance, name)
        for name in names
        if chance.random() < 0.9
    }


def _argument(chance: random.Random, name: str) -> Any:
    if chance.random() < 0.04:
        return value(chance)
    match name:
        case "top_k" | "max_chunks_per_doc" | "depth":
            return chance.randint(-1, 101)
        case "seed_chunk_ids":
            return [chance.randrange(40) for _ in range(chance.randrange(5))]
        case "tags":
            return [text(chance, 60) for _ in range(chance.randrange(4))]
        case "relations":
            ends = ("src", "rel", "dst")
            return [{end: text(chance, 60) for end in ends} for _ in range(chance.randrange(4))]
        case "id":
            return chance.choice(("a", "b", "c", "d", text(chance, 60)))
        case "mode":
            return chance.choice(("auto", "graph", "vector", "both", "none"))
    return text(chance)


def on_the_wire(chance: random.Random) -> str:
    session = wire.Session(fake.Service(), fake.TOOLS)
    if opening := chance.choice((None, initialize(chance.choice(VERSIONS)))):
        answered(session, json.dumps(opening).encode())
    for _ in range(chance.randrange(1, 5)):
        line = json.dumps(_message(chance)).encode()
        if chance.random() < 0.5:
            line = mutated(chance, line)
        answered(session, line)
    for message in wire.overlong(line[: chance.randrange(99)], line[-9:]).messages:
        assert json.loads(session.answer(message))["error"]["code"] == wire.INVALID_REQUEST
    return "answered"


def _message(chance: random.Random) -> Any:
    tool = chance.choice(TOOLS)
    asked = request(
        chance.choice((1, "a", value(chance))),
        chance.choice(METHODS),
        **chance.choice(({}, {"cursor": value(chance)}, {"_meta": value(chance)})),
    )
    called = call(value(chance), chance.choice(("echo", "fail", tool.name)), x=value(chance))
    return chance.choice(
        (
            initialize(chance.choice(VERSIONS)),
            asked,
            enveloped(asked),
            called,
            enveloped(called),
            notification("notifications/cancelled", requestId=value(chance)),
            notification(text(chance, 7), x=value(chance)),
            {"jsonrpc": "2.0", "id": value(chance), "method": text(chance, 7), "params": {}},
            {"jsonrpc": "2.0", "id": 1, "result": value(chance)},
            [asked, called, value(chance)],
            value(chance),
        )
    )


def answered(session: wire.Session, line: bytes) -> None:
    """Takes a line as a server does."""
    read = wire.read(line)
    waiting: list[wire.Request] = []
    for message in read.messages:
        ident = wire.cancelled(message)
        if ident is not None:
            assert not any(wire.means(ident, one) for one in waiting if one.method == "initialize")
        if isinstance(message, wire.Request):
            waiting.append(message)
        answer = session.answer(message)
        assert (answer is None) == isinstance(message, wire.Notification)
        if answer is not None:
            assert b"\n" not in answer
            said = json.loads(answer)
            assert said["jsonrpc"] == "2.0"
            assert ("result" in said) != ("error" in said)
            assert "result" in said or said["error"]["code"] != wire.INTERNAL_ERROR


# The tools.


def on_the_tools(service: Service) -> Round:
    def round_(chance: random.Random) -> str:
        tool = chance.choice(TOOLS)
        answer = service.call(tool.name, arguments(chance, tool))
        said = json.loads(answer.content)
        if not answer.is_error:
            return f"{tool.name}: ok"
        code = said["error"]["code"]
        assert code in set(Code) - {Code.INTERNAL}, said
        return f"{tool.name}: {code}"

    return round_


# The ranker, over a broken index.


def on_a_broken_index(path: str) -> Round:
    """Changes bytes of some records of the index, asks, and takes the changes back."""
    beside = apsw.Connection(path)
    records = [id for (id,) in beside.execute("SELECT id FROM chunks_fts_data")]

    def round_(chance: random.Random) -> str:
        held = []
        for id in chance.sample(records, min(len(records), chance.randrange(1, 4))):
            block = beside.execute("SELECT block FROM chunks_fts_data WHERE id = ?", (id,)).get
            held.append((block, id))
            beside.execute(
                "UPDATE chunks_fts_data SET block = ? WHERE id = ?", (mutated(chance, block), id)
            )
        try:
            return _ranked(chance, path)
        finally:
            beside.executemany("UPDATE chunks_fts_data SET block = ? WHERE id = ?", held)

    return round_


def _ranked(chance: random.Random, path: str) -> str:
    try:
        with closing(Connection(path)) as db, db.snapshot():
            for query in chance.sample(QUERIES, 3):
                db.ranking(terms(query), per_doc=3, ranks=limits.FUSION_RANKS_MAX)
    except HadanoError as error:
        if error.code not in (Code.INTEGRITY, Code.TIMEOUT):
            raise
        return str(error.code)
    return "ranked"


# The kernels.


def on_the_kernels(chance: random.Random) -> str:
    it = text(chance)
    size = chance.randint(1, 900)
    stride = chance.randint(1, size)
    assert windows(it, size, stride) == chunking.windows(it, size, stride)
    form = search_form(it)
    assert search_form(form) == form
    assert len(classes(form)) == len(form)
    short_words(form, chance.random() < 0.5, chance.random() < 0.5)
    said = it.encode("utf-8", "surrogatepass")
    other = mutated(chance, said)
    known, dropped = Pieces((said, said[::-1])), other[::2]
    known.drop(dropped)
    assert pieces.runs_of(known, other) == pieces.runs((said, said[::-1]), other, [dropped])
    count = chance.randrange(60)
    chunks = array("q", (chance.randrange(-5, 60) for _ in range(count)))
    docs = array("q", (chance.randrange(-5, 9) for _ in range(count)))
    fuse(chunks, docs, chance.randint(1, 5), chance.randrange(70), 60, chance.randrange(9))
    return "agreed"


def rounds(folder: str) -> dict[str, Round]:
    """What can be fed, by name. The store of the tools is not the one that gets broken."""
    path = f"{folder}/broken.db"
    with closing(Service(Settings(path=path))) as service:
        for n in range(150):
            words = random.Random(n).choices(WORDS, k=n * 9)
            service.call("store_document", {"title": f"t {n}", "content": " ".join(words)})
        service.call("store_document", {"title": "one", "content": "a" * 90_000})
    return {
        "wire": on_the_wire,
        "tools": on_the_tools(Service(Settings(path=f"{folder}/store.db"))),
        "index": on_a_broken_index(path),
        "kernels": on_the_kernels,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Feeds whatever chance makes, for so long.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    ends = time.monotonic() + given.seconds
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        feeds = list(rounds(folder).items())
        number = given.first
        while time.monotonic() < ends:
            name, feed = feeds[number % len(feeds)]
            try:
                outcomes[f"{name}, {feed(random.Random(number))}"] += 1
            except BaseException:
                print(f"round {number}, {name}", file=sys.stderr)
                raise
            number += 1
    print(f"{sum(outcomes.values()):,} rounds, {given.first} to {number - 1}")
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:9,} {outcome}")


if __name__ == "__main__":
    main()
