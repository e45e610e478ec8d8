"""Stage 2 by vectors (section 8), mostly with vectors that the tests put in place of the model's.

How vectors come and go with their chunks is told in test_embedding.py."""

import math
import random
import struct

import pytest

from tests.tools.store import Store, raw, until

DIMENSIONS = 256
EDGE = {"src": "A", "rel": "x", "dst": "B"}


@pytest.fixture
def local(tmp_path):
    with Store(tmp_path / "store.db", embeddings="local") as store:
        yield store


def vector(*head: int) -> list[int]:
    return [*head, *[0] * (DIMENSIONS - len(head))]


def blob(numbers: list[int]) -> bytes:
    return struct.pack(f"{DIMENSIONS}b", *numbers)


def embed(store: Store, chunk: int, numbers: list[int]) -> None:
    store.rows("DELETE FROM vec_chunks WHERE chunk_id = ?", chunk)
    store.rows(
        "INSERT INTO vec_chunks(chunk_id, embedding) VALUES(?, vec_int8(?))", chunk, blob(numbers)
    )


def cosine(a: list[int], b: list[int]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def fill(store: Store, vectors: list[list[int]]) -> list[int]:
    """A document of one chunk for each vector, which takes the place of its own; the chunk ids."""
    chunks = []
    for n, numbers in enumerate(vectors):
        store.put(f"text {n}", f"title {n}", id=f"d{n}")
        chunks.append(store.seed(f"d{n}"))
        embed(store, chunks[-1], numbers)
    return chunks


def test_with_embeddings_local_status_says_so_and_counts(local: Store) -> None:
    status = local.ask("db_status")
    assert status["embeddings_mode"] == "local"
    assert status["vec_version"].startswith("v0.")
    assert status["vectors"] == 0
    fill(local, [vector(1), vector(2)])
    assert local.ask("db_status")["vectors"] == 2


def test_the_vector_table_is_made_only_where_embeddings_are_on(store: Store, tmp_path) -> None:
    table = "SELECT count(*) FROM sqlite_schema WHERE name = 'vec_chunks'"
    assert store.value(table) == 0
    assert store.ask("db_status")["vectors"] == 0
    with Store(tmp_path / "other.db", embeddings="local") as local:
        assert local.ask("db_status")["vectors"] == 0
        assert local.value(table) == 1


def test_the_nearest_chunks_come_best_first_without_the_seeds(local: Store) -> None:
    vectors = [vector(100, 0), vector(100, 10), vector(100, 90), vector(0, 100), vector(-100, 0)]
    a, *others = fill(local, vectors)
    answer = local.ask("search_knowledge", seed_chunk_ids=[a], mode="vector")
    assert [chunk["chunk_id"] for chunk in answer["related_chunks"]] == others
    assert [chunk["score"] for chunk in answer["related_chunks"]] == pytest.approx(
        [cosine(vectors[0], other) for other in vectors[1:]], abs=1e-4
    )
    assert answer["related_chunks"][0] == {
        "chunk_id": others[0],
        "doc_id": "d1",
        "title": "title 1",
        "seq": 0,
        "text": "text 1",
        "score": round(cosine(vectors[0], vectors[1]), 4),
        "source": "vector",
    }
    assert answer["related_edges"] == []
    assert answer["truncated"] is False


def test_of_several_seeds_the_nearest_counts_and_a_chunk_comes_once(local: Store) -> None:
    chance = random.Random(7)
    vectors = [[chance.randint(-127, 127) for _ in range(DIMENSIONS)] for _ in range(40)]
    chunks = fill(local, vectors)
    for seeds in ([0], [1, 2], [3, 4, 5]):
        best = {
            chunk: max(cosine(vectors[seed], vectors[n]) for seed in seeds)
            for n, chunk in enumerate(chunks)
            if n not in seeds
        }
        for top in (1, 5, 36, 37, 38, 39, 100):
            answer = local.ask(
                "search_knowledge",
                seed_chunk_ids=[chunks[seed] for seed in seeds],
                mode="vector",
                top_k=top,
            )
            got = [chunk["chunk_id"] for chunk in answer["related_chunks"]]
            assert got == sorted(best, key=lambda chunk: -best[chunk])[:top]
            assert answer["truncated"] is (len(best) > top)


def test_the_answer_to_two_modes_holds_both_lists(local: Store) -> None:
    a, b = fill(local, [vector(1), vector(1, 1)])
    local.put("text 0", "title 0", id="d0", relations=[EDGE])
    for mode in ("both", "auto"):
        answer = local.ask("search_knowledge", seed_chunk_ids=[a], mode=mode)
        assert [chunk["chunk_id"] for chunk in answer["related_chunks"]] == [b]
        assert len(answer["related_edges"]) == 1
    graph = local.ask("search_knowledge", seed_chunk_ids=[a], mode="graph")
    assert (graph["related_chunks"], len(graph["related_edges"])) == ([], 1)
    nearest = local.ask("search_knowledge", seed_chunk_ids=[a], mode="vector")
    assert (len(nearest["related_chunks"]), nearest["related_edges"]) == (1, [])


def test_auto_goes_by_what_the_database_has(local: Store) -> None:
    local.put("text", id="a")
    seed = [local.seed("a")]
    assert local.ask("search_knowledge", seed_chunk_ids=seed) == {
        "related_chunks": [],
        "related_edges": [],
        "truncated": False,
    }
    local.put("other text", id="b")
    only_vectors = local.ask("search_knowledge", seed_chunk_ids=seed)
    assert (len(only_vectors["related_chunks"]), only_vectors["related_edges"]) == (1, [])
    local.put("other text", id="b", relations=[EDGE])
    local.put("text", id="a", relations=[EDGE])
    both = local.ask("search_knowledge", seed_chunk_ids=seed)
    assert (len(both["related_chunks"]), len(both["related_edges"])) == (1, 2)
    local.rows("DELETE FROM vec_chunks")
    only_edges = local.ask("search_knowledge", seed_chunk_ids=seed)
    assert (only_edges["related_chunks"], len(only_edges["related_edges"])) == ([], 2)


def test_a_seed_without_a_vector_is_an_integrity_error(local: Store) -> None:
    a, _ = fill(local, [vector(1), vector(1, 1)])
    local.put("no vector", id="bare", relations=[EDGE])
    bare = local.seed("bare")
    local.rows("DELETE FROM vec_chunks WHERE chunk_id = ?", bare)
    for mode in ("vector", "both", "auto"):
        code, message = local.refusal("search_knowledge", seed_chunk_ids=[a, bare], mode=mode)
        assert (code, message) == ("E_INTEGRITY", f"chunk {bare} has no vector")
    assert local.ask("search_knowledge", seed_chunk_ids=[bare], mode="graph")["related_edges"]
    assert local.refused("search_knowledge", seed_chunk_ids=[a, 999]) == "E_NOT_FOUND"


def test_with_embeddings_off_vectors_that_are_there_are_left_alone(tmp_path) -> None:
    with Store(tmp_path / "store.db", embeddings="local") as local:
        chunks = fill(local, [vector(1), vector(1, 1)])
    with Store(tmp_path / "store.db") as off:
        status = off.ask("db_status")
        assert (status["vectors"], status["embeddings_mode"], status["vec_version"]) == (
            2,
            "off",
            None,
        )
        for mode in ("vector", "both", "auto"):
            answer = off.ask("search_knowledge", seed_chunk_ids=chunks[:1], mode=mode)
            assert answer["related_chunks"] == []
    with Store(tmp_path / "store.db", embeddings="local") as local:
        assert local.ask("search_knowledge", seed_chunk_ids=chunks[:1])["related_chunks"]


def test_the_windows_beside_a_seed_are_no_finds(local: Store) -> None:
    """They share a hundred codepoints with it."""
    local.put("word " * 700, id="long")  # five windows
    windows = [row[0] for row in local.rows("SELECT id FROM chunks ORDER BY seq")]
    assert len(windows) == 5
    [other] = fill(local, [vector(1, 1)])
    for n, chunk in enumerate(windows):
        embed(local, chunk, vector(1, 0, n))

    def found(*places: int, top: int = 10) -> tuple[list[int], bool]:
        seeds = [windows[n] for n in places]
        answer = local.ask("search_knowledge", seed_chunk_ids=seeds, mode="vector", top_k=top)
        return [chunk["chunk_id"] for chunk in answer["related_chunks"]], answer["truncated"]

    assert found(0) == ([other, *windows[2:]], False)
    assert found(2) == ([windows[4], windows[0], other], False)
    assert found(0, 4) == ([windows[2], other], False)
    assert found(1, 3) == ([other], False)
    assert found(0, 4, top=1) == ([windows[2]], True)
    assert found(1, 3, top=1) == ([other], False)


@pytest.mark.parametrize("mode", ["local", "off"])
def test_a_documents_vectors_go_with_it_in_either_mode(tmp_path, mode) -> None:
    secret = random.Random(1).choices(range(-100, 100), k=DIMENSIONS)
    with Store(tmp_path / "store.db", embeddings="local") as local:
        fill(local, [secret, secret[::-1], vector(1)])
    with Store(tmp_path / "store.db", embeddings=mode) as store:
        assert store.ask("delete_document", id="d0")["erased"] is True
        assert blob(secret) not in raw(store.path)
        store.put("changed text", id="d1")
        left = 2 if mode == "local" else 1
        assert store.ask("db_status")["vectors"] == left
        assert store.value("SELECT count(*) FROM vec_chunks") == left
        until(lambda: blob(secret[::-1]) not in raw(store.path))


def test_new_tags_keep_the_vectors(local: Store) -> None:
    fill(local, [vector(1)])
    local.put("text 0", "title 0", id="d0", tags=["x"])
    assert local.rows("SELECT embedding FROM vec_chunks") == [(blob(vector(1)),)]


def test_a_vector_without_a_direction_is_nobodys_neighbour(local: Store) -> None:
    """Case 44: it must neither come first nor take the places of others."""
    zeros = [vector()] * 12
    a, zero, *rest = fill(local, [vector(1), *zeros, vector(1, 1), vector(0, 1)])
    others = rest[-2:]
    for top in (1, 2, 10):
        answer = local.ask("search_knowledge", seed_chunk_ids=[a], mode="vector", top_k=top)
        assert [chunk["chunk_id"] for chunk in answer["related_chunks"]] == others[:top]
    assert (
        local.ask("search_knowledge", seed_chunk_ids=[zero], mode="vector")["related_chunks"] == []
    )


def test_vectors_that_are_alike_come_in_one_order(local: Store) -> None:
    chunks = fill(local, [vector(1, 2)] * 12)
    answer = local.ask("search_knowledge", seed_chunk_ids=chunks[:1], mode="vector", top_k=20)
    assert [chunk["chunk_id"] for chunk in answer["related_chunks"]] == chunks[1:]
    assert {chunk["score"] for chunk in answer["related_chunks"]} == {1.0}
