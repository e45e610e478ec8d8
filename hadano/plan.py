"""From a query to terms: how text becomes what is looked up (contract, sections 7.1 to 7.3).

A pure function of the query. The query is data: nothing in it is an operator.

1. The query's search form is split at white space; sentence punctuation, quotes and brackets at
   the ends of a piece are dropped, symbols stay. A piece of dashes and asterisks alone (a bullet,
   a rule, a wildcard) is no term.
2. Scripts that run on without spaces are cut further. A run of four or more codepoints stands for
   its overlapping windows: of two codepoints for Han, kana and Hangul, where two characters make
   a word, of three for the alphabetic ones (Thai, Lao, Khmer, Myanmar ...). Punctuation beside
   such a run separates like a space, and so does the border to a longer word of another script.
3. For a text of many words or windows stand the most telling: those that take up most of it, and
   of equals some from each of its parts.
4. Six or more words are taken for a question, and a question's words seldom have the endings that
   the answer has: of each of five or more letters the beginning stands for it. Digits, symbols and
   punctuation but for an apostrophe keep a word whole.
5. A term of three or more codepoints is looked for anywhere. A shorter one is looked for anywhere
   where it has a codepoint of an unspaced script, or nothing but symbols; else as a whole word.
"""

import enum
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from hadano._native import classes, search_form

# Classes of `hadano._native.classes`.
SPACE, WORD, JOINED2, JOINED3, SYMBOL, PUNCT = range(6)
#: What `_runs` calls all that is of no unspaced script.
OTHER: Final = -1

#: From this many codepoints on, an unspaced run stands for its windows (contract, section 7.2).
RUN_CODEPOINTS_MIN: Final = 4
#: A word of another script beside an unspaced run is a term of its own from this length on;
#: a shorter one belongs to the run: `3月`, `C言語`.
BESIDE_RUN_CODEPOINTS_MIN: Final = 3

#: No more words and windows than this stand for a text: each takes time, and fewer found worse
#: (`docs/decisions.md`, 63). Lucene's MoreLikeThis takes 25, but knows which are rare.
TELLING_MAX: Final = 48
#: How long they are stands in for how rare; a codepoint of an unspaced script is so many letters,
#: and a term with a digit or symbol as rare as a word with so many more.
LETTERS: Final = {JOINED2: 4, JOINED3: 2}
UNCOMMON_LETTERS: Final = 8
#: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): of the numbers from 0 on, the
#: products that are smallest by these bits belong to numbers that lie evenly apart.
SPREAD: Final = 40_503
SPREAD_END: Final = 1 << 16

#: From this many words on, a query is a question: whoever types fewer has chosen each.
QUESTION_WORDS_MIN: Final = 6
#: What a question's word loses at its end, by its codepoints; longer ones first. These lengths and
#: those below find best over two dozen languages (`docs/decisions.md`); none is of one language.
ENDINGS: Final = ((9, 3), (7, 2), (5, 1))
#: No more than this is left of a word, ...
BEGINNING_CODEPOINTS_MAX: Final = 8
#: ... but a word as long as this is two words in one: as much of the second, its ending off, is a
#: term of its own.
COMPOUND_CODEPOINTS_MIN: Final = 16
SECOND_CODEPOINTS: Final = 6
SECOND_ENDING_CODEPOINTS: Final = 2

_WINDOW: Final = {JOINED2: 2, JOINED3: 3}
_ONLY_MARKS: Final = re.compile(r"[*\u2010-\u2015\u2212-]+")
_DIGIT: Final = re.compile("[0-9]")
#: In the codes of a text.
_LONG_WORD: Final = re.compile(b"[%c]{3,}" % WORD)


class Kind(enum.IntEnum):
    """How a term is looked up."""

    #: Three or more codepoints, anywhere in title or text.
    SUBSTRING = 0
    #: A whole word of one or two codepoints, as the index's column `words` holds it.
    WORD = 1
    #: One or two codepoints, anywhere in title or text.
    ANYWHERE = 2


class Term(NamedTuple):
    kind: Kind
    text: str


def terms(query: str) -> list[Term]:
    """The query's terms in the order in which they first occur; none for a query without any."""
    texts = _telling(_texts(query))
    if sum(map(_is_word, texts)) >= QUESTION_WORDS_MIN:
        texts = _shortened(texts)
    return list(map(_term, texts))


def terms_of_any_query(text: str) -> list[Term]:
    """What queries made of a text's words would look up, each once: the few words of one query as
    they are, the many of another cut, and words inside of an address or a path by themselves."""
    whole = _texts(text)
    return [_term(it) for it in dict.fromkeys([*whole, *_shortened(whole), *_inside(text)])]


def _inside(text: str) -> Iterator[str]:
    """Words of three codepoints or more, whatever they touch."""
    form = lower_ascii(search_form(text))
    for run in _LONG_WORD.finditer(classes(form)):
        yield form[run.start() : run.end()]


def has_terms(query: str) -> bool:
    """Whether the query has any term; does no more work than it takes to find the first."""
    return any(map(_cut, _pieces(query)))


