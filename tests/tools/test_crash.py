"""A server that is killed: what it stored is there whole or not at all, and nothing is stuck."""

import random
import subprocess
import sys

import pytest

from tests.tools.store import PATIENCE_SECONDS, Store, until

_STORES = """
import sys
from hadano.service import Service
from hadano.types import Settings
service = Service(Settings(path=sys.argv[1]))
content = sys.stdin.readline()
print(flush=True)
service.call("store_document", {"id": "a", "title": "t", "content": content})
sys.stdin.read()
"""


def long_text() -> str:
    """A line of some 480,000 codepoints, of which no two words are alike for long."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghij", k=7)) for _ in range(5_000)]
    return " ".join(chance.choices(words, k=60_000)) + " lastword\n"


@pytest.mark.parametrize("wal_bytes", [0, 1, 1_000_000, 2_500_000])
@pytest.mark.parametrize("held", [False, True], ids=["new", "replaced"])
def test_a_store_that_is_killed_half_way_is_all_there_or_not_at_all(tmp_path, wal_bytes, held):
    """Killed once the write-ahead log has grown by so much; a commit may have come before."""
    path = tmp_path / "store.db"
    with Store(path) as store:
        if held:
            store.put("the old text", "old", id="a")
        before = store.contents()
    process = subprocess.Popen(
        [sys.executable, "-c", _STORES, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    content = long_text()
    process.stdin.write(content.encode())
    process.stdin.flush()
    assert process.stdout.readline()
    wal = tmp_path / "store.db-wal"
    until(lambda: not wal_bytes or wal.stat().st_size >= wal_bytes)
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    with Store(path) as store:
        if store.contents() != before:
            assert store.ask("get_document", id="a")["content"] == content
            assert store.found("lastword") == ["a"]
        else:
            assert store.found("lastword") == []
            assert store.hits("old text") == ({"a"} if held else set())
        assert store.integrity() == "ok"
        store.rows("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")
        store.put("the new text", id="a")
        assert store.found("new text") == ["a"]
        assert store.found("lastword") == []


def test_a_killed_servers_log_of_calls_holds_all_that_were_answered(tmp_path) -> None:
    work = (
        "import sys; from hadano.service import Service; from hadano.types import Settings;"
        "service = Service(Settings(path=sys.argv[1]));"
        "[service.call('store_document', {'id': str(n), 'title': 't', 'content': str(n)})"
        " for n in range(20)]; print(flush=True); sys.stdin.read()"
    )
    path = tmp_path / "store.db"
    process = subprocess.Popen(
        [sys.executable, "-c", work, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline()
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    with Store(path) as store:
        assert len(store.audit()) == 20
        assert store.ask("db_status")["docs"] == 20
