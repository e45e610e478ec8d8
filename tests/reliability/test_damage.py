"""Damage of every kind: a start says `failed`, db_status answers, all else is refused, and nothing
is written; and `python -m hadano.rebuild` makes a sound file of the documents.

`python -m pytest -s tests/reliability/test_damage.py` prints what each kind came to.
"""

import os
import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from hadano.connection import Connection, file
from hadano.errors import HadanoError
from hadano.rebuild import rebuild
from tests.doors import kit
from tests.reliability.mixed import WORDS
from tests.reliability.pages import FREE_LEAF, FREE_TRUNK, KINDS, LEAF_TABLE, OVERFLOW, Pages
from tests.reliability.sound import State, quiet, state_of
from tests.tools.store import Store, altered

CALLS = {
    "store_document": {"title": "t", "content": "text"},
    "search_documents": {"query": "amber"},
    "search_knowledge": {"seed_chunk_ids": [1]},
    "query_graph": {"node": "amber"},
    "get_document": {"id": "d1"},
    "delete_document": {"id": "d1"},
}
CODES = {"E_INTEGRITY", "E_NOT_FOUND"}
EDGES = [{"src": "amber", "rel": "near", "dst": f"basil {n}"} for n in range(20)]
TREES = ("docs", "chunks", "edges", "audit_log", "chunks_fts_data", "chunks_fts_idx")
PAGE_BYTES = 4_096
DERIVED = ("chunks", "chunks_fts_data", "chunks_fts_idx", "chunks_fts_docsize")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A closed store with pages of every kind."""
    path = tmp_path_factory.mktemp("damage") / "store.db"
    with Store(path) as store:
        for n in range(120):
            words = random.Random(n).choices(WORDS, k=900 if n % 6 == 0 else 90)
            store.put(" ".join(words), f"title {n}", id=f"d{n}", relations=EDGES[: n % 20])
        for n in range(30, 40):
            store.ask("delete_document", id=f"d{n}")
        quiet(store)
    return path


@pytest.fixture
def path(whole, tmp_path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "store.db"))


@pytest.fixture(scope="module")
def state(whole) -> State:
    return state_of(whole)


def flip(path: Path, at: int, count: int = 1) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(count)
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in old))


def overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def only_the_audit_log_grew(path: Path, before: bytes) -> bool:
    old = path.with_name("before.db")
    old.write_bytes(before)
    with altered(path) as db:
        db.execute("ATTACH ? AS was", (str(old),))
        tables = "SELECT name FROM was.sqlite_schema WHERE rootpage > 0 AND type = 'table'"
        names = {name for (name,) in db.execute(tables)}
        assert names >= {"audit_log", *TREES}
        return not any(
            db.execute(f"SELECT * FROM {a}.{name} EXCEPT SELECT * FROM {b}.{name}").get
            for name in names - {"audit_log"}
            for a, b in (("main", "was"), ("was", "main"))
        )


def said(path: Path) -> str:
    """What a start says of the file: `failed` only where each tool was then refused, db_status
    answered, and nothing was written but, where the b-trees hold, rows of the audit log."""
    before = path.read_bytes()
    try:
        store = Store(path)
    except HadanoError as refused:
        print(f"\nnot opened: {refused.message}", end="")
        assert path.read_bytes() == before
        return f"not opened: {refused.message}"
    with store:
        integrity = store.integrity()
        answers = {tool: store.answer(tool, given) for tool, given in CALLS.items()}
        codes = {tool: answer[0]["error"]["code"] for tool, answer in answers.items() if answer[1]}
        store.ask("db_status")
    print(f"\n{integrity}: db_status answers, refused are {codes}", end="")
    if integrity == "failed":
        assert codes == dict.fromkeys(CALLS, "E_INTEGRITY")
        assert path.read_bytes() == before or only_the_audit_log_grew(path, before)
    assert set(codes.values()) <= CODES
    return integrity


def root(path: Path, table: str) -> int:
    with altered(path) as db:
        page: int = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    return page


@pytest.mark.parametrize("kind", KINDS.values())
def test_a_page_that_is_of_another_kind_fails_the_file(whole, path, kind) -> None:
    data = whole.read_bytes()
    pages = Pages(data)
    chosen = [page for page in pages.pages_of(kind) if page > 1]
    assert chosen
    for page in random.Random(0).sample(chosen, min(len(chosen), 4)):
        path.write_bytes(data)
        flip(path, pages.start(page))
        assert said(path) == "failed"


@pytest.mark.parametrize("kind", KINDS.values())
def test_cells_that_lie_elsewhere_fail_the_file(whole, path, kind) -> None:
    data = whole.read_bytes()
    pages = Pages(data)
    first = {5: 12, 2: 12, 13: 8, 10: 8}
    for page in [page for page in pages.pages_of(kind) if page > 1][:3]:
        path.write_bytes(data)
        base = pages.start(page)
        flip(path, base + first[data[base]], 2)
        assert said(path) == "failed"


def test_an_overflow_page_that_leads_nowhere_fails_the_file(whole, path) -> None:
    data = whole.read_bytes()
    pages = Pages(data)
    chosen = pages.pages_of(OVERFLOW)
    assert chosen
    for page in chosen[:4]:
        path.write_bytes(data)
        flip(path, pages.start(page), 4)
        assert said(path) == "failed"


@pytest.mark.parametrize("one", TREES)
@pytest.mark.parametrize("other", ["docs", "chunks_fts_data"])
def test_two_pages_in_each_others_place_fail_the_file(path, one, other) -> None:
    if one == other:
        pytest.skip("a page in its own place")
    data = bytearray(path.read_bytes())
    size = Pages(bytes(data)).size
    a, b = (
        slice((root(path, table) - 1) * size, root(path, table) * size) for table in (one, other)
    )
    data[a], data[b] = data[b], data[a]
    path.write_bytes(data)
    assert said(path) == "failed"


#: What a broken list of free pages says: in the file's header or in the list's own first page, at
#: which byte, and what number; that of a page that is in use is looked up.
PAST_THE_END, IN_USE = 9_999_999, -1
FREELISTS = {
    "header, a wrong count": (36, 1),
    "header, no pages at all": (36, 0),
    "header, a first page past the end": (32, PAST_THE_END),
    "header, a first page that is in use": (32, IN_USE),
    "header, no first page": (32, 0),
    "trunk, a next page past the end": (0, PAST_THE_END),
    "trunk, more pages than it has room for": (4, 0xFFFFFFFF),
    "trunk, fewer pages than are free": (4, 1),
    "trunk, a page past the end": (8, PAST_THE_END),
    "trunk, a page that is in use": (8, IN_USE),
}


@pytest.mark.parametrize("what", FREELISTS)
def test_a_broken_list_of_free_pages_fails_the_file(whole, path, what) -> None:
    """Else a document is written over one that is there, or every store meets the damage anew."""
    pages = Pages(whole.read_bytes())
    at, number = FREELISTS[what]
    if what.startswith("trunk"):
        at += pages.start(pages.pages_of(FREE_TRUNK)[0])
    if number == IN_USE:
        number = pages.pages_of(KINDS[LEAF_TABLE])[-1]
    overwrite(path, at, number.to_bytes(4, "big"))
    assert said(path) == "failed"


@pytest.mark.parametrize("pages", [1, PAST_THE_END])
def test_a_file_that_counts_its_pages_wrong_is_failed_or_not_opened(path, pages) -> None:
    overwrite(path, 28, pages.to_bytes(4, "big"))
    assert said(path) in ("failed", "not opened: the database is damaged")


def test_a_check_ends_when_its_connection_is_stopped(path, monkeypatch) -> None:
    monkeypatch.setattr(file, "_STEPS_UNTIL_ASKED", 1)
    with closing(Connection(str(path))) as db:
        monkeypatch.setattr(db, "_go_on", lambda: db.stop("closing"))
        with pytest.raises(HadanoError) as refused:
            db.structure_holds()
    assert refused.value.code == "E_TIMEOUT"


@pytest.mark.parametrize("share", [0.0001, 0.02, 0.3, 0.7, 0.99])
def test_a_file_that_was_cut_is_failed_or_not_opened(path, share) -> None:
    os.truncate(path, int(path.stat().st_size * share))
    assert said(path) == "failed" or said(path).startswith("not opened: the ")


@pytest.mark.parametrize("at", [0, 16])
def test_a_broken_header_is_no_database(path, at) -> None:
    flip(path, at)
    assert said(path) == "not opened: the file is not a database"


@pytest.mark.parametrize("table", ["chunks", "chunks_fts_docsize", "chunks_fts_data"])
def test_a_derived_row_that_is_gone_fails_the_file(path, table) -> None:
    with altered(path) as db:
        db.execute(f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
    assert said(path) == "failed"


@pytest.mark.parametrize("kind", [*KINDS.values(), OVERFLOW, FREE_TRUNK, FREE_LEAF])
def test_any_byte_flipped_on_any_page_is_answered_within_the_contract(whole, path, kind) -> None:
    """Most bytes are text, and no start can know that a letter is wrong; it must not crash, hang,
    or say anything but one of the six codes."""
    data = whole.read_bytes()
    pages = Pages(data)
    chance = random.Random(1)
    chosen = pages.pages_of(kind)
    assert chosen
    outcomes: dict[str, int] = {}
    for _ in range(12):
        path.write_bytes(data)
        flip(path, pages.start(chance.choice(chosen)) + chance.randrange(pages.size))
        outcome = said(path)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(f"\n{kind}: {outcomes}")


# Files of an earlier version.

OLD = Path(__file__).parents[1] / "fixtures" / "v1.db"


def is_failed_and_stays(path: Path) -> None:
    before = path.read_bytes()
    assert said(path) == "failed"
    with closing(Connection(str(path))) as db, pytest.raises(HadanoError) as refused, db.change():
        pass
    assert refused.value.code == "E_INTEGRITY"
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", TREES)
def test_a_damaged_file_of_an_earlier_version_is_failed_and_left_as_it_is(tmp_path, table) -> None:
    path = Path(shutil.copy(OLD, tmp_path / "store.db"))
    flip(path, (root(path, table) - 1) * PAGE_BYTES, PAGE_BYTES)
    is_failed_and_stays(path)


def test_a_file_that_cannot_be_brought_to_this_version_is_left_as_it_is(tmp_path) -> None:
    path = Path(shutil.copy(OLD, tmp_path / "store.db"))
    with altered(path) as db:
        db.execute("CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob(20000)); DROP TABLE t")
    pages = Pages(path.read_bytes())
    flip(path, pages.start(pages.pages_of(FREE_TRUNK)[0]), 8)
    is_failed_and_stays(path)


# Made again.


@pytest.mark.parametrize("table", DERIVED)
def test_a_file_whose_derived_trees_are_broken_is_made_again(path, state, tmp_path, table) -> None:
    with altered(path) as db:
        last = db.execute("SELECT seq FROM sqlite_sequence").get
    flip(path, (root(path, table) - 1) * PAGE_BYTES, PAGE_BYTES)
    assert said(path) == "failed"
    before = path.read_bytes()
    new, docs, audit = rebuild(str(path), str(tmp_path))
    assert path.read_bytes() == before
    assert state_of(Path(new)) == state
    assert (docs, audit) == (len(state), True)
    with altered(Path(new)) as db:
        assert db.execute("SELECT min(id) FROM chunks").get > last
        assert db.execute("SELECT count(*) FROM audit_log").get > len(state)
    with Store(Path(new)) as store:
        assert store.integrity() == "ok"
        assert store.found("title 7", top_k=1) == ["d7"]


def test_a_broken_audit_log_costs_no_document(path, state, tmp_path) -> None:
    flip(path, (root(path, "audit_log") - 1) * PAGE_BYTES, PAGE_BYTES)
    new, _, audit = rebuild(str(path), str(tmp_path))
    assert audit is False
    assert state_of(Path(new)) == state


def test_broken_documents_are_not_made_again_in_part(path, tmp_path) -> None:
    flip(path, (root(path, "docs") - 1) * PAGE_BYTES, PAGE_BYTES)
    with pytest.raises(HadanoError) as refused:
        rebuild(str(path), str(tmp_path))
    assert refused.value.code == "E_INTEGRITY"
    assert sorted(os.listdir(tmp_path)) == ["store.db"]


def test_a_text_that_is_not_that_of_its_hash_is_named(path, tmp_path) -> None:
    with altered(path) as db:
        db.execute("UPDATE docs SET content = content || 'x' WHERE id = 'd3'")
    with pytest.raises(HadanoError) as refused:
        rebuild(str(path), str(tmp_path))
    assert "'d3'" in refused.value.message


def test_the_command_prints_the_new_files_path(path, state) -> None:
    with altered(path) as db:
        db.execute("INSERT INTO chunks_fts(chunks_fts) VALUES('delete-all')")
    ended = kit.command("rebuild", "--db", path)
    assert ended.returncode == 0
    new = Path(ended.stdout.decode().strip())
    assert new.parent == path.parent
    assert state_of(new) == state
    assert ended.stderr == b"110 documents\n"
