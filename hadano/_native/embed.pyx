# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: auto_pickle=False, autotestdict=False
"""Makes a text's vector: its pieces, as sentencepiece has them, and the sum of their rows.

Works from one table in memory (tools/make_embedding_table.py tells its format) and knows neither
where that came from nor what becomes of vectors.

A text is cut into words, a word into the pieces of the vocabulary whose scores add up highest
(Viterbi search over a unigram model: Kudo, ACL 2018), in one pass: each codepoint becomes a symbol
of the vocabulary's alphabet, and a trie over symbols knows the pieces. Time is linear in the text
whatever it holds, for a piece has at most 16 symbols; memory is linear in the longest word.

Every machine makes the same vector, to the bit. Scores are added and compared in single precision,
in the order of sentencepiece's unigram_model.cc, so that even ties fall as they do there: additions
that IEEE 754 fixes, with no product among them to be fused. From there on all is integers: with u
the 4-bit numbers of a piece's row and m the 16-bit multipliers of its blocks (its weight is in
them), component j of the sum is

    t[j] = sum over pieces of m[j // 32] * (u[j] - 8),   0 <= m * u <= 65,535

kept in 64 bits, and component j of the vector is 127 * t[j] / max |t|, rounded to nearest and
halves away from zero. Sums of 2 ** 23 or more, which only texts of many thousands of pieces reach,
are first halved towards zero until none is, so that this is a division of 32 bits.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.unicode cimport (
    PyUnicode_1BYTE_KIND,
    PyUnicode_2BYTE_KIND,
    PyUnicode_DATA,
    PyUnicode_GET_LENGTH,
    PyUnicode_KIND,
)
from libc.stdint cimport int8_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

cdef extern from *:
    """
    #include <float.h>
    #if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
    #error "single precision must be just that (x87 is more: build with -msse2 -mfpmath=sse)"
    #endif

    #define MAGIC "hadanoEV"

    #if defined(__GNUC__)
    #define PREFETCH(address) __builtin_prefetch(address)
    #else
    #define PREFETCH(address) ((void) (address))
    #endif
    """
    const char* MAGIC
    void PREFETCH(const void* address) noexcept nogil

# The table's numbers, as the script that makes it names them.
cdef enum:
    VERSION = 1
    DIMENSIONS = 256
    BLOCK = 32
    BLOCKS = 8
    HALF = 16
    NIBBLE_BYTES = 128
    ALIGNMENT = 64
    CODEPOINTS = 0x110000
    PAGE = 256
    PAGES = 0x1100
    SPACE = 1          # symbols: of white space, and of the mark that begins a word; 0 is none
    SYMBOL = 0x3FFF    # entries: the symbol's bits,
    REPLACED = 0x4000  # the codepoint stands for several,
    SECOND = 0x8000    # it may join the one before it
    ZERO = 8           # the 4-bit number that stands for 0

cdef enum:
    LABEL = 0x800000FF  # bits of a unit of the normaliser: of a leaf none matches a byte
    LEAF = 0x100
    VALUE = 0x7FFFFFFF
    UTF8_BYTES = 4
    CACHE_LINE = 64
    BATCH = 256         # pieces summed in 32 bits: 256 * 65,535 < 2 ** 31
    SUM_MAX = 1 << 23   # 254 * 2 ** 23 + 2 ** 23 < 2 ** 32

cdef struct Header:
    char[8] magic
    uint32_t version, dimensions, blocks, map_units, map_text, trie, rows
    float unknown_score

cdef struct Unit:
    uint32_t base, check
    float score
    uint32_t piece

cdef struct Row:
    uint16_t[BLOCKS] multipliers
    uint8_t[NIBBLE_BYTES] nibbles

cdef struct Table:
    const uint16_t* pages
    const uint16_t* entries
    const uint32_t* map_units
    const uint8_t* map_text
    const Unit* trie
    const Row* rows
    uint32_t blocks_count, map_units_count, map_text_bytes, trie_count, rows_count
    float unknown_score

# The best way to a place in a word, as far as it is known: its score, its last piece, and where
# that begins; -1 while there is none.
cdef struct Way:
    float score
    uint32_t piece
    Py_ssize_t begin

# A text being split: the word that is gathered, and the pieces of the words before it.
cdef struct Split:
    uint16_t* symbols
    Way* ways
    Py_ssize_t length
    Py_ssize_t word_capacity
    uint32_t* pieces
    Py_ssize_t pieces_count
    Py_ssize_t pieces_capacity
    float score


# A string's storage is one of three widths; each function over it is compiled for every one.
ctypedef fused codeunit:
    uint8_t
    uint16_t
    uint32_t


# ---- memory

cdef void* grown(void* block, Py_ssize_t count, size_t size) except NULL nogil:
    cdef void* moved = PyMem_RawRealloc(block, count * size)
    if moved == NULL:
        with gil:
            raise MemoryError
    return moved


cdef int grow_word(Split* split) except -1 nogil:
    cdef Py_ssize_t capacity = 2 * split.word_capacity + 64
    split.symbols = <uint16_t*> grown(split.symbols, capacity, sizeof(uint16_t))
    split.ways = <Way*> grown(split.ways, capacity + 1, sizeof(Way))
    split.word_capacity = capacity
    return 0


cdef int grow_pieces(Split* split, Py_ssize_t extra) except -1 nogil:
    cdef Py_ssize_t capacity = 2 * split.pieces_capacity + extra + BATCH
    split.pieces = <uint32_t*> grown(split.pieces, capacity, sizeof(uint32_t))
    split.pieces_capacity = capacity
    return 0


cdef void release(Split* split) noexcept nogil:
    PyMem_RawFree(split.symbols)
    PyMem_RawFree(split.ways)
    PyMem_RawFree(split.pieces)


# ---- words into pieces

cdef inline void reach(Way* way, float score, uint32_t piece, Py_ssize_t begin) noexcept nogil:
    """Note a way that is better than the one known."""
    if way.begin < 0 or score > way.score:
        way.score = score
        way.piece = piece
        way.begin = begin


cdef void search(const Table* table, Split* split) noexcept nogil:
    """Find the best way to every place of the word."""
    cdef Py_ssize_t i, j, length = split.length
    cdef uint32_t node, child
    cdef const Unit* unit
    cdef float score
    cdef bint alone
    split.ways[0].score = split.score
    for i in range(1, length + 1):
        split.ways[i].begin = -1
    for i in range(length):
        score = split.ways[i].score
        node = 0
        alone = False
        for j in range(i, length):
            child = table.trie[node].base + split.symbols[j]
            if child >= table.trie_count:
                break
            unit = &table.trie[child]
            if unit.check != node:
                break
            node = child
            if unit.piece:
                reach(&split.ways[j + 1], score + unit.score, unit.piece, i)
                alone = alone or j == i
        if not alone:
            reach(&split.ways[i + 1], score + table.unknown_score, 0, i)
    split.score = split.ways[length].score


cdef inline uint32_t piece_within(const Table* table, uint32_t piece) noexcept nogil:
    return piece if piece < table.rows_count else 0


cdef int end_word(const Table* table, Split* split) except -1 nogil:
    """Add the pieces of the word, if there is one, and begin another."""
    cdef Py_ssize_t place = split.length, count = 0, last
    if place == 0:
        return 0
    search(table, split)
    if split.pieces_capacity - split.pieces_count < place:
        grow_pieces(split, place)
    while place > 0:
        place = split.ways[place].begin
        count += 1
    place = split.length
    last = split.pieces_count + count
    split.pieces_count = last
    while place > 0:
        last -= 1
        split.pieces[last] = piece_within(table, split.ways[place].piece)
        place = split.ways[place].begin
    split.length = 0
    return 0


cdef inline int add_symbol(const Table* table, Split* split, uint16_t symbol) except -1 nogil:
    if symbol == SPACE:
        return end_word(table, split)
    if split.word_capacity - split.length < 2:
        grow_word(split)
    if split.length == 0:
        split.symbols[0] = SPACE
        split.length = 1
    split.symbols[split.length] = symbol
    split.length += 1
    return 0


# ---- text into symbols

cdef inline uint16_t entry_of(const Table* table, uint32_t c) noexcept nogil:
    return table.entries[<uint32_t> table.pages[c >> 8] << 8 | (c & 0xFF)]


cdef inline Py_ssize_t encode(uint32_t c, uint8_t* into) noexcept nogil:
    """Write a codepoint as UTF-8; how many bytes that takes."""
    if c < 0x80:
        into[0] = c
        return 1
    if c < 0x800:
        into[0] = 0xC0 | c >> 6
        into[1] = 0x80 | (c & 0x3F)
        return 2
    if c < 0x10000:
        into[0] = 0xE0 | c >> 12
        into[1] = 0x80 | (c >> 6 & 0x3F)
        into[2] = 0x80 | (c & 0x3F)
        return 3
    into[0] = 0xF0 | c >> 18
    into[1] = 0x80 | (c >> 12 & 0x3F)
    into[2] = 0x80 | (c >> 6 & 0x3F)
    into[3] = 0x80 | (c & 0x3F)
    return 4


cdef inline uint32_t decode(const uint8_t** text) noexcept nogil:
    """Read a codepoint of well-formed UTF-8 that a NUL ends."""
    cdef const uint8_t* at = text[0]
    cdef uint32_t c = at[0]
    cdef int more = 0 if c < 0x80 else 1 if c < 0xE0 else 2 if c < 0xF0 else 3
    at += 1
    if more:
        c &= 0x3F >> more
    while more and at[0]:
        c = c << 6 | (at[0] & 0x3F)
        at += 1
        more -= 1
    text[0] = at
    return c if c < CODEPOINTS else 0


cdef inline uint32_t offset_of(uint32_t unit) noexcept nogil:
    return (unit >> 10) << ((unit & 0x200) >> 6)


cdef Py_ssize_t longest_rule(
    const Table* table, const codeunit* text, Py_ssize_t length, const uint8_t** replacement
) noexcept nogil:
    """How many codepoints the longest rule takes that the text begins with, 0 where there is none,
    and the text that comes in their place. The walk is that of sentencepiece's normalizer.cc."""
    cdef uint8_t[UTF8_BYTES] utf8
    cdef Py_ssize_t i, k, taken = 0
    cdef uint32_t unit = table.map_units[0], place = offset_of(unit), value
    for i in range(length):
        for k in range(encode(text[i], utf8)):
            place ^= utf8[k]
            if place >= table.map_units_count:
                return taken
            unit = table.map_units[place]
            if unit & LABEL != utf8[k]:
                return taken
            place ^= offset_of(unit)
        if unit & LEAF and place < table.map_units_count:
            value = table.map_units[place] & VALUE
            if value < table.map_text_bytes:
                replacement[0] = table.map_text + value
                taken = i + 1
    return taken


