"""The audit log forgets what is erased, also where calls only quoted it, and nothing else."""

import io
import json
import random
import unicodedata
from contextlib import closing, suppress
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hadano import audit, dump, ingest, limits, quotes, said, service
from hadano._native import Pieces
from hadano.chores import Housekeeper
from hadano.connection import Connection
from hadano.quotes import PIECE_BYTES
from hadano.rebuild import rebuild
from hadano.said import Said
from hadano.types import DeleteDocument
from tests.doors import kit
from tests.oracle.pieces import runs_of
from tests.reliability.examiner import examine, pieces
from tests.tools.store import Store, altered, until

SECRET = 'The "Zürich" vault\nopens at Quixotic-Nine o\'clock'
#: So that terms stand in pages that others share.
OTHERS = ("The amber lamp of Antwerp", "configuration and rollback of a configuration")


@pytest.fixture
def told(store: Store) -> Store:
    """A store that holds the secret, and other documents."""
    for n, text in enumerate(OTHERS):
        store.put(text, id=f"other {n}")
    store.put(SECRET, "a note", id="gone")
    return store


def logged(store: Store) -> list[object]:
    """The arguments in the audit log but for those of stores that went well."""
    return [
        None if row["args"] is None else json.loads(row["args"])
        for row in store.audit()
        if (row["tool"], row["outcome"]) != ("store_document", "ok")
    ]


def spelled(text: str) -> dict[str, object]:
    """The shape of one text."""
    return {"type": "string", "length": len(text)}


SAYINGS = {
    "a search": ("search_documents", {"query": f"where is {SECRET} now?"}),
    "a search for eight bytes": ("search_documents", {"query": "ixotic-N"}),
    "in capitals": ("search_documents", {"query": "VAULT\nOPENS"}),
    "case folded": ("search_documents", {"query": '"zürich" vault'}),
    "in search form": ("search_documents", {"query": "zurich Vault"}),
    "a graph query": ("query_graph", {"node": "n", "rel": "Quixotic-Nine"}),
    "an id of nothing": ("get_document", {"id": "vault of Quixotic-Nine"}),
    "a store without an id": ("store_document", {"title": " ", "content": SECRET}),
    "a store under another id": ("store_document", {"id": "other 1", "content": SECRET}),
    "a long one": ("store_document", {"content": f"{'long ' * 2_000}{SECRET}{' long' * 2_000}"}),
    "an unknown parameter": ("db_status", {"what": [{"deep": SECRET}]}),
    "the name of a parameter": ("db_status", {"opens at Quixotic": 1}),
    "what is no object": ("db_status", [SECRET]),
    "half of a character": ("search_documents", {"query": f"\ud800 é {SECRET}"}),
}


@pytest.mark.parametrize(("tool", "arguments"), SAYINGS.values(), ids=SAYINGS)
def test_whatever_call_quoted_it_its_row_loses_the_text(told: Store, tool, arguments) -> None:
    told.answer(tool, arguments)
    before = told.audit()
    assert told.ask("delete_document", id="gone")["erased"] is True
    assert examine(told.path, [SECRET]) == []
    after = told.audit()[:-1]
    for old, new in zip(before, after, strict=True):
        assert {**old, "args": None} == {**new, "args": None}
    assert told.ask("search_documents", query="rollback")["documents"] != []


SPOKEN = (
    "секретный договор с партнёром",
    "Straße nach Zürich",
    "Łódź café naïve",
    "ｗｉｄｅ ｌｅｔｔｅｒｓ",
)


def alternating(text: str) -> str:
    return "".join(c.upper() if n % 2 else c.lower() for n, c in enumerate(text))


