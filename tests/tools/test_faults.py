"""What fails behind an answer that was given is owed: it is neither lost nor told as an error."""

from hadano import chores, status
from hadano.connection import Connection
from tests.tools.store import Neighbour, Store, until


def test_rows_that_wait_outlive_the_thread_that_was_to_write_them(tmp_path, monkeypatch) -> None:
    def bug(_: Connection) -> bool:
        raise RuntimeError("a bug")

    monkeypatch.setattr(status, "index_agrees", bug)
    with Store(tmp_path / "store.db") as store:
        store.service._housekeeper._thread.join()
        with Neighbour(store.path) as other:
            other.run("BEGIN IMMEDIATE")
            for _ in range(3):
                assert store.refused("search_documents", query="amber") == "E_INTEGRITY"
            other.run("COMMIT")
    monkeypatch.undo()
    with Store(tmp_path / "store.db") as store:
        assert [row["outcome"] for row in store.audit()] == ["E_INTEGRITY"] * 3


def test_a_server_that_ends_at_once_does_not_check_the_file_first(tmp_path, monkeypatch) -> None:
    checked = []
    keepers: list[chores.Housekeeper] = []

    def opened_while_closing(path: str) -> Connection:
        db = Connection(path)
        until(lambda: keepers and keepers[0]._closing)
        return db

    monkeypatch.setattr(chores, "Connection", opened_while_closing)
    monkeypatch.setattr(status, "structure_holds", lambda _: bool(checked.append("structure")))
    keepers.append(chores.Housekeeper(str(tmp_path / "store.db")))
    keepers[0].close()
    assert checked == []
