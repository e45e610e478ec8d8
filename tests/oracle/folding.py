"""The search form, word classes and short words, from names and the standard library alone.

Right for the codepoints that the running Python's unicodedata knows. It knows nothing of the
kernel's tables: scripts are read off the names of the characters.
"""

import re
import unicodedata

SPACE, WORD, JOINED2, JOINED3, SYMBOL, PUNCT = range(6)


def ranges(spelled: str) -> frozenset[str]:
    """Characters from "61-7A AA": hexadecimal codepoints and inclusive ranges."""
    found: set[str] = set()
    for part in spelled.split():
        first, _, last = part.partition("-")
        found.update(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    return frozenset(found)


# DerivedCoreProperties.txt, Default_Ignorable_Code_Point.
DEFAULT_IGNORABLE = ranges("""
    AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0
    FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF
""")

# PropList.txt of Unicode 18, Terminal_Punctuation: the standard library does not have it.
TERMINAL_PUNCTUATION = ranges("""
    21 2C 2E 3A-3B 3F 37E 387 589 5C3 60C 61B 61D-61F 6D4 700-70A 70C 7F8-7F9 830-835 837-83E 85E
    964-965 E5A-E5B F08 F0D-F12 104A-104B 1361-1368 166E 16EB-16ED 1735-1736 17D4-17D6 17DA
    1802-1805 1808-1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5D-1B5F 1B7D-1B7F 1C3B-1C3F
    1C7E-1C7F 2024 203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E41 2E4C 2E4E-2E4F 2E53-2E54 2E60-2E61
    3001-3002 A4FE-A4FF A60D-A60F A6F3-A6F7 A876-A877 A8CE-A8CF A92F A9C7-A9C9 AA5D-AA5F AADF
    AAF0-AAF1 ABEB FE12 FE15-FE16 FE50-FE52 FE54-FE57 FF01 FF0C FF0E FF1A-FF1B FF1F FF61 FF64 1039F
    103D0 10857 1091F 10A56-10A57 10AF0-10AF5 10B3A-10B3F 10B99-10B9C 10F55-10F59 10F86-10F89
    11047-1104D 110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF 11238-1123C 112A9 113D4-113D5
    1144B-1144D 1145A-1145B 115C2-115C5 115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43
    11A9B-11A9C 11AA1-11AA2 11C41-11C43 11C71 11EF7-11EF8 11F43-11F44 12470-12474 16A6E-16A6F 16AF5
    16B37-16B39 16B44 16D6E-16D6F 16E97-16E98 1BC9F 1DA87-1DA8A
""")

# Scripts.txt: the Latin letters, compatibility forms aside, whose names do not say so.
OTHER_LATIN = ranges("1D2F 1D3B 1D4E 214E 10780")

BASE_LETTERS = {"ı": "i", "ȷ": "j", "\u2018": "'", "\u2019": "'", "\u02bc": "'"}


def ascii_lower(text: str) -> str:
    """Lower case as FTS5's trigram tokenizer makes it of ASCII, other letters left alone."""
    return re.sub("[A-Z]", lambda capital: capital[0].lower(), text)


def is_latin(c: str) -> bool:
    named = unicodedata.name(c, "").startswith("LATIN ")
    return unicodedata.category(c)[0] == "L" and (named or c in OTHER_LATIN)


def is_mark(c: str) -> bool:
    return unicodedata.category(c)[0] == "M"


def base_letter(c: str) -> str:
    variant = re.fullmatch("LATIN SMALL LETTER ([A-Z]) WITH .*", unicodedata.name(c, ""))
    return variant[1].lower() if variant else BASE_LETTERS.get(c, c)


def without_latin_marks(text: str) -> str:
    kept = ""
    for c in text:
        if not (is_mark(c) and kept and is_latin(kept[-1])):
            kept += c
    return kept


def search_form(text: str) -> str:
    """The form in which a text is compared (contract, 7.1)."""
    visible = "".join(c for c in text if c not in DEFAULT_IGNORABLE)
    visible = re.sub("[\ufffe\uffff]", "\ufffd", visible)  # As SQLite reads them.
    folded = unicodedata.normalize("NFKD", visible).casefold()
    based = "".join(map(base_letter, unicodedata.normalize("NFKD", folded)))
    form = unicodedata.normalize("NFKC", without_latin_marks(based))
    return text if form == ascii_lower(text) else form


JOINED2_NAMES = re.compile(
    "BOPOMOFO|CJK UNIFIED|CJK COMPATIBILITY IDEOGRAPH|(HALFWIDTH )?HANGUL|HANGZHOU NUMERAL"
    "|HENTAIGANA|HIRAGANA|(HALFWIDTH )?KATAKANA|IDEOGRAPHIC (ITERATION|CLOSING) MARK"
    "|IDEOGRAPHIC NUMBER ZERO|IDEOGRAPHIC .* TONE MARK|KHITAN SMALL SCRIPT|MASU MARK|NUSHU|TANGUT"
    "|VERTICAL KANA|VERTICAL IDEOGRAPHIC|YI SYLLABLE"
    "|COMBINING KATAKANA-HIRAGANA|OLD CHINESE|VIETNAMESE ALTERNATE READING"
)
JOINED3_NAMES = re.compile(
    "AHOM|BALINESE|JAVANESE|KHMER|LAO|MYANMAR|NEW TAI LUE|TAI LE|TAI THAM|TAI VIET|THAI|TIBETAN"
)
# Tangut ideographs have no name in the standard library.
TANGUT = ranges("17000-187FF 18D00-18D1E")
# Named after Javanese, and used by Buginese too, which has spaces.
SHARED = {"JAVANESE PANGRANGKEP"}
PUNCT_MARKS = frozenset("\"'`.,;:!?…、。・·¡¿")


def class_of(c: str) -> int:
    """The class of a codepoint, as the stub of hadano._native lists them."""
    category, name = unicodedata.category(c), unicodedata.name(c, "")
    if category[0] in "ZC":
        return SPACE
    if category[0] in "SP":
        closes = category in ("Ps", "Pe", "Pi", "Pf") or c in TERMINAL_PUNCTUATION
        return PUNCT if closes or c in PUNCT_MARKS else SYMBOL
    if category[0] in "LM" or category == "Nl":
        if JOINED2_NAMES.match(name) or c in TANGUT:
            return JOINED2
        if JOINED3_NAMES.match(name) and name not in SHARED:
            return JOINED3
    return WORD


def classes(form: str) -> bytes:
    return bytes(map(class_of, form))


def short_words(form: str, cut_left: bool, cut_right: bool) -> str:
    """Whole words of one or two codepoints, and letters with their symbols, as indexed."""
    kinds = "".join(map(str, map(class_of, form)))
    units = []
    for word in re.finditer(f"{WORD}+", kinds):
        start, end = word.span()
        touches_cut = (cut_left and start == 0) or (cut_right and end == len(form))
        if touches_cut or end - start > 2:
            continue
        units.append(form[start:end])
        if end - start == 1 and kinds[start - 1 : start] == str(SYMBOL):
            units.append(form[start - 1 : end])
        if end - start == 1 and kinds[end : end + 1] == str(SYMBOL):
            units.append(form[start : end + 1])
    return ascii_lower("\x1f" + "".join(f"{unit}\x1f" for unit in units)) if units else ""
