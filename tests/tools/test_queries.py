"""What people search for: the complaints about query text, short terms, scripts and sameness.

Each test stores what a person stored and asks what they asked; the right answer is section 7's.
"""

import locale as locales
import unicodedata

import pytest

from tests.tools.store import Store


@pytest.fixture
def notes(store: Store):
    """Stores each text under itself as its id."""

    def put(*texts: str) -> Store:
        for text in texts:
            store.put(text, "-", id=text[:256].strip("\ufeff") or "x")
        return store

    return put


# The query is data.


@pytest.mark.parametrize("query", ["TKT-4127", "-4127", "state-of-the-art", "colour::mix", "4127"])
def test_keys_with_hyphens_and_colons_are_found(notes, query) -> None:
    text = "Ticket TKT-4127 is blocked by state-of-the-art work in colour::mix"
    assert notes(text).found(query) == [text]


def test_a_colon_never_names_a_column(notes) -> None:
    store = notes("blocked", "foo bar weekly", "text title words")
    for query in (
        "nosuch:blocked",
        "title:weekly",
        "{title}:weekly",
        "- title:weekly",
        "words:foo",
    ):
        assert store.found(query) == []
    assert store.found("text : foo") == ["foo bar weekly", "text title words"]
    assert store.found("title : weekly") == ["foo bar weekly", "text title words"]


def test_operators_are_words_like_any_other(notes) -> None:
    store = notes(
        "resume OR", "NOT ok AND", "NEAR(a b", "amber", "crash log", "priority: high", "foo"
    )
    assert store.found("resume OR") == ["resume OR"]
    assert store.found("AND") == ["NOT ok AND"]
    assert store.found("NOT ok") == ["NOT ok AND"]
    assert store.found("NEAR(a") == ["NEAR(a b"]
    assert set(store.found("amber AND NOT no")) == {"amber", "NOT ok AND"}
    assert store.found("(foo") == store.found("foo)") == store.found('"foo"') == ["foo"]
    assert store.found('crash "log') == ["crash log"]
    assert store.found("priority: high") == ["priority: high"]


def test_stars_and_carets_are_text(notes) -> None:
    store = notes("foo bar", "glob foo*", "caret ^foo", "2 * 3", "reads")
    assert store.found("foo*") == ["glob foo*"]
    assert store.found("^foo") == ["caret ^foo"]
    assert store.found("*reads") == []
    assert store.refused("search_documents", query="*") == "E_VALIDATION"


@pytest.mark.parametrize(
    "query", ["???", '""""', "()*", "-", "…", "。、", "\u200b", "''", "( ) [ ]", "--", "!"]
)
def test_a_query_without_a_word_is_refused_and_finds_not_everything(notes, query) -> None:
    store = notes("a text", "another ??? text", "( ) [ ]")
    code, message = store.refusal("search_documents", query=query)
    assert (code, message) == ("E_VALIDATION", "query: holds no word to look for, only punctuation")


def test_apostrophes_straight_and_curly_are_the_same(notes) -> None:
    store = notes("don't panic, said O'Brien", "don’t panic", "donut")
    both = {"don't panic, said O'Brien", "don’t panic"}
    for query in ("don't", "don’t", "donʼt", "don‘t", "'panic'", "‘panic’"):
        assert store.hits(query) == both
    assert store.hits("O'Brien") == store.hits("o’brien") == {"don't panic, said O'Brien"}


PATHS = ["src/app/main.py:42", "src/app/main.py:42,", "main.py", "/app/", "\\temp", "metrics.core"]
PATHS += ["12.404", "https://example.test/a?b=c&d=1", "a?b=c", "example.test", "C:\\temp\\x.txt"]


@pytest.mark.parametrize("query", PATHS)
def test_paths_versions_and_addresses_are_found(notes, query) -> None:
    text = (
        "see src/app/main.py:42, spec 12.404, https://example.test/a?b=c&d=1,"
        " C:\\temp\\x.txt, metrics.core"
    )
    assert notes(text, "other").found(query) == [text]


