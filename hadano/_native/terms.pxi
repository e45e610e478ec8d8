"""Terms across segments: one trigram, a range of them, or a phrase of trigrams.

FTS5's index is a log-structured merge tree: several segments may have a row under one term, and
the newest of them is right. It knows no scores.
"""


@cython.internal
cdef class Terms(Doclists):
    """The segments, newest first, and what a term comes to in them."""

    cdef Segment *segments
    cdef int segments_n
    # Behind them: those of which a merge under way has taken everything.
    cdef int segments_emptied
    # Whether a merge is under way: a row's terms may then be in two of them.
    cdef bint half_merged
    # Which of them have the first trigram of the phrase at hand.
    cdef uint8_t *having
    # Whether the rows in hits[0] only may have the phrase at hand, and their texts are to tell.
    cdef bint by_text
    cdef Postings lists[2]
    cdef Hits hits[2]

    def __cinit__(self):
        self.segments = <Segment *>malloc(SEGMENTS_MAX * sizeof(Segment))
        self.having = <uint8_t *>malloc(SEGMENTS_MAX)
        if self.segments == NULL or self.having == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int i
        free(self.segments)
        free(self.having)
        for i in range(2):
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
        """Fill lists[0] with one term's postings, all segments merged, the newest last."""
        cdef Postings *list = &self.lists[0]
        cdef size_t before
        cdef int i, code
        list.n = 0
        for i in range(self.segments_n - 1, -1, -1):
            code = self.find(&self.segments[i], key, n)
            if code == END:
                continue
            before = list.n
            if code == MORE:
                code = self.count_doclist(columns, list, 0, False)
            if code == MORE and 0 < before < list.n:
                if list.at[before].row <= list.at[before - 1].row:
                    code = self.fold_in(before, False)
            if code != MORE:
                return code
        return MORE

    cdef int find(self, Segment *segment, const uint8_t *key, uint32_t n) noexcept nogil:
        """Stand on a term of a segment; END: it has none such."""
        cdef int64_t page
        cdef int code = self.leaf_of(segment, key, n, &page, NULL)
        return self.seek(segment, page, key, n, True) if code == MORE else code

    cdef int fold_in(self, size_t before, bint keyed) noexcept nogil:
        """Merge what lists[0] has from `before` on, the newer, with what it has up to there."""
        cdef Postings held
        cdef Postings newer = self.lists[0]
        cdef Postings older = self.lists[0]
        cdef int code
        older.n = before
        newer.n -= before
        newer.at += before
        if keyed:
            newer.key += before
        code = merged(&newer, &older, &self.lists[1], keyed)
        held = self.lists[0]
        self.lists[0] = self.lists[1]
        self.lists[1] = held
        return code

    cdef int count_range(self, const uint8_t *key, uint32_t n, uint32_t columns) noexcept nogil:
        """Fill lists[0] with the postings of all terms that begin with `key`, each row of a term
        once.

        Mostly a newer segment has newer rows alone, and its postings need only be put behind the
        others. Where not, all are merged, in the order of terms and rows: what follows the prefix,
        at most eight bytes of it, is a posting's key then.
        """
        cdef size_t before = 0, done
        cdef uint32_t top = 0
        cdef int i, code
        self.lists[0].n = 0
        for i in range(self.segments_n - 1, -1, -1):
            code = self.count_range_of(&self.segments[i], key, n, columns)
            if code != MORE:
                return code
            done = self.lists[0].n
            if before and lowest_row(&self.lists[0], before) <= top:
                return self.merge_range(key, n, columns)
            top = max(top, highest_row(&self.lists[0], before))
            before = done
        return MORE

    cdef int merge_range(self, const uint8_t *key, uint32_t n, uint32_t columns) noexcept nogil:
        cdef size_t before
        cdef int i
        cdef int code = MORE
        self.lists[0].n = 0
        for i in range(self.segments_n - 1, -1, -1):
            before = self.lists[0].n
            code = self.count_range_of(&self.segments[i], key, n, columns)
            if code == MORE:
                code = self.fold_in(before, True)
            if code != MORE:
                return code
        return MORE

    cdef int count_range_of(
        self, Segment *segment, const uint8_t *key, uint32_t n, uint32_t columns
    ) noexcept nogil:
        """Append what one segment has under the terms that begin with `key`."""
        cdef Leaf *leaf = self.leaf
        cdef int64_t page
        cdef int code = self.leaf_of(segment, key, n, &page, NULL)
        if code == MORE:
            code = self.seek(segment, page, key, n, False)
        while code == MORE and leaf.term_bytes >= n and memcmp(leaf.term, key, n) == 0:
            if leaf.term_bytes - n > 8:
                return DAMAGED
            code = self.count_doclist(
                columns, &self.lists[0], suffix(leaf.term + n, leaf.term_bytes - n), True
            )
            if code == MORE:
                code = self.next_term()
        return MORE if code == END else code

    cdef int locate_phrase(
        self, const uint8_t *text, const uint32_t *heads, uint32_t n, bint readable
    ) noexcept nogil:
        """Fill hits[0] with the rows that hold the phrase of `n` >= 2 trigrams, and how often;
        where it can be looked for in texts (`readable`), perhaps with a few that may (`by_text`).

        heads[i] is where codepoint i begins in `text`; text[heads[i] - 1] may be overwritten by
        nobody: keys are built aside. A cover (first and last trigram, no codepoint left out) of
        least cost is read, the shortest doclist first. Leaves cost, and most of all the rows of the
        shortest doclist, for all of them are held against the others: a trigram that few rows
        have is worth reading where the cover could do without. Once few rows are left, their texts
        are sooner read than long doclists.
        """
        cdef int64_t *costs = <int64_t *>malloc(<size_t>n * 3 * sizeof(int64_t))
        cdef int code
        if costs == NULL:
            return NO_MEMORY
        code = self.locate_cover(text, heads, n, costs, readable)
        free(costs)
        return code

    cdef int span_of(self, const uint8_t *key, uint32_t n, int64_t *leaves) noexcept nogil:
        """Over how many leaves the doclists of `key` may run, one more; in the great segments
        alone, for looking into the small ones costs more than it tells."""
        cdef int64_t page, span
        cdef int64_t greatest = 0
        cdef int i, code
        leaves[0] = 1
        for i in range(self.segments_n):
            greatest = max(greatest, self.segments[i].last)
        for i in range(self.segments_n):
            if self.segments[i].last >= greatest // GREAT_SEGMENT:
                code = self.leaf_of(&self.segments[i], key, n, &page, &span)
                if code != MORE:
                    return code
                leaves[0] += span
        return MORE

    cdef int locate_cover(
        self, const uint8_t *text, const uint32_t *heads, uint32_t n, int64_t *cost, bint readable
    ) noexcept nogil:
        cdef int64_t *left = cost + n
        cdef int64_t *right = left + n
        cdef uint8_t key[16]
        cdef uint32_t key_n, i, best
        cdef uint32_t base = 0
        cdef uint32_t read = 0
        cdef int64_t rest
        cdef int64_t most = 0
        cdef size_t before
        cdef int code
        self.by_text = False
        for i in range(n):
            key_n = trigram(text, heads, i, key)
            code = self.span_of(key, key_n, &cost[i])
            if code != MORE:
                return code
        cover_costs(cost, left, 0, n, 1)
        cover_costs(cost, right, n - 1, n, -1)
        best = 0
        for i in range(1, n):
            if cover_cost(cost, left, right, i) < cover_cost(cost, left, right, best):
                best = i
        pass_over(cost, left, best, 0, -1)
        pass_over(cost, right, best, n - 1, 1)
        while True:
            rest = left_of_cover(cost, n)
            if rest == 0:
                return MORE
            if read > 1:
                before = self.hits[0].n
                self.close_ranks()
                if self.hits[0].n > before // 2:
                    most = 0
            if read and readable and self.hits[0].n * TEXT_COST <= <size_t>rest:
                self.by_text = True
                return MORE
            best = cheapest(cost, n, min(most, rest // LEFT_OUT_SHARE))
            key_n = trigram(text, heads, best, key)
            if read == 0:
                base = best
                most = rest if readable else 0
            code = self.one_trigram(key, key_n, base, best, read == 0)
            cost[best] = READ
            if code == MORE and read == 0:
                code = self.hold_against_itself(text, heads, n, base, cost)
            if code != MORE or self.hits[0].n == 0:
                return code
            read += 1

    cdef int hold_against_itself(
        self, const uint8_t *text, const uint32_t *heads, uint32_t n, uint32_t base, int64_t *cost
    ) noexcept nogil:
        """Thin the hits out by their own lists wherever the cover has the first trigram again, as
        in a rule of equals signs: the farthest first, which fewest have. A position takes a byte at
        least, and the phrase has as many as the text has of the trigram."""
        cdef uint8_t key[16]
        cdef uint8_t other[16]
        cdef uint32_t key_n = trigram(text, heads, base, key)
        cdef uint32_t at, bytes
        cdef int64_t i
        cdef size_t k
        cdef Hit *hit
        cdef uint32_t times = 0
        cdef int code = MORE
        for i in range(n):
            if trigram(text, heads, <uint32_t>i, other) == key_n:
                if memcmp(key, other, key_n) == 0:
                    times += 1
                    if cost[i] >= 0:
                        cost[i] = REPEATED
        if times == 1:
            return MORE
        for k in range(self.hits[0].n):
            hit = &self.hits[0].at[k]
            at = hit.at
            bytes = hit.bytes
            i = n
            if bytes < times:
                hit.bytes = 0
            while i > 0 and hit.bytes and code == MORE:
                i -= 1
                if cost[i] == REPEATED:
                    code = self.thin_slowly(
                        hit, self.bytes.at + at, bytes, base, <uint32_t>i
                    )
            if code != MORE:
                return code
        self.close_ranks()
        return MORE

    cdef int one_trigram(
        self, const uint8_t *key, uint32_t n, uint32_t base, uint32_t offset, bint first
    ) noexcept nogil:
        """Read one trigram of a phrase: the first fills hits[0], the others thin it out.

        A segment without the first has none of the hits' rows: to index a row anew, FTS5 writes all
        its terms anew, those that it had before too. But a merge goes term by term and in steps:
        while one is under way, some of a row's terms are in its output, others still in its input.
        """
        cdef int i, code
        if first:
            return self.locate_first(key, n)
        self.number_trigram()
        for i in range(self.segments_n):
            if not self.having[i] and not self.half_merged:
                continue
            code = self.find(&self.segments[i], key, n)
            if code == MORE:
                code = self.filter_doclist(base, offset, &self.hits[0])
            if code > END:
                return code
        return MORE

    cdef void number_trigram(self) noexcept nogil:
        cdef size_t i
        self.met += 1
        if self.met > MET_MAX:
            self.met = 1
            for i in range(self.hits[0].n):
                self.hits[0].at[i].met = 0

    cdef int locate_first(self, const uint8_t *key, uint32_t n) noexcept nogil:
        """Fill hits[0] with all rows of a trigram."""
        cdef Hits *list = &self.hits[0]
        cdef size_t before
        cdef int i, code
        list.n = 0
        self.met = 1
        self.positions.n = 0
        self.bytes.n = 0
        for i in range(self.segments_n - 1, -1, -1):
            code = self.find(&self.segments[i], key, n)
            self.having[i] = code == MORE
            if code == END:
                continue
            before = list.n
            if code == MORE:
                code = self.locate_doclist(list)
            if code == MORE and 0 < before < list.n:
                if list.at[before].row <= list.at[before - 1].row:
                    code = self.fold_in_hits(before)
            if code != MORE:
                return code
        return MORE

    cdef int fold_in_hits(self, size_t before) noexcept nogil:
        """As fold_in, for hits."""
        cdef Hits held
        cdef Hits newer = self.hits[0]
        cdef Hits older = self.hits[0]
        cdef int code
        older.n = before
        newer.n -= before
        newer.at += before
        code = merged_hits(&newer, &older, &self.hits[1])
        held = self.hits[0]
        self.hits[0] = self.hits[1]
        self.hits[1] = held
        return code

    cdef void close_ranks(self) noexcept nogil:
        """Drop the hits that the last trigram was not found for."""
        cdef size_t i, left = 0
        cdef Hit *hit
        for i in range(self.hits[0].n):
            hit = &self.hits[0].at[i]
            self.hits[0].at[left] = hit[0]
            left += (hit.met == self.met) & (hit.bytes != 0)
        self.hits[0].n = left
