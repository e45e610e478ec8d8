# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""The form in which texts are indexed and compared, and the words that FTS5's trigrams miss.

Knows Unicode by tables of its own (unicode_tables.h), never by the running Python's, so that a
store gives the same answers wherever it is opened. It knows neither queries nor the index.

Folding takes a text apart and composes it again in one pass. Each codepoint stands for a sequence
(`MAPPED`), worked out beforehand: nothing for a default-ignorable one, U+FFFD for the two that
SQLite reads as that, else its compatibility decomposition, case-folded, Latin variants as their
base letter. Then runs of marks are put in canonical order and composed as UAX #15 has it; after a
Latin letter they are dropped.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.unicode cimport (
    PyUnicode_1BYTE_KIND,
    PyUnicode_2BYTE_KIND,
    PyUnicode_4BYTE_KIND,
    PyUnicode_DATA,
    PyUnicode_FromKindAndData,
    PyUnicode_GET_LENGTH,
    PyUnicode_KIND,
)
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

cdef extern from "unicode_tables.h" nogil:
    ctypedef struct Properties:
        uint8_t word_class, flags, combining

    ctypedef struct Mapping:
        uint16_t start
        uint8_t mapped, length

    ctypedef struct Composition:
        uint32_t first, second, composite

    enum:
        # Properties.flags
        CHANGES    # the form is another, whatever stands beside it; ASCII capitals left aside
        MARK       # general category M
        LATIN      # a Latin letter
        COMPOSES   # the second half of a canonical pair, or a Hangul vowel or final
        COMPOSITE  # stays as it is, but has a decomposition
        MAPPED_MAX
        COMPOSITIONS_COUNT

    const uint8_t[] PROPERTIES_PAGES, PROPERTIES_BLOCKS, MAPPING_PAGES
    const uint16_t[] MAPPING_BLOCKS
    const Properties[] PROPERTIES
    const Mapping[] MAPPINGS
    const uint32_t[] MAPPED
    const Composition[] COMPOSITIONS

cdef extern from "Python.h" nogil:
    bint PyUnicode_IS_ASCII(str text)

# A string's storage is one of three widths; each function over it is compiled for every one.
ctypedef fused codeunit:
    uint8_t
    uint16_t
    uint32_t

# Classes of codepoints, as the planner and the stub name them.
cdef enum:
    SPACE
    WORD
    JOINED2
    JOINED3
    SYMBOL
    PUNCT

cdef enum:
    SEPARATOR = 0x1F
    YPOGEGRAMMENI = 0x345
    IOTA = 0x3B9

# Hangul composes by arithmetic: The Unicode Standard, section 3.12.
cdef enum:
    L_BASE = 0x1100
    V_BASE = 0x1161
    T_BASE = 0x11A7
    S_BASE = 0xAC00
    L_COUNT = 19
    V_COUNT = 21
    T_COUNT = 28
    S_COUNT = L_COUNT * V_COUNT * T_COUNT

# Marks on one letter are few; a longer run than this is counted into order, so that no text,
# however odd, takes more than linear time.
cdef enum:
    INSERTION_MAX = 32
    COMBINING_COUNT = 256


# ---- tables

cdef inline const Properties* properties_of(uint32_t c) noexcept nogil:
    return &PROPERTIES[PROPERTIES_BLOCKS[PROPERTIES_PAGES[c >> 8] << 8 | (c & 0xFF)]]


cdef inline const Mapping* mapping_of(uint32_t c) noexcept nogil:
    return &MAPPINGS[MAPPING_BLOCKS[MAPPING_PAGES[c >> 8] << 8 | (c & 0xFF)]]


cdef inline uint32_t ascii_lower(uint32_t c) noexcept nogil:
    return c | 0x20 if c'A' <= c <= c'Z' else c


cdef uint32_t composite_of(uint32_t first, uint32_t second) noexcept nogil:
    """The primary composite of a pair, 0 where there is none."""
    if L_BASE <= first < L_BASE + L_COUNT and V_BASE <= second < V_BASE + V_COUNT:
        return S_BASE + ((first - L_BASE) * V_COUNT + second - V_BASE) * T_COUNT
    if S_BASE <= first < S_BASE + S_COUNT and T_BASE < second < T_BASE + T_COUNT:
        return first + second - T_BASE if (first - S_BASE) % T_COUNT == 0 else 0
    cdef Py_ssize_t low = 0, high = COMPOSITIONS_COUNT, middle
    cdef const Composition* pair
    while low < high:
        middle = (low + high) // 2
        pair = &COMPOSITIONS[middle]
        if pair.first == first and pair.second == second:
            return pair.composite
        if pair.first < first or (pair.first == first and pair.second < second):
            low = middle + 1
        else:
            high = middle
    return 0


# ---- text under construction

cdef struct Draft:
    uint32_t* codepoints
    Py_ssize_t length
    Py_ssize_t capacity
    Py_ssize_t starter  # index of the last starter, -1 before the first
    bint latin          # that starter is a Latin letter


