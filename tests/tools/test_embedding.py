"""HADANO_EMBEDDINGS=local through a file's life: vectors come with their chunks, or follow them.

What vectors there must be is told by the model itself, of each chunk's text, the title before the
first; that the model is right is shown in tests/native/test_embed.py.
"""

import itertools
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hadano import limits, model, vectors
from hadano.connection import Connection, turns
from hadano.errors import HadanoError
from hadano.service import Service
from hadano.types import Settings
from tests.tools.store import PATIENCE_SECONDS, Neighbour, Store, raw, until

WORDS = "river bank money loan water boat tree leaf music song piano violin bread salt oven".split()


def note(n: int, words: int = 30) -> str:
    return " ".join(random.Random(n).choices(WORDS, k=words)) + f" {n}"


def opened(path: Path, embeddings: str = "local") -> Store:
    return Store(path, embeddings=embeddings)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "store.db"


def made(store: Store) -> bool:
    """Whether nothing is owed, and each chunk has its vector and nothing else has one."""
    if not has_tables(store) or store.value("SELECT sha256 FROM vec_model") != model.SHA256:
        return False
    if store.rows("SELECT 1 FROM chores WHERE name = 'embed'"):
        return False
    held = dict(store.rows("SELECT chunk_id, embedding FROM vec_chunks"))
    texts = store.rows(
        "SELECT c.id, iif(seq = 0, title || char(10), '') || text FROM chunks AS c"
        " JOIN docs ON n = doc"
    )
    assert held == {chunk: model.embed(text) for chunk, text in texts}
    assert store.ask("db_status")["vectors"] == len(texts)
    return True


def has_tables(store: Store) -> bool:
    return bool(store.rows("SELECT 1 FROM sqlite_schema WHERE name = 'vec_model'"))


def near(store: Store, id: str, **more: Any) -> list[str]:
    """Ids of the documents that are near to one's first chunk, nearest first."""
    answer = store.ask("search_knowledge", seed_chunk_ids=[store.seed(id)], mode="vector", **more)
    return [chunk["doc_id"] for chunk in answer["related_chunks"]]


# Written, replaced and deleted with their chunks.


def test_every_chunk_of_a_stored_document_has_its_vector_at_once(path) -> None:
    with opened(path) as store:
        for n, words in enumerate((0, 1, 100, 1_000)):
            store.put(note(n, words), id=f"d{n}")
            assert made(store)


def test_a_document_and_its_vectors_are_stored_together_or_not_at_all(path) -> None:
    with opened(path) as store:
        store.put("first", id="a")
        before = store.contents()
        taken = store.seed("a") + 2
        store.rows("INSERT INTO vec_chunks VALUES(?, vec_int8(?))", taken, bytes(256))
        assert store.refused("store_document", title="t", content=note(1, 500), id="b")
        assert store.contents() == before


def test_a_replaced_texts_vectors_are_replaced_and_overwritten(path) -> None:
    old, new = note(1, 500), note(2, 500)
    with opened(path) as store:
        store.put(old, id="a")
        before = [row[0] for row in store.rows("SELECT embedding FROM vec_chunks")]
        store.put(new, id="a")
        assert made(store)
        until(lambda: not left(path, before))


def test_a_new_title_makes_the_first_vector_again_and_no_other(path) -> None:
    with opened(path) as store, opened(path) as another:
        store.put(note(0), "piano", id="d0")
        for id in ("d1", "d2"):
            store.put("bread " * 150, "salt", id=id)
        assert near(another, "d0") == ["d1", "d2", "d1", "d2"]
        rest = "SELECT * FROM vec_chunks WHERE chunk_id IN (SELECT id FROM chunks WHERE seq > 0)"
        before = store.rows(rest)
        store.put("bread " * 150, note(0), id="d2")
        assert near(another, "d0", top_k=1) == ["d2"]
        store.put("bread " * 150, note(0), id="d1")
        assert near(another, "d0", top_k=2) == ["d1", "d2"]
        assert made(store)
        assert store.rows(rest) == before