def wide(text: str) -> str:
    """ASCII's letters in full width."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


@pytest.mark.parametrize("text", SPOKEN)
@pytest.mark.parametrize(
    "said",
    [
        str.upper,
        str.title,
        alternating,
        wide,
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: unicodedata.normalize("NFKC", text),
    ],
    ids=["upper", "title", "alternating", "wide", "NFD", "NFKC"],
)
def test_however_it_was_spelled_its_row_loses_the_text(told: Store, text, said) -> None:
    told.put(text, id="spoken")
    told.search(said(text))
    told.search(f"{said('rollback configuration')} é")
    told.ask("delete_document", id="spoken")
    assert logged(told)[:2] == [
        {"query": spelled(said(text))},
        {"query": f"{said('rollback configuration')} é"},
    ]


@pytest.mark.parametrize("said", [str.upper, alternating, wide])
def test_what_another_document_holds_stays_however_it_was_spelled(told: Store, said) -> None:
    text = "секретный договор, configuration"
    told.put(text, id="twin")
    told.put(text, id="also gone")
    told.search(said(text))
    told.ask("delete_document", id="also gone")
    assert logged(told)[0] == {"query": said(text)}


def test_its_shape_stays(told: Store) -> None:
    told.search("at Quixotic", top_k=3)
    told.answer("db_status", {"opens at Quixotic": 1})
    told.ask("delete_document", id="gone")
    assert logged(told) == [
        {"query": spelled("at Quixotic"), "top_k": {"type": "number"}},
        None,
        {"id": "gone"},
    ]


@pytest.mark.parametrize(
    "query",
    ["rollback", "CONFIGURATION", '"rollback" it', "Antwerp", "nothing of all that", "vault"],
)
def test_what_another_document_holds_and_what_none_held_stays(told: Store, query) -> None:
    told.put('rollback "configuration" in Antwerp: the amber lamp', id="also gone")
    told.search(query)
    told.ask("delete_document", id="also gone")
    assert logged(told)[0] == {"query": query}


def test_what_is_in_the_new_text_of_a_replaced_document_stays(told: Store) -> None:
    told.search("Quixotic-Nine")
    told.search("vault\nopens")
    told.put("at Quixotic-Nine", "a note", id="gone")
    assert logged(told) == [{"query": "Quixotic-Nine"}, {"query": spelled("vault\nopens")}]


@pytest.mark.parametrize("end", ["", " and more"])
def test_a_long_quote_stays_where_all_of_it_stands_elsewhere(told: Store, end) -> None:
    long = " ".join(f"word {n} of many words" for n in range(200))
    told.put(long, id="kept")
    told.put(long + end, id="also gone")
    told.refused("store_document", title=" ", content=long + end)
    told.ask("delete_document", id="also gone")
    shape = {"title": spelled(" "), "content": spelled(long + end)}
    assert logged(told)[0] == (shape if end else {"title": " ", "content": long})


def test_the_last_document_that_held_it_takes_it_away(told: Store) -> None:
    told.put(SECRET, id="twin")
    told.search("Quixotic-Nine")
    told.ask("delete_document", id="gone")
    assert logged(told)[0] == {"query": "Quixotic-Nine"}
    told.ask("delete_document", id="twin")
    assert logged(told)[0] == {"query": spelled("Quixotic-Nine")}


def test_names_that_another_relation_has_stay(store: Store) -> None:
    edge = {"src": "Acme Corporation", "rel": "depends on", "dst": "Initech Incorporated"}
    store.put("one", id="kept", relations=[edge])
    store.put(
        "two", id="gone", relations=[edge, {**edge, "rel": "is bought by", "dst": "Hooli Inc"}]
    )
    store.ask("query_graph", node="Acme Corporation", rel="depends on")
    store.ask("query_graph", node="Initech Incorporated", rel="is bought by")
    store.search("Acme Corp")
    store.ask("delete_document", id="gone")
    assert logged(store)[:3] == [
        {"node": "Acme Corporation", "rel": "depends on"},
        {"node": spelled("Initech Incorporated"), "rel": spelled("is bought by")},
        {"query": "Acme Corp"},
    ]


def test_names_of_parameters_and_the_documents_own_id_are_no_quotes(told: Store) -> None:
    told.put("max_chunks_per_doc and seed_chunk_ids", "notes-of-november", id="notes-of-november")
    told.search("amber", max_chunks_per_doc=2)
    told.ask("delete_document", id="notes-of-november")
    told.refused("get_document", id="notes-of-november")
    told.ask("delete_document", id="other 0")
    assert logged(told)[0] == {"query": "amber", "max_chunks_per_doc": 2}
    assert logged(told)[2] == {"id": "notes-of-november"}


def values(row: object) -> list[str]:
    """Every text among logged arguments, as it is in the file but for how JSON spells it."""
    if isinstance(row, dict):
        return [text for item in row.values() for text in values(item)]
    return [row.lower()] if isinstance(row, str) else []


def test_no_piece_that_is_no_ones_stays_whatever_was_asked_and_whatever_goes(store: Store) -> None:
    chance = random.Random(5)
    words = "amber basil configuration délégué 会議資料 rollback zebra Straße no it".split()

    def text(most: int) -> str:
        return " ".join(chance.choices(words, k=chance.randint(1, most)))

    held = {f"d{n}": text(12) for n in range(12)}
    for id, content in held.items():
        store.put(content, "t", id=id)
    asked = [text(4) for _ in range(150)]
    for query in asked:
        store.search(query)
    kept = []
    while held:
        id, content = held.popitem()
        store.ask("delete_document", id=id)
        told = set(pieces([content.lower().encode()]).tolist())
        for others in held.values():
            told -= set(pieces([others.lower().encode()]).tolist())
        rows = logged(store)[: len(asked)]
        left = [value for row in rows for value in values(row)]
        assert not told & set(pieces(value.encode() for value in left).tolist())
        kept.append(sum(row == {"query": query} for row, query in zip(rows, asked, strict=True)))
    assert kept[0] > 100
    short = [query for query in asked if len(query.encode()) < PIECE_BYTES]
    assert kept[-1] >= len(short) > 0


def test_a_text_shorter_than_a_piece_takes_nothing_away(told: Store) -> None:
    told.put("vault", "t", id="short")
    told.search("the vault")
    told.ask("delete_document", id="short")
    assert logged(told)[0] == {"query": "the vault"}


# What is kept of the log from one erasure to the next.

#: Marks, what is dropped, composed, widened or shortened by folding, and what JSON escapes.
LETTERS = st.text(
    st.sampled_from('aAbk=éÉßẞİıﬁＡ한ᄒ\u1161東й\u0301\u0338\u200b\u00ad\u212a"\\\n\x01 ')
)
ROW = st.lists(st.one_of(LETTERS, st.text("abc ", max_size=30)), max_size=4).map("".join)


@given(st.lists(ROW, max_size=6), ROW, st.sampled_from([str, str.upper, str.lower, wide]))
@example(["abcdefg=\u0338"], "abcdefg≠", str)
@example(["ab é" + "c" * 15 + "é ab"], "cccccccc", str)
@example(["ÉÀÈÙ"], "éàèù", str)
@example(["東" * 3], "東" * 3, str)
def test_whatever_row_has_a_quote_it_is_heard_among_others(asked, text, said) -> None:
    rows = [json.dumps({"query": query}, ensure_ascii=False) for query in [*asked, said(text)]]
    known = Pieces(tuple(quotes._spellings(text)))
    for row in rows:
        heard = quotes.heard(f"é\n{row}\n\u0301 é".encode())
        forms = [form.encode().lower() for form in quotes._forms(row)]
        if any(has_text(run) for form in forms for run in runs(known, form)):
            assert known.run(heard, 0, PIECE_BYTES) is not None


def runs(known: Pieces, said: bytes) -> list[bytes]:
    return [said[start:end] for start, end in runs_of(known, said)]


def has_text(run: bytes) -> bool:
    """Whether it is more than the quote that opens a string and what follows."""
    return len(run.removeprefix(b'"')) >= PIECE_BYTES


def kept(store: Store) -> list[bytes]:
    return [block.heard for block in store.service._said._kept.values()]


@pytest.fixture
def by_twos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked at, and kept, two at a time."""
    monkeypatch.setattr(said, "_ROWS_AT_ONCE", 2)
    monkeypatch.setattr(said, "_ROWS", said._ROWS.replace("LIMIT 1000", "LIMIT 2"))


