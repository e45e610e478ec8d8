"""An index to erase from, its rows as bytes, and what came of an erasure."""

import random
from collections.abc import Iterable
from contextlib import closing

import apsw

from hadano._native import DamagedIndex, Eraser
from tests.native.ranked import fresh, take, tell


def copy_of(db: apsw.Connection) -> apsw.Connection:
    copy = fresh()
    copy.deserialize("main", db.serialize("main"))
    return copy


def erase(db: apsw.Connection, rows: Iterable[int]) -> int:
    """Takes the chunks out of the index; how many of their postings were not there."""
    with closing(Eraser(db)) as eraser:
        eraser.begin(rows)
        while eraser.step():
            pass
        return eraser.lacking


def record(db: apsw.Connection, id: int) -> bytes:
    return db.execute("SELECT block FROM chunks_fts_data WHERE id = ?", (id,)).get


def write_record(db: apsw.Connection, id: int, block: bytes) -> None:
    db.execute("UPDATE chunks_fts_data SET block = ? WHERE id = ?", (block, id))


def mark_as_erased_from(db: apsw.Connection) -> None:
    """Has FTS5 note that rows were erased, as it does when it erases one."""
    tell(db, "secure-delete", 1)
    with db:
        db.execute("INSERT INTO chunks_fts(rowid, text) VALUES(0, 'abc')")
        db.execute("INSERT INTO chunks_fts(chunks_fts, rowid, text) VALUES('delete', 0, 'abc')")


def filled(page_bytes: int = 64) -> apsw.Connection:
    """An index of several segments, with doclists and position lists over many pages."""
    chance = random.Random(1)
    db = fresh(pgsz=page_bytes, automerge=0)
    mark_as_erased_from(db)
    for _ in range(6):
        with db:
            for _ in range(12):
                words = chance.choices(["function", "the", "go", "on", "東京", "ab" * 40], k=60)
                take(db, ("add", "a title", [" ".join(words), "aaa" * 50]))
    return db


def outcome(db: apsw.Connection, rows: Iterable[int]) -> str:
    """What an erasure comes to, which is undone at once."""
    db.execute("SAVEPOINT erasing")
    try:
        return "lacking" if erase(db, rows) else "erased"
    except DamagedIndex:
        return "damage"
    finally:
        db.execute("ROLLBACK TO erasing; RELEASE erasing")