def test_a_new_title_that_a_server_without_embeddings_gives_makes_the_vector_owed(path) -> None:
    with opened(path) as local, opened(path, "off") as off:
        local.put(note(1), "old", id="a")
        off.put(note(1), "new", id="a")
        until(lambda: made(local))


def test_a_title_that_changes_while_its_vector_is_made_counts(path, monkeypatch) -> None:
    filled(path, 3)
    make = vectors._made
    with opened(path, "off") as off:
        monkeypatch.setattr(vectors, "_made", lambda chunks: (retitle(), make(chunks))[1])

        def retitle() -> None:
            off.put(note(0), "new", id="d0")

        with opened(path) as store:
            until(lambda: made(store))


@pytest.mark.parametrize("embeddings", ["local", "off"])
def test_a_deleted_documents_vectors_are_overwritten(path, embeddings) -> None:
    with opened(path) as store:
        for n in range(5):
            store.put(note(n, 300), id=f"d{n}")
        rows = store.rows(
            "SELECT embedding FROM vec_chunks WHERE chunk_id IN"
            " (SELECT c.id FROM chunks AS c JOIN docs AS d ON d.n = c.doc WHERE d.id = 'd2')"
        )
    with opened(path, embeddings) as store:
        gone = [row[0] for row in rows]
        assert left(path, gone)
        assert store.ask("delete_document", id="d2")["erased"] is True
        assert not left(path, gone)
        assert made(store)


def test_what_it_takes_to_delete_a_vector_does_not_grow_with_the_store(path) -> None:
    filled(path, 10, words=5_200)
    ran: list[bool] = []
    with closing(Connection(str(path), vectors=True)) as db:
        with db.change():
            vectors.set_up(db)
        for _ in vectors.keep(db):
            pass
        assert db.value("SELECT count(*) FROM vec_chunks_rowids") > 300
        db._db.set_progress_handler(lambda: bool(ran.append(True)), 100)
        with db.change():
            vectors.remove(db, [7])
        assert db.value("SELECT 1 FROM vec_chunks_rowids WHERE rowid = 7") is None
    assert len(ran) < 5


def left(path: Path, gone: list[bytes]) -> set[bytes]:
    """Pieces of vectors that the file still has; a page ends where it likes, so not the whole."""
    data = raw(path)
    pieces = {vector[at : at + 32] for vector in gone for at in range(0, 256, 32)}
    return {piece for piece in pieces if piece in data}


def test_the_room_of_vectors_that_are_gone_is_given_back(path) -> None:
    blocks = "SELECT count(*) FROM vec_chunks_chunks"
    with opened(path) as store:
        for n in range(15):
            store.put(note(n, 5_200), id=f"d{n}")  # some 40 chunks
        assert store.value(blocks) == 3
        for n in range(15):
            if n % 5:
                store.ask("delete_document", id=f"d{n}")
        until(lambda: store.value(blocks) == 1)
        assert made(store)


def test_a_text_of_which_nothing_is_known_has_zeros_and_is_nobodys_neighbour(path) -> None:
    with opened(path) as store:
        for id, text in {"a": "\ue000", "b": "", "c": note(1), "d": note(2)}.items():
            store.put(text, "\ue000", id=id)
        assert store.rows("SELECT chunk_id FROM vec_chunks WHERE embedding = zeroblob(256)") == [
            (store.seed("a"),),
            (store.seed("b"),),
        ]
        assert near(store, "c") == ["d"]
        assert near(store, "a") == []


# Made later.


def filled(path: Path, documents: int, words: int = 30) -> None:
    """A store that was filled with embeddings off."""
    with opened(path, "off") as store:
        for n in range(documents):
            store.put(note(n, words), id=f"d{n}")


def test_a_store_that_was_filled_without_gets_its_vectors_in_the_background(path) -> None:
    filled(path, 300)
    with opened(path) as store:
        assert store.ask("db_status")["docs"] == 300
        until(lambda: made(store))
        assert near(store, "d7", top_k=100)


