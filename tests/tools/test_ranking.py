"""Sections 7.4 to 7.7: the order of chunks, of documents, and their scores.

The oracles: FTS5's own `ORDER BY rank` for terms of three or more codepoints, a plain scan for the
others, and the plain twin of capping and merging for what becomes of either.
"""

import ctypes
import subprocess
import sys
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hadano import limits
from hadano._native import Cancelled
from hadano.connection import Connection
from hadano.plan import Kind, terms
from tests.oracle import merging
from tests.oracle.ranking import Row, ranking, scores
from tests.tools.store import Store, until

CONSTANT, RANKS = 60, 1_000
#: Two scores nearer than this may differ only by the order in which they were summed up.
NEAR = 1e-9


def shown(documents: list[dict]) -> list[tuple[str, float, list[int]]]:
    return [
        (found["doc_id"], found["score"], [match["chunk_id"] for match in found["matched_chunks"]])
        for found in documents
    ]


def merged(store: Store, chunks: list[int], per_doc: int, top: int) -> list[tuple]:
    """What must be shown of a ranking."""
    doc_of = dict(store.rows("SELECT c.id, d.id FROM chunks AS c JOIN docs AS d ON d.n = c.doc"))
    found, _ = merging.fuse(chunks, [doc_of[c] for c in chunks], per_doc, RANKS, CONSTANT, top)
    return [(doc, round(score, 4), held) for doc, score, held in found]


def by_fts5(store: Store, query: str) -> list[int]:
    """Chunks in FTS5's own order."""
    phrases = ('"' + term.text.replace('"', '""') + '"' for term in terms(query))
    return [
        row[0]
        for row in store.rows(
            "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank, rowid",
            " OR ".join(f"{{text title}} : {phrase}" for phrase in phrases),
        )
    ]


def by_scanning(store: Store, query: str) -> dict[int, float]:
    """Chunks with their scores, without any index."""
    rows = [Row(*row) for row in store.rows("SELECT id, text, title, words FROM chunks_indexed")]
    return scores(rows, [(term.text, term.kind is Kind.WORD) for term in terms(query)])


LONG = ["amber", "ambergris", "lamp", "LAMPS", "c++", "東京都", "🎵🎵🎵", "aaaa", "foo_bar", "mbe"]
SHORT = ["go", "a", "c#", "東京", "愛", "🎵", "%", "ñu", "3月", "C", "7"]
IDS = st.sampled_from(["one", "two", "three", "four", "five"])


def texts(words: list[str]) -> st.SearchStrategy[str]:
    some = st.lists(st.sampled_from(words), max_size=12).map(" ".join)
    return st.builds(lambda text, times: text * times, some, st.sampled_from([1, 1, 1, 3, 40]))


def histories(words: list[str]) -> st.SearchStrategy[list[tuple]]:
    """Documents stored, replaced and deleted: (id, title, text), or (id,) to delete."""
    titles = st.sampled_from(words)
    stored = st.tuples(IDS, titles, texts(words))
    return st.lists(st.one_of(stored, stored, stored, st.tuples(IDS)), min_size=1, max_size=12)


def play(store: Store, history: list[tuple]) -> None:
    for id, *document in history:
        if document:
            store.put(document[1], document[0], id=id)
        else:
            store.answer("delete_document", {"id": id})


def queries(words: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=4).map(" ".join)


@settings(max_examples=60)
@given(histories(LONG), st.lists(queries(LONG), min_size=6, max_size=6), st.integers(1, 4))
def test_chunks_are_in_the_order_of_fts5s_own_rank(history, asked, per_doc) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.db") as store:
        play(store, history)
        for query in asked:
            found = store.search(query, max_chunks_per_doc=per_doc, top_k=100)
            assert shown(found) == merged(store, by_fts5(store, query), per_doc, 100)


