"""The examiner finds a secret wherever one is planted, and nothing in a store that has none."""

import os
import random
import string

import pytest

from tests.reliability import segments
from tests.reliability.examiner import (
    ENCODINGS,
    FILES,
    SLAB_BYTES,
    Finding,
    examine,
    index_traces,
    kept,
    opened,
    pieces,
    raw_traces,
    secret,
    seen,
    without,
    without_rows,
)
from tests.reliability.sound import quiet
from tests.tools.store import Store, altered

SECRET = "The Zürich vault opens at Quixotic-Nine o'clock"
SPELLED = [SECRET, SECRET.casefold(), SECRET.upper(), "the zurich vault opens at quixotic-nine"]


def places(found: list[Finding]) -> set[str]:
    """Where something was found, without the numbers of the pages."""
    return {finding.place.rstrip("0123456789 ") for finding in found}


def chance_text(codepoints: int) -> str:
    return "".join(random.Random(codepoints).choices(string.ascii_letters, k=codepoints))


@pytest.fixture
def path(tmp_path):
    """A closed store of other documents, one of them gone."""
    with Store(tmp_path / "store.db") as store:
        for n in range(30):
            store.put(f"amber lamp {n} " + "a" * 800, id=f"other {n}")
        store.ask("delete_document", id="other 7")
        assert store.integrity() == "ok"
    return tmp_path / "store.db"


def test_nothing_is_found_where_nothing_was(path) -> None:
    assert examine(path, [SECRET]) == []


# Bytes.


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_spelling_is_seen_in_every_file(path, suffix, encoding) -> None:
    for spelled in SPELLED:
        with open(f"{path}{suffix}", "ab") as file:
            before = file.tell()
            file.write(b"\x05" + spelled.encode(encoding))
        found = _bytes_found(path)
        with open(f"{path}{suffix}", "r+b") as file:
            file.truncate(before)
        assert places(found) == {suffix or "page of no tree"}


def _bytes_found(path) -> list[Finding]:
    return raw_traces(path, secret([SECRET]))


def test_a_piece_of_eight_bytes_is_enough(path) -> None:
    with open(path, "ab") as file:
        file.write(b"....QUIXOTIC....")
    assert [what for _, what in _bytes_found(path)] == ["b'QUIXOTIC'"]


def test_of_many_pieces_those_that_stand_there_are_named(path) -> None:
    wanted = secret([SECRET])
    with open(path, "ab") as file:
        file.write(b"....quixotic....")
    assert seen(path, wanted).tolist() == pieces([b"quixotic"]).tolist()
    assert not len(seen(path, wanted, ["-wal"]))


def test_a_piece_where_two_stretches_meet_that_are_looked_at_in_turn_is_seen_once(path) -> None:
    size = path.stat().st_size
    for before in range(9):
        os.truncate(path, size)
        os.truncate(path, SLAB_BYTES - before)
        with open(path, "ab") as file:
            file.write(b"QUIXOTIC" + bytes(20))
        assert len(_bytes_found(path)) == 1


def test_rows_that_are_read_once_take_out_what_kept_ones_do() -> None:
    chance = random.Random(5)
    rows = [bytes(chance.choices(b"abc", k=chance.randrange(40))) for _ in range(300)]
    wanted = pieces(bytes(chance.choices(b"abcd", k=2_000)) for _ in range(5))
    left = without(wanted, kept(rows))
    assert 0 < len(left) < len(wanted)
    assert without_rows(wanted, rows).tolist() == left.tolist()
    assert without_rows(wanted, []).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("content", "stored", "place"),
    [
        (SECRET, True, "leaf of a table"),
        (SECRET, False, "leaf of a table"),
        (chance_text(20_000) + SECRET, True, "overflow page"),
        (chance_text(20_000) + SECRET + chance_text(20_000), False, "free page"),
    ],
    ids=["row", "gap in a page", "overflow", "free page"],
)
def test_stored_and_carelessly_deleted_text_is_seen(path, content, stored, place) -> None:
    with altered(path) as db:
        db.execute("PRAGMA secure_delete = OFF").fetchall()
        db.execute("INSERT INTO docs VALUES(900, 'x', 't', NULL, '[]', '', '', '', ?)", (content,))
        if not stored:
            db.execute("DELETE FROM docs WHERE n = 900")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert place in places(examine(path, [SECRET]))


def test_a_carelessly_deleted_relation_is_seen(path) -> None:
    with altered(path) as db:
        db.execute("PRAGMA secure_delete = OFF").fetchall()
        db.execute("INSERT INTO edges VALUES('other 1', ?, 'r', 'b')", (SECRET,))
        db.execute("DELETE FROM edges")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert places(examine(path, [SECRET])) == {"leaf of an index"}


