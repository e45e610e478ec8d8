"""Terms across segments: one trigram, a range of them, or a phrase of trigrams.

FTS5's index is a log-structured merge tree: several segments may have a row under one term, and
the newest of them is right. It knows no scores.
"""


@cython.internal
cdef class Terms(Doclists):
    """The segments, newest first, and what a term comes to in them."""

    cdef Segment *segments
    cdef int segments_n
    cdef Postings lists[3]
    cdef Hits hits[3]

    def __cinit__(self):
        self.segments = <Segment *>malloc(SEGMENTS_MAX * sizeof(Segment))
        if self.segments == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int i
        free(self.segments)
        for i in range(3):
            free(self.lists[i].at)
            free(self.lists[i].key)
            free(self.hits[i].at)

    cdef int leaf_of(
        self, Segment *segment, const uint8_t *key, uint32_t n, int64_t *page, int64_t *span
    ) noexcept nogil:
        """The leaf on which `key` would lie, and over how many leaves its doclist may run."""
        cdef int code
        cdef int64_t beyond = segment.last
        page[0] = segment.first
        self.sql.bind_int64(self.statement[SEPARATOR], 1, segment.id)
        self.sql.bind_blob(self.statement[SEPARATOR], 2, key, <int>n, NULL)
        code = self.sql.step(self.statement[SEPARATOR])
        if code == SQLITE_ROW:
            page[0] = max(segment.first, self.sql.column_int64(self.statement[SEPARATOR], 0) >> 1)
        self.sql.reset(self.statement[SEPARATOR])
        if code != SQLITE_ROW and code != SQLITE_DONE:
            self.sqlite_code = code
            return STORE_FAILED
        if span != NULL:
            self.sql.bind_int64(self.statement[FOLLOWING], 1, segment.id)
            self.sql.bind_blob(self.statement[FOLLOWING], 2, key, <int>n, NULL)
            code = self.sql.step(self.statement[FOLLOWING])
            if code == SQLITE_ROW:
                beyond = self.sql.column_int64(self.statement[FOLLOWING], 0) >> 1
            self.sql.reset(self.statement[FOLLOWING])
            if code != SQLITE_ROW and code != SQLITE_DONE:
                self.sqlite_code = code
                return STORE_FAILED
            span[0] = max(0, beyond - page[0])
        return DAMAGED if page[0] > segment.last else MORE

    cdef int count_term(self, const uint8_t *key, uint32_t n, uint32_t columns) noexcept nogil:
        """Fill lists[0] with one term's postings, all segments merged, the newest first."""
        cdef int i, code
        cdef int64_t page
        cdef Postings held
        self.lists[0].n = 0
        for i in range(self.segments_n):
            code = self.leaf_of(&self.segments[i], key, n, &page, NULL)
            if code == MORE:
                code = self.seek(&self.segments[i], page, key, n, True)
            if code == END:
                continue
            if code != MORE:
                return code
            self.lists[1].n = 0
            code = self.count_doclist(columns, &self.lists[1], 0, False)
            if code != MORE:
                return code
            code = self.fold_in(False)
            if code != MORE:
                return code
        return MORE

    cdef int fold_in(self, bint keyed) noexcept nogil:
        """Merge lists[1], from an older segment, into lists[0]."""
        cdef Postings held
        cdef int code
        if self.lists[0].n == 0:
            held = self.lists[0]
            self.lists[0] = self.lists[1]
            self.lists[1] = held
            return MORE
        code = merged(&self.lists[0], &self.lists[1], &self.lists[2], keyed)
        held = self.lists[0]
        self.lists[0] = self.lists[2]
        self.lists[2] = held
        return code

    cdef int count_range(self, const uint8_t *key, uint32_t n, uint32_t columns) noexcept nogil:
        """Fill lists[0] with the postings of all terms that begin with `key`, in (term, row) order.

        What follows the prefix, at most eight bytes of it, is a posting's key.
        """
        cdef Leaf *leaf = &self.leaf
        cdef int i, code
        cdef int64_t page
        self.lists[0].n = 0
        for i in range(self.segments_n):
            code = self.leaf_of(&self.segments[i], key, n, &page, NULL)
            if code != MORE:
                return code
            self.lists[1].n = 0
            code = self.seek(&self.segments[i], page, key, n, False)
            while code == MORE and leaf.term_bytes >= n and memcmp(leaf.term, key, n) == 0:
                if leaf.term_bytes - n > 8:
                    return DAMAGED
                code = self.count_doclist(
                    columns, &self.lists[1], suffix(leaf.term + n, leaf.term_bytes - n), True
                )
                if code == MORE:
                    code = self.next_term()
            if code > END:
                return code
            code = self.fold_in(True)
            if code != MORE:
                return code
        return MORE

    cdef int locate_phrase(
        self, const uint8_t *text, const uint32_t *heads, uint32_t n
    ) noexcept nogil:
        """Fill hits[0] with the rows that hold the phrase of `n` >= 2 trigrams, and how often.

        heads[i] is where codepoint i begins in `text`; text[heads[i] - 1] may be overwritten by
        nobody: keys are built aside. A cover (first and last trigram, no codepoint left out) of
        least cost is read, the shortest doclist first.
        """
        cdef int64_t *pages = <int64_t *>malloc(
            <size_t>n * (<size_t>self.segments_n + 1) * sizeof(int64_t)
            + <size_t>n * 2 * sizeof(int64_t)
        )
        cdef int code
        if pages == NULL:
            return NO_MEMORY
        code = self.locate_cover(text, heads, n, pages)
        free(pages)
        return code

    cdef int locate_cover(
        self, const uint8_t *text, const uint32_t *heads, uint32_t n, int64_t *pages
    ) noexcept nogil:
        cdef int64_t *cost = pages + <size_t>n * self.segments_n
        cdef int64_t *total = cost + n
        cdef int64_t *back = total + n
        cdef uint8_t key[16]
        cdef uint32_t key_n, i, j, best
        cdef uint32_t base = 0
        cdef uint32_t read = 0
        cdef int s, code
        cdef int64_t span
        for i in range(n):
            key_n = trigram(text, heads, i, key)
            cost[i] = self.segments_n
            for s in range(self.segments_n):
                code = self.leaf_of(
                    &self.segments[s], key, key_n, &pages[i * self.segments_n + s], &span
                )
                if code != MORE:
                    return code
                cost[i] += span * 8
        total[0] = cost[0]
        back[0] = -1
        for i in range(1, n):
            best = i - 1
            for j in range(i - 3 if i > 3 else 0, i - 1):
                if total[j] < total[best]:
                    best = j
            total[i] = total[best] + cost[i]
            back[i] = best
        # Mark the cover by its cost; what is not in it costs -1.
        i = n - 1
        while True:
            j = <uint32_t>back[i] if back[i] >= 0 else 0
            while i and i - 1 > j:
                i -= 1
                cost[i] = -1
            if i == 0:
                break
            i = j
            if back[i] < 0:
                break
        while True:
            best = n
            for i in range(n):
                if cost[i] >= 0 and (best == n or cost[i] < cost[best]):
                    best = i
            if best == n:
                return MORE
            key_n = trigram(text, heads, best, key)
            if read == 0:
                base = best
            elif read > 1:
                self.close_ranks()
            code = self.one_trigram(
                key, key_n, base, best, pages + <size_t>best * self.segments_n, read == 0
            )
            if code != MORE or self.hits[0].n == 0:
                return code
            cost[best] = -1
            read += 1

    cdef int one_trigram(
        self, const uint8_t *key, uint32_t n, uint32_t base, uint32_t offset,
        const int64_t *pages, bint first
    ) noexcept nogil:
        """Read one trigram of a phrase: the first fills hits[0], the others thin it out."""
        cdef int s, code
        cdef size_t i
        if first:
            self.hits[0].n = 0
            self.met = 1
            self.positions.n = 0
            self.bytes.n = 0
        else:
            self.met += 1
            if self.met > MET_MAX:
                self.met = 1
                for i in range(self.hits[0].n):
                    self.hits[0].at[i].met = 0
        for s in range(self.segments_n):
            code = self.seek(&self.segments[s], pages[s], key, n, True)
            if code == END:
                continue
            if code != MORE:
                return code
            if first:
                code = self.locate_segment()
            else:
                code = self.filter_doclist(base, offset, &self.hits[0])
            if code != MORE:
                return code
        return MORE

    cdef void close_ranks(self) noexcept nogil:
        """Drop the hits that the last trigram was not found for."""
        cdef size_t i, left = 0
        cdef Hit *hit
        for i in range(self.hits[0].n):
            hit = &self.hits[0].at[i]
            self.hits[0].at[left] = hit[0]
            left += (hit.met == self.met) & (hit.bytes != 0)
        self.hits[0].n = left

    cdef int locate_segment(self) noexcept nogil:
        cdef Hits held
        cdef int code
        self.hits[1].n = 0
        code = self.locate_doclist(&self.hits[1])
        if code != MORE:
            return code
        if self.hits[0].n == 0:
            held = self.hits[0]
            self.hits[0] = self.hits[1]
            self.hits[1] = held
            return MORE
        code = merged_hits(&self.hits[0], &self.hits[1], &self.hits[2])
        held = self.hits[0]
        self.hits[0] = self.hits[2]
        self.hits[2] = held
        return code