@pytest.mark.parametrize(
    "query",
    [
        "how do we undo the March release of invoicing",
        "why did invoicing need an undo",
        "undo release",
    ],
)
def test_a_question_finds_what_holds_some_of_its_words(notes, query) -> None:
    text = "Steps to undo a release of the invoicing service"
    assert notes("Another text altogether", text).found(query)[0] == text


def test_a_text_with_all_words_comes_before_one_with_some(notes) -> None:
    store = notes("an amber lamp", "amber no lamp", "設計 architecture", "architecture only")
    assert store.found("amber no")[0] == "amber no lamp"
    assert store.found("設計 architecture")[0] == "設計 architecture"


@pytest.mark.parametrize(
    "query", ["drop table docs;--", "'; DELETE FROM docs", '" OR 1=1', "{}", "$1"]
)
def test_statements_in_a_query_are_text(notes, query) -> None:
    store = notes("kept")
    store.answer("search_documents", {"query": query})
    assert store.ask("db_status")["docs"] == 1


# Short terms.


def test_words_of_one_or_two_characters_are_found(notes) -> None:
    one, two, three = "東京都庁で会議", "京都の寺を訪問", "Go と C# と db の話, i18n"
    store = notes(one, two, three)
    assert store.found("東京") == [one]
    assert store.hits("京都") == {one, two}
    for query, text in (("寺", two), ("訪", two), ("Go", three), ("go", three), ("C#", three)):
        assert store.found(query) == [text]
    for query in ("c#", "db", "DB", "18n", "i18n", "話"):
        assert store.found(query) == [three]


def test_a_short_word_is_a_whole_word_where_words_are_spaced(notes) -> None:
    store = notes("a go b", "category", "go-to", "(go)", "Go!", "agogo", "gо")  # the last: Cyrillic
    assert store.hits("go") == {"a go b", "go-to", "(go)", "Go!"}
    assert store.hits("a") == {"a go b"}
    assert store.hits("at") == store.hits("og") == set()


def test_a_word_of_three_is_found_inside_words(notes) -> None:
    store = notes("reconfigured", "configure", "con fig")
    assert store.hits("config") == {"reconfigured", "configure"}
    assert store.hits("fig") == {"reconfigured", "configure", "con fig"}


def test_letters_with_symbols_are_words_of_their_own(notes) -> None:
    store = notes("C is old", "C++ is newer", "C# is other", "F# too", "A+ grade", "$5 note")
    assert store.hits("C#") == {"C# is other"}
    assert store.hits("C++") == {"C++ is newer"}
    assert store.hits("C") == {"C is old", "C++ is newer", "C# is other"}
    assert store.hits("A+") == {"A+ grade"}
    assert store.hits("$5") == {"$5 note"}


def test_wildcards_of_other_languages_are_text(notes) -> None:
    store = notes("a_b", "axb", "5% salt", "50 salt", "c:\\d")
    assert store.found("_b") == ["a_b"]
    assert store.found("5%") == store.found("%") == ["5% salt"]
    assert store.found("_") == ["a_b"]
    assert store.found("\\d") == ["c:\\d"]
    assert store.found("a_b") == ["a_b"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("受付ﾃﾞｰﾀ送信済", "ﾃﾞ"),
        ("受付ﾃﾞｰﾀ送信済", "デ"),
        ("𠮷野家で昼食", "𠮷野"),
        ("𠮷野家で昼食", "𠮷"),
        ("서울 출장", "서울"),
        ("서울 출장", "장"),
        ("ㄅㄆㄇ 注音", "ㄅㄆ"),
        ("ㇱㇻ記号", "ㇱㇻ"),
        ("ភាសាខ្មែរ", "ភា"),
        ("ภาษาไทย", "ไท"),
        ("ꀀꀁꀂ", "ꀁ"),
        ("♫ and ☃", "☃"),
        ("👩‍👩‍👧 family", "👧"),
        ("a ⇒ b", "⇒"),
        ("年度〇四", "〇"),
        ("人々", "々"),
    ],
)
def test_every_unspaced_script_and_symbol_is_found_anywhere(notes, text, query) -> None:
    assert notes(text, "other 京 text").found(query) == [text]


