"""A restore makes vectors where HADANO_EMBEDDINGS is local, and has them owed where it is not."""

import io
from contextlib import closing
from pathlib import Path

import pytest

from hadano import model
from hadano.connection import Connection
from hadano.dump import restore
from hadano.errors import HadanoError
from tests.doors import kit
from tests.tools.store import Store, until


@pytest.fixture
def dump(tmp_path: Path) -> bytes:
    return kit.whole_dump(kit.store(tmp_path / "source.db"))


def vectors(path: Path) -> dict[int, bytes]:
    with closing(Connection(str(path), vectors=True)) as db:
        return dict(db.rows("SELECT chunk_id, embedding FROM vec_chunks"))


def expected(path: Path) -> dict[int, bytes]:
    with closing(Connection(str(path), reading=True)) as db:
        texts = db.rows(
            "SELECT c.id, iif(seq = 0, title || char(10), '') || text FROM chunks AS c"
            " JOIN docs ON n = doc"
        )
        return {id: model.embed(text) for id, text in texts}


def owes(path: Path) -> bool:
    with closing(Connection(str(path), reading=True)) as db:
        return db.row("SELECT 1 FROM chores WHERE name = 'embed'") is not None


def test_a_restore_with_embeddings_on_makes_every_vector(tmp_path: Path, dump: bytes) -> None:
    path = tmp_path / "back.db"
    restore(str(path), io.BytesIO(dump), "local")
    assert vectors(path) == expected(path)
    assert not owes(path)
    before = vectors(path)
    restored = restore(str(path), io.BytesIO(dump), "local")
    assert restored.same == restored.docs
    assert vectors(path) == before


def test_a_restore_with_embeddings_on_makes_those_of_older_documents_too(
    tmp_path: Path, dump: bytes
) -> None:
    path = kit.store(tmp_path / "back.db", ({"id": "old", "title": "t", "content": "word " * 400},))
    restore(str(path), io.BytesIO(dump), "local")
    assert vectors(path) == expected(path)
    assert not owes(path)


def test_a_restore_that_fails_leaves_no_vectors_and_no_tables_of_them(
    tmp_path: Path, dump: bytes
) -> None:
    path = kit.store(tmp_path / "back.db")
    with pytest.raises(HadanoError):
        restore(str(path), io.BytesIO(dump + b"{}\n"), "local")
    with closing(Connection(str(path), reading=True)) as db:
        assert db.rows("SELECT name FROM sqlite_schema WHERE name LIKE 'vec%'") == []


def test_what_a_restore_without_embeddings_puts_in_is_owed(tmp_path: Path, dump: bytes) -> None:
    path = tmp_path / "back.db"
    with Store(path, embeddings="local") as store:
        store.put("text", id="a")
    restore(str(path), io.BytesIO(dump))
    assert len(vectors(path)) == 0  # of `a`, which the dump replaces
    assert owes(path)
    with Store(path, embeddings="local") as store:
        until(lambda: not store.rows("SELECT 1 FROM chores"))
    assert vectors(path) == expected(path)


def test_the_command_goes_by_the_environment(
    tmp_path: Path, dump: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "back.db"
    monkeypatch.setenv("HADANO_EMBEDDINGS", "maybe")
    ended = kit.command("dump", "--db", path, "--restore", "--in", "-", stdin=dump)
    assert ended.returncode == 2
    assert b"HADANO_EMBEDDINGS is 'maybe'; it takes off, local" in ended.stderr
    assert not path.exists()
    monkeypatch.setenv("HADANO_EMBEDDINGS", "local")
    ended = kit.command("dump", "--db", path, "--restore", "--in", "-", stdin=dump)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert vectors(path) == expected(path)


def test_a_dump_of_a_store_with_vectors_is_that_of_one_without(tmp_path: Path, dump: bytes) -> None:
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    restore(str(one), io.BytesIO(dump), "local")
    restore(str(other), io.BytesIO(dump))
    assert kit.dumped(one) == kit.dumped(other)
