"""A leaf of the index as it is, and as it becomes: read from FTS5's tables, and written in place.

How a leaf's parts are found and put together again, with all bounds checked, and the statements
that change FTS5's tables. It knows one record at a time: not what is to be left out of a leaf, nor
what else in the index names it.
"""

cdef enum:
    # Each number takes at most so many bytes.
    VARINT_BYTES_MAX = 9
    # A leaf tells its size in two bytes, and its footer takes less than its terms do.
    LEAF_BYTES_MAX = 1 << 17

# The prepared statements, in the order of their texts.
cdef enum:
    WRITE, BEFORE, AFTER, RENAME, REMOVE, UNMARK, FORGET, DROP, TEXT_OF, SIZES_OF, NO_SIZES
    WRITING_STATEMENTS

WRITING_TEXTS = (
    "UPDATE {index}_data SET block = ?2 WHERE id = ?1",
    "SELECT pgno, term FROM {index}_idx WHERE segid = ?1 AND term <= ?2 ORDER BY term DESC LIMIT 1",
    "SELECT pgno, term FROM {index}_idx WHERE segid = ?1 AND term > ?2 ORDER BY term LIMIT 1",
    "UPDATE {index}_idx SET term = ?3 WHERE segid = ?1 AND term = ?2",
    "DELETE FROM {index}_idx WHERE segid = ?1 AND term = ?2",
    "UPDATE {index}_idx SET pgno = pgno & ~1 WHERE segid = ?1 AND term = ?2",
    # Leaves ascend with their terms, so only what goes is looked at, and one more; all terms begin
    # with a byte below 0xFF.
    "DELETE FROM {index}_idx WHERE segid = ?1 AND term < coalesce((SELECT term FROM {index}_idx"
    " WHERE segid = ?1 AND pgno >> 1 >= ?2 ORDER BY term LIMIT 1), x'ff')",
    "DELETE FROM {index}_data WHERE id >= ?1 AND id < ?2",
    INDEXED_TEXTS,
    "SELECT id, sz FROM {index}_docsize WHERE id = ?1",
    "DELETE FROM {index}_docsize WHERE id = ?1",
)

# A leaf as it is, copied: it is written while it is read.
cdef struct Sheet:
    int64_t id
    uint8_t *bytes
    size_t room
    uint32_t total
    uint32_t size
    uint32_t first_row
    uint32_t first_term
    # Where the footer's second term is told.
    uint32_t footer

# A term of a sheet, whose doclist is `doclist`..`stop`; `closes` says whether it ends there,
# because another term follows. `shared`: bytes that it has in common with the term before.
cdef struct SheetTerm:
    uint32_t start
    uint32_t stop
    uint32_t footer
    const uint8_t *doclist
    bint closes
    uint32_t shared
    uint32_t n
    uint8_t bytes[TERM_BYTES_MAX]

# A leaf as it becomes: its terms' starts go into the footer at last.
cdef struct Draft:
    uint8_t *bytes
    uint32_t *starts
    size_t room
    uint32_t n
    uint32_t first_row
    uint32_t terms
    bint changed
    # Its first term is another than before, or there is none.
    bint begins_anew


cdef inline uint8_t *put_varint(uint8_t *at, uint64_t value) noexcept nogil:
    """Write one SQLite varint of a number below 2**56, whose bytes carry seven bits each; answer
    where it ends. Rows, pages and lengths are below 2**32 here, and sums below TOKENS_END.
    """
    cdef uint8_t digits[VARINT_BYTES_MAX]
    cdef int n = 1
    digits[0] = value & 0x7F
    value >>= 7
    while value:
        digits[n] = (value & 0x7F) | 0x80
        value >>= 7
        n += 1
    while n:
        n -= 1
        at[0] = digits[n]
        at += 1
    return at


cdef inline uint32_t head_end(const Sheet *sheet) noexcept nogil:
    """Where the part of a leaf ends that continues a doclist of the leaf before."""
    return sheet.first_term if sheet.first_term else sheet.size


cdef int find_parts(Sheet *sheet) noexcept nogil:
    """Find where the parts of a leaf begin that has just been read."""
    cdef const uint8_t *at
    cdef uint64_t first_term = 0
    if sheet.total < PAGE_HEADER or sheet.total > LEAF_BYTES_MAX:
        return DAMAGED
    sheet.first_row = sheet.bytes[0] << 8 | sheet.bytes[1]
    sheet.size = sheet.bytes[2] << 8 | sheet.bytes[3]
    sheet.footer = sheet.size
    if sheet.size < PAGE_HEADER or sheet.size > sheet.total:
        return DAMAGED
    if sheet.size < sheet.total:
        at = varint(sheet.bytes + sheet.size, sheet.bytes + sheet.total, &first_term)
        if at == NULL or first_term < PAGE_HEADER or first_term >= sheet.size:
            return DAMAGED
        sheet.footer = <uint32_t>(at - sheet.bytes)
    sheet.first_term = <uint32_t>first_term
    if sheet.first_row and not PAGE_HEADER <= sheet.first_row < head_end(sheet):
        return DAMAGED
    return MORE


