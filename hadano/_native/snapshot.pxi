"""What is read of a snapshot as a whole: the index's shape and averages, and of every row its
length and its document's number, dense by chunk id.

It knows how all is read, and one row; not when either must be.
"""


@cython.internal
cdef class Snapshot(Terms):
    """The index's shape and averages; every chunk's length and document number."""

    cdef int64_t rows
    cdef int64_t tokens
    cdef double average
    # Dense by chunk id: `ids` of each.
    cdef uint16_t *lengths
    cdef uint32_t *documents
    cdef float *estimate
    cdef uint64_t *marks
    cdef size_t ids
    # By length
    cdef uint32_t longest
    cdef double norms[NO_ROW + 1]
    cdef float norms_short[NO_ROW + 1]

    def __dealloc__(self):
        free(self.lengths)
        free(self.documents)
        free(self.estimate)
        free(self.marks)

    cdef int read_record(self, int64_t id, bytearray into) except -1:
        cdef int code
        cdef const char *at
        self.sql.reset(self.statement[RECORD])
        self.sql.bind_int64(self.statement[RECORD], 1, id)
        code = self.sql.step(self.statement[RECORD])
        if code == SQLITE_ROW:
            at = <const char *>self.sql.column_blob(self.statement[RECORD], 0)
            if at != NULL:
                into += at[:self.sql.column_bytes(self.statement[RECORD], 0)]
        self.sql.reset(self.statement[RECORD])
        if code != SQLITE_ROW:
            self.sqlite_code = code
            self.complain(DAMAGED if code == SQLITE_DONE else STORE_FAILED)
        return 0

    cdef int64_t number(self, sqlite3_stmt *statement) except? -1:
        """What a statement's one row says, 0 for NULL."""
        cdef int64_t number = 0
        cdef int code = self.sql.step(statement)
        if code == SQLITE_ROW:
            number = self.sql.column_int64(statement, 0)
        self.sql.reset(statement)
        if code != SQLITE_ROW:
            self.sqlite_code = code
            self.complain(STORE_FAILED)
        return number

    cdef int load_row(self, uint32_t row) noexcept nogil:
        """Read one row's length and document number anew; a row that is gone has none."""
        cdef int code
        self.lengths[row] = NO_ROW
        self.sql.bind_int64(self.statement[LENGTH_OF], 1, row)
        self.sql.bind_int64(self.statement[DOCUMENT_OF], 1, row)
        code = self.sql.step(self.statement[LENGTH_OF])
        if code == SQLITE_ROW:
            code = self.keep_length(self.statement[LENGTH_OF])
            self.sql.reset(self.statement[LENGTH_OF])
            if code != MORE:
                return code
            code = self.sql.step(self.statement[DOCUMENT_OF])
            if code == SQLITE_ROW and self.keep_document(self.statement[DOCUMENT_OF]) != MORE:
                code = DAMAGED
        self.sql.reset(self.statement[LENGTH_OF])
        self.sql.reset(self.statement[DOCUMENT_OF])
        if code == DAMAGED or code == SQLITE_ROW or code == SQLITE_DONE:
            return DAMAGED if code == DAMAGED else MORE
        self.sqlite_code = code
        return STORE_FAILED

    cdef int load_structure(self, const uint8_t *at, size_t n) noexcept:
        cdef const uint8_t *stop = at + n
        cdef uint64_t levels, total, merging, count, skipped
        cdef uint64_t id = 0, first = 0, last = 0
        cdef uint64_t level, i, j
        cdef uint64_t extra = 0
        cdef Segment *segment
        cdef Segment emptied
        cdef uint8_t met[SEGMENTS_MAX + 1]
        if n < 7:
            return DAMAGED
        at += 4  # the configuration's cookie
        if n >= 8 and memcmp(at, b"\xff\x00\x00\x01", 4) == 0:
            # The newer form has five numbers more a segment (FTS5_STRUCTURE_V2).
            extra = 5
            at += 4
        at = varint(at, stop, &levels)
        at = varint(at, stop, &total) if at != NULL else NULL
        at = varint(at, stop, &skipped) if at != NULL else NULL
        if at == NULL or levels > SEGMENTS_MAX or total > SEGMENTS_MAX:
            return DAMAGED
        self.segments_n = 0
        self.half_merged = False
        memset(met, 0, sizeof(met))
        for level in range(levels):
            at = varint(at, stop, &merging)
            at = varint(at, stop, &count) if at != NULL else NULL
            if at == NULL or count > total - self.segments_n:
                return DAMAGED
            self.half_merged |= merging != 0
            # A level lists its segments oldest first; newest first is wanted.
            for i in range(count):
                segment = &self.segments[self.segments_n + count - 1 - i]
                at = varint(at, stop, &id)
                at = varint(at, stop, &first) if at != NULL else NULL
                at = varint(at, stop, &last) if at != NULL else NULL
                for j in range(extra):
                    at = varint(at, stop, &skipped) if at != NULL else NULL
                if at == NULL or last >= 1 << 31 or last < first or (first == 0 and last):
                    return DAMAGED
                # Leaves are numbered in each segment anew, so only equal ids could overlap.
                if id == 0 or id > SEGMENTS_MAX or met[id]:
                    return DAMAGED
                met[id] = True
                segment.id = <int64_t>id
                segment.first = <int64_t>first
                segment.last = <int64_t>last
            self.segments_n += <int>count
        if <uint64_t>self.segments_n != total:
            return DAMAGED
        # A segment whose terms have all been merged away is listed with first page 0: behind the
        # others, in no order.
        j = 0
        for i in range(total):
            if self.segments[i].first > 0:
                emptied = self.segments[j]
                self.segments[j] = self.segments[i]
                self.segments[i] = emptied
                j += 1
        self.segments_n = <int>j
        self.segments_emptied = <int>(total - j)
        return MORE

    cdef int load_averages(self, const uint8_t *at, size_t n) noexcept:
        cdef const uint8_t *stop = at + n
        cdef uint64_t value
        self.rows = 0
        self.tokens = 0
        if n == 0:
            return MORE
        at = varint(at, stop, &value)
        if at == NULL or value > CHUNK_ID_MAX:
            return DAMAGED
        self.rows = <int64_t>value
        while at < stop:
            at = varint(at, stop, &value)
            if at == NULL or value >= TOKENS_END:
                return DAMAGED
            self.tokens += <int64_t>value
        return MORE

    cdef int size_arrays(self, size_t ids) noexcept nogil:
        cdef size_t room = grown(self.ids, ids)
        cdef void *moved
        if room == self.ids:
            return MORE
        moved = realloc(self.lengths, room * sizeof(uint16_t))
        if moved == NULL:
            return NO_MEMORY
        self.lengths = <uint16_t *>moved
        moved = realloc(self.documents, room * sizeof(uint32_t))
        if moved == NULL:
            return NO_MEMORY
        self.documents = <uint32_t *>moved
        moved = calloc(room, sizeof(float))
        if moved == NULL:
            return NO_MEMORY
        free(self.estimate)
        self.estimate = <float *>moved
        moved = calloc((room >> 6) + 1, sizeof(uint64_t))
        if moved == NULL:
            return NO_MEMORY
        free(self.marks)
        self.marks = <uint64_t *>moved
        memset(self.lengths + self.ids, 0xFF, (room - self.ids) * sizeof(uint16_t))
        memset(self.documents + self.ids, 0xFF, (room - self.ids) * sizeof(uint32_t))
        self.ids = room
        return MORE

    cdef int64_t tokens_of(self, sqlite3_stmt *statement) noexcept nogil:
        """The sum of one docsize row, a varint a column; -1: damaged."""
        cdef const uint8_t *at = <const uint8_t *>self.sql.column_blob(statement, 1)
        cdef const uint8_t *stop = at + self.sql.column_bytes(statement, 1)
        cdef uint64_t value, sum = 0
        while at < stop:
            at = varint(at, stop, &value)
            if at == NULL or value > ROW_TOKENS_MAX:
                return -1
            sum += value
        return <int64_t>sum if sum <= ROW_TOKENS_MAX else -1

    cdef int keep_length(self, sqlite3_stmt *statement) noexcept nogil:
        cdef int64_t row = self.sql.column_int64(statement, 0)
        cdef int64_t tokens = self.tokens_of(statement)
        if row <= 0 or <size_t>row >= self.ids or tokens < 0:
            return DAMAGED
        self.lengths[row] = <uint16_t>tokens
        if tokens > self.longest:
            self.longest = <uint32_t>tokens
        return MORE

    cdef int keep_document(self, sqlite3_stmt *statement) noexcept nogil:
        cdef int64_t row = self.sql.column_int64(statement, 0)
        cdef int64_t doc = self.sql.column_int64(statement, 1)
        if row <= 0 or doc < 0 or doc >= NO_DOCUMENT:
            return DAMAGED
        if <size_t>row < self.ids:
            self.documents[row] = <uint32_t>doc
        return MORE

    cdef int load_lengths(self) noexcept nogil:
        """Read every row's length and document number."""
        cdef int code
        memset(self.documents, 0xFF, self.ids * sizeof(uint32_t))
        memset(self.lengths, 0xFF, self.ids * sizeof(uint16_t))
        self.longest = 0
        self.sql.reset(self.statement[LENGTHS])
        while True:
            if self.cancelled:
                return CANCELLED
            code = self.sql.step(self.statement[LENGTHS])
            if code != SQLITE_ROW:
                break
            if self.keep_length(self.statement[LENGTHS]) != MORE:
                return DAMAGED
        self.sql.reset(self.statement[LENGTHS])
        if code == SQLITE_DONE:
            self.sql.reset(self.statement[DOCUMENTS])
            while True:
                if self.cancelled:
                    return CANCELLED
                code = self.sql.step(self.statement[DOCUMENTS])
                if code != SQLITE_ROW:
                    break
                if self.keep_document(self.statement[DOCUMENTS]) != MORE:
                    return DAMAGED
            self.sql.reset(self.statement[DOCUMENTS])
        if code != SQLITE_DONE:
            self.sqlite_code = code
            return STORE_FAILED
        return MORE

    cdef void weigh_lengths(self) noexcept nogil:
        """FTS5's k1 * (1 - b + b * D / avgdl), for every length D there is."""
        cdef uint32_t length
        self.average = <double>self.tokens / <double>self.rows if self.rows else 1.0
        for length in range(self.longest + 1):
            self.norms[length] = K1 * (1 - B + B * <double>length / self.average)
            self.norms_short[length] = <float>self.norms[length]
