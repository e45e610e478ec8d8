"""Vectors of chunks: made with them where embeddings are on, and later where they are owed.

The file says whose its vectors are: one model's, by name and by the hash of its table. Vectors of
two models cannot be compared. While the stamp is another model's none is made and none is looked
at; `keep` takes those away and makes ours. What is owed stands in `chores`: a store that was filled
before embeddings were on owes all its vectors, and one that has vectors owes those of the chunks
that a server with embeddings off puts in. Once nothing is owed, a chunk without a vector is damage.

A vector is that of the chunk's text; the first chunk's is that of the title too, as in the index.

All but `keep` runs inside the caller's transaction. Where embeddings are off, nothing here loads
the model. Refuses to know what vectors are good for.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hadano import limits, schema
from hadano.connection import Connection, Row, listed
from hadano.errors import Code, HadanoError

_TEXTS: Final = """
SELECT c.id, CASE c.seq WHEN 0 THEN d.title || char(10) || c.text ELSE c.text END
FROM chunks AS c JOIN docs AS d ON d.n = c.doc WHERE
"""
_BARE: Final = "NOT EXISTS(SELECT 1 FROM vec_chunks_rowids WHERE rowid = c.id)"
_NEXT_BARE: Final = f"{_TEXTS} c.id > ? AND {_BARE} ORDER BY c.id LIMIT ?"
_STILL_BARE: Final = (
    f"SELECT id FROM chunks AS c WHERE id IN (SELECT value FROM json_each(?)) AND {_BARE}"
)
#: From vec0's shadow tables, as the search reads them; vec0 itself calls damage to them an error
#: like any other.
_HELD: Final = """
SELECT substr(b.vectors, 256 * r.chunk_offset + 1, 256)
FROM vec_chunks_rowids AS r JOIN vec_chunks_vector_chunks00 AS b ON b.rowid = r.chunk_id
WHERE r.rowid = ?
"""
_PLACES: Final = "SELECT validity, rowids FROM vec_chunks_chunks WHERE chunk_id = ?"
#: One look-up a chunk, as in `_delete`.
_STILL_IN: Final = """
SELECT v.chunk_id, v.embedding
FROM json_each(?) CROSS JOIN vec_chunks_rowids AS r ON r.rowid = value
CROSS JOIN vec_chunks AS v ON v.chunk_id = r.rowid
WHERE r.chunk_id = ?
"""


def has_tables(db: Connection) -> bool:
    """Whether embeddings have ever been on for this file."""
    return db.row("SELECT 1 FROM sqlite_schema WHERE name = 'vec_chunks'") is not None


def load() -> None:
    """Loads the model: that an installation lacks it is known at once, and not from some later
    call. E_INTERNAL where it cannot be loaded."""
    from hadano import model

    try:
        model.embed("")
    except (OSError, ValueError) as error:
        raise HadanoError(Code.INTERNAL, "the model of embeddings cannot be loaded") from error


def set_up(db: Connection) -> None:
    """Makes the tables of vectors where there are none, empty and under our model's stamp; those of
    the chunks that are there are owed."""
    from hadano import model

    if has_tables(db):
        return
    db.run(schema.VECTORS)
    db.run("INSERT INTO vec_model(name, sha256) VALUES(?, ?)", (model.NAME, model.SHA256))
    if db.row("SELECT 1 FROM chunks LIMIT 1") is not None:
        _owe(db)


def add(db: Connection, first: int, title: str, texts: Sequence[str]) -> None:
    """Makes the vectors of a document's new chunks, whose ids begin at `first`, or has them owed. A
    file in which embeddings have never been on owes none."""
    if not has_tables(db):
        return
    if db.vectors and _stamped(db) is not None:
        _insert(db, _made(enumerate((f"{title}\n{texts[0]}", *texts[1:]), first)))
    else:
        _owe(db)


def remove(db: Connection, chunk_ids: Iterable[int]) -> None:
    """Takes the vectors of these chunks away and overwrites them, with embeddings on or off."""
    if has_tables(db):
        db.load_vectors()
        _delete(db, chunk_ids)


def retitle(db: Connection, chunk_id: int) -> None:
    """Makes the vector of a first chunk again, whose title has changed, or has it owed."""
    if not has_tables(db):
        return
    db.load_vectors()
    _delete(db, [chunk_id])
    db.run("UPDATE vec_model SET remade = remade + 1")
    if db.vectors and _stamped(db) is not None:
        _insert(db, _made(db.rows(f"{_TEXTS} c.id = ?", (chunk_id,))))
    else:
        _owe(db)


def any_usable(db: Connection) -> bool:
    """Whether there are vectors to compare."""
    return _are_ours(db) and db.row("SELECT 1 FROM vec_chunks_rowids LIMIT 1") is not None


def of(db: Connection, chunk_ids: Iterable[int]) -> list[bytes]:
    """The vectors of these chunks, made on the spot where they are still owed.

    E_INTEGRITY for a chunk that has none although none is owed.
    """
    ours = _are_ours(db)
    return [
        (_held(db, chunk_id) if ours else None) or _fresh(db, chunk_id) for chunk_id in chunk_ids
    ]


def nearest(db: Connection, seeds: list[bytes], most: int) -> list[tuple[int, float]]:
    """Up to `most` chunks that are nearest to one of `seeds`, and how near: their best cosine
    similarity to any seed, best first, the smaller id first among equals. A vector of zeros is near
    to nothing."""
    remade = _remade(db)
    return [] if remade is None else db.nearest(seeds, most, remade)


def keep(db: Connection) -> Iterator[None]:
    """Does what there is to do for the file's vectors, one small transaction a step: those of
    another model go, those that are owed are made, and blocks that lost most of theirs are packed.

    It begins where it ended, whatever ended it: what is done is seen from the file. Texts are
    embedded between the transactions, so that others can write.
    """
    if not _are_ours(db):
        yield from _replace_model(db)
    yield from _pay(db)
    yield from _pack(db)


def _are_ours(db: Connection) -> bool:
    return _remade(db) is not None


def _remade(db: Connection) -> int | None:
    """How often a vector was taken away to be made again; None where vectors are not our model's.
    While it is the same, a chunk's vector, if there is one, is the same."""
    return _stamped(db) if has_tables(db) else None