cdef inline void before_terms(const Sheet *sheet, SheetTerm *term) noexcept nogil:
    """Stand before a leaf's first term, for `next_term_on`; there must be one."""
    term.stop = sheet.first_term
    term.footer = sheet.footer
    term.n = 0


cdef inline int next_term_on(const Sheet *sheet, SheetTerm *term) noexcept nogil:
    """Go to the next term of a leaf; the one before must have been closed by it."""
    cdef const uint8_t *end = sheet.bytes + sheet.total
    cdef const uint8_t *at
    cdef uint64_t step
    cdef uint64_t keep = 0
    cdef uint64_t fresh = 0
    term.start = term.stop
    term.stop = sheet.size
    term.closes = term.footer < sheet.total
    if term.closes:
        at = varint(sheet.bytes + term.footer, end, &step)
        if at == NULL or step >= sheet.size - term.start:
            return DAMAGED
        term.footer = <uint32_t>(at - sheet.bytes)
        term.stop = term.start + <uint32_t>step
    if term.stop <= term.start:
        return DAMAGED
    at = sheet.bytes + term.start
    end = sheet.bytes + term.stop
    if term.start != sheet.first_term:
        at = varint(at, end, &keep)
        if at == NULL or keep > term.n:
            return DAMAGED
    at = varint(at, end, &fresh)
    if at == NULL or fresh == 0 or fresh > TERM_BYTES_MAX - keep or fresh > <uint64_t>(end - at):
        return DAMAGED
    memcpy(term.bytes + keep, at, fresh)
    term.n = <uint32_t>(keep + fresh)
    term.shared = <uint32_t>keep
    term.doclist = at + fresh
    return MORE


cdef int draft_room(Draft *draft, size_t need) noexcept nogil:
    cdef size_t room = grown(draft.room, need)
    cdef void *moved
    if room == draft.room:
        return MORE
    moved = realloc(draft.bytes, room)
    if moved == NULL:
        return NO_MEMORY
    draft.bytes = <uint8_t *>moved
    moved = realloc(draft.starts, room * sizeof(uint32_t))
    if moved == NULL:
        return NO_MEMORY
    draft.starts = <uint32_t *>moved
    draft.room = room
    return MORE


cdef int begin_draft(Draft *draft, const Sheet *sheet) noexcept nogil:
    """Begin a draft of what is to be left of a sheet.

    What is written is never longer than what was read, but numbers may be longer than those they
    stand for, for a moment.
    """
    cdef int code = draft_room(draft, 2 * sheet.total + TERM_BYTES_MAX)
    if code != MORE:
        return code
    draft.n = PAGE_HEADER
    draft.first_row = 0
    draft.terms = 0
    draft.changed = draft.begins_anew = False
    return MORE


cdef inline void copy(Draft *draft, const uint8_t *at, const uint8_t *stop) noexcept nogil:
    memcpy(draft.bytes + draft.n, at, stop - at)
    draft.n += <uint32_t>(stop - at)


cdef inline void put_number(Draft *draft, uint64_t value) noexcept nogil:
    draft.n = <uint32_t>(put_varint(draft.bytes + draft.n, value) - draft.bytes)


cdef inline void put_term(Draft *draft, const SheetTerm *term, uint32_t shared) noexcept nogil:
    """Begin a term that has its first `shared` bytes in common with the one before, if any is."""
    draft.starts[draft.terms] = draft.n
    if draft.terms:
        put_number(draft, shared)
    else:
        shared = 0
    put_number(draft, term.n - shared)
    draft.terms += 1
    copy(draft, term.bytes + shared, term.bytes + term.n)


cdef void copy_head(Draft *draft, const Sheet *sheet) noexcept nogil:
    """Copy what a leaf has of a doclist that began before."""
    draft.first_row = sheet.first_row
    copy(draft, sheet.bytes + PAGE_HEADER, sheet.bytes + head_end(sheet))


cdef int copy_terms(Draft *draft, const Sheet *sheet) noexcept nogil:
    """Copy all terms of a leaf as they are."""
    cdef const uint8_t *footer = sheet.bytes + sheet.footer
    cdef uint32_t shift = sheet.first_term - draft.n
    cdef uint32_t start = sheet.first_term
    cdef uint64_t step
    copy(draft, sheet.bytes + sheet.first_term, sheet.bytes + sheet.size)
    draft.starts[0] = start - shift
    draft.terms = 1
    while footer < sheet.bytes + sheet.total:
        footer = varint(footer, sheet.bytes + sheet.total, &step)
        if footer == NULL or step >= sheet.size - start:
            return DAMAGED
        start += <uint32_t>step
        draft.starts[draft.terms] = start - shift
        draft.terms += 1
    return MORE