@pytest.mark.usefixtures("by_twos")
def test_nothing_is_kept_of_rows_that_lost_their_text(told: Store) -> None:
    told.put("of no concern to anyone", id="first")
    told.search("what is asked by many")
    told.search("Quixotic-Nine")
    told.ask("delete_document", id="first")
    assert any(b"quixotic" in block for block in kept(told))
    told.ask("delete_document", id="gone")
    assert not any(block and b"quixotic" in block for block in kept(told))
    told.put("is asked by whom", id="last")
    told.ask("delete_document", id="last")
    assert logged(told)[0] == {"query": spelled("what is asked by many")}


@pytest.mark.usefixtures("by_twos")
def test_what_another_server_logs_behind_kept_rows_is_seen(told: Store) -> None:
    told.put("of no concern to anyone", id="first")
    told.search("asked here")
    told.search("and here")
    told.ask("delete_document", id="first")
    with Store(told.path) as other:
        other.search("Quixotic-Nine")
        other.search("asked there")
    told.ask("delete_document", id="gone")
    assert {"query": spelled("Quixotic-Nine")} in logged(told)
    assert examine(told.path, [SECRET]) == []


@pytest.mark.usefixtures("by_twos")
def test_where_numbers_of_rows_were_given_again_nothing_is_believed(told: Store) -> None:
    told.put("of no concern to anyone", id="first")
    told.search("asked here")
    told.search("and here")
    told.ask("delete_document", id="first")
    told.rows("DELETE FROM audit_log")
    for _ in range(8):
        told.search("Quixotic-Nine")
    told.ask("delete_document", id="gone")
    assert examine(told.path, [SECRET]) == []


