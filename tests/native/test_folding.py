"""The search form, word classes and short words: the compiled kernels beside their twins."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadano._native import classes, search_form, short_words
from tests.native.texts import ASCII, CJK, any_text, known, marks, texts
from tests.oracle import folding

# ---- search form


@settings(max_examples=1000, deadline=None)
@given(any_text())
def test_any_text_has_the_form_that_the_twin_gives(text: str) -> None:
    assert search_form(text) == folding.search_form(text)


@settings(max_examples=1000, deadline=None)
@given(st.text(st.characters()))
def test_a_form_is_its_own_form_and_an_unchanged_text_the_same_object(text: str) -> None:
    form = search_form(text)
    assert (form is text) == (form == text)
    assert search_form(form) is form


@settings(max_examples=500, deadline=None)
@given(any_text())
def test_composed_and_decomposed_texts_have_one_form(text: str) -> None:
    forms = {
        folding.ascii_lower(search_form(unicodedata.normalize(kind, text)))
        for kind in ("NFC", "NFD")
    }
    assert forms == {folding.ascii_lower(search_form(text))}


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from("αйかe한中"),
    st.lists(st.sampled_from(marks()), min_size=33, max_size=200).map("".join),
)
def test_long_runs_of_marks_are_put_in_canonical_order(letter: str, run: str) -> None:
    assert search_form(letter + run) == folding.search_form(letter + run)


def test_every_codepoint_has_the_form_and_the_class_that_the_twin_gives() -> None:
    wrong = [
        f"U+{ord(c):04X} {unicodedata.name(c, '')}"
        for c in known()
        if search_form(c) != folding.search_form(c) or classes(c)[0] != folding.class_of(c)
    ]
    assert wrong == []


def test_a_codepoint_that_no_unicode_assigns_is_left_alone() -> None:
    text = "a\U000effff\ue000\ud800\udfffz"
    assert search_form(text) is text
    assert search_form(text + "É") == text + "e"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("pin\u0303ata", "pinata"),
        ("piñata", "pinata"),
        ("한글메모", "한글메모"),
        ("ＡＢＣ１２３ と ｶﾞｷﾞｸﾞ", "abc123 と ガギグ"),
        ("カ\u3099", "ガ"),
        ("İstanbul", "istanbul"),
        ("Straße", "strasse"),
        ("ﬁle", "file"),
        ("ΟΔΟΣ", "οδοσ"),
        ("οδος", "οδοσ"),
        ("Đặng Øre Łódź", "dang ore lodz"),
        ("ıȷ", "ij"),
        ("don’t ‘a’ ʼn", "don't 'a' 'n"),
        (
            "tea\u00a0room Tide\u200bGauge co\u00adoperate \ufeffstart",
            "tea room tidegauge cooperate start",
        ),
        ("й ё", "й ё"),
        ("ᾴ", "άι"),
        ("α\u0345\u0301", "άι"),
        ("①㎏", "1kg"),
    ],
)
def test_texts_that_look_alike_are_compared_alike(text: str, form: str) -> None:
    assert search_form(text) == form
    assert search_form(unicodedata.normalize("NFD", text)) == form


@pytest.mark.parametrize(
    "text", ["", ASCII, CJK, "ABC 東京", "Ivan Ива́н".lower(), "हिन्दी में", "שָׁלוֹם"]
)
def test_a_text_in_which_at_most_ascii_case_would_change_is_the_same_object(text: str) -> None:
    assert search_form(text) is text


def test_ascii_is_folded_too_once_anything_else_changes() -> None:
    assert search_form("ABC É") == "abc e"


# ---- word classes


@settings(max_examples=500, deadline=None)
@given(any_text())
def test_any_text_has_the_classes_that_the_twin_gives(text: str) -> None:
    assert classes(text) == folding.classes(text)


@pytest.mark.parametrize(
    ("members", "name"),
    [
        (" \n\t\x1f\u3000\ue000", "SPACE"),
        ("azé1٣๑א\u0301ℵⅷ", "WORD"),
        ("中々〇〡かカー\u3099한ㄅꀀ𗀀𛅰𠮷", "JOINED2"),
        ("กลខမབꦲᬅᥐᦀᨠꪀ", "JOINED3"),
        ("<>+#_-/\\@%&*=~^$€😀|§", "SYMBOL"),
        ("\"'`.,;:!?()[]{}«»“”…、。・·¡¿،।", "PUNCT"),
    ],
)
def test_a_class_holds_its_typical_members(members: str, name: str) -> None:
    assert set(classes(members)) == {getattr(folding, name)}


# ---- short words


@settings(max_examples=1000, deadline=None)
@given(any_text(), st.booleans(), st.booleans())
def test_any_text_has_the_short_words_that_the_twin_finds(
    text: str, cut_left: bool, cut_right: bool
) -> None:
    found = short_words(text, cut_left, cut_right)
    assert found == folding.short_words(text, cut_left, cut_right)


@settings(max_examples=500, deadline=None)
@given(texts(tuple("ab1 #+. 中")), st.integers(1, 9))
def test_two_windows_that_overlap_hold_every_short_word_between_them(text: str, at: int) -> None:
    left, right = text[: at + 4], text[at:]
    together = short_words(left, False, at + 4 < len(text)) + short_words(right, at > 0, False)
    assert set(short_words(text, False, False).split("\x1f")) <= set(together.split("\x1f"))


@pytest.mark.parametrize(
    ("form", "cut", "units"),
    [
        ("", (False, False), []),
        ("three long words", (False, False), []),
        ("Go and C# x go", (False, False), ["go", "c", "c#", "x", "go"]),
        ("a_b", (False, False), ["a", "a_", "b", "_b"]),
        ("+x+", (False, False), ["x", "+x", "x+"]),
        ("(x)", (False, False), ["x"]),
        ("db#", (False, False), ["db"]),
        ("3月 寺", (False, False), ["3"]),
        ("ab cd", (True, False), ["cd"]),
        ("ab cd", (False, True), ["ab"]),
        ("ab", (True, True), []),
        (" c# ", (True, True), ["c", "c#"]),
        ("x😀", (False, False), ["x", "x😀"]),
    ],
)
def test_short_words_come_in_order_with_their_symbols(
    form: str, cut: tuple[bool, bool], units: list[str]
) -> None:
    joined = "\x1f" + "\x1f".join(units) + "\x1f" if units else ""
    assert short_words(form, *cut) == joined


@pytest.mark.parametrize("text", [None, b"bytes", 7])
def test_what_is_no_text_is_refused(text: object) -> None:
    for kernel in (search_form, classes, lambda it: short_words(it, False, False)):
        with pytest.raises(TypeError):
            kernel(text)  # type: ignore[arg-type]