cdef inline int reserve(Draft* draft, Py_ssize_t extra) except -1 nogil:
    """Make room for so many codepoints more."""
    if draft.capacity - draft.length < extra:
        grow(draft, extra)
    return 0


cdef int grow(Draft* draft, Py_ssize_t extra) except -1 nogil:
    cdef Py_ssize_t capacity = draft.capacity + draft.capacity // 2 + extra
    cdef void* grown = PyMem_RawRealloc(draft.codepoints, capacity * sizeof(uint32_t))
    if grown == NULL:
        with gil:
            raise MemoryError
    draft.codepoints = <uint32_t*> grown
    draft.capacity = capacity
    return 0


cdef inline void push(Draft* draft, uint32_t c) noexcept nogil:
    draft.codepoints[draft.length] = c
    draft.length += 1


cdef str text_of(const Draft* draft):
    return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, draft.codepoints, draft.length)


# ---- search form

cdef bint is_form(const codeunit* text, Py_ssize_t length) noexcept nogil:
    """Whether the text surely is its own search form, but for ASCII capitals.

    A quick check after the pattern of UAX #15, section 9: False may be a false alarm.
    """
    cdef Py_ssize_t i
    cdef const Properties* now
    cdef uint8_t combining_before = 0
    cdef uint32_t starter = 0
    cdef bint latin = False, composite = False
    for i in range(length):
        now = properties_of(text[i])
        if now.flags & CHANGES or now.combining and now.combining < combining_before:
            return False
        if latin and now.flags & MARK:
            return False
        if now.flags & COMPOSES and (composite or composite_of(starter, text[i])):
            return False
        combining_before = now.combining
        if not now.combining:
            starter = text[i]
            latin = now.flags & LATIN
            composite = now.flags & COMPOSITE
    return True


cdef int order_marks(uint32_t* marks, Py_ssize_t count) except -1 nogil:
    """Sort by combining class, equals as they came (the canonical ordering algorithm)."""
    cdef Py_ssize_t i, j
    cdef uint32_t mark
    cdef uint8_t combining
    if count > INSERTION_MAX:
        return order_many_marks(marks, count)
    for i in range(1, count):
        mark = marks[i]
        combining = properties_of(mark).combining
        j = i
        while j > 0 and properties_of(marks[j - 1]).combining > combining:
            marks[j] = marks[j - 1]
            j -= 1
        marks[j] = mark
    return 0


cdef int order_many_marks(uint32_t* marks, Py_ssize_t count) except -1 nogil:
    cdef Py_ssize_t[COMBINING_COUNT + 1] next_place
    cdef Py_ssize_t i
    cdef uint8_t combining
    cdef uint32_t* unordered = <uint32_t*> PyMem_RawMalloc(count * sizeof(uint32_t))
    if unordered == NULL:
        with gil:
            raise MemoryError
    memcpy(unordered, marks, count * sizeof(uint32_t))
    memset(next_place, 0, sizeof(next_place))
    for i in range(count):
        next_place[properties_of(unordered[i]).combining + 1] += 1
    for i in range(COMBINING_COUNT):
        next_place[i + 1] += next_place[i]
    for i in range(count):
        combining = properties_of(unordered[i]).combining
        marks[next_place[combining]] = unordered[i]
        next_place[combining] += 1
    PyMem_RawFree(unordered)
    return 0


cdef inline int settle(Draft* draft) except -1 nogil:
    """Order the marks behind the last starter and compose them with it."""
    if draft.length > draft.starter + 1:
        settle_marks(draft)
    return 0


cdef int settle_marks(Draft* draft) except -1 nogil:
    cdef Py_ssize_t first = draft.starter + 1, kept = first, i
    cdef uint32_t mark, composite
    cdef uint8_t combining, combining_before = 0
    order_marks(draft.codepoints + first, draft.length - first)
    for i in range(first, draft.length):
        mark = draft.codepoints[i]
        combining = properties_of(mark).combining
        if mark == YPOGEGRAMMENI:
            # Case folding makes a letter of this mark, the last in canonical order.
            mark = IOTA
            draft.starter = kept
            draft.latin = False
        elif draft.starter >= 0 and combining_before < combining:
            composite = composite_of(draft.codepoints[draft.starter], mark)
            if composite:
                draft.codepoints[draft.starter] = composite
                continue
        draft.codepoints[kept] = mark
        kept += 1
        combining_before = combining
    draft.length = kept
    return 0


cdef inline int add(Draft* draft, uint32_t c) except -1 nogil:
    """Add a codepoint of a mapped sequence."""
    cdef const Properties* now = properties_of(c)
    cdef uint32_t composite
    if now.combining:
        if not draft.latin or c == YPOGEGRAMMENI:
            push(draft, c)
        return 0
    settle(draft)
    if draft.latin and now.flags & MARK:
        return 0
    if now.flags & COMPOSES and draft.starter >= 0 and draft.starter == draft.length - 1:
        composite = composite_of(draft.codepoints[draft.starter], c)
        if composite:
            draft.codepoints[draft.starter] = composite
            return 0
    draft.starter = draft.length
    draft.latin = now.flags & LATIN
    push(draft, c)
    return 0