cdef int split_text(
    const Table* table, Split* split, const codeunit* text, Py_ssize_t length
) except -1 nogil:
    cdef Py_ssize_t i = 0, taken
    cdef const uint8_t* replacement = NULL
    cdef uint16_t entry
    split.length = split.pieces_count = 0
    split.score = 0
    while i < length:
        entry = entry_of(table, text[i])
        if entry & REPLACED or i + 1 < length and entry_of(table, text[i + 1]) & SECOND:
            taken = longest_rule(table, text + i, length - i, &replacement)
            if taken:
                while replacement[0]:
                    add_symbol(table, split, entry_of(table, decode(&replacement)) & SYMBOL)
                i += taken
                continue
        add_symbol(table, split, entry & SYMBOL)
        i += 1
    return end_word(table, split)


cdef int split_string(const Table* table, Split* split, str text) except -1:
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    cdef const void* stored = PyUnicode_DATA(text)
    cdef int kind = PyUnicode_KIND(text)
    with nogil:
        if kind == PyUnicode_1BYTE_KIND:
            split_text(table, split, <const uint8_t*> stored, length)
        elif kind == PyUnicode_2BYTE_KIND:
            split_text(table, split, <const uint16_t*> stored, length)
        else:
            split_text(table, split, <const uint32_t*> stored, length)
    return 0


