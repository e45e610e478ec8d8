"""The command: opens what is fed, and feeds it by turns."""

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from typing import Final

from hadano.connection import Connection
from hadano.service import Service
from hadano.types import Settings
from tests.web.web import REAL, Server
from tools.fuzz import files, kernels, messages
from tools.fuzz.chance import Round

WORDS: Final = ("amber", "lamp", "go", "東京の塔", "configuration")
#: Of the feeds that take long, each has one turn where the others have ten.
LONG: Final = ("http", "erasure", "quotes")
TURNS: Final = ("wire", "tools", "index", "eraser", "vectors", "kernels") * 10 + LONG


def rounds(folder: str, opened: contextlib.ExitStack) -> dict[str, Round]:
    """What can be fed, by name. The store of the tools is not the one that gets broken."""
    path = f"{folder}/broken.db"
    with closing(Service(Settings(path=path))) as service:
        for n in range(150):
            words = random.Random(n).choices(WORDS, k=n * 9)
            service.call("store_document", {"title": f"t {n}", "content": " ".join(words)})
        service.call("store_document", {"title": "one", "content": "a" * 90_000})
    shutil.copy(path, f"{folder}/sound.db")
    server = opened.enter_context(Server(*REAL, environment={"HADANO_DB": f"{folder}/http.db"}))
    # What a sanitizer reports of the server is to be seen here.
    report = (server._process.stderr, sys.stderr.buffer, 1)
    threading.Thread(target=shutil.copyfileobj, args=report, daemon=True).start()
    service = opened.enter_context(closing(Service(Settings(path=f"{folder}/store.db"))))
    sound = opened.enter_context(closing(Connection(f"{folder}/sound.db")))
    return {
        "wire": messages.on_the_wire,
        "http": messages.over_http(server),
        "tools": messages.on_the_tools(service),
        "erasure": files.on_erasure(folder),
        "index": files.on_a_broken_index(path),
        "eraser": files.on_the_eraser(),
        "quotes": kernels.on_quotes(sound),
        "vectors": kernels.on_vectors(),
        "kernels": kernels.on_the_kernels,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Feeds whatever chance makes, for so long.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=sorted(set(TURNS)), help="one feed alone")
    given = parser.parse_args()
    ends = time.monotonic() + given.seconds
    outcomes: Counter[str] = Counter()
    number = given.first
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        opened.callback(_report, outcomes)
        feeds = rounds(folder, opened)
        while time.monotonic() < ends:
            name = given.only or TURNS[number % len(TURNS)]
            try:
                outcomes[f"{name}, {feeds[name](random.Random(number))}"] += 1
            except BaseException:
                print(f"round {number}, {name}", file=sys.stderr)
                raise
            number += 1


def _report(outcomes: Counter[str]) -> None:
    total, seconds = sum(outcomes.values()), time.process_time()
    print(f"{total:,} rounds, {seconds:,.0f} s of processor time without that of servers")
    for what, count in sorted(outcomes.items()):
        print(f"{count:9,} {what}")


if __name__ == "__main__":
    main()