def test_a_seed_that_the_background_has_not_reached_is_embedded_on_the_spot(path) -> None:
    filled(path, 20)
    with opened(path) as store:
        until(lambda: made(store))
    with opened(path, "off") as store:
        store.put(note(3) + " again", id="late")
    with Neighbour(path) as other:
        other.run("BEGIN IMMEDIATE")
        with opened(path) as store:
            assert near(store, "late", top_k=1) == ["d3"]
            other.run("COMMIT")
            until(lambda: made(store))
            assert near(store, "d3", top_k=1) == ["late"]


def test_before_the_first_vector_is_made_there_is_no_neighbour_and_no_error(path) -> None:
    filled(path, 3)
    with Neighbour(path) as other:
        other.run("BEGIN IMMEDIATE")
        with opened(path) as store:
            assert near(store, "d0") == []
            other.run("COMMIT")
            until(lambda: made(store))


_SERVES = """
import sys
from hadano import limits
from hadano.service import Service
from hadano.types import Settings
limits.EMBED_CHUNKS = 2
Service(Settings(path=sys.argv[1], embeddings="local"))
sys.stdin.read()
"""


def test_vectors_are_complete_and_right_after_ten_kills_at_random(path) -> None:
    filled(path, 30, words=2_000)
    chance = random.Random(6)
    count = "SELECT count(*) FROM vec_chunks_rowids"
    with opened(path, "off") as watching:
        chunks = watching.ask("db_status")["chunks"]
        assert chunks > 300
        for kill in range(10):
            enough = chance.randrange(chunks * kill // 10, chunks * (kill + 1) // 10)
            process = subprocess.Popen([sys.executable, "-c", _SERVES, path], stdin=subprocess.PIPE)
            until(lambda: has_tables(watching) and watching.value(count) >= enough)  # noqa: B023
            process.kill()
            process.communicate(timeout=PATIENCE_SECONDS)
    with opened(path) as store:
        until(lambda: made(store))
        assert store.integrity() == "ok"


def test_off_again_vectors_stay_and_new_chunks_get_none_and_on_again_they_do(path) -> None:
    with opened(path) as store:
        store.put(note(1), id="a")
        store.put(note(2), id="b")
    with opened(path, "off") as store:
        store.put(note(3), id="c")
        store.put(note(4), id="b")
        assert store.ask("db_status")["vectors"] == 1
    with opened(path) as store:
        until(lambda: made(store))
        assert set(near(store, "c")) == {"a", "b"}


def test_once_none_is_owed_a_chunk_without_its_vector_is_damage(path) -> None:
    filled(path, 3)
    with opened(path) as store:
        until(lambda: made(store))
        store.rows("DELETE FROM vec_chunks WHERE chunk_id = ?", store.seed("d1"))
        seeds = [store.seed("d1")]
        assert store.refusal("search_knowledge", seed_chunk_ids=seeds) == (
            "E_INTEGRITY",
            f"chunk {seeds[0]} has no vector",
        )
        assert store.ask("search_knowledge", seed_chunk_ids=[store.seed("d0")])["related_chunks"]


def test_chunks_that_a_server_without_embeddings_puts_in_get_theirs_from_one_with(path) -> None:
    with opened(path) as local, opened(path, "off") as off:
        local.put(note(1), id="a")
        off.put(note(2), id="b")
        assert off.ask("db_status")["vectors"] == 1
        until(lambda: made(local))
        assert near(local, "a") == ["b"]
        off.ask("delete_document", id="b")
        assert near(local, "a") == []
        local.put(note(3), id="c")
        assert made(local)
        assert off.ask("search_knowledge", seed_chunk_ids=[local.seed("a")])["related_chunks"] == []


@pytest.mark.parametrize("itself", [True, False])
def test_what_a_server_or_another_stores_and_deletes_is_found_and_not_found(path, itself) -> None:
    """Vectors are kept in memory, and what is kept has to be true."""
    with opened(path) as one, opened(path) as another:
        two = one if itself else another
        for n in range(300):
            one.put(note(n), id=f"d{n}")
        assert near(two, "d5")
        one.put(note(5) + " bread", id="new")
        assert near(two, "d5", top_k=1) == ["new"]
        one.ask("delete_document", id="new")
        assert "new" not in near(two, "d5", top_k=100)
        one.put(note(5) + " salt", id="d200")
        assert near(two, "d5", top_k=1) == ["d200"]


def test_a_store_with_more_vectors_than_are_kept_in_memory_is_searched_whole(
    path, monkeypatch
) -> None:
    filled(path, 600)
    with opened(path) as store:
        until(lambda: made(store))
        expected = near(store, "d5", top_k=100)
    for most in (0, 1):
        monkeypatch.setattr(limits, "VECTOR_BLOCKS_MAX", most)
        with opened(path) as store:
            assert near(store, "d5", top_k=100) == expected
            assert near(store, "d5", top_k=100) == expected


# The model.


def test_the_file_says_whose_its_vectors_are(path) -> None:
    with opened(path) as store:
        store.ask("db_status")
        assert store.rows("SELECT name, sha256 FROM vec_model") == [(model.NAME, model.SHA256)]


def under_another_model(path: Path, documents: int, words: int = 30) -> None:
    """A store with all its vectors, of the same form, by a model that made them all alike."""
    filled(path, documents, words)
    with opened(path) as store:
        until(lambda: made(store))
        ids = store.rows("SELECT chunk_id FROM vec_chunks")
        store.rows("DELETE FROM vec_chunks")
        for (id,) in ids:
            store.rows("INSERT INTO vec_chunks VALUES(?, vec_int8(?))", id, bytes([1] * 256))
        store.rows("UPDATE vec_model SET name = 'another', sha256 = 'another'")


def test_vectors_of_another_model_are_made_again(path) -> None:
    under_another_model(path, 300)
    with opened(path) as store:
        until(lambda: made(store))
        assert store.rows("SELECT name FROM vec_model") == [(model.NAME,)]


def test_no_step_of_the_work_on_vectors_does_or_writes_much(path, monkeypatch) -> None:
    """Each is one transaction: whoever waits for the write lock waits for one of them, and then has
    half as long to take it, here by a clock on which every step takes a second."""
    pauses: list[float] = []
    clock = itertools.count()
    fake = SimpleNamespace(monotonic=lambda: next(clock), sleep=pauses.append)

    def steps() -> list[tuple[int, int]]:
        """Of each, how many instructions SQLite has run for it, in thousands, and the pages that it
        has written to the log."""
        with closing(Connection(str(path), vectors=True)) as db, monkeypatch.context() as patched:
            patched.setattr(turns, "time", fake)
            ran: list[bool] = []
            db._db.set_progress_handler(lambda: bool(ran.append(True)), 1_000)
            log = [(0, 0)] + [(len(ran), db.wal_pages) for _ in vectors.keep(db)]
        return [(c - a, d - b) for (a, b), (c, d) in itertools.pairwise(log)]

    under_another_model(path, 30, words=5_200)  # some 40 chunks each
    remaking = steps()
    with opened(path) as store:
        assert made(store)
    with opened(path, "off") as store:
        for n in range(30):
            if n % 3:
                store.ask("delete_document", id=f"d{n}")
    packing = steps()
    assert len(remaking) > 2 * 30 * 40 // limits.EMBED_CHUNKS
    assert max(instructions for instructions, _ in remaking) < 40
    assert packing
    # It moves 128 vectors at most; to read through all of them for that takes more.
    assert max(instructions for instructions, _ in packing) < 14
    assert max(pages for _, pages in remaking + packing) < 50
    assert len(pauses) > len(packing)
    assert set(pauses) == {0.5}
    with opened(path) as store:
        assert made(store)


def test_vectors_of_two_models_are_never_compared_or_mixed(path) -> None:
    under_another_model(path, 3)
    with opened(path, "off") as off, Neighbour(path) as other:
        other.run("BEGIN IMMEDIATE")
        with opened(path) as store:
            assert near(store, "d0") == []
            answer = store.ask("search_knowledge", seed_chunk_ids=[store.seed("d0")])
            assert answer["related_chunks"] == []
            other.run("COMMIT")
            off.put("a text", id="new")
            until(lambda: made(store))


def test_vectors_of_another_form_are_made_again(path) -> None:
    filled(path, 5)
    with opened(path, "off") as store:
        store.rows(
            "CREATE VIRTUAL TABLE vec_chunks USING vec0(chunk_id INTEGER PRIMARY KEY, v float[8])"
        )
        store.rows("CREATE TABLE vec_model(name TEXT, sha256 TEXT, remade INTEGER)")
        store.rows("INSERT INTO vec_model VALUES('another', 'another', 0)")
        store.rows("INSERT INTO vec_chunks VALUES(1, '[1,2,3,4,5,6,7,8]')")
    with opened(path) as store:
        until(lambda: made(store))


def test_an_installation_without_its_model_says_so_at_start_up(path, monkeypatch) -> None:
    monkeypatch.setattr(model, "FILE", path.with_name("nothing.bin"))
    model._embedder.cache_clear()
    with pytest.raises(HadanoError, match="E_INTERNAL: the model of embeddings cannot be loaded"):
        Service(Settings(path=str(path), embeddings="local"))
    assert not path.exists()


def test_a_text_finds_its_translation(path) -> None:
    texts = {
        "ja": "すべての人間は、生まれながらにして自由であり、尊厳と権利とについて平等である。",
        "en": "All human beings are born free and equal in dignity and rights.",
        "other": "Please press the red button to restart the printer.",
    }
    with opened(path) as store:
        for id, text in texts.items():
            store.put(text, id=id)
        assert near(store, "ja") == ["en", "other"]


# Damage, and nothing at all.


def test_a_vector_of_a_chunk_that_does_not_exist_is_damage(path) -> None:
    with opened(path) as store:
        store.put(note(1), id="a")
        store.rows("INSERT INTO vec_chunks VALUES(999, vec_int8(?))", bytes([1] * 256))
        seeds = [store.seed("a")]
        assert store.refused("search_knowledge", seed_chunk_ids=seeds) == "E_INTEGRITY"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM vec_chunks_vector_chunks00",
        "UPDATE vec_chunks_vector_chunks00 SET vectors = substr(vectors, 1, 1000)",
        "UPDATE vec_chunks_chunks SET validity = x''",
    ],
)
def test_tables_of_vectors_that_do_not_fit_together_are_damage(path, damage) -> None:
    filled(path, 3)
    with opened(path) as store:
        until(lambda: made(store))
        store.rows(damage)
        seeds = [store.seed("d1")]
        assert store.refused("search_knowledge", seed_chunk_ids=seeds) == "E_INTEGRITY"


