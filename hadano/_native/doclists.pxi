"""Leaves and doclists: one finger that walks FTS5's pages where SQLite holds them.

It knows one segment at a time and one doclist at a time; which terms, and which of several
segments is right about a row, is decided above.
"""


@cython.internal
cdef class Doclists:
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
    # A position list that runs over the end of a leaf is put together here.
    cdef uint8_t *spill
    cdef size_t spill_room
    # The first trigram's pages, and the phrase starts of rows that a later trigram thinned out.
    cdef Bytes bytes
    cdef Positions positions
    cdef uint32_t met

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
        free(self.bytes.at)
        free(self.positions.at)

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
        """Turn an outcome into its exception; SQLite's corrupt (11) and not a database (26) too."""
        cdef int failure = self.sqlite_code & 0xFF if code == STORE_FAILED else 0
        if code == MORE:
            return 0
        self.sql.reset(self.statement[LEAVES])
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

    cdef int gather(self, const uint8_t *at, uint32_t have, uint64_t n) noexcept nogil:
        """Copy a position list of `n` bytes that runs over the leaf's end into the spill buffer.

        Answers MORE when the doclist goes on, END when the list was its last.
        """
        cdef Leaf *leaf = self.leaf
        cdef void *moved
        cdef uint64_t got = have
        cdef uint32_t take
        cdef int code
        if leaf.closes or n > POSITION_BYTES_MAX:
            return DAMAGED
        if n + 8 > self.spill_room:
            moved = realloc(self.spill, <size_t>n + 4096)
            if moved == NULL:
                return NO_MEMORY
            self.spill = <uint8_t *>moved
            self.spill_room = <size_t>n + 4096
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

    # ---------------------------------------------------------------- doclists

    cdef int count_doclist(
        self, uint32_t columns, Postings *out, uint64_t key, bint keyed
    ) noexcept nogil:
        """Append the open doclist to `out`: its rows, and their occurrences in `columns`."""
        cdef Leaf *leaf = self.leaf
        cdef const uint8_t *at
        cdef const uint8_t *stop
        cdef const uint8_t *readable
        cdef uint64_t delta, size
        cdef uint64_t row = 0
        cdef uint64_t n
        cdef int64_t count
        cdef size_t filled
        cdef bint absolute = True
        cdef int code = MORE
        while True:
            if code == MORE:
                at = leaf.bytes + leaf.at
                stop = leaf.bytes + leaf.stop
                readable = leaf.bytes + leaf.total
            if postings_room(out, out.n + <size_t>(stop - at) + 2, keyed) != MORE:
                return NO_MEMORY
            filled = out.n
            while at < stop:
                if stop - at > 1 and at[0] < 0x80 and at[1] < 0x80 and not absolute:
                    delta = at[0]
                    size = at[1]
                    at += 2
                else:
                    at = varint(at, stop, &delta)
                    if at == NULL:
                        return DAMAGED
                    at = varint(at, stop, &size)
                    if at == NULL:
                        return DAMAGED
                    if absolute:
                        if delta <= row:
                            return DAMAGED
                        delta -= row
                        absolute = False
                row += delta
                if delta == 0 or delta > CHUNK_ID_MAX or row > CHUNK_ID_MAX:
                    return DAMAGED
                n = size >> 1
                if n > <uint64_t>(stop - at):
                    break
                count = counted(at, <uint32_t>n, readable, columns) if n else 0
                if count < 0:
                    return DAMAGED
                out.at[filled].row = <uint32_t>row
                out.at[filled].count = <uint32_t>count
                if keyed:
                    out.key[filled] = key
                filled += 1
                at += n
            else:
                out.n = filled
                code = self.doclist_on()
                if code != MORE:
                    return MORE if code == END else code
                absolute = True
                continue
            code = self.gather(at, <uint32_t>(stop - at), n)
            if code > END:
                return code
            count = counted_slowly(self.spill, self.spill + n, columns)
            if count < 0:
                return DAMAGED
            out.at[filled].row = <uint32_t>row
            out.at[filled].count = <uint32_t>count
            if keyed:
                out.key[filled] = key
            out.n = filled + 1
            if code == END:
                return MORE
            absolute = True

    cdef int locate_doclist(self, Hits *out) noexcept nogil:
        """Append the open doclist's rows to `out`, and its pages to the byte store."""
        cdef Leaf *leaf = self.leaf
        cdef const uint8_t *at
        cdef const uint8_t *stop
        cdef const uint8_t *begin
        cdef uint64_t delta, size
        cdef uint64_t row = 0
        cdef uint64_t n
        cdef size_t base
        cdef Hit *hit
        cdef int code
        cdef bint absolute, runs_over
        while True:
            begin = at = leaf.bytes + leaf.at
            stop = leaf.bytes + leaf.stop
            absolute = True
            runs_over = False
            base = self.bytes.n
            n = 0
            if bytes_room(&self.bytes, base + <size_t>(stop - at) + 16) != MORE:
                return NO_MEMORY
            if hits_room(out, out.n + <size_t>(stop - at) // 2 + 1) != MORE:
                return NO_MEMORY
            memcpy(self.bytes.at + base, at, stop - at)
            self.bytes.n += stop - at
            hit = out.at + out.n
            while at < stop:
                if stop - at > 1 and (at[0] | at[1]) < 0x80 and not absolute:
                    delta = at[0]
                    size = at[1]
                    at += 2
                else:
                    at = varint(at, stop, &delta)
                    if at == NULL:
                        return DAMAGED
                    at = varint(at, stop, &size)
                    if at == NULL:
                        return DAMAGED
                    if absolute:
                        if delta <= row:
                            return DAMAGED
                        delta -= row
                        absolute = False
                row += delta
                if delta == 0 or row > CHUNK_ID_MAX or delta > CHUNK_ID_MAX:
                    return DAMAGED
                n = size >> 1
                hit.row = <uint32_t>row
                hit.at = <uint32_t>(base + (at - begin))
                hit.bytes = <uint32_t>n
                hit.count = 0
                hit.met = 1
                hit.form = RAW
                hit += 1
                if n > <uint64_t>(stop - at):
                    runs_over = True
                    break
                at += n
            out.n = hit - out.at
            if not runs_over:
                code = self.doclist_on()
            else:
                code = self.gather(at, <uint32_t>(stop - at), n)
                if code > END:
                    return code
                hit = out.at + out.n - 1
                hit.at = <uint32_t>self.bytes.n
                hit.bytes = <uint32_t>n
                if bytes_room(&self.bytes, self.bytes.n + <size_t>n + 16) != MORE:
                    return NO_MEMORY
                memcpy(self.bytes.at + self.bytes.n, self.spill, <size_t>n)
                self.bytes.n += <size_t>n
            if code != MORE:
                return MORE if code == END else code

    cdef int thin(
        self, Hit *hit, const uint8_t *at, uint32_t n, const uint8_t *readable,
        uint32_t base, uint32_t offset
    ) noexcept nogil:
        """Keep of `hit` those phrases that have a trigram of this position list at `offset`.

        `base` is the offset of the trigram whose lists are in the byte store.
        """
        cdef const uint8_t *raw = self.bytes.at + hit.at
        cdef int32_t shift = <int32_t>offset - <int32_t>base
        cdef uint32_t head
        cdef int found
        hit.met = <uint8_t>self.met
        if hit.form == STARTS or at + n + 8 > readable:
            return self.thin_slowly(hit, at, n, base, offset)
        if n == hit.bytes and same_but_shifted(raw, at, n, shift):
            return MORE
        head = head_of(raw)
        if hit.bytes > head and n > head and head_of(at) == head:
            if head == 0 or (raw[1] == at[1] <= 31 and (TITLE_AND_TEXT >> raw[1]) & 1):
                found = all_held(raw + head, raw + hit.bytes, at + head, at + n, shift)
                if found == 1:
                    return MORE
                # A list of a single position, of one byte or two, is thereby done with.
                if found == 0 and hit.bytes - head - 1 <= <uint32_t>(raw[head] >> 7):
                    hit.bytes = 0
                    return MORE
        return self.thin_slowly(hit, at, n, base, offset)

    cdef int thin_slowly(
        self, Hit *hit, const uint8_t *at, uint32_t n, uint32_t base, uint32_t offset
    ) noexcept nogil:
        cdef uint32_t *starts
        cdef int64_t count, i, left = 0
        if hit.bytes == 0:
            return MORE
        if positions_room(&self.positions, self.positions.n + hit.bytes) != MORE:
            return NO_MEMORY
        if hit.form != STARTS:
            starts = self.positions.at + self.positions.n
            count = decoded(
                self.bytes.at + hit.at, self.bytes.at + hit.at + hit.bytes, TITLE_AND_TEXT, starts
            )
            if count < 0:
                return DAMAGED
            for i in range(count):
                if (starts[i] & 0xFFFF) >= base:
                    starts[left] = starts[i] - base
                    left += 1
            hit.at = <uint32_t>self.positions.n
            hit.form = STARTS
            hit.bytes = 1
            hit.count = <uint16_t>left
            self.positions.n += left
        if hit.count:
            count = kept(at, at + n, self.positions.at + hit.at, hit.count, offset)
            if count < 0:
                return DAMAGED
            hit.count = <uint16_t>count
        if hit.count == 0:
            hit.bytes = 0
        return MORE

    cdef int filter_doclist(self, uint32_t base, uint32_t offset, Hits *hits) noexcept nogil:
        """Run the open doclist past `hits`: keep the starts that have this trigram at `offset`."""
        cdef Leaf *leaf = self.leaf
        cdef const uint8_t *at
        cdef const uint8_t *stop
        cdef uint64_t delta, size
        cdef uint64_t row = 0
        cdef uint64_t n
        cdef const uint8_t *near
        cdef const uint8_t *readable
        cdef Hit *hit = hits.at
        cdef Hit *last = hits.at + hits.n
        cdef int code
        cdef bint done
        cdef bint absolute = True
        at = leaf.bytes + leaf.at
        stop = leaf.bytes + leaf.stop
        readable = leaf.bytes + leaf.total
        while True:
            while at < stop:
                # Jump from row to row as long as both numbers are of one byte, the list is sure
                # to end on this leaf, and no candidate is reached: most of all reading is here.
                near = stop - SHORT_ROW if stop - at > SHORT_ROW and not absolute else at
                while at < near and (at[0] | at[1]) < 0x80:
                    row += at[0]
                    n = at[1] >> 1
                    at += 2
                    while hit.row < row:
                        hit += 1
                        if hit == last:
                            return MORE
                    if hit.row == row:
                        if hit.met != self.met:
                            code = self.thin(hit, at, <uint32_t>n, readable, base, offset)
                            if code != MORE:
                                return code
                        hit += 1
                        if hit == last:
                            return MORE
                    at += n
                if stop - at > 1 and at[0] < 0x80 and at[1] < 0x80 and not absolute:
                    delta = at[0]
                    size = at[1]
                    at += 2
                else:
                    at = varint(at, stop, &delta)
                    if at == NULL:
                        return DAMAGED
                    at = varint(at, stop, &size)
                    if at == NULL:
                        return DAMAGED
                    if absolute:
                        if delta <= row:
                            return DAMAGED
                        delta -= row
                        absolute = False
                row += delta
                if delta == 0 or delta > CHUNK_ID_MAX or row > CHUNK_ID_MAX:
                    return DAMAGED
                n = size >> 1
                if row >= hit.row:
                    while hit.row < row:
                        hit += 1
                        if hit == last:
                            return MORE
                    if hit.row == row:
                        break
                if n > <uint64_t>(stop - at):
                    if leaf.closes:
                        return DAMAGED
                    at = stop
                else:
                    at += n
            else:
                code = self.doclist_on()
                if code != MORE:
                    return MORE if code == END else code
                absolute = True
                at = leaf.bytes + leaf.at
                stop = leaf.bytes + leaf.stop
                readable = leaf.bytes + leaf.total
                continue
            # The row is a candidate.
            done = False
            if n <= <uint64_t>(stop - at):
                if hit.met != self.met:
                    code = self.thin(hit, at, <uint32_t>n, readable, base, offset)
                    if code != MORE:
                        return code
                at += n
            else:
                code = self.gather(at, <uint32_t>(stop - at), n)
                if code > END:
                    return code
                done = code == END
                if hit.met != self.met:
                    hit.met = <uint8_t>self.met
                    code = self.thin_slowly(hit, self.spill, <uint32_t>n, base, offset)
                    if code != MORE:
                        return code
                absolute = True
                at = leaf.bytes + leaf.at
                stop = leaf.bytes + leaf.stop
                readable = leaf.bytes + leaf.total
            hit += 1
            if hit == last or done:
                return MORE
