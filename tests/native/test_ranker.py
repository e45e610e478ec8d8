"""The compiled ranker against FTS5 itself and against its slow twin, on small random stores.

What a search makes of a ranking is tested through the service (tests/tools/test_ranking.py); here
are the states of an index that its documents alone would hardly bring about.
"""

import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import Cancelled, DamagedIndex, Ranker
from hadano.plan import Kind
from tests.native.histories import CHANGES, QUERIES, SETTINGS, SLOW_STEPS, STEPS
from tests.native.ranked import agree, fresh, ranking, take, tell
from tests.oracle import postings

SUBSTRING, WORD, ANYWHERE = Kind


@settings(max_examples=250, deadline=None, suppress_health_check=SLOW_STEPS)
@given(config=SETTINGS, steps=STEPS, last=QUERIES)
def test_the_order_is_fts5s_after_any_history_of_inserts_replaces_and_deletes(
    config, steps, last
) -> None:
    db = fresh(**config)
    kept = Ranker(db)
    db.execute("BEGIN")
    for step in steps:
        if step[0] == "commit":
            db.execute("COMMIT")
            agree(db, kept, step[1])
            db.execute("BEGIN")
        else:
            take(db, step)
    db.execute("COMMIT")
    agree(db, kept, last)
    agree(db, Ranker(db, cache_bytes=0), last)
    kept.close()


def test_while_a_merge_is_under_way_a_rows_trigrams_are_found_in_both_its_ends() -> None:
    """FTS5 merges term by term and a few pages at a time, and meanwhile the store is searched."""
    db = fresh(pgsz=64, automerge=0, crisismerge=16, usermerge=2)
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefgh", k=7)) for _ in range(60)]
    for _ in range(4):
        with db:
            for _ in range(5):
                take(db, ("add", "title", [" ".join(chance.sample(words, 30))]))
    kept = Ranker(db)
    steps = 0
    while has_merged(db):
        steps += 1
        for word in words[::4]:
            agree(db, kept, [(SUBSTRING, word)])
    assert steps > 10
    kept.close()


def test_an_index_that_was_made_one_segment_again_and_again_is_still_read() -> None:
    """Each time FTS5 puts two levels on top, until there are 65, and takes none away."""
    db = fresh(pgsz=64)
    kept = Ranker(db)
    take(db, ("add", "title", ["function rollback"] * 20))
    for _ in range(40):
        take(db, ("add", "title", ["function"]))
        tell(db, "merge", -64)
        while has_merged(db):
            pass
        agree(db, kept, [(SUBSTRING, "function")])
    assert levels(db) > 64
    agree(db, Ranker(db), [(SUBSTRING, "rollback")])


def levels(db: apsw.Connection) -> int:
    """The number that the index's structure record begins with, behind four bytes of another."""
    record = db.execute("SELECT block FROM chunks_fts_data WHERE id = 10").fetchall()[0][0]
    return postings.varints(record[4:])[0]


def test_a_ranking_that_fails_leaves_no_statement_standing() -> None:
    """While one stands, SQLite keeps an interrupt up, and no ROLLBACK gets through."""
    db = fresh()
    with db:
        take(db, ("add", "title", ["function", "rollback"]))
    db.execute("UPDATE chunks_fts_docsize SET sz = x'80'")
    ranker = Ranker(db)
    db.execute("BEGIN")
    with pytest.raises(DamagedIndex):
        ranker.rank([(SUBSTRING, "function")], 3, 10)
    db.interrupt()
    db.execute("ROLLBACK")
    ranker.close()


def has_merged(db: apsw.Connection) -> bool:
    """Merges up to eight pages; False where nothing was left to merge (FTS5's own sign)."""
    before = db.total_changes()
    tell(db, "merge", 8)
    return db.total_changes() - before > 1


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW_STEPS)
@given(
    changes=st.lists(CHANGES, min_size=3, max_size=40),
    query=QUERIES,
    per_doc=st.integers(1, 3),
    ranks=st.integers(1, 12),
)
def test_a_ranking_goes_on_until_enough_ranks_are_left_under_the_cap(
    changes, query, per_doc, ranks
) -> None:
    db = fresh()
    for change in changes:
        take(db, change)
    full = postings.by_counting(db, query)
    found = ranking(db, Ranker(db), query, per_doc, ranks)
    assert found == full[: len(found)]
    owner = dict(db.execute("SELECT id, doc FROM chunks").fetchall())
    held = Counter(owner[row] for row in found)
    assert sum(min(n, per_doc) for n in held.values()) >= ranks or found == full


