"""Erasing rows from the full-text index: what FTS5's secure-delete does, but once for each page.

FTS5 erases posting by posting: for each term of each row it opens the term anew in every segment
and writes a page anew. Here the terms of all rows go in their order through each segment that has
any of them, and each page is read and written once. What is left is what FTS5's own leaves
(fts5_index.c, fts5DoSecureDelete), but for separators and doclist indexes: those name no term that
is gone. A page only ever gets shorter, nothing moves from one to another.

It writes FTS5's own tables, so FTS5 must hold nothing in memory that is not yet written, and must
have marked the file as one from which rows were erased (`version` in `%_config`).
"""

cdef enum:
    # A byte for FTS5's main index and three codepoints.
    KEY_BYTES_MAX = 13
    KEY_ROOM = 15
    # Levels that a doclist's own index may have (fts5_index.c, FTS5_DATA_HEIGHT_B bits).
    HEIGHTS = 32
    HEIGHT_SHIFT = 31
    SLOTS_MIN = 4096
    # Each number takes at most so many bytes.
    VARINT_BYTES_MAX = 9
    # A leaf tells its size in two bytes, and its footer takes less than its terms do.
    LEAF_BYTES_MAX = 1 << 17

cdef struct Key:
    uint8_t at[KEY_ROOM]
    uint8_t n

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


# What is looked for in a segment: the least and the greatest term of each row, all of them if one
# of these was there, and all of them in any case.
cdef enum Turn:
    EDGES, KEYS, ALL_KEYS, NOTHING


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