cdef int fold(const codeunit* text, Py_ssize_t length, Draft* draft) except -1 nogil:
    cdef Py_ssize_t i, j
    cdef uint32_t c
    cdef const Mapping* mapping
    for i in range(length):
        reserve(draft, MAPPED_MAX)
        c = text[i]
        mapping = mapping_of(c)
        if not mapping.mapped:
            add(draft, c)
        for j in range(mapping.start, mapping.start + mapping.length):
            add(draft, MAPPED[j])
    return settle(draft)


cdef bint same_but_ascii_case(
    const codeunit* text, Py_ssize_t length, const Draft* draft
) noexcept nogil:
    cdef Py_ssize_t i
    if draft.length != length:
        return False
    for i in range(length):
        if ascii_lower(text[i]) != draft.codepoints[i]:
            return False
    return True


cdef str form_of(str text, const codeunit* stored):
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    cdef Draft draft = Draft(NULL, 0, 0, -1, False)
    if is_form(stored, length):
        return text
    try:
        with nogil:
            reserve(&draft, length + length // 8 + MAPPED_MAX)
            fold(stored, length, &draft)
        return text if same_but_ascii_case(stored, length, &draft) else text_of(&draft)
    finally:
        PyMem_RawFree(draft.codepoints)


def search_form(str text not None):
    if PyUnicode_IS_ASCII(text):
        return text
    if PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND:
        return form_of(text, <const uint8_t*> PyUnicode_DATA(text))
    if PyUnicode_KIND(text) == PyUnicode_2BYTE_KIND:
        return form_of(text, <const uint16_t*> PyUnicode_DATA(text))
    return form_of(text, <const uint32_t*> PyUnicode_DATA(text))


# ---- words

cdef inline uint8_t class_of(uint32_t c) noexcept nogil:
    return properties_of(c).word_class


cdef void classify(const codeunit* form, Py_ssize_t length, uint8_t* into) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(length):
        into[i] = class_of(form[i])


def classes(str form not None):
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(form)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, length)
    cdef uint8_t* into = <uint8_t*> PyBytes_AS_STRING(found)
    if PyUnicode_KIND(form) == PyUnicode_1BYTE_KIND:
        classify(<const uint8_t*> PyUnicode_DATA(form), length, into)
    elif PyUnicode_KIND(form) == PyUnicode_2BYTE_KIND:
        classify(<const uint16_t*> PyUnicode_DATA(form), length, into)
    else:
        classify(<const uint32_t*> PyUnicode_DATA(form), length, into)
    return found


cdef int add_unit(
    Draft* draft, const codeunit* form, Py_ssize_t start, Py_ssize_t end
) except -1 nogil:
    """Add a word, or a letter and its symbol, with the separator behind it."""
    cdef Py_ssize_t i
    reserve(draft, end - start + 2)
    if draft.length == 0:
        push(draft, SEPARATOR)
    for i in range(start, end):
        push(draft, ascii_lower(form[i]))
    push(draft, SEPARATOR)
    return 0


cdef int collect(
    Draft* draft, const codeunit* form, Py_ssize_t length, bint cut_left, bint cut_right
) except -1 nogil:
    cdef Py_ssize_t start, end = 0
    while end < length:
        start = end
        while end < length and class_of(form[end]) == WORD:
            end += 1
        if 1 <= end - start <= 2 and not (cut_left and start == 0 or cut_right and end == length):
            add_unit(draft, form, start, end)
            if end - start == 1 and start > 0 and class_of(form[start - 1]) == SYMBOL:
                add_unit(draft, form, start - 1, end)
            if end - start == 1 and end < length and class_of(form[end]) == SYMBOL:
                add_unit(draft, form, start, end + 1)
        end += 1
    return 0


cdef str words_of(const codeunit* form, Py_ssize_t length, bint cut_left, bint cut_right):
    cdef Draft draft = Draft(NULL, 0, 0, -1, False)
    try:
        with nogil:
            collect(&draft, form, length, cut_left, cut_right)
        return text_of(&draft) if draft.length else ""
    finally:
        PyMem_RawFree(draft.codepoints)


def short_words(str form not None, bint cut_left, bint cut_right):
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(form)
    cdef const void* stored = PyUnicode_DATA(form)
    if PyUnicode_KIND(form) == PyUnicode_1BYTE_KIND:
        return words_of(<const uint8_t*> stored, length, cut_left, cut_right)
    if PyUnicode_KIND(form) == PyUnicode_2BYTE_KIND:
        return words_of(<const uint16_t*> stored, length, cut_left, cut_right)
    return words_of(<const uint32_t*> stored, length, cut_left, cut_right)