@settings(max_examples=60)
@given(
    histories(SHORT + LONG[:4]),
    st.lists(queries(SHORT + LONG[:4]), min_size=6, max_size=6),
    st.integers(1, 4),
)
def test_short_terms_rank_as_a_plain_scan_ranks_them(history, asked, per_doc) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.db") as store:
        play(store, history)
        for query in asked:
            scored = by_scanning(store, query)
            order = ranking(scored)
            gaps = [scored[a] - scored[b] for a, b in pairwise(order)]
            assume(not any(0 < gap < NEAR for gap in gaps))
            found = store.search(query, max_chunks_per_doc=per_doc, top_k=100)
            assert shown(found) == merged(store, order, per_doc, 100)


@pytest.fixture(scope="module")
def many(shared: Store) -> Store:
    """120 documents of one to four chunks, no two of them alike in length."""
    for n in range(120):
        shared.put(f"quorum {n} " + "filler text " * (n * 2), id=f"d{n:03}")
    return shared


def test_the_plain_scan_agrees_with_fts5_where_both_can_be_asked(many: Store) -> None:
    for query in ("quorum", "filler", "quorum filler text", "text 119 quorum"):
        assert ranking(by_scanning(many, query)) == by_fts5(many, query)


def test_a_question_finds_words_with_other_endings_in_the_order_of_fts5(store: Store) -> None:
    for n, words in enumerate(["rocket", "rockets launching", "a pocket", "the launch of one"]):
        store.put(words + " text" * n, id=f"d{n}")
    query = "which are the rockets that were launched"
    found = store.search(query)
    assert shown(found) == merged(store, by_fts5(store, query), 3, 10)
    assert {document["doc_id"] for document in found} == {"d0", "d1", "d3"}
    assert store.found("rockets launched") == ["d1"]


def test_the_first_two_ranks_alone_score_0_0325(store: Store) -> None:
    store.put("amber " * 200, id="a")
    assert shown(store.search("amber")) == [("a", 0.0325, [1, 2])]


@pytest.mark.parametrize(
    ("chunks", "score"), [(1, 0.0164), (2, 0.0325), (3, 0.0484), (4, 0.064), (20, 0.2856)]
)
def test_a_score_is_the_sum_over_ranks_to_four_decimals(store: Store, chunks, score) -> None:
    store.put("amber ".ljust(700) * (chunks - 1) + "amber ".ljust(101, "."), id="a")
    (found,) = store.search("amber", max_chunks_per_doc=chunks)
    assert len(found["matched_chunks"]) == chunks
    assert found["score"] == score


def test_a_chunk_past_the_cap_takes_no_rank(store: Store) -> None:
    """The long document's other chunks are passed over, so the second document has rank 2."""
    store.put("amber amber amber " * 300, id="a")
    store.put("amber and " + "other words " * 60, id="b")
    assert [row[:2] for row in shown(store.search("amber", max_chunks_per_doc=1))] == [
        ("a", 0.0164),
        ("b", 0.0161),
    ]
    scored = dict(row[:2] for row in shown(store.search("amber", max_chunks_per_doc=3)))
    assert scored == {"a": round(1 / 61 + 1 / 62 + 1 / 63, 4), "b": round(1 / 64, 4)}


@pytest.mark.parametrize("per_doc", [1, 3, 20])
@pytest.mark.parametrize("top", [1, 2, 10, 100])
def test_more_documents_than_asked_for_are_cut_and_said_to_be(many: Store, per_doc, top) -> None:
    answer = many.ask(
        "search_documents", query="quorum text", top_k=top, max_chunks_per_doc=per_doc
    )
    order = by_fts5(many, "quorum text")
    assert shown(answer["documents"]) == merged(many, order, per_doc, top)
    assert answer["truncated"] is True


def test_the_defaults_are_ten_documents_of_three_chunks(many: Store) -> None:
    plain = many.search("quorum filler")
    assert plain == many.search("quorum filler", top_k=10, max_chunks_per_doc=3)
    assert len(plain) == 10
    assert max(len(found["matched_chunks"]) for found in plain) == 3
    assert many.ask("search_documents", query="quorum 119")["truncated"] is True
    assert many.ask("search_documents", query="nowhere")["truncated"] is False


def test_fewer_documents_than_asked_for_are_the_head_of_more(many: Store) -> None:
    most = many.found("quorum", top_k=100)
    for top in (1, 3, 5, 10, 50):
        assert many.found("quorum", top_k=top) == most[:top]


