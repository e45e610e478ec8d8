"""Vectors of texts: pieces as the sentencepiece package has them, sums as numpy has them."""

import contextlib
import hashlib
import itertools
import json
import lzma
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano import model
from hadano._native import windows
from hadano._native.vectors import Embedder
from tests.oracle.embedding import Table

# Of the vectors of DECLARED.
GOLDEN = "579519923b1f0f9519970c061cee36dcdb21672f0331de9d1a35968f1a3d17ba"
SHARED = Path(__file__).parents[3] / "shared" / "data"
COLLECTIONS = SHARED / "eval"
NOTES = SHARED / "notes-100k.jsonl.xz"

HEADER_AND_PAGES = 64 + 2 * 0x1100

MEMORY = model.FILE.read_bytes()
EMBEDDER = Embedder(MEMORY)
TABLE = Table(MEMORY)

# Article 1 of the Universal Declaration of Human Rights, its first sentence.
DECLARED = {
    "ar": "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "en": "All human beings are born free and equal in dignity and rights.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
    "zh": "人人生而自由,在尊严和权利上一律平等。",
}

# What rules of the normaliser turn on: marks, Hangul letters, kana and their voicing, ligatures,
# widths, kinds of white space, and codepoints that nobody knows.
odd = st.sampled_from(
    "aAe\u0301\u0302\u0327\u1100\u1161\u11a8가か\u3099\u309aｶ\uff9eﾊ\uff9f㌖ﷺ…ﬁ½İ"
    "\t \u00a0\u3000\u200b\u2581\ufffd\u00a8\0\u200d\U0010ffff😀東"
)
texts = st.text() | st.text(odd) | st.lists(st.sampled_from(list(DECLARED.values()))).map("".join)


@pytest.fixture(scope="module")
def theirs() -> Any:
    """The sentencepiece package itself, over the vocabulary and the rules of our table."""
    package = pytest.importorskip("sentencepiece", reason="it comes with the extra `test`")
    return package.SentencePieceProcessor(model_proto=TABLE.model())


def merged(pieces: list[int]) -> list[int]:
    """Runs of unknown codepoints as the one piece that sentencepiece makes of them."""
    runs = [(piece, list(run)) for piece, run in itertools.groupby(pieces)]
    return [each for piece, run in runs for each in (run if piece else [piece])]


def test_the_table_is_the_one_that_its_sha256_names() -> None:
    assert hashlib.sha256(MEMORY).hexdigest() == model.SHA256


@given(texts)
def test_any_text_falls_into_the_pieces_that_sentencepiece_gives(theirs: Any, text: str) -> None:
    assert merged(EMBEDDER.pieces(text)) == theirs.encode(text)


@pytest.mark.parametrize(
    "collection",
    [
        "xquad-de",
        "xquad-zh",
        pytest.param("jsquad-ja", marks=pytest.mark.slow),
        pytest.param("cranfield", marks=pytest.mark.slow),
        pytest.param("scifact", marks=pytest.mark.slow),
    ],
)
def test_every_chunk_of_real_texts_falls_into_the_pieces_that_sentencepiece_gives(
    theirs: Any, collection: str
) -> None:
    file = COLLECTIONS / collection / "docs.jsonl"
    if not file.exists():
        pytest.skip("the collections are not here")
    for line in file.read_text("utf-8").splitlines():
        for chunk in windows(json.loads(line)["text"], 800, 700):
            pieces = EMBEDDER.pieces(chunk)
            assert merged(pieces) == theirs.encode(chunk)
            assert EMBEDDER.embed(chunk) == TABLE.vector(pieces)


@pytest.mark.slow
@pytest.mark.skipif(not NOTES.exists(), reason="the notes are not there")
def test_ten_thousand_chunks_of_real_notes_fall_into_the_pieces_that_sentencepiece_gives(
    theirs: Any,
) -> None:
    """Notes from all through the file, for it goes by source, and sources by language."""
    with lzma.open(NOTES, "rt", encoding="utf-8", newline="\n") as lines:
        notes = (json.loads(line)["text"] for line in itertools.islice(lines, 0, None, 14))
        chunks = [chunk for text in notes for chunk in windows(text, 800, 700)]
    assert len(chunks) > 10_000
    for chunk in chunks:
        pieces = EMBEDDER.pieces(chunk)
        assert merged(pieces) == theirs.encode(chunk)
        assert EMBEDDER.embed(chunk) == TABLE.vector(pieces)