_LOADED = """
import sys
from hadano.service import Service
from hadano.types import Settings
service = Service(Settings(path=sys.argv[1], embeddings=sys.argv[2]))
service.call("store_document", {"id": "a", "title": "t", "content": "text"})
service.call("search_knowledge", {"seed_chunk_ids": [1]})
print(*sys.modules, service.call("db_status", {}).content.decode())
service.close()
"""


@pytest.mark.parametrize("embeddings", ["off", "local"])
def test_with_embeddings_off_nothing_of_vectors_is_loaded(path, embeddings) -> None:
    command = [sys.executable, "-c", _LOADED, path, embeddings]
    ran = subprocess.run(command, capture_output=True, check=True, text=True)
    modules, _, status = ran.stdout.partition(" {")
    kernels = {"hadano._native.embed", "hadano._native.near"}
    ours = {"hadano.model", "hadano.connection.blocks", *kernels}
    assert ours & set(modules.split()) == (set() if embeddings == "off" else ours)
    assert ('"vec_version":null' in status) is (embeddings == "off")


def test_no_start_pays_for_numpy_or_the_package_around_the_vector_extension(path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED, path, "local"], capture_output=True, check=True, text=True
    )
    assert {"numpy", "sqlite_vec"}.isdisjoint(ran.stdout.split())
