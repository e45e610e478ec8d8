"""What fails behind an answer that was given is owed: it is neither lost nor told as an error."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import apsw

from hadano import chores, status, validate, warming
from hadano.connection import Connection
from hadano.errors import Code, HadanoError
from hadano.said import Said
from tests.tools.store import Neighbour, Store, until

SECRET = "vermilion quixotic zephyr"


def fail_once(monkeypatch, db: Connection) -> None:
    """The next copy of the log on this connection finds the disk full."""
    checkpoint = db.checkpoint

    def full(**_: bool) -> bool:
        monkeypatch.setattr(db, "checkpoint", checkpoint)
        raise HadanoError(Code.INTERNAL, "the disk is full")

    monkeypatch.setattr(db, "checkpoint", full)


def test_a_deletion_whose_log_cannot_be_emptied_is_answered_and_finished_later(
    store: Store, monkeypatch
) -> None:
    store.put(SECRET, id="a")
    fail_once(monkeypatch, store.service._db)
    assert store.ask("delete_document", id="a") == {"id": "a", "deleted": True, "erased": False}
    assert [row["outcome"] for row in store.audit()] == ["ok", "ok"]
    assert until(lambda: not store.left(SECRET))


def test_an_erasure_that_fails_in_the_background_too_is_tried_again(
    store: Store, monkeypatch
) -> None:
    assert store.integrity() == "ok"
    store.put(SECRET, id="a")
    fail_once(monkeypatch, store.service._db)
    fail_once(monkeypatch, store.service._housekeeper._db)
    assert store.ask("delete_document", id="a")["erased"] is False
    assert until(lambda: not store.left(SECRET))


def test_what_is_asked_of_the_log_while_it_is_copied_is_done_afterwards(
    store: Store, monkeypatch
) -> None:
    assert store.integrity() == "ok"
    housekeeper = store.service._housekeeper
    until(lambda: not housekeeper.owes_log())
    checkpoint = housekeeper._db.checkpoint
    emptied: list[bool] = []

    def asked_meanwhile(*, truncate: bool) -> bool:
        emptied.append(truncate)
        if len(emptied) == 1:
            housekeeper.erase(empty_log=True)
        return checkpoint(truncate=truncate)

    monkeypatch.setattr(housekeeper._db, "checkpoint", asked_meanwhile)
    housekeeper.wal_grew()
    until(lambda: len(emptied) > 1)
    assert emptied[:2] == [False, True]


def test_a_store_without_room_for_warm_words_is_sound(tmp_path, monkeypatch) -> None:
    def none(_: Connection) -> Iterator[None]:
        raise MemoryError
        yield

    monkeypatch.setattr(warming, "warm", none)
    with Store(tmp_path / "store.db") as store:
        store.put(SECRET, id="a")
        assert store.integrity() == "ok"
        assert store.found("quixotic") == ["a"]


def test_nothing_is_made_ready_while_a_call_runs(tmp_path, monkeypatch) -> None:
    called = threading.Event()
    ready: list[int] = []

    def steps(_: Connection) -> Iterator[None]:
        called.wait()
        for n in range(3):
            yield
            ready.append(n)

    monkeypatch.setattr(warming, "warm", steps)
    monkeypatch.setattr(chores, "_CALL_SECONDS_MAX", 60)
    with Store(tmp_path / "store.db") as store:
        with store.service._housekeeper.call():
            called.set()
            time.sleep(0.2)
            assert ready == []
        until(lambda: ready == [0, 1, 2])
        assert store.integrity() == "ok"


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

    def opened_while_closing(path: str, **options: Any) -> Connection:
        db = Connection(path, **options)
        until(lambda: keepers and keepers[0]._closing)
        return db

    monkeypatch.setattr(chores, "Connection", opened_while_closing)
    monkeypatch.setattr(Connection, "structure_holds", lambda _: bool(checked.append("structure")))
    keepers.append(chores.Housekeeper(str(tmp_path / "store.db"), said=Said(room=0)))
    keepers[0].close()
    assert checked == []


class _CutInTheEnd:
    """An APSW connection whose first ROLLBACK is interrupted before it has begun."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.cut = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *more: Any) -> Any:
        if sql == "ROLLBACK" and not self.cut:
            self.cut = True
            raise apsw.InterruptError("interrupted")
        return self._db.execute(sql, *more)


def test_an_interrupt_that_meets_the_rollback_leaves_no_transaction_open(
    store, monkeypatch
) -> None:
    db = store.service._db
    monkeypatch.setattr(db, "_db", _CutInTheEnd(db._db))
    assert store.refused("get_document", id="none") == "E_NOT_FOUND"
    assert db._db.cut
    assert store.put("text")


def test_an_id_of_any_legal_spelling_ties_refused_calls_to_their_document(store: Store) -> None:
    for id in ("東京\u3000駅", "👩\u200d🚀", "soft\u00adhyphen"):
        store.refused("store_document", id=id, title="t", content=SECRET, tags=["x", "x"])
        store.put("another text", id=id)
        store.ask("delete_document", id=id)
    assert not store.left(SECRET)


def test_a_call_that_is_cancelled_before_its_time_runs_is_taken_back(
    store: Store, monkeypatch
) -> None:
    check = validate.request

    def cancelled_meanwhile(*given: Any) -> Any:
        store.service.cancel()
        return check(*given)

    monkeypatch.setattr(validate, "request", cancelled_meanwhile)
    assert store.refused("store_document", title="t", content="c", id="a") == "E_TIMEOUT"
    monkeypatch.undo()
    assert store.refused("get_document", id="a") == "E_NOT_FOUND"


def test_text_that_is_no_utf_8_is_damage(store: Store) -> None:
    store.put("text", id="a")
    with Neighbour(store.path) as other:
        other.run("UPDATE docs SET title = CAST(x'ff' AS TEXT)")
    assert store.refused("get_document", id="a") == "E_INTEGRITY"