@given(texts)
def test_a_vector_is_the_sum_of_the_rows_of_its_pieces(text: str) -> None:
    assert EMBEDDER.embed(text) == TABLE.vector(EMBEDDER.pieces(text))


def test_the_same_texts_give_the_same_vectors_on_every_machine() -> None:
    vectors = b"".join(map(EMBEDDER.embed, DECLARED.values()))
    assert hashlib.sha256(vectors).hexdigest() == GOLDEN


def test_a_translation_is_nearer_than_any_other_text_of_its_language() -> None:
    english = vector(DECLARED["en"])
    other = vector("Please press the red button to restart the printer.")
    for language in ("ar", "de", "es", "fr", "ja", "ko", "ru", "th", "tr", "zh"):
        declared = vector(DECLARED[language])
        assert cosine(declared, english) > cosine(declared, other)


def vector(text: str) -> list[int]:
    return memoryview(EMBEDDER.embed(text)).cast("b").tolist()


def cosine(one: list[int], other: list[int]) -> float:
    def dot(a: list[int], b: list[int]) -> int:
        return sum(x * y for x, y in zip(a, b, strict=True))

    return float(dot(one, other) / (dot(one, one) * dot(other, other)) ** 0.5)


@pytest.mark.parametrize("text", ["", " \n\u3000", "\U0010ffff", "\ue000 \ue001", "\ud800", "\0"])
def test_a_text_of_which_nothing_is_known_has_no_direction(text: str) -> None:
    assert EMBEDDER.embed(text) == bytes(256)


@given(st.text(st.characters(max_codepoint=0xFF)))
def test_the_width_of_a_text_s_storage_does_not_matter(text: str) -> None:
    assert EMBEDDER.embed(text) == EMBEDDER.embed(text + " \ue000")
    assert EMBEDDER.embed(text) == EMBEDDER.embed(text + " \U0010ffff")


def test_a_lone_surrogate_is_white_space_as_what_decoders_put_in_its_place() -> None:
    assert EMBEDDER.pieces("one\udc80two") == EMBEDDER.pieces("one two")


HOSTILE = {
    "one word": "x" * 1_000_000,
    "no spaces": "東京都" * 300_000,
    "long rules": "\ufdfa" * 100_000,
    "marks": "e" + "\u0301" * 1_000_000,
    "unknown": "\U0010ffff" * 1_000_000,
    "many words": "ab " * 300_000,
    "every codepoint": "".join(map(chr, range(0x110000))),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_texts_of_a_million_codepoints_are_summed_without_loss(text: str) -> None:
    assert EMBEDDER.embed(text) == TABLE.vector(EMBEDDER.pieces(text))


def test_many_threads_may_use_one_embedder() -> None:
    expected = [EMBEDDER.embed(text) for text in DECLARED.values()] * 200
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(EMBEDDER.embed, list(DECLARED.values()) * 200)) == expected


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        MEMORY[:63],
        MEMORY[:-1],
        MEMORY + bytes(64),
        b"X" + MEMORY[1:],
        MEMORY[:8] + b"\2" + MEMORY[9:],
        MEMORY[:64] + b"\xff\xff" + MEMORY[66:],
        memoryview(MEMORY)[1:],
    ],
    ids=["empty", "no header", "short", "long", "magic", "version", "page", "unaligned"],
)
def test_what_is_no_whole_table_is_refused(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="not a table"):
        Embedder(damaged)


@settings(max_examples=50)
@given(st.integers(0), texts)
def test_a_damaged_table_gives_wrong_vectors_or_is_refused_and_never_crashes(
    seed: int, text: str
) -> None:
    chance = random.Random(seed)
    rows_begin = len(MEMORY) - TABLE.rows.nbytes
    scratch = bytearray(MEMORY)
    for _ in range(3_000):
        scratch[chance.randrange(HEADER_AND_PAGES, rows_begin)] = chance.randrange(256)
    with contextlib.suppress(ValueError):
        assert len(Embedder(scratch).embed(text + DECLARED["en"] + "e\u0301\ufdfa")) == 256
