"""Rows that came, went or were indexed anew since a term was decoded.

What a term comes to is a matter of the rows' texts and of no segment: FTS5 may merge those as it
likes. New rows have ids beyond those before; rows of which something was taken out of the index
stand in a list in the file. The texts of the last of either are kept, and a decoded term is made
true of them by counting in those. It knows which rows; not how a term's postings are packed.
"""

cdef enum:
    BEYOND, LOGGED, LOG, FRESH_TEXT, TEXT_ALONE
    CHANGE_STATEMENTS

# What is indexed of one row.
INDEXED_TEXTS = "SELECT text, title, words FROM {chunks}_indexed WHERE id = ?1"

CHANGE_TEXTS = (
    "SELECT id, id FROM {index}_docsize WHERE id > ?1 ORDER BY id",
    "SELECT max(n) FROM {chunks}_unindexed",
    "SELECT chunk, n FROM {chunks}_unindexed WHERE n > ?1 ORDER BY n",
    INDEXED_TEXTS,
    # Without the title, for which the document has to be read, and the closing newlines.
    "SELECT coalesce(form, text) FROM {chunks} WHERE id = ?1",
)

# A row as it was found to be: its columns one behind the other, as they are indexed; NULL: gone.
cdef struct Change:
    uint32_t row
    uint8_t *text
    size_t sizes[COLUMNS]


cdef inline uint32_t occurrences(
    const uint8_t *text, size_t n, const uint8_t *sought, size_t sought_n
) noexcept nogil:
    """How often a text has a trigram that begins with `sought`, or trigrams that it is made of;
    they may overlap, and the text's last two codepoints head none. What is looked for is its last
    byte: beyond Latin script, its first is also that of most other codepoints."""
    cdef size_t heads = n
    cdef int i
    if n < sought_n:
        return 0
    for i in range(2):
        while heads:
            heads -= 1
            if text[heads] & 0xC0 != 0x80:
                break
    return times_in(text, min(n, heads + sought_n - 1), sought, sought_n)


cdef inline uint32_t times_in(
    const uint8_t *text, size_t n, const uint8_t *sought, size_t sought_n
) noexcept nogil:
    """How often `sought` is in a text; occurrences may overlap."""
    cdef size_t tail = sought_n - 1
    cdef const uint8_t *at = text + tail
    cdef const uint8_t *stop = text + n
    cdef uint32_t count = 0
    while at < stop:
        at = <const uint8_t *>memchr(at, sought[tail], stop - at)
        if at == NULL:
            break
        count += memcmp(at - tail, sought, sought_n) == 0
        at += 1
    return count


cdef uint32_t occurrences_in(
    const Change *change, const uint8_t *sought, size_t n, uint32_t columns
) noexcept nogil:
    cdef const uint8_t *at = change.text
    cdef uint32_t count = 0
    cdef int column
    if at == NULL:
        return 0
    for column in range(COLUMNS):
        if columns >> column & 1:
            count += occurrences(at, change.sizes[column], sought, n)
        at += change.sizes[column]
    return count


cdef bint is_readable(const uint8_t *sought, size_t n) noexcept nogil:
    """Whether a phrase is in the text of a row just where the index has it: a newline may stand
    behind all texts, U+FFFD for another."""
    cdef size_t i
    for i in range(n):
        if sought[i] == 10 or (sought[i] == 0xBD and sought[i - 1] == 0xBF):
            return False
    return True


cdef void fold_ascii(uint8_t *into, const uint8_t *at, size_t n) noexcept nogil:
    cdef size_t i
    for i in range(n):
        into[i] = at[i] + ((<uint8_t>(at[i] - 65) < 26) << 5)


cdef void fold(uint8_t *at, size_t n) noexcept nogil:
    """Make of an indexed text, or a trigram of it, what FTS5 keeps: ASCII capitals folded, U+FFFE
    and U+FFFF as U+FFFD."""
    cdef size_t i
    for i in range(n):
        if 65 <= at[i] <= 90:
            at[i] += 32
        elif at[i] > 0xBD and i >= 2 and at[i - 1] == 0xBF and at[i - 2] == 0xEF:
            at[i] = 0xBD