def test_the_walk_ends_after_a_thousand_ranks(store: Store) -> None:
    for n in range(52):
        store.put("amber " * 2_333 + "last words", id=f"d{n:02}")
    assert store.ask("db_status")["chunks"] == 52 * 20
    found = store.search("amber", top_k=100, max_chunks_per_doc=20)
    assert shown(found) == merged(store, by_fts5(store, "amber"), 20, 100)
    assert sum(len(document["matched_chunks"]) for document in found) == 1_000


def test_equal_documents_come_in_one_order_always(tmp_path) -> None:
    """Case 37: by the smaller chunk id, in every run, of every size, after a vacuum too."""
    ids = [f"d{n}" for n in (5, 2, 9, 0, 7, 1, 8, 3, 6, 4)]
    with Store(tmp_path / "store.db") as store:
        for id in ids:
            store.put("the same text", id=id)
        for top in (3, 5, 10) * 3:
            assert store.found("same", top_k=top) == ids[:top]
    with Store(tmp_path / "store.db") as store:
        assert store.found("same") == ids
        store.rows("INSERT INTO chunks_fts(chunks_fts) VALUES('optimize')")
        store.rows("VACUUM")
        assert store.found("same") == store.found("the same text") == ids


def test_words_that_were_decoded_at_the_start_rank_as_any(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "WARM_CHUNKS_MIN", 1)
    path = tmp_path / "store.db"
    with Store(path) as store:
        for n in range(20):
            store.put(f"a function of {n} contexts, " * (1 + n % 3), title=f"function {n}")
    with Store(path) as store:
        db = store.service._db
        until(lambda: db._warmth)
        store.put("another context of a function")
        assert shown(store.search("nothing like that")) == []
        assert db._ranker.cached_bytes > 3 * 20 * 4
        for query in ("function", "context function another"):
            assert shown(store.search(query)) == merged(store, by_fts5(store, query), 3, 10)


def test_words_that_come_ready_in_parts_are_all_taken(tmp_path: Path, monkeypatch) -> None:
    """The first part is there at once; the others are one as long as nobody takes it."""
    monkeypatch.setattr(limits, "WARM_CHUNKS_MIN", 1)
    monkeypatch.setattr(limits, "WARM_PART_BYTES", 1)
    path = tmp_path / "store.db"
    with Store(path) as store:
        for n in range(3):
            store.put(f"amber basalt cobalt {n}")
    with Store(path) as store:
        db = store.service._db
        until(lambda: store.ask("db_status")["integrity_at_boot"] == "ok")
        first, rest = db._warmth
        assert 0 < first.cached_bytes < rest.cached_bytes
        ready = first.cached_bytes + rest.cached_bytes
        for query in ("amber", "basalt cobalt"):
            assert shown(store.search(query)) == merged(store, by_fts5(store, query), 3, 10)
        assert db.has_taken_warmth
        assert db._ranker.cached_bytes == ready


def test_what_is_given_in_all_keeps_to_its_room(tmp_path: Path, monkeypatch) -> None:
    path = str(tmp_path / "store.db")
    with Store(path) as store:
        store.put("amber basalt cobalt")
    with closing(Connection(path)) as giver, closing(Connection(path)) as taker:
        assert giver.decode((Kind.SUBSTRING, "amber"))
        size = giver.decoded_bytes
        monkeypatch.setattr(limits, "DECODED_BYTES_MIN", 2 * size)
        giver.give_warmth(taker)
        assert giver.decoded_bytes == 0
        with taker.snapshot():
            taker.ranking([(Kind.SUBSTRING, "nothing")], per_doc=1, ranks=1)
        assert giver.decode((Kind.SUBSTRING, "basalt"))
        assert not giver.decode((Kind.SUBSTRING, "cobalt"))
        giver.give_warmth(taker)
        monkeypatch.setattr(limits, "DECODED_BYTES_MIN", size)
        assert not giver.decode((Kind.SUBSTRING, "cobalt"))


