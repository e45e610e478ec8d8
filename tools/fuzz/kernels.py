"""Feeds of kernels that are functions of texts and vectors.

Where one answer is right, their twins in tests/oracle tell it.
"""

import contextlib
import json
import random
from array import array

from hadano import model
from hadano._native import Pieces, classes, fuse, search_form, short_words, windows
from hadano._native.vectors import Embedder, nearest
from hadano.connection import Connection
from hadano.quotes import PIECE_BYTES, Gone, Quotes
from tests.native.blocks import block, packed
from tests.oracle import chunking, embedding, merging, pieces
from tests.reliability.examiner import spellings
from tools.fuzz.chance import Round, clean, mutated, part, text


def on_the_kernels(chance: random.Random) -> str:
    it = text(chance)
    size = chance.randint(1, 900)
    stride = chance.randint(1, size)
    assert windows(it, size, stride) == chunking.windows(it, size, stride)
    form = search_form(it)
    assert search_form(form) == form
    assert len(classes(form)) == len(form)
    short_words(form, chance.random() < 0.5, chance.random() < 0.5)
    said = it.encode("utf-8", "surrogatepass")
    other = mutated(chance, said)
    known, dropped = Pieces((said, said[::-1])), other[::2]
    known.drop(dropped)
    assert pieces.runs_of(known, other) == pieces.runs((said, said[::-1]), other, [dropped])
    count = chance.randrange(60)
    chunks = array("q", (chance.randrange(-5, 60) for _ in range(count)))
    docs = array("q", (chance.randrange(-5, 9) for _ in range(count)))
    limits = chance.randint(1, 5), chance.randrange(70), 60, chance.randrange(9)
    assert fuse(chunks, docs, *limits) == merging.fuse(chunks, docs, *limits)
    return "agreed"


def on_quotes(db: Connection) -> Round:
    def round_(chance: random.Random) -> str:
        texts = [clean(chance) for _ in range(3)]
        quotes = Quotes(db, [Gone(id="gone", texts=texts[:2], nodes=texts[2:], rels=[])])
        quote = part(chance, chance.choice(texts))
        said = json.dumps({"query": clean(chance, 60) + quote}, ensure_ascii=False)
        assert quotes.among(said) or len(quote.encode()) < PIECE_BYTES
        other = clean(chance)
        if not any(pieces.runs(spellings(other), form) for form in spellings(said)):
            assert not Quotes(db, [Gone(id="gone", texts=[other], nodes=[], rels=[])]).among(said)
        return "known"

    return round_


def on_vectors() -> Round:
    memory = model.FILE.read_bytes()
    table, embedder = embedding.Table(memory), Embedder(memory)
    #: The header and the pages are checked by the embedder, and rows may hold anything.
    open_to_change = range(64 + 2 * 0x1100, len(memory) - table.rows.nbytes)
    scratch = bytearray(memory)

    def round_(chance: random.Random) -> str:
        it = text(chance)
        assert embedder.embed(it) == table.vector(embedder.pieces(it))
        places = chance.sample(open_to_change, 500)
        for place in places:
            scratch[place] = chance.randrange(256)
        with contextlib.suppress(ValueError):
            assert len(Embedder(scratch).embed(it)) == 256
        for place in places:
            scratch[place] = memory[place]
        return _near(chance)

    return round_


def _near(chance: random.Random) -> str:
    numbers = {n: chance.choices(range(-128, 128), k=256) for n in range(chance.randrange(20))}
    parts = list(block(numbers, chance.random() < 0.5))
    for _ in range(chance.randrange(3)):
        which = chance.randrange(len(parts))
        parts[which] = mutated(chance, parts[which])
    seeds = [packed(chance.choices(range(-128, 128), k=256)) for _ in range(chance.randrange(4))]
    most = chance.randint(1, 25)
    valid, ids, together, packed_signs = parts
    try:
        found = nearest([(valid, ids, together, packed_signs)], seeds, most)
    except ValueError:
        return "refused"
    assert len(found) <= most
    return "near"
