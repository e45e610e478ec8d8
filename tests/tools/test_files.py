"""Files: which one is opened, who may read it, what is refused, and a file that is damaged."""

import os
import stat
import subprocess
import sys

import apsw
import pytest

from hadano import schema
from hadano.errors import HadanoError, SettingsError
from hadano.types import Settings
from tests.tools.store import PATIENCE_SECONDS, Store, altered

EDGE = {"src": "a", "rel": "r", "dst": "b"}
OTHERS = ("search_documents", "store_document", "get_document", "delete_document", "query_graph")
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


def files(folder) -> set[str]:
    """Databases in a folder and below it, without what SQLite puts beside them."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


@POSIX
def test_a_new_file_and_what_stands_beside_it_is_its_owners_alone(tmp_path) -> None:
    old = os.umask(0)
    try:
        with Store(tmp_path / "store.db") as store:
            store.put("private")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


@POSIX
def test_a_file_that_is_there_keeps_its_mode(tmp_path) -> None:
    with Store(tmp_path / "store.db"):
        pass
    (tmp_path / "store.db").chmod(0o640)
    with Store(tmp_path / "store.db") as store:
        store.put("text")
        assert stat.S_IMODE(store.path.stat().st_mode) == 0o640


@POSIX
def test_a_link_to_no_file_yet_makes_a_private_one(tmp_path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    with Store(tmp_path / "link.db") as store:
        store.put("text")
    assert stat.S_IMODE((tmp_path / "store.db").stat().st_mode) == 0o600


NAMES = ["a?b.db", "a#b.db", "a%42.db", "a b.db", "日本 店.db", "x.db?mode=memory", ":memory:"]
NAMES += ["file:a.db", "é.db", "e\u0301.db", "🎵", "-x.db", "a&cache=shared", ".hidden", "'q'.db"]
NAMES += ['a"b;--.db', "x" * 200]


@pytest.mark.parametrize("name", NAMES)
def test_exactly_the_file_that_the_path_names_is_used(tmp_path, monkeypatch, name) -> None:
    if os.name == "nt" and set(name) & set(':?"'):
        pytest.skip("no file name on Windows")
    folder = tmp_path / "a folder #1"
    folder.mkdir()
    monkeypatch.chdir(folder)
    settings = Settings.from_environment({"HADANO_DB": name})
    for _ in range(2):
        with Store(settings.path) as store:
            store.put("text", id="a")
            assert store.ask("db_status")["docs"] == 1
            assert store.ask("db_status")["db_path"] == os.path.join(folder, name)
        assert files(folder) == {name}
    assert apsw.Connection(os.path.join(folder, name)).execute("SELECT id FROM docs").get == "a"


def test_a_path_is_made_absolute_and_its_tilde_expanded(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for given in ("~/x.db", "x.db", "./x.db", str(tmp_path / "x.db")):
        settings = Settings.from_environment({"HADANO_DB": given})
        assert settings.path == str(tmp_path / "x.db")
    assert Settings.from_environment({}).path == str(tmp_path / "hadano.db")


@pytest.mark.parametrize(
    "environment",
    [
        {"HADANO_DB": ""},
        {"HADANO_DB": "  "},
        {"HADANO_DB": "."},
        {"HADANO_DB": "nowhere/x.db"},
        {"HADANO_EMBEDDINGS": "on"},
        {"HADANO_EMBEDDINGS": ""},
        {"HADANO_EMBEDDINGS": "Local"},
        {"HADANO_REQUEST_LOG": "none"},
        {"HADANO_REQUEST_LOG": "FULL"},
    ],
)
def test_any_other_value_of_a_setting_is_refused_in_one_line(
    tmp_path, monkeypatch, environment
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as refusal:
        Settings.from_environment(environment)
    assert str(refusal.value).startswith(next(iter(environment)))
    assert "\n" not in str(refusal.value)
    assert files(tmp_path) == set()


def test_every_value_of_a_setting_that_the_contract_names_is_taken(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for embeddings in ("off", "local"):
        for log in ("full", "redacted", "off"):
            settings = Settings.from_environment(
                {"HADANO_EMBEDDINGS": embeddings, "HADANO_REQUEST_LOG": log}
            )
            assert (settings.embeddings, settings.request_log) == (embeddings, log)
    default = Settings.from_environment({})
    assert (default.embeddings, default.request_log) == ("off", "full")


def test_several_processes_may_make_the_same_new_file_at_once(tmp_path) -> None:
    work = (
        "import sys; from hadano.service import Service; from hadano.types import Settings;"
        "print(end='x', flush=True); sys.stdin.read(1);"
        "service = Service(Settings(path=sys.argv[1]));"
        "answer = service.call('store_document', {'title': 't', 'content': 'text'});"
        "service.close(); sys.exit(answer.is_error)"
    )
    path = tmp_path / "store.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", work, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(5)
    ]
    for process in processes:
        assert process.stdout.read(1) == b"x"
    for process in processes:
        process.stdin.write(b"x")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=PATIENCE_SECONDS)
    assert [process.returncode for process in processes] == [0] * 5
    with Store(path) as store:
        assert store.ask("db_status")["docs"] == 5
        assert len(store.audit()) == 6


@POSIX
def test_a_store_keeps_its_locks_whatever_else_its_process_opens(tmp_path) -> None:
    """A process that closes any descriptor of a file loses all its locks on it, and another one
    that then ends takes the log away."""
    look = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), 6, 510, 0x40000002)"
    with Store(tmp_path / "store.db") as store, Store(tmp_path / "store.db"):
        store.put("text")
        looked = subprocess.run(
            [sys.executable, "-c", look, store.path], capture_output=True, timeout=PATIENCE_SECONDS
        )
    assert b"BlockingIOError" in looked.stderr


# What is not ours, and what is broken.


def test_a_file_that_is_no_database_of_ours_is_refused_and_left_alone(tmp_path) -> None:
    path = tmp_path / "x.db"
    for make, code in (
        (lambda: path.write_text("just a text that is longer than a header " * 40), "E_INTEGRITY"),
        (lambda: path.write_bytes(bytes(range(256)) * 16), "E_INTEGRITY"),
        (lambda: apsw.Connection(str(path)).execute("CREATE TABLE t(x)"), "E_VALIDATION"),
        (lambda: apsw.Connection(str(path)).execute("PRAGMA user_version = 7"), "E_VALIDATION"),
    ):
        path.unlink(missing_ok=True)
        make()
        before = path.read_bytes()
        with pytest.raises(HadanoError) as refusal:
            Store(path)
        assert refusal.value.code == code
        assert str(path) not in refusal.value.message
        assert path.read_bytes() == before


def test_a_file_of_a_newer_hadano_is_refused_and_left_alone(tmp_path) -> None:
    path = tmp_path / "store.db"
    with Store(path) as store:
        store.put("text")
    with altered(path) as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(HadanoError) as refusal:
        Store(path)
    assert refusal.value.code == "E_VALIDATION"
    assert f"version {schema.VERSION + 1}" in refusal.value.message
    assert path.read_bytes() == before


@pytest.fixture
def sound(tmp_path):
    """A closed store with documents, to be broken."""
    with Store(tmp_path / "store.db") as store:
        for n in range(20):
            store.put(f"amber lamp {n} " * 100, id=f"d{n}", relations=[EDGE])
        assert store.integrity() == "ok"
    return tmp_path / "store.db"


def root_page(path, table: str) -> tuple[int, int]:
    """Where the first page of a table stands in the file, and its size."""
    with altered(path) as db:
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
        size = db.pragma("page_size")
    return (root - 1) * size, size


@pytest.mark.parametrize("table", ["docs", "chunks", "edges", "audit_log", "chunks_fts_data"])
def test_a_broken_tree_fails_the_file_and_only_status_answers(sound, table) -> None:
    at, size = root_page(sound, table)
    with open(sound, "r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * size)
    with Store(sound) as store:
        assert store.ask("db_status")["integrity_at_boot"] == "failed"
        for tool in OTHERS:
            code, message = store.refusal(tool, id="d1", query="amber", node="a")
            assert (code, message) == (
                "E_INTEGRITY",
                "the database failed its check at start-up; see db_status",
            )
        assert store.refused("search_knowledge", seed_chunk_ids=[1]) == "E_INTEGRITY"
        assert store.ask("db_status")["integrity_at_boot"] == "failed"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM chunks WHERE id = 7",
        "DELETE FROM docs WHERE id = 'd3'",
        "UPDATE chunks SET text = text || 'x' WHERE id = 9",
        "UPDATE chunks SET words = '' WHERE id = 9",
        "UPDATE docs SET title = 'another title' WHERE id = 'd5'",
        "DELETE FROM chunks_fts_docsize WHERE id = 4",
        "INSERT INTO chunks(doc, seq, text, words) VALUES(1, 99, 'not indexed', '')",
        "INSERT INTO chunks_fts(chunks_fts) VALUES('delete-all')",
    ],
)
def test_an_index_that_disagrees_with_the_text_fails_the_file(sound, damage) -> None:
    with altered(sound) as db:
        db.execute(damage)
        assert db.execute("PRAGMA quick_check(chunks)").get == "ok"
    with Store(sound) as store:
        assert store.integrity() == "failed"
        for tool in OTHERS:
            assert store.refused(tool, id="d1") == "E_INTEGRITY"
        assert store.ask("db_status")["docs"] in (19, 20)
        outcomes = [row["outcome"] for row in store.audit()]
    assert outcomes.count("E_INTEGRITY") == len(OTHERS)
    assert outcomes[-1] == "ok"


def test_status_says_checking_then_ok_and_calls_are_answered_meanwhile(sound) -> None:
    with Store(sound) as store:
        assert store.found("amber lamp 7", top_k=1) == ["d7"]
        assert store.ask("db_status")["integrity_at_boot"] in ("checking", "ok")
        assert store.integrity() == "ok"


def test_an_index_page_that_breaks_later_is_an_integrity_error_and_no_bug(sound) -> None:
    with Store(sound) as store:
        assert store.integrity() == "ok"
        store.rows("UPDATE chunks_fts_data SET block = x'00ff00ff00ff' WHERE id > 10")
        assert store.refusal("search_documents", query="amber") == (
            "E_INTEGRITY",
            "the database is damaged",
        )


@POSIX
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_cannot_be_read_is_refused(sound) -> None:
    sound.chmod(0)
    with pytest.raises(HadanoError):
        Store(sound)