def test_arguments_in_the_audit_log_are_seen(path) -> None:
    with Store(path) as store:
        store.ask("search_documents", query=SECRET)
    assert places(examine(path, [SECRET])) == {"leaf of a table"}


def test_a_log_that_was_not_copied_back_is_seen(tmp_path) -> None:
    with Store(tmp_path / "store.db") as store:
        quiet(store)
        store.put(SECRET)
        assert "-wal" in places(examine(store.path, [SECRET]))


# The index.


def changed(path, *statements: str) -> set[str]:
    """Where the examiner finds something after these statements."""
    with altered(path) as db:
        for sql in statements:
            db.execute(sql)
    return places(examine(path, []))


TAKE_OUT = (
    "INSERT INTO chunks_fts(chunks_fts, rowid, text, title, words)"
    " SELECT 'delete', id, text, title, words FROM chunks_indexed WHERE id = 3"
)


def test_rows_of_the_index_that_no_chunk_has_are_seen(path) -> None:
    assert changed(path, "DELETE FROM chunks WHERE id = 3") == {"posting", "row of sizes"}


def test_markers_of_deleted_rows_are_seen(path) -> None:
    careless = "INSERT INTO chunks_fts(chunks_fts, rank) VALUES('secure-delete', 0)"
    assert "marker" in changed(path, careless, TAKE_OUT, "DELETE FROM chunks WHERE id = 3")


def test_a_doclist_index_that_names_a_deleted_row_is_seen(path) -> None:
    with altered(path) as db:
        db.execute("INSERT INTO chunks_fts(chunks_fts) VALUES('optimize')")
        blobs = dict(db.execute("SELECT id, block FROM chunks_fts_data"))
        row = next(row for _, row in segments.rows_of_doclist_indexes(blobs))
    assert "doclist index" in changed(path, f"DELETE FROM chunks WHERE id = {row}")


def test_a_separator_that_names_a_deleted_term_is_seen(path) -> None:
    last = "(SELECT max(term) FROM chunks_fts_idx)"
    assert changed(
        path, f"UPDATE chunks_fts_idx SET term = CAST('0zqx' AS BLOB) WHERE term = {last}"
    ) == {"separator"}


def test_a_record_of_no_segment_is_seen(path) -> None:
    assert changed(path, "INSERT INTO chunks_fts_data VALUES(9 << 37, x'00')") == {"stray record"}


def test_a_row_of_sizes_is_seen(path) -> None:
    assert changed(path, "INSERT INTO chunks_fts_docsize VALUES(777, x'00')") == {"row of sizes"}


# Vectors.


ONES = b"\1" * 256


@pytest.fixture
def local(tmp_path):
    """A closed store with three vectors of ones."""
    path = tmp_path / "store.db"
    with Store(path, embeddings="local") as store:
        for n in range(3):
            store.put("text", id=str(n))
        seeds = [store.seed(str(n)) for n in range(3)]
    db = opened(path)
    db.execute("DELETE FROM vec_chunks")
    for seed in seeds:
        db.execute(
            "INSERT INTO vec_chunks(chunk_id, embedding) VALUES(?, vec_int8(?))",
            (seed, ONES),
        )
    db.close()
    return path


def test_the_vector_of_a_deleted_chunk_is_seen(local) -> None:
    with altered(local) as db:
        db.execute("DELETE FROM chunks WHERE id = 2")
    assert "vector" in places(examine(local, []))


def test_what_is_left_of_a_vector_in_a_block_is_seen(local) -> None:
    with Store(local) as store:
        store.ask("delete_document", id="2")
    assert places(examine(local, [])) == set()
    with altered(local) as db:
        blob = bytearray(db.execute("SELECT vectors FROM vec_chunks_vector_chunks00").get)
        blob[blob.index(bytes(len(ONES)))] = 7
        db.execute("UPDATE vec_chunks_vector_chunks00 SET vectors = ?", (blob,))
    assert places(examine(local, [])) == {"untaken place"}


# The reader of segments itself.


def test_postings_put_together_are_those_that_fts5_reads(path) -> None:
    with altered(path) as db:
        db.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, chunks_fts, row)")
        known = {
            term.encode(): rows for term, rows in db.execute("SELECT term, doc FROM temp.terms")
        }
        blobs = dict(db.execute("SELECT id, block FROM chunks_fts_data"))
    counted: dict[bytes, int] = {}
    for posting in segments.postings(blobs):
        counted[posting.term[1:]] = counted.get(posting.term[1:], 0) + 1
    assert counted == known


def test_a_sound_index_has_no_traces(path) -> None:
    db = opened(path)
    assert index_traces(db) == []
    db.close()
