# cython: language_level=3
"""First stand-in of the folding kernels, to be replaced."""

import unicodedata


def search_form(str text not None):
    if text.isascii():
        return text
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return text if form == text else form


def classes(str form not None):
    return bytes(map(_class_of, form))


def _class_of(c):
    category = unicodedata.category(c)
    if category[0] in "ZC":
        return 0
    if category[0] in "PS":
        return 5 if category in ("Ps", "Pe", "Pi", "Pf") or c in "\"'`.,;:!?\u2026\u3001\u3002" else 4
    if "\u3040" <= c <= "\u30ff" or "\u3400" <= c <= "\u9fff" or c >= "\U00020000":
        return 2
    return 3 if "\u0e00" <= c <= "\u0eff" else 1


def short_words(str form not None, bint cut_left, bint cut_right):
    kinds = classes(form)
    length = len(form)
    units = []
    start = 0
    while start < length:
        end = start
        while end < length and kinds[end] == 1:
            end += 1
        if 0 < end - start < 3 and not (start == 0 and cut_left) and not (end == length and cut_right):
            units.append(form[start:end])
            if end - start == 1 and start and kinds[start - 1] == 4:
                units.append(form[start - 1:end])
            if end - start == 1 and end < length and kinds[end] == 4:
                units.append(form[start:end + 1])
        start = end + 1
    return "\x1f%s\x1f" % "\x1f".join(units).lower() if units else ""
