"""Whether index and text agree, row by row, without a moment at which all must stand still.

Every occurrence (trigram, column, place) is a number, and a row's occurrences are added up: once as
the index has them, once as the row's text has them. The sums differ unless both are the same, but
for a chance of one in 2**64. The order does not matter, so the index can be read term by term.
"""

cdef extern from *:
    """
    /* Odd numbers of well mixed bits: the golden ratio, and those of splitmix64 and of moremur. */
    #define GOLDEN 0x9E3779B97F4A7C15ULL
    #define MIX_TRIGRAM 0xBF58476D1CE4E5B9ULL
    #define MIX_PLACE 0x3C79AC492BA7B653ULL
    """
    const uint64_t GOLDEN, MIX_TRIGRAM, MIX_PLACE

cdef enum:
    # One step: some milliseconds each.
    LEAVES_A_STEP = 256
    ROWS_A_STEP = 1024
    REPLACEMENT = 0xFFFD

TEXTS = """
SELECT v.*, s.sz FROM {chunks}_indexed AS v LEFT JOIN {index}_docsize AS s ON s.id = v.id
WHERE v.id > ?1 ORDER BY v.id
"""


cdef inline uint64_t trigram_number(uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    cdef uint64_t number = (a | b << 21 | c << 42) * MIX_TRIGRAM
    return number ^ number >> 31


cdef inline uint64_t occurrence(uint64_t trigram, uint64_t place) noexcept nogil:
    """The number of one trigram at one place; a place is its column << 32 | offset."""
    cdef uint64_t number = trigram + place * GOLDEN
    number = (number ^ number >> 32) * MIX_PLACE
    return number ^ number >> 29


cdef inline const uint8_t *codepoint(
    const uint8_t *at, const uint8_t *stop, uint64_t *value
) noexcept nogil:
    """Read one codepoint as FTS5 does (READ_UTF8 in fts5_unicode2.c), ASCII capitals folded."""
    cdef uint64_t c = at[0]
    at += 1
    if c < 0x80:
        value[0] = c + 32 if 65 <= c <= 90 else c
        return at
    c = c & 0x1F if c < 0xE0 else c & 0x0F if c < 0xF0 else c & 0x07
    while at < stop and at[0] & 0xC0 == 0x80:
        c = (c << 6 | (at[0] & 0x3F)) & 0x1FFFFF
        at += 1
    if c < 0x80 or c & 0x1FF800 == 0xD800 or c & 0x1FFFFE == 0xFFFE:
        c = REPLACEMENT
    value[0] = c
    return at


cdef uint64_t sum_of_text(
    const uint8_t *at, size_t n, uint64_t column, uint64_t *count
) noexcept nogil:
    """The sum over all trigrams of one column's text, and how many they are."""
    cdef const uint8_t *stop = at + n
    cdef uint64_t place = column << 32
    cdef uint64_t sum = 0
    cdef uint64_t a = 0, b = 0, c = 0
    cdef size_t read = 0
    while at < stop:
        a = b
        b = c
        at = codepoint(at, stop, &c)
        read += 1
        if read > 2:
            sum += occurrence(trigram_number(a, b, c), place)
            place += 1
    count[0] = read - 2 if read > 2 else 0
    return sum


cdef bint sum_of_positions(
    const uint8_t *at, const uint8_t *stop, uint64_t trigram, uint64_t *sum
) noexcept nogil:
    """Add one position list of a trigram to `sum`; False: damaged."""
    cdef uint64_t value
    cdef uint64_t place = 0
    while at < stop:
        at = varint(at, stop, &value)
        if at == NULL or value == 0:
            return False
        if value == 1:
            at = varint(at, stop, &value)
            if at == NULL or value >= COLUMNS:
                return False
            place = value << 32
            continue
        place += value - 2
        sum[0] += occurrence(trigram, place)
    return True


@cython.final
cdef class Agreement(Snapshot):
    """Compares the full-text index with the text that it indexes, a step at a time.

    The arguments are as for Ranker; a view named after `chunks` (chunks_indexed) says what is
    indexed of each row: its id, text, title and words. A row that is written between the first step
    and the last may be taken to differ.
    """

    # A finger for each segment, and how many of them have a statement of their own.
    cdef Leaf *fingers
    cdef int fingers_n
    cdef sqlite3_stmt *texts
    cdef str leaves_text
    # By row: what the index says, less what the text says.
    cdef uint64_t *sums
    cdef size_t rows_n
    # Newer rows than were known at first: the newest in the index, and one in no record of sizes.
    cdef uint32_t highest
    cdef int64_t unsized
    # Where the next step goes on.
    cdef bint begun
    cdef bint terms_read
    cdef uint8_t key[TERM_BYTES_MAX]
    cdef uint32_t key_n
    cdef int64_t last_row

    def __cinit__(self, connection, index="chunks_fts", chunks="chunks"):
        self.leaves_text = STATEMENT_TEXTS[LEAVES].format(index=index)
        self.fingers = <Leaf *>calloc(SEGMENTS_MAX, sizeof(Leaf))
        if self.fingers == NULL:
            raise MemoryError
        self.texts = self.prepare(TEXTS.format(index=index, chunks=chunks))

    def __dealloc__(self):
        if self.sql != NULL:
            self.close()
        free(self.fingers)
        free(self.sums)

    def close(self) -> None:
        """Finalize the statements; nothing can be compared afterwards."""
        cdef int i
        for i in range(self.fingers_n):
            self.sql.finalize(self.fingers[i].statement)
        self.fingers_n = 0
        if self.texts != NULL:
            self.sql.finalize(self.texts)
        self.texts = NULL
        Snapshot.close(self)

    def step(self) -> bool:
        """Compare some more; whether anything is left.

        Must be called inside an open transaction (else ValueError), each step in the same or in
        another. Raises DamagedIndex, Cancelled, StoreFailed, MemoryError.
        """
        cdef int code
        if self.texts == NULL or self.sql.get_autocommit(self.db):
            raise ValueError("comparing needs an open transaction")
        if not self.begun:
            self.begin()
        if self.terms_read:
            with nogil:
                code = self.read_texts()
            self.sql.reset(self.texts)
            if code == END:
                self.compare_averages()
        else:
            self.point_fingers()
            with nogil:
                code = self.read_terms()
            self.lift_fingers()
            self.terms_read = code == END
            code = MORE if code == END else code
        self.complain(MORE if code == END else code)
        return code != END

    def differing(self) -> list[int]:
        """The rows of which the index does not hold what their text does, once no step is left."""
        cdef size_t row
        rows = [row for row in range(self.rows_n) if self.sums[row]]
        return rows + [row for row in (self.unsized, self.highest) if row]

    cdef int begin(self) except -1:
        cdef int64_t newest = self.number(self.statement[NEWEST])
        if newest < 0 or newest >= CHUNK_ID_MAX:
            raise DamagedIndex("a chunk id is out of range")
        self.complain(self.size_arrays(<size_t>newest + 1))
        self.sums = <uint64_t *>calloc(newest + 1, sizeof(uint64_t))
        if self.sums == NULL:
            raise MemoryError
        self.rows_n = newest + 1
        self.begun = True
        return 0

    cdef int point_fingers(self) except -1:
        """Have a finger, with a statement of its own, for each of the index's segments."""
        cdef bytearray structure = bytearray()
        self.read_record(STRUCTURE_RECORD, structure)
        self.complain(self.load_structure(structure, len(structure)))
        while self.fingers_n < self.segments_n:
            self.fingers[self.fingers_n].statement = self.prepare(self.leaves_text)
            self.fingers_n += 1
        return 0

    cdef void lift_fingers(self) noexcept:
        cdef int i
        for i in range(self.fingers_n):
            self.sql.reset(self.fingers[i].statement)
        self.leaf = &self.own

    cdef int read_terms(self) noexcept nogil:
        """Add up terms from `key` on, a step's worth of leaves; END: all are read."""
        cdef size_t until
        cdef int64_t page
        cdef int i, first
        cdef int code = MORE
        for i in range(self.segments_n):
            self.leaf = &self.fingers[i]
            code = self.leaf_of(&self.segments[i], self.key, self.key_n, &page, NULL)
            if code == MORE:
                code = self.seek(&self.segments[i], page, self.key, self.key_n, False)
            if code > END:
                return code
            if code == END:
                self.leaf.bytes = NULL
        # Counted from here, for a finger may have to pass by a doclist longer than a step.
        until = self.leaves_read + LEAVES_A_STEP
        while True:
            first = self.first_finger()
            if first < 0:
                return END
            self.key_n = self.fingers[first].term_bytes
            memcpy(self.key, self.fingers[first].term, self.key_n)
            if self.leaves_read > until:
                return MORE
            code = self.add_term(first)
            if code != MORE:
                return code

    cdef int first_finger(self) noexcept nogil:
        """The newest of the fingers on the least term; -1: all are done."""
        cdef int i
        cdef int first = -1
        for i in range(self.segments_n):
            if self.fingers[i].bytes != NULL:
                if first < 0 or compared(&self.fingers[i], &self.fingers[first]) < 0:
                    first = i
        return first

    cdef int add_term(self, int first) noexcept nogil:
        """Add up one term in all segments that have it, each row as the newest of them has it."""
        cdef uint64_t trigram
        cdef size_t before, row
        cdef int i
        cdef bint shared = False
        cdef int code = MORE
        if not self.number_of_key(&trigram):
            return DAMAGED
        for i in range(first + 1, self.segments_n):
            if self.fingers[i].bytes != NULL and self.on_key(&self.fingers[i]):
                shared = True
        self.hits[0].n = 0
        self.bytes.n = 0
        for i in range(first, self.segments_n):
            if self.fingers[i].bytes == NULL or not self.on_key(&self.fingers[i]):
                continue
            self.leaf = &self.fingers[i]
            before = self.hits[0].n
            code = self.locate_doclist(&self.hits[0])
            if code == MORE:
                code = self.add_rows(before, trigram, shared)
            if code == MORE:
                code = self.next_term()
            if code > END:
                break
            if code == END:
                self.leaf.bytes = NULL
            code = MORE
        if shared:
            for before in range(self.hits[0].n):
                row = self.hits[0].at[before].row
                if row < self.rows_n:
                    self.marks[row >> 6] = 0
        return code

    cdef bint on_key(self, const Leaf *finger) noexcept nogil:
        return (
            finger.term_bytes == self.key_n and memcmp(finger.term, self.key, self.key_n) == 0
        )

    cdef bint number_of_key(self, uint64_t *trigram) noexcept nogil:
        cdef const uint8_t *at = self.key + 1
        cdef const uint8_t *stop = self.key + self.key_n
        cdef uint64_t letters[3]
        cdef int i
        for i in range(3):
            if at >= stop:
                return False
            at = codepoint(at, stop, &letters[i])
        trigram[0] = trigram_number(letters[0], letters[1], letters[2])
        return at == stop

    cdef int add_rows(self, size_t before, uint64_t trigram, bint shared) noexcept nogil:
        """Add up the hits from `before` on; with `shared`, but for rows marked, and mark them."""
        cdef Hit *hit
        cdef size_t i
        cdef uint64_t bit
        for i in range(before, self.hits[0].n):
            hit = &self.hits[0].at[i]
            if hit.row >= self.rows_n:
                if hit.bytes and not (shared and met_before(&self.hits[0], before, hit.row)):
                    self.highest = max(self.highest, hit.row)
                continue
            if shared:
                bit = <uint64_t>1 << (hit.row & 63)
                if self.marks[hit.row >> 6] & bit:
                    continue
                self.marks[hit.row >> 6] |= bit
            if not sum_of_positions(
                self.bytes.at + hit.at, self.bytes.at + hit.at + hit.bytes, trigram,
                &self.sums[hit.row],
            ):
                return DAMAGED
        return MORE

    cdef int read_texts(self) noexcept nogil:
        """Take away what the text of some rows says; END: all are read."""
        cdef int code = SQLITE_ROW
        cdef int i
        self.sql.reset(self.texts)
        self.sql.bind_int64(self.texts, 1, self.last_row)
        for i in range(ROWS_A_STEP):
            if self.cancelled:
                return CANCELLED
            code = self.sql.step(self.texts)
            if code != SQLITE_ROW:
                break
            self.last_row = self.sql.column_int64(self.texts, 0)
            self.subtract_row()
        if code == SQLITE_ROW:
            return MORE
        if code != SQLITE_DONE:
            self.sqlite_code = code
            return STORE_FAILED
        if self.highest and self.highest <= self.last_row:
            # A row of the index that was newer than all is one of the table by now.
            self.highest = 0
        return END

    cdef int compare_averages(self) except -1:
        """See whether the index counts its rows and their tokens as their sizes say."""
        cdef bytearray averages = bytearray()
        cdef int64_t rows = 0
        cdef int64_t tokens = 0
        cdef int code
        self.read_record(AVERAGES_RECORD, averages)
        self.complain(self.load_averages(averages, len(averages)))
        with nogil:
            self.sql.reset(self.statement[LENGTHS])
            code = self.sql.step(self.statement[LENGTHS])
            while code == SQLITE_ROW and not self.cancelled:
                rows += 1
                tokens += self.tokens_of(self.statement[LENGTHS])
                code = self.sql.step(self.statement[LENGTHS])
            self.sql.reset(self.statement[LENGTHS])
        if code == SQLITE_ROW:
            self.complain(CANCELLED)
        if code != SQLITE_DONE:
            self.sqlite_code = code
            self.complain(STORE_FAILED)
        if rows != self.rows or tokens != self.tokens:
            raise DamagedIndex("the index's averages are not those of its rows")
        return 0

    cdef void subtract_row(self) noexcept nogil:
        """Take what a row's text says from its sum, and see whether its sizes are the text's."""
        cdef const uint8_t *at
        cdef const uint8_t *sizes = <const uint8_t *>self.sql.column_blob(self.texts, 1 + COLUMNS)
        cdef const uint8_t *stop = sizes + self.sql.column_bytes(self.texts, 1 + COLUMNS)
        cdef uint64_t sum = 0
        cdef uint64_t count = 0
        cdef uint64_t size
        cdef int column
        if self.last_row <= 0 or <size_t>self.last_row >= self.rows_n:
            if sizes == NULL:
                self.unsized = self.last_row
            return
        for column in range(COLUMNS):
            at = <const uint8_t *>self.sql.column_blob(self.texts, 1 + column)
            sum += sum_of_text(at, self.sql.column_bytes(self.texts, 1 + column), column, &count)
            sizes = varint(sizes, stop, &size) if sizes != NULL else NULL
            if sizes == NULL or size != count:
                sum += GOLDEN
        self.sums[self.last_row] -= sum


cdef bint met_before(const Hits *hits, size_t before, uint32_t row) noexcept nogil:
    """Whether a newer segment has told of a row that is newer than all and has no mark."""
    cdef size_t i
    for i in range(before):
        if hits.at[i].row == row:
            return True
    return False


cdef inline int compared(const Leaf *a, const Leaf *b) noexcept nogil:
    cdef int order = memcmp(a.term, b.term, min(a.term_bytes, b.term_bytes))
    return order if order else <int>a.term_bytes - <int>b.term_bytes