@cython.internal
cdef class Changes(Snapshot):
    """A snapshot that is made true of the next one, and what changed on the way."""

    cdef sqlite3_stmt *telling[CHANGE_STATEMENTS]
    # The records that name the state of the index, or None.
    cdef bytes snapshot
    # The greatest id and number in the list that have been met.
    cdef int64_t newest
    cdef int64_t logged
    # The last changes, counted from the first there ever was; and each state since, oldest first:
    # its number in the list, its newest row, and how many changes led to it.
    cdef Change *changes
    cdef int changes_n
    cdef int64_t dropped
    cdef list stages
    # Decoded terms by (kind, text), least recently used first.
    cdef dict cache
    cdef size_t cache_room
    cdef size_t cache_used

    def __cinit__(self, connection, index="chunks_fts", chunks="chunks", cache_bytes=32 << 20):
        cdef int i
        self.cache = {}
        self.stages = []
        self.cache_room = cache_bytes
        self.changes = <Change *>calloc(CHANGES_MAX, sizeof(Change))
        if self.changes == NULL:
            raise MemoryError
        for i, text in enumerate(CHANGE_TEXTS):
            self.telling[i] = self.prepare(text.format(index=index, chunks=chunks))

    def __dealloc__(self):
        if self.sql != NULL:
            self.close()
        if self.changes != NULL:
            self.drop_oldest(self.changes_n)
        free(self.changes)

    def close(self) -> None:
        """Finalize the statements; the ranker cannot be used afterwards."""
        cdef int i
        for i in range(CHANGE_STATEMENTS):
            if self.telling[i] != NULL:
                self.sql.finalize(self.telling[i])
            self.telling[i] = NULL
        Snapshot.close(self)

    cdef int64_t changes_end(self) noexcept nogil:
        return self.dropped + self.changes_n

    cdef int refresh(self) except -1:
        """Make everything kept between calls true of the snapshot at hand.

        The structure record, the averages record, the newest row and the newest in the list name
        the index's state: every flush adds to the write counter, ids are never used twice, and what
        is erased in place is in the list.
        """
        cdef bytearray structure = bytearray()
        cdef bytearray averages = bytearray()
        cdef int64_t rows = self.rows
        cdef int64_t tokens = self.tokens
        cdef int64_t newest, logged
        cdef bint known
        cdef int code
        self.read_record(STRUCTURE_RECORD, structure)
        self.read_record(AVERAGES_RECORD, averages)
        newest = self.number(self.statement[NEWEST])
        logged = self.number(self.telling[LOGGED])
        snapshot = bytes(structure) + b"/" + bytes(averages) + b"/%d/%d" % (newest, logged)
        if snapshot == self.snapshot:
            return 0
        known = self.snapshot is not None
        self.snapshot = None
        if newest < 0 or newest >= CHUNK_ID_MAX:
            raise DamagedIndex("a chunk id is out of range")
        self.complain(self.load_structure(structure, len(structure)))
        self.complain(self.load_averages(averages, len(averages)))
        with nogil:
            code = self.size_arrays(<size_t>newest + 1)
            if code == MORE:
                code = self.follow(logged, &rows, &tokens) if known else END
            if code == END or (code == MORE and (rows != self.rows or tokens != self.tokens)):
                known = False
                code = self.load_lengths()
        self.complain(code)
        self.logged = logged
        if not known:
            self.start_anew()
        self.newest = max(self.newest, newest)
        self.stages = [stage for stage in self.stages if stage[2] >= self.dropped]
        self.stages.append((self.logged, self.newest, self.changes_end()))
        self.weigh_lengths()
        self.snapshot = snapshot
        return 0

    cdef int follow(self, int64_t logged, int64_t *rows, int64_t *tokens) noexcept nogil:
        """Read the rows anew that have changed, and make the sums those of the rows as they are;
        END: which they are cannot be told, or they are too many."""
        cdef int n, code
        self.drop_oldest(self.changes_n - CHANGES_MAX // 2)
        n = self.changes_n
        code = self.note_rows(LOG, self.logged, logged)
        if code == MORE:
            code = self.note_rows(BEYOND, self.newest, CHUNK_ID_MAX)
        while code == MORE and n < self.changes_n:
            code = self.read_anew(&self.changes[n], rows, tokens)
            n += 1
        return code

    cdef int note_rows(self, int which, int64_t after, int64_t last) noexcept nogil:
        """Note the rows of a list whose numbers are beyond `after`; END: some have dropped out of
        it, or they are too many."""
        cdef sqlite3_stmt *list = self.telling[which]
        cdef int64_t row
        cdef int code
        self.sql.bind_int64(list, 1, after)
        while True:
            code = self.sql.step(list)
            if code != SQLITE_ROW or self.changes_n == CHANGES_MAX:
                break
            row = self.sql.column_int64(list, 0)
            after += 1
            if which == LOG and self.sql.column_int64(list, 1) != after:
                break
            if 0 < row < <int64_t>self.ids:
                self.changes[self.changes_n].row = <uint32_t>row
                self.changes_n += 1
        self.sql.reset(list)
        if code == SQLITE_ROW:
            return END
        if code != SQLITE_DONE:
            self.sqlite_code = code
            return STORE_FAILED
        return MORE if which == BEYOND or after == last else END

    cdef int read_anew(self, Change *change, int64_t *rows, int64_t *tokens) noexcept nogil:
        cdef uint32_t row = change.row
        cdef int code
        if self.lengths[row] != NO_ROW:
            rows[0] -= 1
            tokens[0] -= self.lengths[row]
        code = self.load_row(row)
        if code != MORE or self.lengths[row] == NO_ROW:
            return code
        rows[0] += 1
        tokens[0] += self.lengths[row]
        return self.read_text(change)

    cdef int64_t times_in_text(
        self, uint32_t row, const uint8_t *sought, size_t n
    ) noexcept nogil:
        """How often a phrase (see is_readable) is in a row's text, its title left out; less than
        zero: the outcome why that is not known, negative."""
        cdef sqlite3_stmt *texts = self.telling[TEXT_ALONE]
        cdef const uint8_t *text
        cdef int64_t count = -DAMAGED
        cdef size_t size
        cdef int code
        self.sql.bind_int64(texts, 1, row)
        code = self.sql.step(texts)
        if code == SQLITE_ROW:
            text = <const uint8_t *>self.sql.column_blob(texts, 0)
            size = self.sql.column_bytes(texts, 0)
            count = -NO_MEMORY
            if self.spill_for(size) == MORE:
                fold_ascii(self.spill, text, size)
                count = times_in(self.spill, size, sought, n)
        self.sql.reset(texts)
        if code != SQLITE_ROW and code != SQLITE_DONE:
            self.sqlite_code = code
            return -STORE_FAILED
        return count

    cdef int read_text(self, Change *change) noexcept nogil:
        cdef sqlite3_stmt *texts = self.telling[FRESH_TEXT]
        cdef size_t n = 0
        cdef int column
        cdef int code
        self.sql.bind_int64(texts, 1, change.row)
        code = self.sql.step(texts)
        if code == SQLITE_ROW:
            for column in range(COLUMNS):
                self.sql.column_blob(texts, column)
                change.sizes[column] = self.sql.column_bytes(texts, column)
                n += change.sizes[column]
            change.text = <uint8_t *>malloc(n + 1)
            n = 0
            for column in range(COLUMNS):
                if change.text != NULL and change.sizes[column]:
                    memcpy(
                        change.text + n, self.sql.column_blob(texts, column), change.sizes[column]
                    )
                n += change.sizes[column]
        self.sql.reset(texts)
        if code == SQLITE_DONE:
            return END
        if code != SQLITE_ROW:
            self.sqlite_code = code
            return STORE_FAILED
        if change.text == NULL:
            return NO_MEMORY
        fold(change.text, n)
        return MORE

    cdef void drop_oldest(self, int n) noexcept nogil:
        """Forget the oldest changes."""
        cdef int i
        if n <= 0:
            return
        for i in range(n):
            free(self.changes[i].text)
        memmove(self.changes, self.changes + n, (self.changes_n - n) * sizeof(Change))
        memset(self.changes + self.changes_n - n, 0, n * sizeof(Change))
        self.changes_n -= n
        self.dropped += n

    cdef int start_anew(self) except -1:
        self.cache.clear()
        self.cache_used = 0
        self.stages.clear()
        self.drop_oldest(self.changes_n)
        self.newest = 0
        return 0

    cdef int64_t place_of(self, tuple stage) except? -2:
        """How many changes had been met, at most, when the index was in a state that this ranker
        or another has met; -1: not known, or that state is yet to come."""
        if stage[0] > self.logged or stage[1] > self.newest:
            return -1
        for known in reversed(self.stages):
            if known[0] <= stage[0] and known[1] <= stage[1]:
                return known[2]
        return -1

    cdef void move_from(self, Changes other) noexcept:
        """Have all that another of the same file has read, which then has nothing."""
        self.cache.clear()
        self.cache_used = 0
        self.segments, other.segments = other.segments, self.segments
        self.lengths, other.lengths = other.lengths, self.lengths
        self.documents, other.documents = other.documents, self.documents
        self.estimate, other.estimate = other.estimate, self.estimate
        self.marks, other.marks = other.marks, self.marks
        self.ids, other.ids = other.ids, self.ids
        self.changes, other.changes = other.changes, self.changes
        self.changes_n, other.changes_n = other.changes_n, self.changes_n
        self.segments_n = other.segments_n
        self.half_merged = other.half_merged
        self.rows = other.rows
        self.tokens = other.tokens
        self.longest = other.longest
        self.newest = other.newest
        self.logged = other.logged
        self.dropped = other.dropped
        self.stages = other.stages
        self.snapshot, other.snapshot = other.snapshot, None
        self.weigh_lengths()