def test_a_phrase_no_row_of_which_has_two_of_its_trigrams_matches_nothing() -> None:
    """The rows of an earlier phrase still lie in memory then, and must not be taken for its own."""
    db = fresh()
    with db:
        take(db, ("add", "", ["abc " * 20] * 60))
        take(db, ("add", "", ["def"] * 60))
        take(db, ("add", "", ["functional efg"] * 300))
    ranker = Ranker(db)
    for phrase in ("functional", "abcdefg"):
        agree(db, ranker, [(SUBSTRING, phrase)])


def test_a_phrase_that_repeats_a_trigram_is_found_in_runs_that_are_long_enough() -> None:
    """Its first trigram's lists are then held against themselves."""
    db = fresh()
    with db:
        for n in range(1, 90):
            take(db, ("add", "=" * (n % 9), ["=" * n, "x" + "=" * 7 + " " + "=" * n, "=- " * n]))
    ranker = Ranker(db)
    for n in (3, 4, 5, 6, 7, 8, 9, 31, 80, 89, 90):
        for phrase in ("=" * n, "x" + "=" * n, "=" * n + " " + "=" * n, ("=- " * n)[:n]):
            agree(db, ranker, [(SUBSTRING, phrase)])


MANY_WORDS = [f"word{n:03}" for n in range(60)] + ["the", "function", "go", "c", "愛", "東京"] * 10


@pytest.mark.parametrize("seed", range(6))
def test_of_many_chunks_and_many_terms_the_best_are_the_same(seed: int) -> None:
    """Enough of both for terms to be left out, looked up, and candidates to be dropped."""
    chance = random.Random(seed)
    db = fresh()
    with db:
        for n in range(300):
            texts = [" ".join(chance.choices(MANY_WORDS, k=chance.randrange(80))) for _ in "ab"]
            take(db, ("add", f"title {n}", texts))
    ranker = Ranker(db)
    for _ in range(12):
        some = chance.sample(MANY_WORDS, k=chance.randrange(1, 24))
        terms = [(SUBSTRING if len(it) > 2 else WORD, it) for it in dict.fromkeys(some)]
        terms = [it for it in terms if it[1].isascii()]
        full = postings.by_fts5(db, terms) if terms else []
        for ranks in (1, 5, 40, 1000):
            found = ranking(db, ranker, terms, 20, ranks)
            assert found == full[: len(found)]
            assert len(found) >= min(ranks, len(full))


@pytest.mark.parametrize("pgsz", [64, 4050])
def test_another_process_may_write_between_two_rankings(tmp_path: Path, pgsz: int) -> None:
    path = str(tmp_path / "two.db")
    mine = fresh(path, pgsz=pgsz)
    mine.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF").fetchall()
    ranker = Ranker(mine)
    chance = random.Random(4)
    words = ["function", "the", "go", "c", "rollback", "愛"]
    terms = [(SUBSTRING, "function"), (WORD, "go"), (SUBSTRING, "oll")]
    with another_process(path) as theirs:
        for turn in range(100):
            text = " ".join(chance.choices(words, k=chance.randrange(1, 40)))
            steps = {
                "add": ("add", text[:9], [text, text[5:]]),
                "replace": ("replace", turn, text),
                "retitle": ("retitle", turn, text[:7]),
                "remove": ("remove", turn),
            }
            chance.choice([theirs, partial(take, mine)])(steps[chance.choice(["add", *steps])])
            if chance.random() < 0.7:
                agree(mine, ranker, terms)
    ranker.close()
    mine.close()


