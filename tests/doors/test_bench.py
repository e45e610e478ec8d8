"""Bench: the same store for one seed, every figure it promises, and no file but its own."""

import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hadano._bench import page
from hadano._bench.corpus import PROFILES, QUERY_CLASSES, Corpus
from hadano._bench.measure import Series
from tests.doors import kit

SCALE = 100


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small store, and what the bench wrote about it."""
    folder = tmp_path_factory.mktemp("bench")
    ended = bench(folder, "--json", folder / "figures.json", "--plot", folder / "page.html")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == b""
    (folder / "table.txt").write_bytes(ended.stdout)
    return folder


def bench(folder: Path, *more: object):
    path = folder / "bench.db"
    return kit.command("bench", "--db", path, "--scale", SCALE, "--reps", 1, *more)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_larger_store_holds_every_smaller_one(profile) -> None:
    small, large = Corpus(7, profile), Corpus(7, profile)
    large_first = [large.note(n) for n in (39, 5, 20)]
    assert [list(small.notes(40))[n] for n in (39, 5, 20)] == large_first
    relations = sum(len(note.relations) for note in small.notes(40))
    assert relations == small.relations_count(40)


def test_another_seed_gives_other_documents() -> None:
    assert Corpus(1, "notes").note(0) != Corpus(2, "notes").note(0)


def test_a_fifth_of_the_notes_are_in_scripts_without_spaces() -> None:
    texts = [note.content for note in Corpus(1, "notes").notes(500)]
    joined = sum(1 for text in texts if not text[0].isascii())
    assert 0.15 < joined / len(texts) < 0.25


def test_lengths_are_those_of_real_notes() -> None:
    lengths = sorted(len(note.content) for note in Corpus(1, "notes").notes(1_000))
    assert 450 < lengths[500] < 600
    assert 1_700 < lengths[950] < 2_400


@pytest.mark.parametrize(
    ("profile", "sha256"), [("notes", "e6f8b44f4c1a9822"), ("short", "5aff386193399575")]
)
def test_the_corpus_is_the_same_for_ever(profile, sha256: str) -> None:
    """Figures of years are compared: other texts here need another `Mark.corpus`."""
    texts = repr(list(Corpus(1, profile).notes(50))).encode()
    assert hashlib.sha256(texts).hexdigest().startswith(sha256)


def test_both_ways_in_and_every_class_are_measured(measured: Path) -> None:
    figures = json.loads((measured / "figures.json").read_text())
    names = {(one["group"], one["name"]) for one in figures["series"]}
    for through in ("stdio", "in process"):
        assert names >= {(f"search, {through}", kind) for kind in QUERY_CLASSES}
        assert names >= {
            (f"change, {through}", what) for what in ("store", "replace", "delete")
        } | {
            (f"read, {through}", what)
            for what in ("get_document", "query_graph", "search_knowledge")
        }
    assert {one["published_ms"] for one in figures["series"]} == {None, 1.79, 954.0}
    assert figures["bytes_by_table"]["chunks_fts_data"] > 0


def test_with_embeddings_on_the_store_has_its_vectors(tmp_path: Path) -> None:
    ended = bench(tmp_path, "--embeddings", "local", "--json", tmp_path / "figures.json")
    assert ended.returncode == 0, ended.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["about"]["embeddings"] == "local"
    assert figures["bytes_by_table"]["vec_chunks_vector_chunks00"] >= 256 * SCALE


def test_percentiles_ascend_and_stand_among_the_times(measured: Path) -> None:
    for one in json.loads((measured / "figures.json").read_text())["series"]:
        shares = [one[f"{name}_ms"] for name in ("p50", "p95", "p99", "max")]
        assert shares == sorted(shares)
        assert set(shares) <= set(one["times_ms"])
        assert shares[-1] == max(one["times_ms"])


def test_the_table_shows_the_published_figures(measured: Path) -> None:
    table = (measured / "table.txt").read_text()
    assert "954.00" in table
    assert "1.79" in table
    assert "chunks_fts_data" in table


def test_the_page_needs_nothing_but_itself(measured: Path) -> None:
    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.add(tag)
            assert not {"src", "href"} & dict(attrs).keys()

    tags: set[str] = set()
    text = (measured / "page.html").read_text()
    Links().feed(text)
    assert {"svg", "circle", "rect", "table"} <= tags
    assert "://" not in text


def test_a_store_that_is_there_is_used_again(measured: Path) -> None:
    before = kit.dumped(measured / "bench.db")
    ended = bench(measured)
    assert b"built in: there already" in ended.stdout
    assert kit.dumped(measured / "bench.db") == before


def test_a_store_grows_to_a_larger_scale_and_shrinks_to_none(tmp_path: Path) -> None:
    path = tmp_path / "bench.db"
    assert kit.command("bench", "--db", path, "--scale", 100, "--reps", 1).returncode == 0
    small = kit.dumped(path)
    assert kit.command("bench", "--db", path, "--scale", 120, "--reps", 1).returncode == 0
    assert set(small[1:]) < set(kit.dumped(path))
    ended = kit.command("bench", "--db", path, "--scale", 100, "--reps", 1)
    assert ended.stderr.startswith(b"E_VALIDATION: --db: ")


def test_a_store_with_documents_of_someone_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = kit.store(tmp_path / "mine.db")
    before = path.read_bytes()
    ended = kit.command("bench", "--db", path, "--scale", SCALE, "--reps", 1)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"E_VALIDATION: --db: ")
    assert path.read_bytes() == before


def test_a_store_of_the_bench_with_one_document_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bench.db"
    assert kit.command("bench", "--db", path, "--scale", SCALE, "--reps", 1).returncode == 0
    kit.store(path, ({"id": "mine", "title": "mine", "content": "mine"},))
    before = path.read_bytes()
    assert kit.command("bench", "--db", path, "--scale", SCALE, "--reps", 1).returncode == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("flag", ["--json", "--plot"])
def test_a_place_for_the_figures_is_asked_for_before_they_are_made(
    tmp_path: Path, flag: str
) -> None:
    ended = bench(tmp_path, flag, tmp_path / "nowhere" / "file")
    assert ended.stderr.startswith(f"E_VALIDATION: {flag}: ".encode())
    assert list(tmp_path.iterdir()) == []


def test_the_nearest_rank_is_a_time_that_was_measured() -> None:
    series = Series("group", "name", [3.0, 1.0, 2.0])
    assert [series.at(share) for share in (0.0, 0.5, 0.95, 1.0)] == [1.0, 2.0, 3.0, 3.0]


def test_names_are_text_on_the_page() -> None:
    report = page.Report({"<b>": "&"}, [Series("<i>", "<u>", [1.0])], {"<s>": 1})
    text = page.html(report)
    for tag in ("<b>", "<i>", "<u>", "<s>"):
        assert tag not in text