@pytest.mark.usefixtures("by_twos")
def test_what_was_read_in_a_change_that_was_undone_is_not_kept(told: Store) -> None:
    told.search("asked here")
    told.search("and here")
    remembered = Said(room=limits.SAID_BYTES_MAX)
    with closing(Connection(str(told.path))) as db:
        for undone in (True, False):
            with suppress(LookupError), db.change():
                db.run("UPDATE audit_log SET args = ?", ("{}" if undone else '"Quixotic-Nine"',))
                remembered.begin(db)
                block = remembered.behind(db, 0, 99)
                assert (b"quixotic" in block.heard) is not undone
                if undone:
                    raise LookupError


# What a call has no time for.


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call has time to look through the log."""
    monkeypatch.setattr(service, "_TRUNCATE_MS_MAX", limits.CALL_MS_MAX)


@pytest.mark.usefixtures("hurried")
def test_what_a_call_has_no_time_for_is_forgotten_soon(told: Store) -> None:
    told.search("Quixotic-Nine")
    assert told.ask("delete_document", id="gone")["erased"] is False
    until(lambda: not told.rows("SELECT * FROM forgetting"))
    until(lambda: not examine(told.path, [SECRET]))
    assert logged(told)[0] == {"query": spelled("Quixotic-Nine")}


@pytest.mark.usefixtures("hurried")
def test_what_was_to_be_forgotten_leaves_the_file_too_where_the_log_is_emptied_at_each_step(
    told: Store, monkeypatch
) -> None:
    monkeypatch.setattr(limits, "WAL_PAGES_MAX", 0)
    monkeypatch.setattr(Housekeeper, "wal_grew", lambda *_: None)  # no call has it copied back
    told.search("Quixotic-Nine")
    assert told.ask("delete_document", id="gone")["erased"] is False
    until(lambda: not examine(told.path, [SECRET]))


@pytest.mark.usefixtures("hurried")
def test_what_was_to_be_forgotten_is_forgotten_after_the_server_has_ended(
    tmp_path, monkeypatch
) -> None:
    with monkeypatch.context() as busy, Store(tmp_path / "store.db") as store:
        busy.setattr(Housekeeper, "_erase", lambda *_: None)
        store.put(SECRET, id="gone")
        store.put(SECRET + " again", id="gone too")
        store.search("Quixotic-Nine")
        for id in ("gone", "gone too"):
            assert store.ask("delete_document", id=id)["erased"] is False
    assert examine(tmp_path / "store.db", [SECRET]) != []
    with Store(tmp_path / "store.db") as store:
        until(lambda: not store.rows("SELECT * FROM forgetting"))
        until(lambda: not examine(store.path, [SECRET]))


def test_a_log_of_which_only_a_part_was_looked_through_is_owed(told: Store, monkeypatch) -> None:
    for _ in range(9):
        told.search("Quixotic-Nine")
    clock = count()
    monkeypatch.setattr(quotes, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(said, "_ROWS", said._ROWS.replace("LIMIT 1000", "LIMIT 1"))
    with closing(Connection(str(told.path))) as db:
        with db.change():
            _, gone = ingest.delete(db, DeleteDocument(id="gone"))
            assert audit.forget(db, gone, Said(room=0), until=20) is False
        assert 0 < logged(told).count({"query": spelled("Quixotic-Nine")}) < 9
        assert len(list(audit.forget_owed(db, Said(room=0)))) == 9 + 1  # and the debt
    assert logged(told).count({"query": spelled("Quixotic-Nine")}) == 9


def test_no_row_is_so_long_that_the_time_for_it_is_not_kept(told: Store, monkeypatch) -> None:
    long = " ".join(f"word {n} of many words" for n in range(2_000))
    for id in ("kept", "also gone"):
        told.put(long, id=id)
    told.refused("store_document", title=" ", content=long)
    clock = count()
    monkeypatch.setattr(quotes, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with closing(Connection(str(told.path))) as db, db.change():
        _, gone = ingest.delete(db, DeleteDocument(id="also gone"))
        assert audit.forget(db, gone, Said(room=0), until=20) is False
    assert next(clock) == 20 + 2


def test_a_restore_that_replaces_a_document_takes_quotes_away(tmp_path) -> None:
    path = tmp_path / "store.db"
    with Store(path) as store:
        store.put(SECRET, id="gone")
        store.put("kept", id="kept")
        store.search("Quixotic-Nine")
        store.search("kept and sound")
    dump.restore(str(path), io.BytesIO(kit.as_dump(kit.line(id="gone", content="x"))))
    with Store(path) as store:
        assert logged(store)[:2] == [
            {"query": spelled("Quixotic-Nine")},
            {"query": "kept and sound"},
        ]
        assert examine(path, [SECRET]) == []


@pytest.mark.usefixtures("hurried")
def test_a_rebuilt_file_still_owes_it(tmp_path, monkeypatch) -> None:
    path = tmp_path / "store.db"
    with monkeypatch.context() as busy, Store(path) as store:
        busy.setattr(Housekeeper, "_erase", lambda *_: None)
        store.put(SECRET, id="gone")
        store.search("Quixotic-Nine")
        store.ask("delete_document", id="gone")
    rebuilt, _, whole = rebuild(str(path), str(tmp_path))
    assert whole
    with altered(rebuilt) as db:
        assert len(db.execute("SELECT * FROM forgetting").fetchall()) == 1
    with Store(rebuilt) as store:
        until(lambda: not examine(store.path, [SECRET]))


# What was logged and cannot be read again.


def nested(depth: int) -> list[object]:
    inner: list[object] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("owed", [False, True])
def test_no_depth_of_arguments_keeps_a_document_from_being_deleted(
    told: Store, monkeypatch, owed
) -> None:
    if owed:
        monkeypatch.setattr(service, "_TRUNCATE_MS_MAX", limits.CALL_MS_MAX)
    for depth in range(600, 1_000, 4):
        told.refused("store_document", id="gone", content=SECRET, deep=nested(depth))
        told.refused("search_documents", query="Quixotic-Nine", deep=nested(depth))
    assert told.ask("delete_document", id="gone")["erased"] is not owed
    until(lambda: not told.rows("SELECT * FROM forgetting"))
    until(lambda: not examine(told.path, [SECRET]))
    assert told.integrity() == "ok"