@contextmanager
def another_process(path: str) -> Iterator[Callable[[tuple], None]]:
    """Takes steps in the store at `path` in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.native.ranked", path],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | {"PYTHONUTF8": "1"},
    ) as process:

        def take(step: tuple) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(step) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        yield take
    assert process.returncode == 0


def test_what_is_rolled_back_after_a_ranking_leaves_no_trace(filled: apsw.Connection) -> None:
    ranker = Ranker(filled)
    agree(filled, ranker, ALL_KINDS)
    filled.execute("BEGIN")
    take(filled, ("add", "function", ["the function " * 20]))
    filled.execute("ROLLBACK")
    agree(filled, ranker, ALL_KINDS)


ALL_KINDS = [(SUBSTRING, "function"), (SUBSTRING, "the"), (WORD, "go"), (ANYWHERE, "愛")]


def test_a_damaged_page_is_refused_or_read_within_its_bounds(filled: apsw.Connection) -> None:
    chance = random.Random(2)
    ids = [id for (id,) in filled.execute("SELECT id FROM chunks_fts_data")]
    refused = 0
    for _ in range(1500):
        filled.execute("SAVEPOINT whole")
        id = chance.choice(ids)
        ((block,),) = filled.execute("SELECT block FROM chunks_fts_data WHERE id = ?", (id,))
        torn = bytearray(block)
        for _ in range(chance.randrange(1, 4)):
            torn[chance.randrange(len(torn))] = chance.choice([0, 1, 4, 127, 128, 255])
        if chance.random() < 0.3:
            del torn[chance.randrange(len(torn) + 1) :]
        filled.execute("UPDATE chunks_fts_data SET block = ? WHERE id = ?", (bytes(torn), id))
        try:
            Ranker(filled, cache_bytes=0).rank(ALL_KINDS, 3, 1000)
        except DamagedIndex:
            refused += 1
        filled.execute("ROLLBACK TO whole; RELEASE whole")
    assert refused > 150


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM chunks_fts_data WHERE id > 10 AND id & 0x7FFFFFFF = 2",
        "DELETE FROM chunks_fts_data WHERE id = 10",
        "UPDATE chunks_fts_data SET block = NULL WHERE id > 10",
        "DELETE FROM chunks_fts_docsize WHERE id % 2",
        "UPDATE chunks_fts_docsize SET sz = x'ff'",
    ],
)
def test_what_is_missing_is_damage(filled: apsw.Connection, damage: str) -> None:
    filled.execute(damage)
    with filled, pytest.raises(DamagedIndex):
        Ranker(filled).rank(ALL_KINDS, 3, 1000)


def test_a_ranking_that_met_damage_is_right_again_once_that_is_mended(
    filled: apsw.Connection,
) -> None:
    ranker = Ranker(filled, cache_bytes=0)
    filled.execute("SAVEPOINT whole")
    filled.execute("DELETE FROM chunks_fts_data WHERE id > 10 AND id & 0x7FFFFFFF = 2")
    with pytest.raises(DamagedIndex):
        ranker.rank(ALL_KINDS, 3, 1000)
    filled.execute("ROLLBACK TO whole; RELEASE whole")
    agree(filled, ranker, ALL_KINDS)


def test_a_cancelled_ranking_raises_until_resumed(filled: apsw.Connection) -> None:
    ranker = Ranker(filled)
    canceller = threading.Thread(target=ranker.cancel)
    canceller.start()
    canceller.join()
    with filled, pytest.raises(Cancelled):
        ranker.rank(ALL_KINDS, 3, 1000)
    ranker.resume()
    agree(filled, ranker, ALL_KINDS)


def test_ranking_outside_a_transaction_is_refused(filled: apsw.Connection) -> None:
    with pytest.raises(ValueError, match="open transaction"):
        Ranker(filled).rank(ALL_KINDS, 3, 1000)


def test_a_closed_ranker_ranks_nothing(filled: apsw.Connection) -> None:
    ranker = Ranker(filled)
    ranker.close()
    ranker.close()
    with filled, pytest.raises(ValueError, match="open transaction"):
        ranker.rank(ALL_KINDS, 3, 1000)


@pytest.mark.parametrize(
    "term", [(SUBSTRING, "ab"), (WORD, "abc"), (WORD, ""), (ANYWHERE, "愛する")]
)
def test_a_term_of_the_wrong_length_is_refused(filled: apsw.Connection, term) -> None:
    with filled, pytest.raises(ValueError, match="codepoint"):
        Ranker(filled).rank([term], 3, 1000)


@pytest.mark.parametrize(("per_doc", "ranks"), [(0, 10), (1, 0), (1, 10_000)])
def test_ranks_out_of_range_are_refused(filled: apsw.Connection, per_doc: int, ranks: int) -> None:
    with filled, pytest.raises(ValueError, match="out of range"):
        Ranker(filled).rank(ALL_KINDS, per_doc, ranks)


def test_an_empty_store_matches_nothing() -> None:
    db = fresh()
    assert ranking(db, Ranker(db), ALL_KINDS) == []


def test_what_is_kept_between_rankings_keeps_to_its_bytes(filled: apsw.Connection) -> None:
    for room in range(0, 9000, 1500):
        ranker = Ranker(filled, cache_bytes=room)
        for term in ALL_KINDS * 2:
            agree(filled, ranker, [term])
            assert ranker.cached_bytes <= room
