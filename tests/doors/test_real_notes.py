"""The first thousand of 100,000 real notes, where those lie beside the repository."""

import io
import json
import lzma
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from hadano import backup, status
from hadano.connection import Connection
from hadano.dump import restore
from tests.doors import kit

NOTES = Path(__file__).parents[3] / "shared" / "data" / "notes-100k.jsonl.xz"

pytestmark = pytest.mark.skipif(not NOTES.exists(), reason="the notes are not there")


@pytest.fixture(scope="module")
def lines() -> list[dict[str, object]]:
    with lzma.open(NOTES, "rt", encoding="utf-8", newline="\n") as notes:
        taken = [json.loads(line) for line in islice(notes, 1_000)]
    taken.sort(key=lambda note: note["id"])
    return [kit.line(id=it["id"], title=it["title"], content=it["text"]) for it in taken]


@pytest.fixture(scope="module")
def restored(lines: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("real") / "notes.db"
    restore(str(path), io.BytesIO(kit.as_dump(*lines)))
    return path


def test_they_come_back_as_they_were(restored: Path, lines: list[dict[str, object]]) -> None:
    back = [json.loads(line) for line in kit.dumped(restored)]
    assert [
        {name: it[name] for name in line} for it, line in zip(back, lines, strict=True)
    ] == lines


def test_a_second_time_changes_nothing(restored: Path) -> None:
    before = restored.read_bytes()
    assert restore(str(restored), io.BytesIO(kit.whole_dump(restored))).same == 1_000
    assert restored.read_bytes() == before


def test_fts5_itself_finds_index_and_text_in_agreement(restored: Path, tmp_path: Path) -> None:
    copy = backup.backup(str(restored), str(tmp_path))
    with closing(Connection(copy)) as db:
        db.run("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")
        assert status.index_agrees(db)