def _texts(query: str) -> Counter[str]:
    """What the query is cut into, each with how often, in the order of their first occurrence."""
    return Counter(text for piece in _pieces(query) for text in _cut(piece))


def _telling(times: Counter[str]) -> list[str]:
    """Those that stand for the text. What it is about is said in long words, which are rare, and
    again and again: both at once is how many letters of the text they take up."""
    texts = list(times)
    if len(texts) <= TELLING_MAX:
        return texts
    letters = [times[text] * _letters(text) for text in texts]
    order = sorted(range(len(texts)), key=lambda n: (-letters[n], n * SPREAD % SPREAD_END))
    return [texts[n] for n in sorted(order[:TELLING_MAX])]


def _letters(text: str) -> int:
    codes = classes(text)
    letters = sum(LETTERS.get(code, 1) for code in codes)
    common = len(text) < 3 or JOINED2 in codes or JOINED3 in codes or _is_word(text)
    return letters if common else letters + UNCOMMON_LETTERS


def _pieces(query: str) -> list[str]:
    return lower_ascii(search_form(query)).split()


_CAPITALS: Final = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def lower_ascii(form: str) -> str:
    """A search form as the index's terms have it: `search_form` leaves ASCII case to FTS5."""
    return form.lower() if form.isascii() else form.translate(_CAPITALS)


def _cut(piece: str) -> list[str]:
    """What one piece between white space stands for.

    Unspaced runs too short for windows, and words of another script too short to stand alone, stay
    together where nothing separates them.
    """
    codes = classes(piece)
    if JOINED2 not in codes and JOINED3 not in codes:
        return _worth([_trimmed(piece, codes)])
    cut: list[str] = []
    together = ""
    for code, run, run_codes in _runs(piece, codes):
        if code != OTHER and len(run) < RUN_CODEPOINTS_MIN:
            together += run
            continue
        if code != OTHER:
            cut += [together, *_windows(run, _WINDOW[code])]
            together = ""
            continue
        text = _trimmed(run, run_codes)
        separates = WORD not in run_codes
        if separates or run_codes[0] == PUNCT or len(text) >= BESIDE_RUN_CODEPOINTS_MIN:
            cut.append(together)
            together = ""
        if separates:
            continue
        together += text
        if run_codes[-1] == PUNCT or len(text) >= BESIDE_RUN_CODEPOINTS_MIN:
            cut.append(together)
            together = ""
    return _worth([*cut, together])


def _worth(cut: list[str]) -> list[str]:
    return [text for text in cut if text and not _ONLY_MARKS.fullmatch(text)]


def _runs(piece: str, codes: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Runs of one unspaced class each, and all that stands between them as OTHER."""
    start = 0
    for code, group in groupby(codes, lambda code: code if code in _WINDOW else OTHER):
        end = start + sum(1 for _ in group)
        yield code, piece[start:end], codes[start:end]
        start = end


def _windows(run: str, size: int) -> list[str]:
    return [run[start : start + size] for start in range(len(run) - size + 1)]


def _trimmed(text: str, codes: bytes) -> str:
    """The text without punctuation at its ends, and without a pair of angle brackets around words:
    as symbols (`->`, `<=`) those are terms, around an address they are brackets."""
    start, end = 0, len(text)
    while True:
        while start < end and codes[start] == PUNCT:
            start += 1
        while start < end and codes[end - 1] == PUNCT:
            end -= 1
        bracketed = text.startswith("<", start, end) and text.endswith(">", start, end)
        if not bracketed or set(codes[start:end]) <= {SYMBOL, PUNCT}:
            return text[start:end]
        start += 1
        end -= 1


def _term(text: str) -> Term:
    if len(text) >= 3:
        return Term(Kind.SUBSTRING, text)
    codes = classes(text)
    whole_word = WORD in codes and JOINED2 not in codes and JOINED3 not in codes
    return Term(Kind.WORD if whole_word else Kind.ANYWHERE, text)


def _is_word(text: str) -> bool:
    """Whether it is a word of a script that spaces its words, and nothing else."""
    return set(classes(text.replace("'", ""))) == {WORD} and not _DIGIT.search(text)


def _shortened(texts: Iterable[str]) -> list[str]:
    return list(
        dict.fromkeys(it for text in texts for it in (_stems(text) if _is_word(text) else (text,)))
    )


def _stems(word: str) -> list[str]:
    """What of a word stands for it in a question: of its longest part where it has an apostrophe
    (`l'énergie`, `Newton's`), the beginning; of a very long one a piece of its end as well."""
    part = max(word.split("'"), key=len)
    size = len(part)
    if size < 3:
        return [word]
    ending = next((cut for least, cut in ENDINGS if size >= least), 0)
    beginning = part[: min(size - ending, BEGINNING_CODEPOINTS_MAX)]
    if size < COMPOUND_CODEPOINTS_MIN:
        return [beginning]
    end = size - SECOND_ENDING_CODEPOINTS
    return [beginning, part[end - SECOND_CODEPOINTS : end]]
