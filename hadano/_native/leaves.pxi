"""Leaves: a finger that walks FTS5's pages, and the terms on them, where SQLite holds them.

It knows one segment at a time, and that a doclist goes on over leaves; not what is in one.
"""


@cython.internal
cdef class Leaves:
    """The connection, its statements, and the walk over leaves."""

    cdef object connection
    cdef const sqlite_api *sql
    cdef sqlite3 *db
    cdef sqlite3_stmt *statement[STATEMENTS]
    cdef int sqlite_code
    cdef volatile int cancelled
    # The finger in use, mostly the one at hand.
    cdef Leaf *leaf
    cdef Leaf own
    cdef size_t leaves_read
    # A position list that runs over the end of a leaf is put together here, a text folded.
    cdef uint8_t *spill
    cdef size_t spill_room

    def __cinit__(self, connection, index="chunks_fts", chunks="chunks", cache_bytes=32 << 20):
        cdef int i
        if sqlite_api_loaded == NULL:
            raise RuntimeError("the ranker's library is not loaded into the connection")
        self.connection = connection
        self.sql = sqlite_api_loaded
        self.db = <sqlite3 *><size_t>connection.sqlite3_pointer()
        for i, text in enumerate(STATEMENT_TEXTS):
            self.statement[i] = self.prepare(text.format(index=index, chunks=chunks))
        self.own.statement = self.statement[LEAVES]
        self.leaf = &self.own

    def __dealloc__(self):
        if self.sql != NULL:
            self.close()
        free(self.spill)

    cdef sqlite3_stmt *prepare(self, str text) except NULL:
        cdef bytes sql = text.encode()
        cdef sqlite3_stmt *statement = NULL
        cdef int code = self.sql.prepare_v3(
            self.db, sql, <int>len(sql), SQLITE_PREPARE_PERSISTENT, &statement, NULL
        )
        if code != SQLITE_OK:
            raise StoreFailed(code)
        return statement

    def close(self) -> None:
        """Finalize the statements; the ranker cannot be used afterwards."""
        cdef int i
        for i in range(STATEMENTS):
            if self.statement[i] != NULL:
                self.sql.finalize(self.statement[i])
            self.statement[i] = NULL

    def cancel(self) -> None:
        """End the ranking under way with Cancelled; safe from any thread. Holds until resume."""
        self.cancelled = 1

    def resume(self) -> None:
        """Take back cancel."""
        self.cancelled = 0

    cdef int complain(self, int code) except -1:
        """Turn an outcome into its exception; SQLite's corrupt (11) and not a database (26) too.

        No statement is left standing then: while one is, SQLite keeps an interrupt up, and the
        caller's ROLLBACK would be interrupted for ever.
        """
        cdef int failure = self.sqlite_code & 0xFF if code == STORE_FAILED else 0
        cdef int i
        if code == MORE:
            return 0
        for i in range(STATEMENTS):
            self.sql.reset(self.statement[i])
        if code == DAMAGED or failure == 11 or failure == 26:
            raise DamagedIndex("the full-text index is damaged")
        if code == NO_MEMORY or failure == 7:
            raise MemoryError
        if code == CANCELLED or failure == 9:
            raise Cancelled
        raise StoreFailed(self.sqlite_code)

    cdef int next_leaf(self) noexcept nogil:
        cdef Leaf *leaf = self.leaf
        cdef uint64_t value
        cdef int code
        cdef const uint8_t *at
        if self.cancelled:
            return CANCELLED
        if leaf.next_id > leaf.last_id:
            leaf.bytes = NULL
            return END
        code = self.sql.step(leaf.statement)
        if code != SQLITE_ROW:
            self.sqlite_code = code
            return DAMAGED if code == SQLITE_DONE else STORE_FAILED
        if self.sql.column_int64(leaf.statement, 0) != leaf.next_id:
            return DAMAGED
        if self.sql.column_type(leaf.statement, 1) != SQLITE_BLOB:
            return DAMAGED
        leaf.bytes = <const uint8_t *>self.sql.column_blob(leaf.statement, 1)
        leaf.total = <uint32_t>self.sql.column_bytes(leaf.statement, 1)
        if leaf.bytes == NULL or leaf.total < PAGE_HEADER:
            return DAMAGED
        leaf.next_id += 1
        self.leaves_read += 1
        leaf.first_row = leaf.bytes[0] << 8 | leaf.bytes[1]
        leaf.size = leaf.bytes[2] << 8 | leaf.bytes[3]
        if leaf.size < PAGE_HEADER or leaf.size > leaf.total:
            return DAMAGED
        leaf.first_term = 0
        leaf.footer = leaf.size
        if leaf.size < leaf.total:
            at = varint(leaf.bytes + leaf.size, leaf.bytes + leaf.total, &value)
            if at == NULL or value < PAGE_HEADER or value >= leaf.size:
                return DAMAGED
            leaf.first_term = <uint32_t>value
            leaf.footer = <uint32_t>(at - leaf.bytes)
        if leaf.first_row and (
            leaf.first_row < PAGE_HEADER
            or leaf.first_row >= (leaf.first_term if leaf.first_term else leaf.size)
        ):
            return DAMAGED
        return MORE

    cdef int open_leaf(self, Segment *segment, int64_t page) noexcept nogil:
        cdef Leaf *leaf = self.leaf
        leaf.next_id = (segment.id << SEGMENT_SHIFT) + page
        leaf.last_id = (segment.id << SEGMENT_SHIFT) + segment.last
        self.sql.reset(leaf.statement)
        self.sql.bind_int64(leaf.statement, 1, leaf.next_id)
        self.sql.bind_int64(leaf.statement, 2, leaf.last_id)
        return self.next_leaf()

    cdef int read_term(self, uint32_t term_at) noexcept nogil:
        """Read the term at `term_at` of the leaf, whose predecessor is in leaf.term."""
        cdef Leaf *leaf = self.leaf
        cdef const uint8_t *stop = leaf.bytes + leaf.size
        cdef const uint8_t *at = leaf.bytes + term_at
        cdef uint64_t keep = 0
        cdef uint64_t fresh, step
        if term_at != leaf.first_term:
            at = varint(at, stop, &keep)
            if at == NULL or keep > leaf.term_bytes:
                return DAMAGED
        at = varint(at, stop, &fresh)
        if at == NULL or fresh == 0 or fresh > TERM_BYTES_MAX - keep:
            return DAMAGED
        if fresh > <uint64_t>(stop - at):
            return DAMAGED
        memcpy(leaf.term + keep, at, fresh)
        leaf.term_bytes = <uint32_t>(keep + fresh)
        leaf.term_at = term_at
        leaf.at = <uint32_t>(at - leaf.bytes + fresh)
        leaf.next_term = 0
        leaf.stop = leaf.size
        leaf.closes = leaf.footer < leaf.total
        if leaf.closes:
            at = varint(leaf.bytes + leaf.footer, leaf.bytes + leaf.total, &step)
            if at == NULL or step > leaf.size or term_at + step >= leaf.size:
                return DAMAGED
            if term_at + step < leaf.at:
                return DAMAGED
            leaf.footer = <uint32_t>(at - leaf.bytes)
            leaf.next_term = term_at + <uint32_t>step
            leaf.stop = leaf.next_term
        return MORE

    cdef int next_term(self) noexcept nogil:
        """Go to the next term of the segment, once the doclist at hand has been read to its end."""
        cdef int code
        if self.leaf.bytes == NULL:
            return END
        if self.leaf.closes:
            return self.read_term(self.leaf.next_term)
        return self.read_term(self.leaf.first_term)

    cdef int seek(
        self, Segment *segment, int64_t page, const uint8_t *key, uint32_t n, bint exact
    ) noexcept nogil:
        """Stand on the first term not below `key`, or END; `exact`: on `key` itself, or END."""
        cdef Leaf *leaf = self.leaf
        cdef int code = self.open_leaf(segment, page)
        cdef int order
        cdef bint more
        while code == MORE:
            more = leaf.first_term != 0
            if more:
                code = self.read_term(leaf.first_term)
            while more and code == MORE:
                order = memcmp(leaf.term, key, min(n, leaf.term_bytes))
                if order == 0:
                    order = <int>leaf.term_bytes - <int>n
                if order >= 0:
                    return MORE if order == 0 or not exact else END
                more = leaf.closes
                if more:
                    code = self.read_term(leaf.next_term)
            if code != MORE or exact:
                return END if code == MORE else code
            code = self.next_leaf()
        return code

    cdef int settle(self) noexcept nogil:
        """Stand where the open doclist goes on within the leaf just loaded; END: it does not."""
        cdef Leaf *leaf = self.leaf
        if leaf.first_row:
            leaf.at = leaf.first_row
            leaf.closes = leaf.first_term != 0
            leaf.next_term = leaf.first_term
            leaf.stop = leaf.first_term if leaf.closes else leaf.size
            return MORE
        return END

    cdef int doclist_on(self) noexcept nogil:
        """Go where the open doclist goes on after this leaf, or END."""
        cdef Leaf *leaf = self.leaf
        cdef int code
        if leaf.closes:
            return END
        while True:
            code = self.next_leaf()
            if code != MORE:
                return code
            if leaf.first_row or leaf.first_term:
                return self.settle()

    cdef int spill_for(self, size_t n) noexcept nogil:
        """Room in the spill buffer for `n` bytes, and eight that may be read behind them."""
        cdef void *moved
        if n + 8 > self.spill_room:
            moved = realloc(self.spill, n + 4096)
            if moved == NULL:
                return NO_MEMORY
            self.spill = <uint8_t *>moved
            self.spill_room = n + 4096
        return MORE

    cdef int gather(self, const uint8_t *at, uint32_t have, uint64_t n) noexcept nogil:
        """Copy a position list of `n` bytes that runs over the leaf's end into the spill buffer.

        Answers MORE when the doclist goes on, END when the list was its last.
        """
        cdef Leaf *leaf = self.leaf
        cdef uint64_t got = have
        cdef uint32_t take
        cdef int code
        if leaf.closes or n > POSITION_BYTES_MAX:
            return DAMAGED
        if self.spill_for(<size_t>n) != MORE:
            return NO_MEMORY
        memcpy(self.spill, at, have)
        while True:
            code = self.next_leaf()
            if code != MORE:
                return DAMAGED if code == END else code
            take = <uint32_t>min(n - got, leaf.size - PAGE_HEADER)
            memcpy(self.spill + got, leaf.bytes + PAGE_HEADER, take)
            got += take
            if got == n:
                break
            if leaf.first_row or leaf.first_term:
                return DAMAGED
        if leaf.first_row:
            return self.settle() if leaf.first_row == PAGE_HEADER + take else DAMAGED
        if leaf.first_term:
            return END if leaf.first_term == PAGE_HEADER + take else DAMAGED
        leaf.closes = False
        return self.doclist_on()
