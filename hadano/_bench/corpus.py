"""Documents and queries that look like people's notes to an index, made from a seed.

What costs an index time is how long texts are, how often a trigram comes back in a chunk and in
how many chunks it stands; those follow 100,000 real notes (the figures are in the manual). What
the words say is nothing. Document `i` depends on the seed and on `i` alone, so a larger store
holds every smaller one. Only `Random.random` is drawn from, which Python promises to keep; this
module refuses to know of stores and clocks.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate
from math import ceil, exp
from random import Random
from typing import Final, Literal

from msgspec import Struct

Profile = Literal["notes", "short"]
PROFILES: Final[tuple[Profile, ...]] = ("notes", "short")

#: Words, their probabilities as by Zipf and Mandelbrot: 1 / (rank + 2.7) ** 1.07.
_WORDS: Final = 60_000
_ZIPF_SHIFT: Final = 2.7
_ZIPF_POWER: Final = 1.07
#: Of the documents, a fifth: three in Japanese for each two in Chinese.
_JAPANESE: Final = 0.12
_CHINESE: Final = 0.08
#: Length in codepoints: log-normal around the median; one in 20,000 is a hundred times as long.
_MEDIAN: Final[dict[Profile, float]] = {"notes": 521.0, "short": 28.0}
_SIGMA: Final[dict[Profile, float]] = {"notes": 0.85, "short": 0.5}
_GIANTS: Final = 1 / 20_000
_GIANT_TIMES: Final = 100
_CODEPOINTS_MAX: Final = 300_000
#: One document in so many states two relations: with an area, and with one of the busy topics.
_RELATED_EACH: Final = 5
TOPIC: Final = "topic"
TOPICS: Final = 97

#: The head of the vocabulary: what notes in English are held together with.
_HEAD: Final = (
    "the a to and of in is for that be it this with on as are by or an not if can from you will"
    " which have we when at but should has use all any was must there no one so more other they"
    " using file set name code value may used new only data type list see command example some"
    " also these then would do does how what into each its user into default time where first"
    " number line error version option string object function system test run add page"
).split()
_ONSETS: Final = (
    "s c p t r m d b f l st g v n h pr tr con re in de ex w ch gr sp th un k cl".split()
)
_VOWELS: Final = "e a i o u ea io ou ai ee".split()
_CODAS: Final = ["", *"n r t l s nt st ct m d ng p ck rt ss th nd x".split()]
_ENDINGS: Final = ["", *"s ed ing er tion ly ment able al ity ive".split()]
_PARTICLES: Final = "の を に は が と で も から まで など する した です ます いる ある".split()
_FUNCTION: Final = "的 了 是 在 和 有 不 我 这 個 也 就 都 要 會 可以 我们 一个 因为".split()

#: What is asked: words of the text, rare ones, the most frequent ones, pieces of Japanese and
#: Chinese, a word that is nowhere, and a whole question as an agent would put it.
_COUNTS: Final = {"one": 1, "two": 2, "three": 3, "five": 5, "question": 5}
_WORD: Final = re.compile(r"\b[a-z]{4,}\b")
_JOINED: Final = re.compile(r"[\u3041-\u30fe\u4e00-\u9fff]{4,}")
_COMMON: Final = frozenset(_HEAD[:40])
QUERY_CLASSES: Final = (*_COUNTS, "rare", "common", "cjk", "none")


class Note(Struct, frozen=True):
    """A document to store."""

    id: str
    title: str
    content: str
    tags: list[str]
    #: (src, rel, dst)
    relations: list[tuple[str, str, str]]


class _Language:
    """A vocabulary in order of frequency, and how its words stand beside each other."""

    def __init__(self, words: list[str], space: str, comma: str, stop: str) -> None:
        self.words, self.space, self.comma, self.stop = words, space, comma, stop
        self.weights = list(
            accumulate((rank + _ZIPF_SHIFT) ** -_ZIPF_POWER for rank in range(1, len(words) + 1))
        )
        self.mean = sum(map(len, words[:2_000])) / 2_000 + len(space)

    def draw(self, random: Random, count: int) -> list[str]:
        """So many words, the frequent ones often."""
        words, weights, draw, total = self.words, self.weights, random.random, self.weights[-1]
        last = len(words) - 1
        return [words[bisect(weights, draw() * total, 0, last)] for _ in range(count)]

    def text(self, random: Random, codepoints: int) -> str:
        """Sentences, of which a note repeats some words and phrases more than chance would."""
        fresh = self.draw(random, int(codepoints / self.mean * 0.6) + 2)
        sentences: list[str] = []
        size, at = 0, 0
        while size < codepoints:
            count = 5 + int(random.random() * 14)
            words = fresh[at : at + count]
            at += count
            if at >= len(fresh):
                at = int(random.random() * len(fresh) / 2)
            if random.random() < 0.3:
                words[len(words) // 2] = _token(random) + self.comma
            sentence = self.space.join(words).capitalize() + self.stop
            if sentences and random.random() < 0.15:
                sentence = sentences[int(random.random() * len(sentences))]
            sentences.append(sentence)
            size += len(sentence)
        return "".join(sentences)[:codepoints]


class Corpus:
    """All documents of one seed and profile."""

    def __init__(self, seed: int, profile: Profile) -> None:
        self._seed, self._profile = seed, profile

    def note(self, i: int) -> Note:
        """Document number `i`, from 0."""
        random = Random(f"{self._seed}/{self._profile}/{i}")
        language = self._language(random.random())
        length = _MEDIAN[self._profile] * exp(_SIGMA[self._profile] * _normal(random))
        if self._profile == "notes" and random.random() < _GIANTS:
            length *= _GIANT_TIMES
        codepoints = min(max(int(length), 4), _CODEPOINTS_MAX)
        short = self._profile == "short"
        title_words = 1 if short else 2 + int(random.random() * 5)
        return Note(
            id=f"note-{i:08d}",
            title=language.space.join(language.draw(random, title_words)),
            content=language.text(random, codepoints),
            tags=[] if short else [f"tag-{_rank(random, 200)}"],
            relations=[] if short or i % _RELATED_EACH else self._relations(random, i),
        )

    def notes(self, count: int) -> Iterator[Note]:
        """Documents 0 to `count` - 1."""
        return map(self.note, range(count))

    def queries(self, kind: str, count: int, scale: int) -> list[str]:
        """Queries of one class of `QUERY_CLASSES`, for a store of the first `scale` documents.

        Words of four letters and more come from documents of the store, as often as they stand
        there, so all but `none` find something. A store of a hundred has some of every class.
        """
        random = Random(f"{self._seed}/{kind}")
        return [self._query(random, kind, scale) for _ in range(count)]

    def _query(self, random: Random, kind: str, scale: int) -> str:
        if kind == "none":
            return f"zqxj{int(random.random() * 1_000_000)}kvw"
        if kind == "common":
            return self._found(random, scale, _common, 1)[0]
        if kind == "cjk":
            piece = self._found(random, scale, _JOINED.findall, 1)[0]
            return piece[: 2 + int(random.random() * 3)]
        if kind == "rare":
            return self._found(random, scale, self._rare, 1)[0]
        words = self._found(random, scale, _WORD.findall, _COUNTS[kind])
        if kind == "question":
            return "how do we {} the {} of {} when the {} is not {}?".format(*words)
        return " ".join(words)

    def _found(
        self, random: Random, scale: int, pick: Callable[[str], list[str]], count: int
    ) -> list[str]:
        """So many of what `pick` finds in a document of the store, the first that has any."""
        while True:
            words = pick(self.note(int(random.random() * scale)).content)
            if words:
                return [words[int(random.random() * len(words))] for _ in range(count)]

    def _rare(self, text: str) -> list[str]:
        return [word for word in _WORD.findall(text) if word in self._rare_words]

    @cached_property
    def _rare_words(self) -> frozenset[str]:
        return frozenset(self._english.words[_WORDS // 4 :])

    def relations_count(self, count: int) -> int:
        """How many relations documents 0 to `count` - 1 state."""
        return 0 if self._profile == "short" else 2 * ceil(count / _RELATED_EACH)

    def _relations(self, random: Random, i: int) -> list[tuple[str, str, str]]:
        rel = ("uses", "mentions", "part of")[int(random.random() * 3)]
        return [
            (f"note {i}", rel, f"area {_rank(random, 5_000)}"),
            (f"note {i}", rel, f"{TOPIC} {i // _RELATED_EACH % TOPICS}"),
        ]

    def _language(self, share: float) -> _Language:
        if share < _JAPANESE:
            return self._japanese
        return self._chinese if share < _JAPANESE + _CHINESE else self._english

    @cached_property
    def _english(self) -> _Language:
        random = Random(f"{self._seed}/english")
        words = dict.fromkeys(_HEAD)
        while len(words) < _WORDS:
            syllables = 1 + int(random.random() ** 2 * 3)
            stem = "".join(_syllable(random) for _ in range(syllables))
            words.setdefault(stem + _ENDINGS[_rank(random, len(_ENDINGS))])
        return _Language(list(words), " ", ", ", ". ")

    @cached_property
    def _japanese(self) -> _Language:
        random = Random(f"{self._seed}/japanese")
        kana = [chr(c) for c in range(0x30A2, 0x30ED)]
        return _Language(_joined(random, _PARTICLES, kana, 1_200), "", "、", "。")

    @cached_property
    def _chinese(self) -> _Language:
        random = Random(f"{self._seed}/chinese")
        return _Language(_joined(random, _FUNCTION, [], 2_000), "", "，", "。")


def _common(text: str) -> list[str]:
    return [word for word in text.split() if word in _COMMON]


def _joined(random: Random, head: list[str], letters: list[str], ideographs: int) -> list[str]:
    """Words of a script without spaces: mostly two ideographs, some of three or four letters."""
    step = 20_902 // ideographs
    signs = [chr(0x4E00 + step * i) for i in range(ideographs)]
    signs.sort(key=lambda _: random.random())
    words = dict.fromkeys(head)
    while len(words) < _WORDS // 6:
        if letters and random.random() < 0.25:
            word = "".join(letters[_rank(random, len(letters))] for _ in range(4))
        else:
            word = signs[_rank(random, ideographs)] + signs[_rank(random, ideographs)]
        words.setdefault(word)
    return list(words)


def _syllable(random: Random) -> str:
    return (
        _ONSETS[_rank(random, len(_ONSETS))]
        + _VOWELS[_rank(random, len(_VOWELS))]
        + _CODAS[_rank(random, len(_CODAS))]
    )


def _rank(random: Random, count: int) -> int:
    """A number below `count`, the small ones more often: the cube of an even draw."""
    return int(random.random() ** 3 * count)


def _normal(random: Random) -> float:
    """Near enough to normal with mean 0 and deviation 1: twelve even draws (central limit)."""
    return sum(random.random() for _ in range(12)) - 6.0


def _token(random: Random) -> str:
    """A number, a version, a path, a hash: what notes hold beside words."""
    draw = random.random()
    number = int(draw * 1_000_000)
    if draw < 0.4:
        return f"{number % 2_000}"
    if draw < 0.6:
        return f"v{number % 10}.{number % 37}.{number % 11}"
    if draw < 0.8:
        return f"src/{'core' if number % 2 else 'docs'}/{number % 500:03d}.md"
    return f"{number * 2_654_435_761 % 0xFFFFFFFF:08x}"