cdef int close_draft(Draft *draft) noexcept nogil:
    """Put the header before all and the footer behind it; answer the bytes of the whole leaf."""
    cdef uint8_t *at = draft.bytes + draft.n
    cdef uint32_t i
    draft.bytes[0] = draft.first_row >> 8
    draft.bytes[1] = draft.first_row & 0xFF
    draft.bytes[2] = draft.n >> 8
    draft.bytes[3] = draft.n & 0xFF
    for i in range(draft.terms):
        at = put_varint(at, draft.starts[i] - (draft.starts[i - 1] if i else 0))
    return <int>(at - draft.bytes)


@cython.internal
cdef class Sheets(Snapshot):
    """The statements that change FTS5's tables; a leaf that is read, and what is written for it."""

    cdef sqlite3_stmt *writing[WRITING_STATEMENTS]
    cdef Sheet sheet
    cdef Draft draft
    # How many leaves are yet to be read in this step.
    cdef size_t leaves_left

    def __cinit__(self, connection, index="chunks_fts", chunks="chunks"):
        cdef int i
        for i, text in enumerate(WRITING_TEXTS):
            self.writing[i] = self.prepare(text.format(index=index, chunks=chunks))

    def __dealloc__(self):
        if self.sql != NULL:
            self.close()
        free(self.sheet.bytes)
        free(self.draft.bytes)
        free(self.draft.starts)

    def close(self) -> None:
        """Finalize the statements; nothing can be erased afterwards."""
        cdef int i
        for i in range(WRITING_STATEMENTS):
            if self.writing[i] != NULL:
                self.sql.finalize(self.writing[i])
            self.writing[i] = NULL
        Snapshot.close(self)

    cdef int read_sheet(self, Segment *segment, int64_t page) noexcept nogil:
        """Read a leaf, unless the call has been cut short, and count it to the step, which may go
        beyond its number where a doclist has to be looked through.
        """
        cdef int code
        if self.cancelled:
            return CANCELLED
        self.leaves_left -= self.leaves_left > 0
        code = self.read_record_into_sheet((segment.id << SEGMENT_SHIFT) + page)
        return find_parts(&self.sheet) if code == MORE else code

    cdef int read_record_into_sheet(self, int64_t id) noexcept nogil:
        cdef Sheet *sheet = &self.sheet
        cdef sqlite3_stmt *record = self.statement[RECORD]
        cdef const uint8_t *at
        cdef void *moved
        sheet.id = id
        self.sql.bind_int64(record, 1, id)
        if self.sql.step(record) != SQLITE_ROW:
            return self.done_with(record, DAMAGED)
        at = <const uint8_t *>self.sql.column_blob(record, 0)
        sheet.total = <uint32_t>self.sql.column_bytes(record, 0)
        if at == NULL:
            self.sql.reset(record)
            return DAMAGED
        if sheet.total > sheet.room:
            moved = realloc(sheet.bytes, sheet.total)
            if moved == NULL:
                self.sql.reset(record)
                return NO_MEMORY
            sheet.bytes = <uint8_t *>moved
            sheet.room = sheet.total
        memcpy(sheet.bytes, at, sheet.total)
        self.sql.reset(record)
        return MORE

    cdef int first_row_of(self, Segment *segment, int64_t page, uint64_t *row) noexcept nogil:
        """The first row that begins on a leaf before any term, 0 if none does."""
        cdef Sheet *sheet = &self.sheet
        cdef const uint8_t *at
        cdef int code = self.read_sheet(segment, page)
        row[0] = 0
        if code != MORE or sheet.first_row == 0:
            return code
        at = varint(sheet.bytes + sheet.first_row, sheet.bytes + sheet.size, row)
        return DAMAGED if at == NULL or row[0] == 0 or row[0] > CHUNK_ID_MAX else MORE

    cdef int write_draft(self) noexcept nogil:
        """Write the draft in place of the sheet, if it says anything else."""
        if not self.draft.changed:
            return MORE
        return self.write(self.sheet.id, self.draft.bytes, close_draft(&self.draft))

    cdef int write(self, int64_t id, const uint8_t *at, int n) noexcept nogil:
        """Write a record in place of another."""
        cdef sqlite3_stmt *write = self.writing[WRITE]
        self.sql.bind_int64(write, 1, id)
        self.sql.bind_blob(write, 2, at, n, NULL)
        self.sql.step(write)
        return self.done_with(write)

    cdef int drop_records(self, int64_t first, int64_t count) noexcept nogil:
        cdef sqlite3_stmt *drop = self.writing[DROP]
        self.sql.bind_int64(drop, 1, first)
        self.sql.bind_int64(drop, 2, first + count)
        self.sql.step(drop)
        return self.done_with(drop)

    cdef int done_with(self, sqlite3_stmt *statement, int outcome=MORE) noexcept nogil:
        """Reset a statement that has no row to give: `outcome`, unless it failed."""
        cdef int code = self.sql.reset(statement)
        if code == SQLITE_OK:
            return outcome
        self.sqlite_code = code
        return STORE_FAILED
