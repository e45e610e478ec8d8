"""Audit rows that wait in memory for another process's lock, and the text that they hold."""

from tests.tools.store import Neighbour, Store

SECRET = "vermilion quixotic zephyr"


def test_a_row_that_waits_brings_no_erased_text_back(store: Store, monkeypatch) -> None:
    assert store.integrity() == "ok"
    housekeeper = store.service._housekeeper
    with Neighbour(store.path) as other:
        monkeypatch.setattr(housekeeper._wake, "set", lambda: None)
        other.run("BEGIN IMMEDIATE")
        assert store.refused("store_document", id="a", title="t", content=SECRET) == "E_TIMEOUT"
        other.run("COMMIT")
    store.put(SECRET, id="a")
    assert store.ask("delete_document", id="a")["erased"] is True
    monkeypatch.undo()
    housekeeper._wake.set()
    # How often the status was asked for depends on how long the check took.
    outcomes = [row["outcome"] for row in store.audit() if row["tool"] != "db_status"]
    assert sorted(outcomes) == ["E_TIMEOUT", "ok", "ok"]
    assert not store.left(SECRET)
