"""Files of every schema version, kept for ever; and paths that name something else than a store."""

import os
import shutil
from pathlib import Path

import pytest

from hadano import schema
from hadano.connection import Connection
from hadano.errors import HadanoError
from tests.reliability.examiner import examine
from tests.reliability.sound import quiet, state_of
from tests.tools.store import Store, altered
from tests.wire.process import REAL, Process

FIXTURES = Path(__file__).parents[1] / "fixtures"
VERSIONS = range(1, schema.VERSION + 1)
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, links and open files of POSIX")


@pytest.fixture(params=VERSIONS)
def old(request, tmp_path) -> Path:
    """A copy of the kept file of a version."""
    return Path(shutil.copy(FIXTURES / f"v{request.param}.db", tmp_path / "store.db"))


def test_a_file_of_every_version_opens_and_answers(old) -> None:
    with Store(old) as store:
        quiet(store)
        assert store.value("PRAGMA user_version") == schema.VERSION
        assert store.found("brown fox") == ["plain"]
        assert store.found("C#") == ["plain"]
        assert store.hits("会議 strasse") == {"日報"}
        assert store.found("dang") == ["日報"]
        graph = store.ask("query_graph", node="fox")
        assert graph["edges"] == [
            {"src": "fox", "rel": "jumps over", "dst": "dog", "doc_id": "plain"}
        ]
        plain = store.ask("get_document", id="plain")
        assert plain["tags"] == ["one", "two"]
        assert plain["created_at"] <= plain["updated_at"]
        status = store.ask("db_status")
        assert (status["docs"], status["chunks"], status["edges"]) == (3, 5, 1)


def test_a_file_of_every_version_is_written_to_and_erased_from(old) -> None:
    secret = "a quite unheard-of Wort"
    with Store(old) as store:
        quiet(store)
        store.put(secret, id="new")
        assert store.found("wort") == ["new"]
        for id in ("new", "long"):
            assert store.ask("delete_document", id=id)["erased"] is True
    assert state_of(old).keys() == {"plain", "日報"}
    assert examine(old, [secret, "amber basil cedar"]) == []


def test_a_file_that_a_newer_hadano_brings_up_first_keeps_its_version(
    tmp_path, monkeypatch
) -> None:
    old = Path(shutil.copy(FIXTURES / "v1.db", tmp_path / "store.db"))
    newest = schema.VERSION + 1
    migrate = Connection._migrate

    def after_another(db: Connection) -> None:
        with altered(old) as other:
            other.execute(f"PRAGMA user_version = {newest}")
        migrate(db)

    monkeypatch.setattr(Connection, "_migrate", after_another)
    with pytest.raises(HadanoError, match=f"schema version {newest}, made by a newer Hadano"):
        Connection(str(old))
    with altered(old) as db:
        assert db.execute("PRAGMA user_version").get == newest


# Paths.


def refusal(path: Path) -> str:
    """The one line with which a server refuses to start."""
    with Process(*REAL, environment={"HADANO_DB": str(path)}) as server:
        status, answers, errors = server.finish()
    assert (status != 0, answers) == (True, [])
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    return errors


def newer(path: Path) -> None:
    Store(path).__exit__()
    with altered(path) as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")


def foreign(path: Path) -> None:
    with altered(path) as db:
        db.execute("CREATE TABLE t(x)")


MADE = {
    "newer": (newer, "newer Hadano"),
    "foreign": (foreign, "did not make"),
    "text": (lambda path: path.write_text("no database " * 100), "not a database"),
    "directory": (Path.mkdir, "folder"),
    "pipe": (lambda path: os.mkfifo(path), ""),
    "link to itself": (lambda path: path.symlink_to(path), ""),
}


@POSIX
@pytest.mark.parametrize("kind", MADE)
def test_what_is_no_store_is_refused_in_one_clear_line(tmp_path, kind) -> None:
    make, words = MADE[kind]
    path = tmp_path / "store.db"
    make(path)
    assert words in refusal(path)


@POSIX
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anything")
@pytest.mark.parametrize("mode", [0o400, 0o000])
def test_a_file_that_may_not_be_written_is_refused_in_one_clear_line(tmp_path, mode) -> None:
    path = tmp_path / "store.db"
    Store(path).__exit__()
    path.chmod(mode)
    assert "cannot be" in refusal(path)


@POSIX
def test_a_link_leads_to_the_file_and_its_log_lies_beside_that(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "store.db")
    with Store(tmp_path / "link.db") as one, Store(tmp_path / "real" / "store.db") as other:
        one.put("text", id="a")
        assert other.ask("get_document", id="a")["content"] == "text"
        names = {path.name for path in (tmp_path / "real").iterdir()}
        assert {"store.db", "store.db-wal"} <= names
        assert {path.name for path in tmp_path.iterdir()} == {"real", "link.db"}


@POSIX
def test_nothing_is_acknowledged_once_the_path_names_another_file_or_none(tmp_path) -> None:
    path = tmp_path / "store.db"
    gone = ("E_INTERNAL", "the database file is gone, or is another")
    with Store(path) as store:
        quiet(store)
        store.put("text", id="a")
        path.rename(tmp_path / "away.db")
        assert store.refusal("store_document", title="t", content="text") == gone
        assert store.refusal("delete_document", id="a") == gone
        path.touch()
        assert store.refusal("store_document", title="t", content="text") == gone
        (tmp_path / "away.db").rename(path)
        store.put("more", id="b")
    assert state_of(path).keys() == {"a", "b"}