@cython.final
cdef class Eraser(Snapshot):
    """Takes rows out of the full-text index of one connection's store, for good.

    The arguments are as for Ranker; a view named after `chunks` (chunks_indexed) says what is
    indexed of each row: its id, text, title and words.
    """

    cdef sqlite3_stmt *writing[WRITING_STATEMENTS]
    # The rows that go, ascending; all their terms; and the least and the greatest term of each row.
    cdef uint32_t *rows_gone
    cdef size_t rows_n
    cdef Key *keys
    cdef size_t keys_n
    # How many leaves may be gone through for more terms than that, and may be gone through yet.
    cdef size_t leaves_max
    cdef size_t leaves_spare
    # A hash of them while they are gathered: a key's place, from 1 on; and its last row.
    cdef uint32_t *slots
    cdef size_t slots_n
    cdef uint32_t *last_row
    cdef Key *edges
    cdef size_t edges_n
    cdef readonly bint too_many
    # Postings that are to be found, and that have been.
    cdef size_t wanted
    cdef size_t found
    # Where the next step goes on: in which turn, segment and term; and what had been found before
    # that segment. Amid a doclist of many leaves, the next of them, else 0; and the term
    # to go on with after it.
    cdef Turn turn
    cdef int segment_at
    cdef size_t key_at
    cdef size_t before
    cdef int64_t further
    cdef size_t key_after
    cdef size_t leaves_left
    cdef Sheet sheet
    cdef Draft draft
    # The separator at hand: of the leaf on which a term would lie, and of the next.
    cdef int64_t page
    cdef int64_t next_page
    cdef bint indexed
    cdef uint8_t separator[TERM_BYTES_MAX]
    cdef uint32_t separator_n
    cdef uint8_t limit[TERM_BYTES_MAX]
    cdef uint32_t limit_n
    # Of the doclist at hand: whether it is the last on its leaf and any key's, and has rows left
    # there; whether rows above all that go have been met, whether the position list that runs over
    # the leaf's end is to go, and whether rows are left on the leaf.
    cdef bint last_met
    cdef bint last_has_rows
    cdef bint passed
    cdef bint dropping
    cdef bint rows_left
    # Whether a row goes that headed a leaf, and that the doclist's index names.
    cdef bint head_gone

    def __cinit__(self, connection, index="chunks_fts", chunks="chunks"):
        cdef int i
        for i, text in enumerate(WRITING_TEXTS):
            self.writing[i] = self.prepare(text.format(index=index, chunks=chunks))

    def __dealloc__(self):
        if self.sql != NULL:
            self.close()
        free(self.rows_gone)
        free(self.keys)
        free(self.slots)
        free(self.last_row)
        free(self.edges)
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

    def begin(self, rows, size_t leaves_max=1 << 31) -> None:
        """Set out to take rows out of the index, unless they have more than so many terms and those
        lie on more leaves than that: `too_many`, at a step.

        Must be called inside an open transaction that writes (else ValueError), while the view
        still tells what is indexed of the rows and FTS5 holds nothing back. Raises DamagedIndex,
        Cancelled, StoreFailed, MemoryError, as `step` does.
        """
        cdef bytearray structure = bytearray()
        cdef int code
        self.need_transaction()
        self.note_rows(sorted(set(rows)))
        self.leaves_max = self.leaves_spare = leaves_max
        self.too_many = False
        self.read_record(STRUCTURE_RECORD, structure)
        self.complain(self.load_structure(structure, len(structure)))
        with nogil:
            code = self.gather_keys()
            if code == MORE:
                code = self.clear_leftovers()
        self.complain(code)
        self.turn = EDGES
        self.segment_at = 0
        self.key_at = self.before = 0
        self.further = 0

    def step(self) -> bool:
        """Erase some more, of some hundred leaves; whether anything is left.

        Once nothing is, each row is out of the index with its postings, its sizes and its part in
        the averages, and every term that only they had is. Until then, after an exception, and when
        they are `too_many`, the index is neither one thing nor the other, and the transaction must
        not be committed.
        """
        cdef int code
        self.need_transaction()
        with nogil:
            code = self.erase_some()
        self.complain(MORE if code == END else code)
        if code == END and not self.too_many:
            self.uncount_rows()
        return code != END

    @property
    def lacking(self) -> int:
        """How many postings of the rows' texts have not been found in the index: none in the end,
        where index and text agreed. Below 0 where some have been found twice."""
        return <int64_t>self.wanted - <int64_t>self.found

    cdef int need_transaction(self) except -1:
        if self.writing[WRITE] == NULL or self.sql.get_autocommit(self.db):
            raise ValueError("erasing needs an open transaction")
        return 0

    cdef int note_rows(self, list rows) except -1:
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

    # Terms.

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

    # Segments.

    cdef int clear_leftovers(self) noexcept nogil:
        """Remove what a merge under way has done with and FTS5 still keeps until its end: segments
        that have been emptied, and separators and doclist indexes of leaves that have been."""
        cdef Segment *segment
        cdef int64_t all_pages = <int64_t>1 << HEIGHT_SHIFT
        cdef int i
        cdef int code = MORE
        for i in range(self.segments_n + self.segments_emptied):
            segment = &self.segments[i]
            if segment.first == 1:
                continue
            if segment.first == 0:
                code = self.drop_records(segment.id << SEGMENT_SHIFT, all_pages)
            if code == MORE:
                code = self.drop_doclist_indexes(
                    segment, 0, segment.first if segment.first else all_pages
                )
            if code == MORE:
                self.sql.bind_int64(self.writing[FORGET], 1, segment.id)
                self.sql.bind_int64(
                    self.writing[FORGET], 2, segment.first if segment.first else all_pages
                )
                self.sql.step(self.writing[FORGET])
                code = self.done_with(self.writing[FORGET])
            if code != MORE:
                return code
        return MORE

    cdef int erase_some(self) noexcept nogil:
        """Go on through the segments, newest first, until every posting has been found; END: it is
        done.

        FTS5 writes all of a row into one segment. A merge moves its terms to another in their
        order, so a segment that has any of them has the least or the greatest, unless merges met;
        for that, all is looked for everywhere at last.
        """
        cdef Segment *segment
        cdef int code
        self.leaves_left = LEAVES_A_STEP
        while self.turn != NOTHING and (self.further or self.found < self.wanted):
            if self.segment_at == self.segments_n:
                self.turn = ALL_KEYS if self.turn != ALL_KEYS else NOTHING
                self.segment_at = 0
                if not self.spare(0, self.segments_n):
                    return END
                continue
            segment = &self.segments[self.segment_at]
            if self.turn == EDGES:
                code = self.erase_terms(segment, self.edges, self.edges_n)
            else:
                code = self.erase_terms(segment, self.keys, self.keys_n)
            if code != END:
                return code
            self.key_at = 0
            if self.turn == EDGES and self.found > self.before:
                self.turn = KEYS
                if not self.spare(self.segment_at, self.segment_at + 1):
                    return END
                continue
            if self.turn == KEYS:
                self.turn = EDGES
            self.segment_at += 1
            self.before = self.found
        return END

    cdef bint spare(self, int i, int stop) noexcept nogil:
        """Whether all terms may be looked for in some segments: each is on a leaf there, or none.
        """
        cdef size_t leaves
        for i in range(i, stop):
            leaves = min(self.keys_n, <size_t>(self.segments[i].last - self.segments[i].first + 1))
            self.too_many |= self.keys_n > self.leaves_max and leaves > self.leaves_spare
            self.leaves_spare -= min(leaves, self.leaves_spare)
        return not self.too_many

    cdef int erase_terms(self, Segment *segment, Key *keys, size_t n) noexcept nogil:
        """Take the rows out of the doclists of some terms, leaf by leaf; END: of all."""
        cdef int code
        while self.key_at < n:
            if self.leaves_left == 0:
                return MORE
            code = MORE
            if self.further == 0:
                code = self.erase_on_leaf(segment, keys, n)
            if code == MORE and self.further:
                code = self.erase_further(segment)
            if code == MORE and self.further == 0:
                code = self.finish_leaf(segment)
            if code != MORE:
                return code
        return END

    cdef int find_leaf(self, Segment *segment, Key *key) noexcept nogil:
        """Find the leaf on which a term would lie, by its separator, and the next one's."""
        cdef int64_t place = 0
        cdef int code = self.look_up(
            BEFORE, segment, key, &place, self.separator, &self.separator_n
        )
        if code > END:
            return code
        self.page = place >> 1
        self.indexed = place & 1
        if self.page < segment.first:
            # The leaves before have been merged away, or have no term any more: it is not there.
            self.page = segment.first
            self.indexed = False
            self.separator_n = 0
        place = segment.last << 1
        code = self.look_up(AFTER, segment, key, &place, self.limit, &self.limit_n)
        self.next_page = max(self.page, place >> 1)
        if code > END:
            return code
        return DAMAGED if self.next_page > segment.last else MORE

    cdef int look_up(
        self, int which, Segment *segment, Key *key,
        int64_t *place, uint8_t *term, uint32_t *term_n
    ) noexcept nogil:
        cdef sqlite3_stmt *statement = self.writing[which]
        cdef uint32_t n
        self.sql.bind_int64(statement, 1, segment.id)
        self.sql.bind_blob(statement, 2, key.at, key.n, NULL)
        term_n[0] = 0
        if self.sql.step(statement) != SQLITE_ROW:
            return self.done_with(statement, END)
        place[0] = self.sql.column_int64(statement, 0)
        n = <uint32_t>self.sql.column_bytes(statement, 1)
        if 0 < n <= TERM_BYTES_MAX:  # SQLite gives no address of an empty blob
            memcpy(term, self.sql.column_blob(statement, 1), n)
        term_n[0] = n
        self.sql.reset(statement)
        return MORE if n <= TERM_BYTES_MAX else DAMAGED

    # Leaves.

    cdef int erase_on_leaf(self, Segment *segment, Key *keys, size_t n) noexcept nogil:
        """Take the rows out of doclists that begin on the leaf of the next key; where the last one
        goes on, tell from which leaf."""
        cdef size_t first = self.key_at
        cdef size_t last = first + 1
        cdef int code
        self.last_met = False
        code = self.find_leaf(segment, &keys[first])
        if code == MORE:
            code = self.read_sheet(segment, self.page)
        if code != MORE:
            return code
        while last < n and (
            self.limit_n == 0 or key_against(&keys[last], self.limit, self.limit_n) < 0
        ):
            last += 1
        self.key_after = last
        if self.sheet.first_term == 0:
            return MORE
        code = self.begin_draft()
        if code == MORE:
            code = self.thin_terms(keys + first, last - first)
        if code == MORE:
            code = self.write_draft()
        if code == MORE and self.draft.begins_anew:
            code = self.separate_anew(segment)
        self.last_has_rows = self.rows_left
        self.head_gone = False
        if code != MORE or not self.last_met or self.page == self.next_page:
            return code
        if self.passed and not self.dropping:
            return MORE
        self.further = self.page + 1
        return MORE if self.dropping else self.leaf_of_row(segment, &self.further)

    cdef int finish_leaf(self, Segment *segment) noexcept nogil:
        """Mend what names the last doclist of a leaf once it has been gone through, and go on to
        the next keys."""
        cdef int code = MORE
        if self.last_met and not self.last_has_rows:
            code = self.drop_bare_term(segment)
        if code == MORE and self.last_met and self.head_gone and self.indexed:
            code = self.mend_doclist_index(segment)
        self.key_at = self.key_after
        return code

    cdef int thin_terms(self, Key *keys, size_t n) noexcept nogil:
        """Copy the terms of the sheet to the draft, without the rows that go and without the terms
        that are left with none. A last term stays: its doclist may go on."""
        cdef Sheet *sheet = &self.sheet
        cdef Draft *draft = &self.draft
        cdef const uint8_t *footer = sheet.bytes + sheet.footer
        cdef const uint8_t *at
        cdef uint8_t term[TERM_BYTES_MAX]
        cdef uint32_t term_n = 0
        cdef uint32_t start = sheet.first_term
        cdef uint32_t stop, shared, rewind
        cdef uint32_t common = TERM_BYTES_MAX
        cdef uint64_t step
        cdef size_t i = 0
        cdef int order
        cdef int code
        cdef bint closes
        while True:
            closes = footer < sheet.bytes + sheet.total
            stop = sheet.size
            if closes:
                footer = varint(footer, sheet.bytes + sheet.total, &step)
                if footer == NULL or step >= sheet.size - start:
                    return DAMAGED
                stop = start + <uint32_t>step
            if stop <= start:
                return DAMAGED
            at = read_key(
                sheet.bytes + start, sheet.bytes + stop, start == sheet.first_term, term, &term_n,
                &shared,
            )
            if at == NULL:
                return DAMAGED
            order = -1
            while i < n:
                order = key_against(&keys[i], term, term_n)
                if order >= 0:
                    break
                i += 1
            rewind = draft.n
            common = min(common, shared)
            self.put_term(term, term_n, 0 if draft.terms == 0 else common)
            if i < n and order == 0:
                code = self.thin_rows(at, sheet.bytes + stop, closes)
                if code != MORE:
                    return code
                if closes and not self.rows_left:
                    draft.n = rewind
                    draft.terms -= 1
                    draft.begins_anew |= start == sheet.first_term
                else:
                    common = TERM_BYTES_MAX
                self.last_met = not closes
                i += 1
            else:
                self.copy(at, sheet.bytes + stop)
                common = TERM_BYTES_MAX
            if not closes:
                return MORE
            start = stop

    cdef int thin_rows(
        self, const uint8_t *at, const uint8_t *stop, bint closes
    ) noexcept nogil:
        """Copy rows of a doclist, of which the first stands in full, but for those that go. A
        marker stays a marker: an older segment may have what it takes away."""
        cdef Draft *draft = &self.draft
        cdef const uint8_t *copied = at
        cdef const uint8_t *begin
        cdef const uint8_t *body
        cdef uint64_t delta, size
        cdef uint64_t row = 0, row_kept = 0
        cdef uint32_t highest = self.rows_gone[self.rows_n - 1]
        cdef bint torn = False
        cdef bint over
        self.passed = self.dropping = self.rows_left = False
        while at < stop:
            begin = at
            at = varint(at, stop, &delta)
            body = at
            if at != NULL:
                at = varint(at, stop, &size)
            if at == NULL or delta == 0 or delta > CHUNK_ID_MAX or row + delta > CHUNK_ID_MAX:
                return DAMAGED
            row += delta
            over = size >> 1 > <uint64_t>(stop - at)
            if over and closes:
                return DAMAGED
            if self.goes(row):
                self.copy(copied, begin)
                if size & 1:
                    draft.n = put_varint(draft.bytes + draft.n, row - row_kept) - draft.bytes
                    draft.bytes[draft.n] = 1
                    draft.n += 1
                    row_kept = row
                    self.rows_left = True
                self.found += size > 1
                self.dropping = over
                draft.changed = torn = True
                copied = at = stop if over else at + (size >> 1)
                self.passed = row == highest
                continue
            self.rows_left = True
            if torn:
                draft.n = put_varint(draft.bytes + draft.n, row - row_kept) - draft.bytes
                copied = body
                torn = False
            row_kept = row
            if row > highest:
                self.passed = True
                break
            at = stop if over else at + (size >> 1)
        self.copy(copied, stop)
        return MORE

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

    cdef int erase_further(self, Segment *segment) noexcept nogil:
        """Take the rows out of a doclist on leaves after the one on which it begins."""
        cdef int code
        while self.further and self.leaves_left:
            code = self.read_sheet(segment, self.further)
            if code == MORE:
                code = self.begin_draft()
            if code == MORE:
                code = self.thin_head()
            if code == MORE:
                code = self.write_draft()
            if code != MORE:
                return code
            self.further += 1
            if (
                self.sheet.first_term
                or (self.passed and not self.dropping)
                or self.further > self.next_page
            ):
                self.further = 0
        return MORE

    cdef int leaf_of_row(self, Segment *segment, int64_t *page) noexcept nogil:
        """The last leaf that begins with a row not above the least of those that go; if there is
        none, the first."""
        cdef int64_t low = page[0]
        cdef int64_t high = self.next_page + 1
        cdef int64_t middle, probe
        cdef uint64_t row
        cdef int code
        while low < high:
            middle = (low + high) >> 1
            probe = middle
            row = 0
            # A leaf may hold nothing but a piece of a long position list.
            while row == 0 and probe >= low:
                code = self.first_row_of(segment, probe, &row)
                if code != MORE:
                    return code
                probe -= row == 0
            if row > self.rows_gone[0]:
                high = probe
                continue
            if row:
                page[0] = probe
            low = middle + 1
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

    cdef int thin_head(self) noexcept nogil:
        """Copy what a leaf has of a doclist that began before, but for the rows that go, and all
        the rest."""
        cdef Sheet *sheet = &self.sheet
        cdef Draft *draft = &self.draft
        cdef uint32_t head = sheet.first_term if sheet.first_term else sheet.size
        cdef uint32_t tail = sheet.first_row if sheet.first_row else head
        cdef uint64_t row = 0
        cdef int code
        draft.n = PAGE_HEADER
        draft.first_row = 0
        if not self.dropping:
            self.copy(sheet.bytes + PAGE_HEADER, sheet.bytes + tail)
        elif tail > PAGE_HEADER:
            draft.changed = True
        if tail < sheet.size:
            self.dropping = False
        if sheet.first_row:
            draft.first_row = draft.n
            if varint(sheet.bytes + sheet.first_row, sheet.bytes + head, &row) == NULL:
                return DAMAGED
            self.head_gone |= self.goes(row)
            code = self.thin_rows(
                sheet.bytes + sheet.first_row, sheet.bytes + head, sheet.first_term != 0
            )
            if code != MORE:
                return code
            if not self.rows_left:
                draft.first_row = 0
        return self.copy_terms() if sheet.first_term else MORE

    cdef int copy_terms(self) noexcept nogil:
        """Copy all terms of the sheet as they are."""
        cdef Sheet *sheet = &self.sheet
        cdef Draft *draft = &self.draft
        cdef const uint8_t *footer = sheet.bytes + sheet.footer
        cdef uint32_t shift = sheet.first_term - draft.n
        cdef uint32_t start = sheet.first_term
        cdef uint64_t step
        self.copy(sheet.bytes + sheet.first_term, sheet.bytes + sheet.size)
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

    cdef int drop_bare_term(self, Segment *segment) noexcept nogil:
        """Take the last term off the leaf at hand, if no leaf after it has a row of its doclist."""
        cdef int64_t page
        cdef int code
        for page in range(self.page + 1, self.next_page + 1):
            code = self.read_sheet(segment, page)
            if code != MORE or self.sheet.first_row:
                return code
            if self.sheet.first_term:
                break
        code = self.read_sheet(segment, self.page)
        if code == MORE:
            code = self.begin_draft()
        if code == MORE:
            code = self.copy_terms()
        if code != MORE:
            return code
        self.draft.terms -= 1
        self.draft.n = self.draft.starts[self.draft.terms]
        self.draft.changed = True
        self.draft.begins_anew = self.draft.terms == 0
        code = self.write_draft()
        if code == MORE and self.indexed:
            code = self.drop_doclist_index(segment)
        if code == MORE and self.draft.begins_anew:
            code = self.separate_anew(segment)
        return code

    cdef int drop_doclist_index(self, Segment *segment) noexcept nogil:
        """Remove the index of a doclist that is gone, and the mark which says that there is one."""
        cdef int code = self.drop_doclist_indexes(segment, self.page, self.next_page)
        self.indexed = False
        return self.tell_separator(UNMARK, segment) if code == MORE else code

    cdef int drop_doclist_indexes(
        self, Segment *segment, int64_t page, int64_t stop
    ) noexcept nogil:
        """Remove the doclist indexes of some leaves of a segment."""
        cdef int64_t base = doclist_index(segment)
        cdef int64_t height
        cdef int code
        for height in range(HEIGHTS):
            code = self.drop_records(base + (height << HEIGHT_SHIFT) + page, stop - page)
            if code != MORE:
                return code
        return MORE

    cdef int drop_records(self, int64_t first, int64_t count) noexcept nogil:
        cdef sqlite3_stmt *drop = self.writing[DROP]
        self.sql.bind_int64(drop, 1, first)
        self.sql.bind_int64(drop, 2, first + count)
        self.sql.step(drop)
        return self.done_with(drop)

    cdef int mend_doclist_index(self, Segment *segment) noexcept nogil:
        """Write the index of a doclist anew from the leaves: a leaf's number and its first row,
        then for each leaf after it by how much its first row is greater, 0 where it has none.

        One of more than one record stays as it is: it may name rows that are gone, and FTS5 does
        not mind (fts5IndexIntegrityCheckSegment).
        """
        cdef Sheet *sheet = &self.sheet
        cdef Draft *draft = &self.draft
        cdef uint8_t *at
        cdef int64_t page
        cdef int64_t told = 0
        cdef int64_t gap
        cdef uint64_t row
        cdef uint64_t before = 0
        cdef int code = self.read_record_into_sheet(doclist_index(segment) + self.page)
        if code != MORE or sheet.bytes[0]:
            return code
        draft.n = 0
        for page in range(self.page + 1, self.next_page + 1):
            code = self.first_row_of(segment, page, &row)
            if code == MORE:
                gap = page - max(told, self.page)
                code = self.make_room(1 + draft.n + gap + 2 * VARINT_BYTES_MAX)
            if code != MORE:
                return code
            if row == 0:
                continue
            if row <= before:
                return DAMAGED
            at = draft.bytes + draft.n
            if told == 0:
                at[0] = 0
                at = put_varint(at + 1, page)
            else:
                memset(at, 0, page - told - 1)
                at += page - told - 1
            at = put_varint(at, row - before)
            draft.n = <uint32_t>(at - draft.bytes)
            before = row
            told = page
        if told == 0:
            return self.drop_doclist_index(segment)
        sheet.id = doclist_index(segment) + self.page
        return self.write(draft.n)

    cdef int separate_anew(self, Segment *segment) noexcept nogil:
        """Mend the separator of a leaf that begins with another term than before.

        It gets the shortest beginning of that term which is above what it was, and so above all
        terms before; a leaf without a term has none, but for a segment's first, which is empty.
        """
        cdef Draft *draft = &self.draft
        cdef const uint8_t *term
        cdef uint32_t n
        cdef uint32_t at = 0
        cdef int code
        if self.separator_n == 0:
            return MORE
        if draft.terms == 0:
            return self.tell_separator(REMOVE, segment)
        term = draft.bytes + draft.starts[0] + 1
        n = draft.bytes[draft.starts[0]]
        while at < self.separator_n and at < n and term[at] == self.separator[at]:
            at += 1
        if at == self.separator_n:
            return MORE
        if at == n or term[at] < self.separator[at]:
            return DAMAGED
        self.sql.bind_blob(self.writing[RENAME], 3, term, at + 1, NULL)
        code = self.tell_separator(RENAME, segment)
        self.separator_n = at + 1
        memcpy(self.separator, term, self.separator_n)
        return code

    cdef int tell_separator(self, int which, Segment *segment) noexcept nogil:
        cdef sqlite3_stmt *statement = self.writing[which]
        self.sql.bind_int64(statement, 1, segment.id)
        self.sql.bind_blob(statement, 2, self.separator, self.separator_n, NULL)
        self.sql.step(statement)
        return self.done_with(statement)

    # Sheets and drafts.

    cdef int read_sheet(self, Segment *segment, int64_t page) noexcept nogil:
        """Read a leaf, unless the call has been cut short, and count it to the step, which may go
        beyond its number where a doclist has to be looked through.
        """
        cdef Sheet *sheet = &self.sheet
        cdef const uint8_t *at
        cdef uint64_t value = 0
        cdef int code
        if self.cancelled:
            return CANCELLED
        self.leaves_left -= self.leaves_left > 0
        code = self.read_record_into_sheet((segment.id << SEGMENT_SHIFT) + page)
        if code != MORE:
            return code
        if sheet.total < PAGE_HEADER or sheet.total > LEAF_BYTES_MAX:
            return DAMAGED
        sheet.first_row = sheet.bytes[0] << 8 | sheet.bytes[1]
        sheet.size = sheet.bytes[2] << 8 | sheet.bytes[3]
        sheet.footer = sheet.size
        if sheet.size < PAGE_HEADER or sheet.size > sheet.total:
            return DAMAGED
        if sheet.size < sheet.total:
            at = varint(sheet.bytes + sheet.size, sheet.bytes + sheet.total, &value)
            if at == NULL or value < PAGE_HEADER or value >= sheet.size:
                return DAMAGED
            sheet.footer = <uint32_t>(at - sheet.bytes)
        sheet.first_term = <uint32_t>value
        if sheet.first_row and (
            sheet.first_row < PAGE_HEADER
            or sheet.first_row >= (sheet.first_term if sheet.first_term else sheet.size)
        ):
            return DAMAGED
        return MORE

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

    cdef int begin_draft(self) noexcept nogil:
        """Begin a draft with what the sheet has before its first term.

        What is written is never longer than what was read, but numbers may be longer than those
        they stand for, for a moment.
        """
        cdef Draft *draft = &self.draft
        cdef int code = self.make_room(2 * self.sheet.total + TERM_BYTES_MAX)
        if code != MORE:
            return code
        draft.n = PAGE_HEADER
        draft.first_row = self.sheet.first_row
        draft.terms = 0
        draft.changed = draft.begins_anew = False
        if self.sheet.first_term:
            self.copy(self.sheet.bytes + PAGE_HEADER, self.sheet.bytes + self.sheet.first_term)
        return MORE

    cdef int make_room(self, size_t need) noexcept nogil:
        cdef Draft *draft = &self.draft
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

    cdef void copy(self, const uint8_t *at, const uint8_t *stop) noexcept nogil:
        memcpy(self.draft.bytes + self.draft.n, at, stop - at)
        self.draft.n += <uint32_t>(stop - at)

    cdef void put_term(self, const uint8_t *term, uint32_t n, uint32_t shared) noexcept nogil:
        """Begin a term that has its first `shared` bytes in common with the one before."""
        cdef Draft *draft = &self.draft
        cdef uint8_t *at = draft.bytes + draft.n
        draft.starts[draft.terms] = draft.n
        if draft.terms:
            at = put_varint(at, shared)
        at = put_varint(at, n - shared)
        draft.n = <uint32_t>(at - draft.bytes)
        draft.terms += 1
        self.copy(term + shared, term + n)

    cdef int write_draft(self) noexcept nogil:
        """Write the draft in place of the sheet, if it says anything else."""
        cdef Draft *draft = &self.draft
        cdef uint8_t *at
        cdef uint32_t i
        if not draft.changed:
            return MORE
        draft.bytes[0] = draft.first_row >> 8
        draft.bytes[1] = draft.first_row & 0xFF
        draft.bytes[2] = draft.n >> 8
        draft.bytes[3] = draft.n & 0xFF
        at = draft.bytes + draft.n
        for i in range(draft.terms):
            at = put_varint(at, draft.starts[i] - (draft.starts[i - 1] if i else 0))
        return self.write(<int>(at - draft.bytes))

    cdef int write(self, int n) noexcept nogil:
        """Write the first bytes of the draft in place of the sheet."""
        cdef sqlite3_stmt *write = self.writing[WRITE]
        self.sql.bind_int64(write, 1, self.sheet.id)
        self.sql.bind_blob(write, 2, self.draft.bytes, n, NULL)
        self.sql.step(write)
        return self.done_with(write)

    cdef int done_with(self, sqlite3_stmt *statement, int outcome=MORE) noexcept nogil:
        """Reset a statement that has no row to give: `outcome`, unless it failed."""
        cdef int code = self.sql.reset(statement)
        if code == SQLITE_OK:
            return outcome
        self.sqlite_code = code
        return STORE_FAILED

    # Sizes.

    cdef int uncount_rows(self) except -1:
        """Remove the rows' sizes, and take them from the averages."""
        cdef bytearray averages = bytearray()
        cdef sqlite3_stmt *write = self.writing[WRITE]
        cdef uint64_t sums[1 + COLUMNS]
        cdef uint8_t record[(1 + COLUMNS) * VARINT_BYTES_MAX]
        cdef uint8_t *stop = record
        cdef size_t row
        cdef int i
        cdef int code
        self.read_record(AVERAGES_RECORD, averages)
        self.complain(read_numbers(averages, len(averages), sums, 1 + COLUMNS))
        for row in range(self.rows_n):
            self.complain(self.uncount_row(self.rows_gone[row], sums))
        for i in range(1 + COLUMNS):
            stop = put_varint(stop, sums[i])
        self.sql.bind_int64(write, 1, AVERAGES_RECORD)
        self.sql.bind_blob(write, 2, record, <int>(stop - record), NULL)
        self.sql.step(write)
        code = self.done_with(write)
        self.complain(code)
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


