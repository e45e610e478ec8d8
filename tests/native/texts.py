"""Texts that try the kernels where they might err: hypothesis strategies and fixed samples.

Codepoints that the running Python's unicodedata does not know are left out wherever a twin has to
judge: the twin would take them for unassigned, the kernel's tables (Unicode 18) may know better.
"""

import functools
import sys
import unicodedata

from hypothesis import strategies as st

ASCII = "The quick brown fox, C++ and foo_bar.py v1.2.3: it's go! "
LATIN_1 = "Crème brûlée, naïve Straße, ¿qué? ÆØÅ ½ "
GREEK = "Ὀδυσσεύς ἔφη· ἄνδρα μοι ἔννεπε, ΜΟΥΣΑ "
CJK = "東京都庁で会議、ガギグと한글메모。設計 "
ASTRAL = "𠮷野家で昼食 😀 𝐀𝐁𝐂 "
ONE_OF_EACH_WIDTH = (ASCII, LATIN_1, GREEK, CJK, ASTRAL)


@functools.cache
def known() -> tuple[str, ...]:
    """Every codepoint that this Python knows to be assigned."""
    return tuple(
        c
        for c in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(c) not in ("Cn", "Cs")
    )


@functools.cache
def marks() -> tuple[str, ...]:
    return tuple(c for c in known() if unicodedata.combining(c))


@functools.cache
def decomposable() -> tuple[str, ...]:
    return tuple(c for c in known() if unicodedata.decomposition(c))


@functools.cache
def composing() -> tuple[str, ...]:
    """Letters and marks of canonical pairs, where order and adjacency decide."""
    parts = {
        part
        for c in decomposable()
        if not (spelled := unicodedata.decomposition(c)).startswith("<")
        for part in (chr(int(each, 16)) for each in spelled.split())
    }
    jamo = map(chr, (0x1100, 0x1112, 0x1161, 0x1175, 0x11A7, 0x11A8, 0x11C2, 0xAC00, 0xAC01))
    return (*sorted(parts), *jamo)


# A greek iota under a vowel is the one mark that case folding makes a letter; joiners and accents
# around it, and around Latin letters, are where the order of the steps shows.
ODD = tuple("αειᾳᾴΐάëEøıſßﬁĳ\u0345\u0301\u0308\u0323\u0342\u034f\u200d\u00ad\u20dd’ʼ")

WORDS = tuple("aBé中かก한#+_-.,’ \n1९๑🙂\u0301\u3099")


def texts(*alphabets: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.text(st.one_of(*map(st.sampled_from, alphabets)))


def any_text() -> st.SearchStrategy[str]:
    """Arbitrary text of codepoints known to this Python, and texts bent on trouble."""
    return st.one_of(
        st.text(st.characters(exclude_categories=("Cn", "Cs"))),
        texts(ODD, composing()),
        texts(marks(), ODD),
        texts(decomposable(), marks()),
        texts(WORDS),
    )
