def search_form(text: str) -> str:
    """The form in which a text is indexed and a query compared with it.

    Default-ignorable codepoints are dropped; then come NFKD, full case folding, the removal of
    marks after Latin letters, the base letter in place of a variant that Unicode names
    "LATIN SMALL LETTER X WITH …" (đ, ø, ł), i and j for their dotless kin, U+0027 for the
    apostrophes U+2018, U+2019 and U+02BC, and last NFKC. Marks of other scripts stay, composed.

    ASCII capitals alone are no reason to change a text, for FTS5's trigram tokenizer folds those
    itself: where nothing else changes, the very same object comes back. The form of a form is the
    form.
    """

def classes(form: str) -> bytes:
    """The class of each codepoint, a byte each, by which text is split into words.

    0 SPACE: separators, controls and unassigned codepoints (Z*, C*).
    1 WORD: letters and marks of scripts that space their words, and numbers.
    2 JOINED2: letters and marks of Han, kana, Hangul, Bopomofo, Yi, Tangut, Nushu and their like,
      which run on, about two codepoints to a word.
    3 JOINED3: letters and marks of alphabets written without spaces: Thai, Lao, Khmer, Myanmar,
      Tibetan, Javanese, Balinese, the Tai scripts, Ahom.
    4 SYMBOL: symbols and punctuation that may belong to a word (S*, P* but for class 5).
    5 PUNCT: brackets and quotes (Ps, Pe, Pi, Pf), sentence punctuation (Terminal_Punctuation),
      the ASCII marks " ' ` . , ; : ! ? and … ・ · ¡ ¿.
    """

def short_words(form: str, cut_left: bool, cut_right: bool) -> str:
    """The whole words of one or two codepoints in a search form, as the index holds them.

    A word is a longest run of class WORD. A word of one codepoint is followed by itself with a
    SYMBOL on its left ("_b"), then on its right ("c#"). All come in order of occurrence, repeats
    kept, ASCII in lower case, each between two U+001F; without any, the text is empty.

    `cut_left` and `cut_right` say that text was cut away there: a word that touches such an edge
    may be a piece of a longer one and is left out.
    """
