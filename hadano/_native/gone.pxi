"""The rows that go: every term that they have, and their part in the index's sizes and averages.

The terms are found in the rows' texts, as FTS5's tokenizer finds them, and kept once each and in
their order. It refuses to know where in the index a term lies.
"""

cdef enum:
    # A byte for FTS5's main index and three codepoints.
    KEY_BYTES_MAX = 13
    KEY_ROOM = 15
    SLOTS_MIN = 4096

cdef struct Key:
    uint8_t at[KEY_ROOM]
    uint8_t n


cdef int key_order(const void *a, const void *b) noexcept nogil:
    return memcmp((<const Key *>a).at, (<const Key *>b).at, KEY_ROOM)


cdef size_t distinct(Key *keys, size_t n) noexcept nogil:
    """Sort keys and drop repeats; answer how many are left."""
    cdef size_t i
    cdef size_t left = 0
    if n == 0:  # of no keys there is no address
        return 0
    qsort(keys, n, sizeof(Key), &key_order)
    for i in range(n):
        if left == 0 or key_order(&keys[left - 1], &keys[i]):
            keys[left] = keys[i]
            left += 1
    return left


cdef inline int key_against(const Key *key, const uint8_t *term, uint32_t n) noexcept nogil:
    cdef int order = memcmp(key.at, term, min(n, key.n))
    return order if order else <int>key.n - <int>n


cdef void fill_key(Key *key, const uint8_t *text, uint32_t n) noexcept nogil:
    """A trigram as FTS5 keeps it, the byte of its main index before it."""
    memset(key, 0, sizeof(Key))
    key.at[0] = 0x30
    memcpy(key.at + 1, text, n)
    fold(key.at + 1, n)
    key.n = <uint8_t>(n + 1)


cdef int read_numbers(
    const uint8_t *at, size_t n, uint64_t *numbers, int count
) noexcept nogil:
    """Read a record of just so many numbers."""
    cdef const uint8_t *stop = at + n
    cdef int i
    if at == NULL:
        return DAMAGED
    for i in range(count):
        at = varint(at, stop, &numbers[i])
        if at == NULL or numbers[i] >= TOKENS_END:
            return DAMAGED
    return MORE if at == stop else DAMAGED


