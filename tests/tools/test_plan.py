"""From a query to terms: sections 7.1 to 7.3, as `hadano.plan` has them."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadano import limits
from hadano.plan import TELLING_MAX, Kind, Term, has_terms, terms, terms_of_any_query

SUBSTRING, WORD, ANYWHERE = Kind.SUBSTRING, Kind.WORD, Kind.ANYWHERE


def texts(query: str) -> list[str]:
    return [term.text for term in terms(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("amber lamp", ["amber", "lamp"]),
        (" amber\t\u3000lamp\u00a0\u2028x ", ["amber", "lamp", "x"]),
        ("amber AMBER ámber ＡＭＢＥＲ", ["amber"]),
        ("rollback?", ["rollback"]),
        ("(beta)", ["beta"]),
        ("«beta», “gamma”; ‘delta’…", ["beta", "gamma", "delta"]),
        ("[x] {yes} <b>", ["x", "yes", "b"]),
        ("(<user@example.org>), <<https://a.b/c>>", ["user@example.org", "https://a.b/c"]),
        ("-> <= <> vector<int>", ["->", "<=", "<>", "vector<int>"]),
        ("C++ C# F#, .NET", ["c++", "c#", "f#", "net"]),
        ("--no-verify", ["--no-verify"]),
        ("foo_bar.py v1.2.3 user@example.org", ["foo_bar.py", "v1.2.3", "user@example.org"]),
        ("don't don’t", ["don't"]),
        ("src/app/main.py:42,", ["src/app/main.py:42"]),
        ("colour::mix nosuch:blocked", ["colour::mix", "nosuch:blocked"]),
        ("glow AND NOT lamp OR NEAR(a b)", ["glow", "and", "not", "lamp", "or", "near(a", "b"]),
        ('"amber lamp"', ["amber", "lamp"]),
        ("5% $5 _b \\d %", ["5%", "$5", "_b", "\\d", "%"]),
        ("- -- * – — amber", ["amber"]),
        ("- item\n* item two", ["item", "two"]),
        ("ﬁle Straße İstanbul ΟΔΟΣ", ["file", "strasse", "istanbul", "οδοσ"]),
        ("co\u00adoperate Tide\u200bGauge", ["cooperate", "tidegauge"]),
    ],
)
def test_a_query_is_split_at_white_space_and_freed_of_punctuation(query, expected) -> None:
    assert texts(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("愛", ["愛"]),
        ("東京", ["東京"]),
        ("東京都", ["東京都"]),
        ("東京都庁", ["東京", "京都", "都庁"]),
        ("東京都庁東京", ["東京", "京都", "都庁", "庁東"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("ｶﾀｶﾅ", ["カタ", "タカ", "カナ"]),
        ("ｶﾞｷﾞ", ["ガギ"]),
        ("서울 출장 서울출장", ["서울", "출장", "울출"]),
        ("東京、京都。", ["東京", "京都"]),
        ("「東京都庁」", ["東京", "京都", "都庁"]),
        ("𠮷野家", ["𠮷野家"]),
        ("𠮷野家で", ["𠮷野", "野家", "家で"]),
        ("ภาษาไทย", ["ภาษ", "าษา", "ษาไ", "าไท", "ไทย"]),
        ("ไทย", ["ไทย"]),
        ("3月", ["3月"]),
        ("C言語", ["c言語"]),
        ("Pythonの", ["python", "の"]),
    ],
)
def test_a_run_of_unspaced_script_stands_for_its_windows(query, expected) -> None:
    assert texts(query) == expected


#: Six words that stand for themselves: with them any further ones are of a question.
SIX = "what are the old four and"


def of_a_question(words: str) -> list[str]:
    return texts(f"{SIX} {words}")[6:]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ship", ["ship"]),
        ("tides", ["tide"]),
        ("rocket", ["rocke"]),
        ("rockets", ["rocke"]),
        ("launched", ["launch"]),
        ("conduction", ["conduct"]),
        ("characteristic", ["characte"]),
        ("compressibility", ["compress"]),
        ("Raketenabwehrsystemen", ["raketena", "system"]),
        ("Größen", ["gross"]),
        ("ракетами", ["ракета"]),
        ("ракет ракеты", ["раке", "ракет"]),
        ("l'énergie Newton's don’t o'b 'tis", ["energ", "newto", "don", "o'b", "tis"]),
    ],
)
def test_a_word_of_a_question_is_looked_for_by_its_beginning(words, expected) -> None:
    assert of_a_question(words) == expected


@pytest.mark.parametrize(
    "term",
    [
        "foo_bar.py",
        "--no-verify",
        "utf8decoder",
        "user@example.org",
        "high-speed",
        "std::vector",
        "東京",
        "ภาษ",
        "123456789",
    ],
)
def test_a_term_that_is_more_than_a_word_stays_whole_in_a_question(term) -> None:
    assert of_a_question(term) == [term]


def test_fewer_than_six_words_are_no_question_and_stay_whole() -> None:
    few = ["rockets", "launched", "compressibility", "l'energie", "tides"]
    assert texts(" ".join(few)) == few
    assert texts(" ".join([*few, "tides", "foo_bar.py", "12345", "東京都庁"]))[:5] == few


#: As many as may stand for a text, none longer than four letters, so that each stays as it is.
WORDS = [f"{first}{second}aa" for first in "bcdfgh" for second in "klmnprst"]


def test_no_more_than_the_most_telling_words_stand_for_a_text() -> None:
    assert len(WORDS) == TELLING_MAX
    assert texts(" ".join(WORDS)) == WORDS
    assert len(texts(" ".join([*WORDS, "one", "more"]))) == TELLING_MAX


def test_long_words_stand_for_a_text_before_short_ones() -> None:
    assert texts(" ".join(["go", "the", *WORDS, "is", "c#"])) == WORDS


def test_what_has_a_digit_or_symbol_stands_for_a_text_before_other_words() -> None:
    assert {"0xa", "a_b"} <= set(texts(" ".join([*WORDS, "0xa", "a_b"])))


def test_what_a_text_says_again_and_again_stands_for_it() -> None:
    assert "sea" in texts(" ".join(["sea", *WORDS, "sea"]))
    assert "sea" not in texts(" ".join(["sea", *WORDS, "ice"]))


def test_every_part_of_a_run_of_unspaced_script_is_among_what_stands_for_it() -> None:
    """No gap is more than twice as long as if all were even."""
    run = "".join(map(chr, range(0x4E00, 0x4E00 + 1_000)))
    places = [0, *(run.index(text) for text in texts(run)), len(run)]
    assert max(b - a for a, b in pairwise(places)) < 2.1 * len(run) / TELLING_MAX


def test_of_a_text_in_two_scripts_both_stand_for_it() -> None:
    """A window of two counts as a word of eight letters."""
    run = "".join(map(chr, range(0x4E00, 0x4E00 + TELLING_MAX)))
    found = texts(" ".join([*(word * 2 for word in WORDS), run]))
    windows = [text for text in found if text in run]
    assert len(found) / 3 < len(windows) < len(found) * 2 / 3


@given(st.text(min_size=200, max_size=limits.QUERY_CODEPOINTS_MAX))
def test_any_text_that_has_terms_keeps_some_and_not_too_many(text: str) -> None:
    found = terms(text)
    assert len(found) <= 2 * TELLING_MAX  # A long word may stand by its beginning and its end.
    assert bool(found) == has_terms(text)
    assert set(found) <= set(terms_of_any_query(text))


def test_a_text_has_the_terms_of_few_words_and_of_many() -> None:
    address = [term.text for term in terms_of_any_query("https://example.org/a-rocket")]
    assert {"https", "example", "rocket"} <= set(address)
    both = [term.text for term in terms_of_any_query("rockets ship 東京都庁")]
    assert both == ["rockets", "ship", "東京", "京都", "都庁", "rocke"]


@pytest.mark.parametrize("query", ["", " ", "\u3000", "\t\n", '""""', "???", "()", "()*", "-", "*"])
@pytest.mark.parametrize("beside", ["", " ", "…", " ¡!", "--", "\u200b", "\u00ad"])
def test_punctuation_and_white_space_are_no_terms(query, beside) -> None:
    assert terms(query + beside) == []
    assert not has_terms(query + beside)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("abc", SUBSTRING),
        ("c++", SUBSTRING),
        ("東京都", SUBSTRING),
        ("🎵🎵🎵", SUBSTRING),
        ("a.b", SUBSTRING),
        ("ab", WORD),
        ("a", WORD),
        ("7", WORD),
        ("c#", WORD),
        ("_b", WORD),
        ("до", WORD),
        ("ñ", WORD),
        ("東京", ANYWHERE),
        ("愛", ANYWHERE),
        ("ﾃﾞ", ANYWHERE),
        ("서울", ANYWHERE),
        ("ㄅㄆ", ANYWHERE),
        ("ไท", ANYWHERE),
        ("3月", ANYWHERE),
        ("🎵", ANYWHERE),
        ("%", ANYWHERE),
        ("_", ANYWHERE),
        ("=>", ANYWHERE),
    ],
)
def test_short_terms_are_whole_words_only_in_scripts_that_space_them(text, kind) -> None:
    (term,) = terms(text)
    assert term.kind == kind


@given(st.text(max_size=40) | st.lists(st.text(max_size=20), min_size=6).map(" ".join))
def test_terms_are_a_function_of_the_query_and_each_comes_once(query: str) -> None:
    found = terms(query)
    assert found == terms(query)
    assert len(set(found)) == len(found)
    assert set(found) <= set(terms_of_any_query(query))
    assert has_terms(query) == bool(found)
    for term in found:
        assert isinstance(term, Term)
        assert term.text
        assert not any(character.isspace() for character in term.text)
        assert (term.kind == SUBSTRING) == (len(term.text) >= 3)


@given(st.text(max_size=40))
def test_case_width_and_composition_of_a_query_do_not_matter(query: str) -> None:
    assert terms(unicodedata.normalize("NFC", query)) == terms(query)
    assert terms(unicodedata.normalize("NFD", query)) == terms(query)


@given(st.lists(st.sampled_from(["amber", "Go", "東京", "c#", "ñu", "%"]), min_size=1, max_size=9))
def test_terms_come_in_the_order_of_their_first_occurrence(words) -> None:
    joined = [text for word in words for text in texts(word)]
    assert texts("  ".join(words)) == list(dict.fromkeys(joined))