def test_a_sentence_without_spaces_finds_texts_that_share_its_words(notes) -> None:
    store = notes("東京都庁で会議がありました", "大阪で花火を見た", "会議の予定")
    assert store.found("明日の会議は東京都庁ですか")[0] == "東京都庁で会議がありました"
    assert store.found("花火大会")[0] == "大阪で花火を見た"


# Sameness.


@pytest.mark.parametrize("text", ["piñata", "한글메모", "ガギグ", "Brücke", "Đặng"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_and_decomposed_text_is_the_same(notes, text, form) -> None:
    stored = unicodedata.normalize(form, text)
    store = notes(stored, "other")
    assert store.found(unicodedata.normalize("NFC", text)) == [stored]
    assert store.found(unicodedata.normalize("NFD", text)) == [stored]
    assert store.ask("get_document", id=stored)["content"] == stored


@pytest.mark.parametrize(
    "query", ["abc123", "ＡＢＣ１２３", "ABC", "ガギグ", "ｶﾞｷﾞｸﾞ", "カ\u3099キ\u3099"]
)
def test_width_does_not_matter(notes, query) -> None:
    text = "ＡＢＣ１２３ と ｶﾞｷﾞｸﾞ"
    assert notes(text, "カキク abd").found(query) == [text]
    assert notes("abc123 と ガギグ").hits(query) == {text, "abc123 と ガギグ"}


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("İstanbul", ["istanbul", "ISTANBUL", "İSTANBUL", "ıstanbul"]),
        ("Straße", ["STRASSE", "strasse", "straße", "STRAẞE"]),
        ("ﬁle", ["file", "FILE"]),
        ("ΟΔΟΣ", ["οδος", "οδοσ", "Οδος"]),
        ("Đặng", ["dang", "DANG", "đặng"]),
        ("Łódź", ["lodz", "ŁÓDŹ"]),
        ("Søren", ["soren"]),
        ("naïve café", ["naive", "cafe", "NAÏVE"]),
        ("x² H₂O ½", ["x2", "h2o"]),
    ],
)
def test_case_and_latin_diacritics_do_not_matter(notes, text, queries) -> None:
    store = notes(text, "other")
    for query in queries:
        assert store.found(query) == [text]


def test_marks_of_other_scripts_matter(notes) -> None:
    store = notes("ハハ", "パパ", "ババ")
    assert store.found("パパ") == ["パパ"]
    assert store.found("ハハ") == ["ハハ"]


@pytest.mark.parametrize(
    "query", ["tea room", "TideGauge", "cooperate", "start", "tide\u200bgauge"]
)
def test_invisible_characters_do_not_hide_a_word(notes, query) -> None:
    text = "tea\u00a0room Tide\u200bGauge co\u00adoperate \ufeffstart"
    store = notes(text, "other")
    assert store.found(query) == [text]
    assert store.ask("get_document", id=text)["content"] == text
    assert store.search(query)[0]["matched_chunks"][0]["text"] == text


@pytest.mark.parametrize("locale", ["tr_TR.UTF-8", "C"])
def test_no_locale_changes_what_is_the_same(tmp_path, monkeypatch, locale) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    before = locales.setlocale(locales.LC_ALL)
    try:
        locales.setlocale(locales.LC_ALL, locale)
    except locales.Error:
        pytest.skip(f"no locale {locale} here")
    try:
        with Store(tmp_path / "store.db") as store:
            store.put("İstanbul TITLE", id="a")
            assert store.found("istanbul") == store.found("title") == ["a"]
    finally:
        locales.setlocale(locales.LC_ALL, before)


def test_a_title_is_compared_as_text_is(store: Store) -> None:
    store.put("nothing", "Ｃafé İstanbul 東京 Go C#", id="a")
    for query in ("cafe", "istanbul", "東京", "go", "C#", "東", "stan"):
        assert store.found(query) == ["a"]