@cython.internal
cdef class Gone(Separators):
    """The rows that go, all their terms, and their sizes."""

    # The rows, ascending; all their terms; and the least and the greatest term of each row.
    cdef uint32_t *rows_gone
    cdef size_t rows_n
    cdef Key *keys
    cdef size_t keys_n
    cdef Key *edges
    cdef size_t edges_n
    # A hash of the terms while they are gathered: a key's place, from 1 on; and its last row.
    cdef uint32_t *slots
    cdef size_t slots_n
    cdef uint32_t *last_row
    # Postings that are to be found, and that have been.
    cdef size_t wanted
    cdef size_t found

    def __dealloc__(self):
        free(self.rows_gone)
        free(self.keys)
        free(self.edges)
        free(self.slots)
        free(self.last_row)

    cdef int note_rows(self, list rows) except -1:
        """Begin with these rows, which ascend, and no terms."""
        cdef size_t i
        self.rows_n = self.keys_n = self.edges_n = self.wanted = self.found = 0
        free(self.rows_gone)
        free(self.edges)
        self.rows_gone = <uint32_t *>malloc((len(rows) + 1) * sizeof(uint32_t))
        self.edges = <Key *>malloc((2 * len(rows) + 2) * sizeof(Key))
        if self.rows_gone == NULL or self.edges == NULL:
            raise MemoryError
        for i, row in enumerate(rows):
            if not 0 < row < CHUNK_ID_MAX:
                raise ValueError("a chunk id is out of range")
            self.rows_gone[i] = row
        self.rows_n = len(rows)
        return 0

    @cython.final
    cdef bint goes(self, uint64_t row) noexcept nogil:
        cdef size_t low = 0
        cdef size_t high = self.rows_n
        cdef size_t middle
        if row < self.rows_gone[0]:
            return False
        while low < high:
            middle = (low + high) >> 1
            if self.rows_gone[middle] < row:
                low = middle + 1
            else:
                high = middle
        return low < self.rows_n and self.rows_gone[low] == row

    cdef int gather_keys(self) noexcept nogil:
        """Find the terms of all rows in their texts."""
        cdef size_t i
        cdef int code = self.make_slots(SLOTS_MIN)
        for i in range(self.rows_n):
            if code == MORE:
                code = self.keys_of_row(self.rows_gone[i])
        if code == MORE:
            qsort(self.keys, self.keys_n, sizeof(Key), &key_order)
            self.edges_n = distinct(self.edges, self.edges_n)
        return code

    cdef int keys_of_row(self, uint32_t row) noexcept nogil:
        cdef sqlite3_stmt *texts = self.writing[TEXT_OF]
        cdef size_t before = self.wanted
        cdef int column
        cdef int code = MORE
        if self.cancelled:
            return CANCELLED
        self.sql.bind_int64(texts, 1, row)
        if self.sql.step(texts) != SQLITE_ROW:
            return self.done_with(texts)
        memset(&self.edges[self.edges_n], 0xFF, sizeof(Key))
        memset(&self.edges[self.edges_n + 1], 0, sizeof(Key))
        for column in range(COLUMNS):
            if code == MORE:
                code = self.keys_of_text(
                    <const uint8_t *>self.sql.column_blob(texts, column),
                    self.sql.column_bytes(texts, column), row,
                )
        self.sql.reset(texts)
        if self.wanted > before:
            self.edges_n += 2
        return code

    cdef int keys_of_text(self, const uint8_t *at, size_t n, uint32_t row) noexcept nogil:
        """Note the key of every trigram of a text."""
        cdef const uint8_t *stop = at + n
        cdef const uint8_t *a = NULL
        cdef const uint8_t *b = NULL
        cdef const uint8_t *c = at
        cdef uint64_t letter
        cdef Key key
        cdef int code
        while at < stop:
            a = b
            b = c
            c = at
            at = codepoint(at, stop, &letter)
            if a == NULL or a == b:
                continue
            if at - a >= KEY_BYTES_MAX:
                return DAMAGED
            fill_key(&key, a, <uint32_t>(at - a))
            code = self.note_key(&key, row)
            if code != MORE:
                return code
        return MORE

    @cython.final
    cdef int note_key(self, const Key *key, uint32_t row) noexcept nogil:
        """Add a key of a row to those known, once."""
        cdef size_t slot = self.slot_of(key)
        cdef size_t i = self.slots[slot]
        cdef int code
        if i == 0:
            self.keys[self.keys_n] = key[0]
            self.last_row[self.keys_n] = 0
            self.keys_n += 1
            i = self.slots[slot] = <uint32_t>self.keys_n
            if 2 * self.keys_n >= self.slots_n:
                code = self.make_slots(2 * self.slots_n)
                if code != MORE:
                    return code
        if self.last_row[i - 1] != row:
            self.last_row[i - 1] = row
            self.wanted += 1
            if key_order(key, &self.edges[self.edges_n]) < 0:
                self.edges[self.edges_n] = key[0]
            if key_order(key, &self.edges[self.edges_n + 1]) > 0:
                self.edges[self.edges_n + 1] = key[0]
        return MORE

    @cython.final
    cdef size_t slot_of(self, const Key *key) noexcept nogil:
        """Where a key is in the hash, or is to be."""
        cdef uint64_t hashed = load_word(key.at) * GOLDEN ^ load_word(key.at + 7) * MIX_TRIGRAM
        cdef size_t slot = (hashed ^ hashed >> 31) & (self.slots_n - 1)
        while self.slots[slot] and key_order(&self.keys[self.slots[slot] - 1], key):
            slot = (slot + 1) & (self.slots_n - 1)
        return slot

    cdef int make_slots(self, size_t n) noexcept nogil:
        """Make the hash anew with `n` slots, a power of two, and room for half as many keys."""
        cdef void *moved
        cdef size_t i
        free(self.slots)
        self.slots = <uint32_t *>calloc(n, sizeof(uint32_t))
        self.slots_n = n
        if self.slots == NULL:
            return NO_MEMORY
        moved = realloc(self.keys, n * sizeof(Key))
        if moved == NULL:
            return NO_MEMORY
        self.keys = <Key *>moved
        moved = realloc(self.last_row, n * sizeof(uint32_t))
        if moved == NULL:
            return NO_MEMORY
        self.last_row = <uint32_t *>moved
        for i in range(self.keys_n):
            self.slots[self.slot_of(&self.keys[i])] = <uint32_t>i + 1
        return MORE

    cdef int uncount_rows(self) except -1:
        """Remove the rows' sizes, and take them from the averages."""
        cdef bytearray averages = bytearray()
        cdef uint64_t sums[1 + COLUMNS]
        cdef uint8_t record[(1 + COLUMNS) * VARINT_BYTES_MAX]
        cdef uint8_t *stop = record
        cdef size_t row
        cdef int i
        self.read_record(AVERAGES_RECORD, averages)
        self.complain(read_numbers(averages, len(averages), sums, 1 + COLUMNS))
        for row in range(self.rows_n):
            self.complain(self.uncount_row(self.rows_gone[row], sums))
        for i in range(1 + COLUMNS):
            stop = put_varint(stop, sums[i])
        self.complain(self.write(AVERAGES_RECORD, record, <int>(stop - record)))
        return 0

    cdef int uncount_row(self, int64_t row, uint64_t *sums) noexcept nogil:
        cdef sqlite3_stmt *sizes = self.writing[SIZES_OF]
        cdef sqlite3_stmt *remove = self.writing[NO_SIZES]
        cdef uint64_t counts[COLUMNS]
        cdef int column
        cdef int code
        self.sql.bind_int64(sizes, 1, row)
        if self.sql.step(sizes) != SQLITE_ROW:
            return self.done_with(sizes, DAMAGED)
        code = read_numbers(
            <const uint8_t *>self.sql.column_blob(sizes, 1), self.sql.column_bytes(sizes, 1),
            counts, COLUMNS,
        )
        self.sql.reset(sizes)
        if code != MORE or sums[0] == 0:
            return DAMAGED
        sums[0] -= 1
        for column in range(COLUMNS):
            if sums[1 + column] < counts[column]:
                return DAMAGED
            sums[1 + column] -= counts[column]
        self.sql.bind_int64(remove, 1, row)
        self.sql.step(remove)
        return self.done_with(remove)