# ---- pieces into a vector

cdef inline void add_block(
    const Table* table, const uint32_t* pieces, Py_ssize_t count, Py_ssize_t block, int64_t* sums
) noexcept nogil:
    """Add one block of the rows of up to BATCH pieces.

    Two arrays, and not one that is added to in two places: of that GCC makes code that takes more
    than twice as long under -fwrapv, with which Python's extensions are compiled.
    """
    cdef uint32_t[HALF] low, high
    cdef uint32_t zeros = 0
    cdef const Row* row
    cdef const uint8_t* nibbles
    cdef uint16_t multiplier
    cdef Py_ssize_t i, k
    memset(low, 0, sizeof(low))
    memset(high, 0, sizeof(high))
    for i in range(count):
        row = &table.rows[pieces[i]]
        multiplier = row.multipliers[block]
        nibbles = row.nibbles + block * HALF
        zeros += multiplier
        for k in range(HALF):
            low[k] += <uint16_t> (multiplier * (nibbles[k] & 0xF))
            high[k] += <uint16_t> (multiplier * (nibbles[k] >> 4))
    for k in range(HALF):
        sums[k] += <int64_t> low[k] - <int64_t> ZERO * zeros
        sums[k + HALF] += <int64_t> high[k] - <int64_t> ZERO * zeros