cdef inline int64_t doclist_index(const Segment *segment) noexcept nogil:
    """The record of the doclist index of a segment's leaf 0, if it had one."""
    return (segment.id << SEGMENT_SHIFT) + (<int64_t>1 << (SEGMENT_SHIFT - 1))


cdef void fill_key(Key *key, const uint8_t *text, uint32_t n) noexcept nogil:
    """A trigram as FTS5 keeps it, the byte of its main index before it."""
    memset(key, 0, sizeof(Key))
    key.at[0] = 0x30
    memcpy(key.at + 1, text, n)
    fold(key.at + 1, n)
    key.n = <uint8_t>(n + 1)


cdef const uint8_t *read_key(
    const uint8_t *at, const uint8_t *stop, bint whole,
    uint8_t *term, uint32_t *term_n, uint32_t *shared
) noexcept nogil:
    """Read a term over the one before it; answer where its doclist begins, NULL: damaged."""
    cdef uint64_t keep = 0
    cdef uint64_t fresh = 0
    if not whole:
        at = varint(at, stop, &keep)
        if at == NULL or keep > term_n[0]:
            return NULL
    at = varint(at, stop, &fresh)
    if at == NULL or fresh == 0 or fresh > TERM_BYTES_MAX - keep or fresh > <uint64_t>(stop - at):
        return NULL
    memcpy(term + keep, at, fresh)
    term_n[0] = <uint32_t>(keep + fresh)
    shared[0] = <uint32_t>keep
    return at + fresh


cdef int read_numbers(
    const uint8_t *at, size_t n, uint64_t *numbers, int count
) noexcept nogil:
    cdef const uint8_t *stop = at + n
    cdef int i
    if at == NULL:
        return DAMAGED
    for i in range(count):
        at = varint(at, stop, &numbers[i])
        if at == NULL or numbers[i] >= TOKENS_END:
            return DAMAGED
    return MORE if at == stop else DAMAGED