def _stamped(db: Connection) -> int | None:
    """As `_remade`, of a file that has the tables of vectors."""
    from hadano import model

    remade: int | None = db.value("SELECT remade FROM vec_model WHERE sha256 = ?", (model.SHA256,))
    return remade


def _owe(db: Connection) -> None:
    db.run(schema.ASK_FOR_CHORE, (schema.CHORE_EMBED,))


def _owed(db: Connection) -> int | None:
    """How often vectors were asked for that are still owed."""
    asked: int | None = db.value("SELECT asked FROM chores WHERE name = ?", (schema.CHORE_EMBED,))
    return asked


def _made(chunks: Iterable[Row]) -> list[tuple[int, bytes]]:
    from hadano import model

    return [(chunk_id, model.embed(text)) for chunk_id, text in chunks]


def _insert(db: Connection, made: Sequence[tuple[int, bytes]]) -> None:
    db.write_vectors("INSERT INTO vec_chunks(chunk_id, embedding) VALUES(?, vec_int8(?))", made)


def _delete(db: Connection, chunk_ids: Iterable[int]) -> None:
    """One statement a chunk: for `chunk_id IN (...)` vec0 goes through all vectors that there are,
    which takes 100 ms for 150,000."""
    db.write_vectors("DELETE FROM vec_chunks WHERE chunk_id = ?", [(id,) for id in chunk_ids])


def _held(db: Connection, chunk_id: int) -> bytes | None:
    vector: bytes | None = db.value(_HELD, (chunk_id,))
    if vector is None and not _owed(db):
        raise HadanoError(Code.INTEGRITY, f"chunk {chunk_id} has no vector")
    return vector


def _fresh(db: Connection, chunk_id: int) -> bytes:
    [(_, vector)] = _made(db.rows(f"{_TEXTS} c.id = ?", (chunk_id,)))
    return vector


# In the background.


def _replace_model(db: Connection) -> Iterator[None]:
    """Ours in place of another's; another process may be at it too, and be done before."""
    while ids := _some_ids(db):
        with db.step():
            if _are_ours(db):
                return
            _delete(db, ids)
        yield
    with db.change():
        if not _are_ours(db):
            db.run(schema.NO_VECTORS)
            set_up(db)
    yield


def _some_ids(db: Connection) -> list[int]:
    if not has_tables(db):
        return []
    rows = db.rows("SELECT rowid FROM vec_chunks_rowids LIMIT ?", (limits.EMBED_CHUNKS,))
    return [id for (id,) in rows]


def _pay(db: Connection) -> Iterator[None]:
    """Makes vectors until none is owed. Chunks that were put in meanwhile, and may have been
    missed, have asked again."""
    while owed := _owed(db):
        last, remade = 0, _remade(db)
        while chunks := db.rows(_NEXT_BARE, (last, limits.EMBED_CHUNKS)):
            made = dict(_made(chunks))
            with db.change(durable=False):
                before, remade = remade, _remade(db)
                if remade is None:
                    return
                if remade == before:  # else a title may be another than the one that was read
                    bare = db.rows(_STILL_BARE, (listed(made),))
                    _insert(db, [(chunk_id, made[chunk_id]) for (chunk_id,) in bare])
                    last = chunks[-1][0]
            yield
        with db.change():
            db.run("DELETE FROM chores WHERE name = ? AND asked = ?", (schema.CHORE_EMBED, owed))


def _pack(db: Connection) -> Iterator[None]:
    """Moves the vectors of blocks that are less than half full to the last one, which vec0 alone
    fills: it gives an empty block's room back, and never uses a free place again."""
    for block in _sparse(db):
        chunks = listed(_chunks_in(db, block))
        with db.step():
            if not _are_ours(db):
                return
            held = db.rows(_STILL_IN, (chunks, block))
            _delete(db, [id for id, _ in held])
            _insert(db, held)
        yield


def _sparse(db: Connection) -> list[int]:
    blocks = db.rows("SELECT chunk_id, size, validity FROM vec_chunks_chunks ORDER BY chunk_id")
    return [
        block for block, size, valid in blocks[:-1] if int.from_bytes(valid).bit_count() < size / 2
    ]


def _chunks_in(db: Connection, block: int) -> list[int]:
    """The chunks whose vectors a block holds, by the block's own word: the other way round vec0 has
    no index, and to look through all its rows takes longer than to move the vectors."""
    for valid, ids in db.rows(_PLACES, (block,)):
        used = int.from_bytes(valid, "little")
        numbers = struct.unpack_from(f"{len(ids) // 8}q", ids)
        return [id for place, id in enumerate(numbers) if used >> place & 1]
    return []