@pytest.mark.parametrize(("chunks", "room"), [(1, 1_000), (30, 3_000), (99, 5_000)])
def test_a_larger_store_has_more_decoded_words_kept(
    tmp_path: Path, monkeypatch, chunks: int, room: int
) -> None:
    monkeypatch.setattr(limits, "DECODED_BYTES_A_CHUNK", 100)
    monkeypatch.setattr(limits, "DECODED_BYTES_MIN", 1_000)
    monkeypatch.setattr(limits, "DECODED_BYTES_MAX", 5_000)
    with Store(tmp_path / "store.db") as store:
        for n in range(chunks):
            store.put(f"word{n}", id=f"d{n}")
        assert store.service._db._room_for_decoded() == room
        for n in range(400):
            store.search(f"nowhere{n} word{n % chunks}")
        kept = store.service._db._ranker.cached_bytes
        assert room / 2 < kept <= room


ASKED_AND_COUNTED = """
import ctypes, sys
from hadano.service import Service
from hadano.types import Settings
service = Service(Settings(path=sys.argv[1]))
while b'"checking"' in service.call("db_status", {}).content:
    pass
service.call("search_documents", {"query": "anything"})
ctypes.CDLL(None).malloc_stats()
service.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone has a heap for each thread")
def test_what_one_thread_decodes_is_room_for_all_once_it_is_let_go_of(tmp_path: Path) -> None:
    """Of 10,000 searches the heap of the thread that had decoded the commonest words kept 20 MB."""
    if not hasattr(ctypes.CDLL(None), "malloc_stats"):
        pytest.skip("not glibc")
    done = subprocess.run(
        [sys.executable, "-c", ASKED_AND_COUNTED, tmp_path / "store.db"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "Arena 1:" not in done.stderr


TERM = (Kind.SUBSTRING, "amber")


def test_a_connection_is_stopped_even_while_it_gives_its_words_away(tmp_path: Path) -> None:
    class GivingAway(Connection):
        """What it has decoded is taken from it right after each look, as another thread can."""

        def __getattribute__(self, name: str) -> object:
            value = super().__getattribute__(name)
            if name == "_ranker":
                self._ranker = None
            return value

    with closing(Connection(str(tmp_path / "store.db"))) as db:
        db.decode(TERM)
        with db.snapshot(), closing(db._ranker) as ranker:
            db.__class__ = GivingAway
            db.stop("closing")
            db.__class__ = Connection
            assert db._ranker is None
            with pytest.raises(Cancelled):
                ranker.rank([TERM], per_doc=1, ranks=1)
            db.resume()


def test_the_same_question_gets_the_same_bytes(many: Store) -> None:
    for query in ("quorum text", "東京 quorum go", "filler 7"):
        answers = {
            many.service.call("search_documents", {"query": query}).content.partition(
                b'"request_id"'
            )[0]
            for _ in range(5)
        }
        assert len(answers) == 1


def test_one_document_alone_is_found_with_a_score_that_means_something(store: Store) -> None:
    """Case 35: BM25 of a term that all texts hold is next to nothing, and nobody filters by it."""
    store.put("alpha beta", id="d0")
    assert shown(store.search("alpha")) == [("d0", 0.0164, [1])]
    for n in range(1, 10):
        store.put("alpha beta", id=f"d{n}")
    assert store.found("alpha") == [f"d{n}" for n in range(10)]
    assert store.search("alpha")[-1]["score"] == round(1 / 70, 4)


def test_an_answer_has_the_fields_of_the_contract(store: Store) -> None:
    store.put("an amber lamp\n", "The title", id="a")
    answer = store.ask("search_documents", query="amber")
    assert answer == {
        "documents": [
            {
                "doc_id": "a",
                "title": "The title",
                "score": 0.0164,
                "matched_chunks": [{"chunk_id": 1, "seq": 0, "text": "an amber lamp\n"}],
            }
        ],
        "truncated": False,
    }


def test_a_title_counts_with_its_documents_first_chunk_alone(store: Store) -> None:
    store.put("filler text " * 200, "Amber", id="a")
    ((_, _, chunks),) = shown(store.search("amber"))
    assert chunks == [store.seed("a")]