cdef void add_rows(const Table* table, const Split* split, int64_t* sums) noexcept nogil:
    cdef Py_ssize_t first = 0, count, block, i
    cdef const uint8_t* row
    while first < split.pieces_count:
        count = min(<Py_ssize_t> BATCH, split.pieces_count - first)
        for i in range(count):
            row = <const uint8_t*> &table.rows[split.pieces[first + i]]
            PREFETCH(row)
            PREFETCH(row + CACHE_LINE)
            PREFETCH(row + 2 * CACHE_LINE)
        for block in range(BLOCKS):
            add_block(table, split.pieces + first, count, block, sums + block * BLOCK)
        first += count


cdef inline uint64_t magnitude(int64_t number) noexcept nogil:
    return <uint64_t> -number if number < 0 else <uint64_t> number


cdef void scale(const int64_t* sums, int8_t* vector) noexcept nogil:
    cdef uint64_t most = 0
    cdef uint32_t divisor, part
    cdef int j, halvings = 0
    for j in range(DIMENSIONS):
        most = max(most, magnitude(sums[j]))
    if most == 0:
        memset(vector, 0, DIMENSIONS)
        return
    while most >> halvings >= SUM_MAX:
        halvings += 1
    divisor = <uint32_t> (most >> halvings)
    for j in range(DIMENSIONS):
        part = <uint32_t> (magnitude(sums[j]) >> halvings)
        part = (254 * part + divisor) // (2 * divisor)
        vector[j] = -<int8_t> part if sums[j] < 0 else <int8_t> part


# ---- the table

cdef inline Py_ssize_t padded(Py_ssize_t size) noexcept nogil:
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


cdef bint is_ours(const Header* header) noexcept nogil:
    """Whether the header is of this format and version, in this machine's byte order."""
    return (
        memcmp(header.magic, MAGIC, sizeof(header.magic)) == 0
        and header.version == VERSION
        and header.dimensions == DIMENSIONS
        and header.map_units
        and header.map_text
        and header.trie
        and header.rows
    )


cdef bint lay_out(Table* table, const uint8_t* memory, Py_ssize_t length) noexcept nogil:
    """Find the sections; False for a table that is not whole.

    With the checks that are made on the way, nothing in a section can lead outside its section.
    """
    cdef const Header* header = <const Header*> memory
    cdef Py_ssize_t at = padded(sizeof(Header)), i
    if length < at or <size_t> memory % sizeof(uint64_t) or not is_ours(header):
        return False
    table.unknown_score = header.unknown_score
    table.map_units_count = header.map_units
    table.map_text_bytes = header.map_text
    table.trie_count = header.trie
    table.rows_count = header.rows
    table.pages = <const uint16_t*> (memory + at)
    at += padded(PAGES * sizeof(uint16_t))
    table.entries = <const uint16_t*> (memory + at)
    at += padded(<Py_ssize_t> header.blocks * PAGE * sizeof(uint16_t))
    table.map_units = <const uint32_t*> (memory + at)
    at += padded(<Py_ssize_t> header.map_units * sizeof(uint32_t))
    table.map_text = memory + at
    at += padded(header.map_text)
    table.trie = <const Unit*> (memory + at)
    at += padded(<Py_ssize_t> header.trie * sizeof(Unit))
    table.rows = <const Row*> (memory + at)
    at += padded(<Py_ssize_t> header.rows * sizeof(Row))
    if at != length or table.map_text[header.map_text - 1]:
        return False
    for i in range(PAGES):
        if table.pages[i] >= header.blocks:
            return False
    return True


@cython.final
cdef class Embedder:
    cdef const uint8_t[::1] memory  # keeps the buffer that `table` points into
    cdef Table table

    def __cinit__(self, const uint8_t[::1] table not None):
        self.memory = table
        if table.shape[0] == 0 or not lay_out(&self.table, &table[0], table.shape[0]):
            raise ValueError("not a table of embeddings that this version can read")

    def embed(self, str text not None):
        cdef Split split
        cdef int64_t[DIMENSIONS] sums
        cdef bytes vector = PyBytes_FromStringAndSize(NULL, DIMENSIONS)
        cdef int8_t* components = <int8_t*> PyBytes_AS_STRING(vector)
        memset(&split, 0, sizeof(split))
        memset(sums, 0, sizeof(sums))
        try:
            split_string(&self.table, &split, text)
            with nogil:
                add_rows(&self.table, &split, sums)
                scale(sums, components)
            return vector
        finally:
            release(&split)

    def pieces(self, str text not None):
        cdef Split split
        cdef Py_ssize_t i
        memset(&split, 0, sizeof(split))
        try:
            split_string(&self.table, &split, text)
            return [split.pieces[i] for i in range(split.pieces_count)]
        finally:
            release(&split)
