"""Terms decoded for the scorer, and the bounded cache of them.

It knows how a (kind, text) pair is looked up and how its postings are packed; not how they are
weighed.
"""


@cython.internal
cdef class Decoded:
    """The postings of one term, rows ascending, every count above zero.

    Four bytes a posting: the low half of the row, and the count. Posting i belongs to the block
    of 1,024 rows b with start[b] <= i < start[b + 1]. `peak` is the most that a posting counts for
    where rows are `average` tokens long, tf / (tf + norm); `segments_n` is how many segments of the
    index it was decoded from.
    """

    cdef uint32_t *start
    cdef uint16_t *low
    cdef uint16_t *count
    cdef size_t n
    cdef size_t blocks
    cdef int segments_n
    cdef float peak
    cdef double average

    def __dealloc__(self):
        free(self.start)


@cython.internal
cdef class Vocabulary(Snapshot):
    """Decoded terms, from the index or from the cache."""

    # The block that the term being packed has got to
    cdef size_t block

    cdef Decoded decode(self, int kind, str text):
        """The postings of one term, from the cache if they are in it."""
        cdef Decoded term = self.cache.pop((kind, text), None)
        cdef size_t bytes
        if term is not None and self.is_short(term):
            self.cache_used -= self.bytes_of(term)
            term = self.lengthened(term, kind, text)
            self.cache_used += self.bytes_of(term)
        if term is None:
            term = self.decoded(kind, text)
            bytes = self.bytes_of(term)
            if bytes > self.cache_room:
                return term
            self.cache_used += bytes
        self.cache[kind, text] = term
        self.make_room()
        return term

    cdef int make_room(self) except -1:
        while self.cache_used > self.cache_room:
            oldest = next(iter(self.cache))
            self.cache_used -= self.bytes_of(<Decoded>self.cache.pop(oldest))
        return 0

    cdef int take_over(self, dict cache) except -1:
        """Keep the terms of another cache, as less recently used than those that are here."""
        cdef dict held = self.cache
        self.cache = {}
        self.cache_used = 0
        for source in (cache, held):
            for key, term in source.items():
                if source is held or key not in held:
                    self.cache[key] = term
                    self.cache_used += self.bytes_of(<Decoded>term)
        self.make_room()
        return 0

    cdef Decoded decoded(self, int kind, str text):
        cdef Decoded term = Decoded()
        self.block = 0
        self.complain(self.decode_into(term, kind, text))
        return term

    cdef bint is_short(self, Decoded term) noexcept:
        """Whether rows have come since the term was decoded."""
        return term.segments_n != self.segments_n or term.blocks != self.blocks()

    cdef Decoded lengthened(self, Decoded term, int kind, str text):
        """The term with what the segments that came since have of it: rows beyond its last."""
        cdef Decoded whole = Decoded()
        cdef Decoded tail
        cdef int segments_n = self.segments_n
        self.segments_n -= term.segments_n
        try:
            tail = self.decoded(kind, text)
        finally:
            self.segments_n = segments_n
        if self.room_for(whole, term.n + tail.n) != MORE:
            raise MemoryError
        self.join(whole, term, tail)
        return whole

    cdef void join(self, Decoded whole, Decoded term, Decoded tail) noexcept nogil:
        cdef size_t block
        memcpy(whole.low, term.low, term.n * sizeof(uint16_t))
        memcpy(whole.count, term.count, term.n * sizeof(uint16_t))
        memcpy(whole.low + term.n, tail.low, tail.n * sizeof(uint16_t))
        memcpy(whole.count + term.n, tail.count, tail.n * sizeof(uint16_t))
        for block in range(whole.blocks):
            whole.start[block] = tail.start[block] + (
                term.start[block] if block < term.blocks else <uint32_t>term.n
            )
        whole.n = term.n + tail.n
        whole.peak = max(self.peak_of(term), tail.peak)

    cdef float peak_of(self, Decoded term) noexcept nogil:
        """The most that a posting of the term counts for in the snapshot at hand: where rows are
        longer on average, no norm is smaller than by that share."""
        if term.peak == 0 or self.average <= term.average:
            return term.peak
        return <float>(term.peak * (self.average / term.average))

    cdef size_t blocks(self) noexcept nogil:
        return (self.ids >> BLOCK_SHIFT) + 2

    cdef size_t bytes_of(self, Decoded term) noexcept:
        return term.n * 4 + term.blocks * 4 + 256

    cdef int decode_into(self, Decoded term, int kind, str text) except -1:
        cdef bytes folded
        cdef uint32_t n = <uint32_t>len(text)
        cdef uint32_t *heads
        cdef const uint8_t *at
        cdef uint32_t size, i
        cdef int code
        if kind == WORD:
            if not 1 <= n <= 2:
                raise ValueError("a word term has one or two codepoints")
            text = f"\x1f{text}" if n == 2 else f"\x1f{text}\x1f"
        elif kind == ANYWHERE:
            if not 1 <= n <= 2:
                raise ValueError("a term found anywhere has one or two codepoints")
        elif n < 3:
            raise ValueError("a substring term has three codepoints or more")
        folded = b"0" + text.encode().lower()
        at = <const uint8_t *><const char *>folded
        size = <uint32_t>len(folded)
        if kind == ANYWHERE:
            with nogil:
                code = self.count_range(at, size, TITLE_AND_TEXT)
                if code == MORE:
                    code = self.keep_range(term)
            return code
        if kind == WORD or n == 3:
            with nogil:
                code = self.count_term(at, size, WORDS if kind == 1 else TITLE_AND_TEXT)
                if code == MORE:
                    code = self.keep_counts(term)
            return code
        heads = <uint32_t *>malloc((n + 1) * sizeof(uint32_t))
        if heads == NULL:
            return NO_MEMORY
        n = 0
        for i in range(1, size):
            if at[i] & 0xC0 != 0x80:
                heads[n] = i
                n += 1
        heads[n] = size
        with nogil:
            code = self.locate_phrase(at, heads, n - 2)
            if code == MORE:
                code = self.keep_hits(term)
        free(heads)
        return code

    cdef int room_for(self, Decoded term, size_t n) noexcept nogil:
        term.blocks = self.blocks()
        term.segments_n = self.segments_n
        term.average = self.average
        term.start = <uint32_t *>malloc(term.blocks * sizeof(uint32_t) + n * 2 * sizeof(uint16_t))
        if term.start == NULL:
            return NO_MEMORY
        term.low = <uint16_t *>(term.start + term.blocks)
        term.count = term.low + n
        return MORE

    cdef int keep_counts(self, Decoded term) noexcept nogil:
        """Keep lists[0], but for what is deleted or in other columns."""
        cdef Postings *list = &self.lists[0]
        cdef size_t i, n = 0
        for i in range(list.n):
            n += list.at[i].count != 0
        if self.room_for(term, n) != MORE:
            return NO_MEMORY
        for i in range(list.n):
            if list.at[i].count and self.keep(term, list.at[i].row, list.at[i].count) != MORE:
                return DAMAGED
        self.close_blocks(term)
        return MORE

    cdef int keep_hits(self, Decoded term) noexcept nogil:
        cdef Hits *list = &self.hits[0]
        cdef const uint8_t *readable = self.bytes.at + self.bytes.room
        cdef Hit *hit
        cdef int64_t count
        cdef size_t i
        if self.room_for(term, list.n) != MORE:
            return NO_MEMORY
        for i in range(list.n):
            hit = &list.at[i]
            count = hit.count
            if hit.met != self.met or hit.bytes == 0:
                continue
            if hit.form == RAW:
                count = counted(self.bytes.at + hit.at, hit.bytes, readable, TITLE_AND_TEXT)
            if count < 0:
                return DAMAGED
            if count and self.keep(term, hit.row, <uint32_t>count) != MORE:
                return DAMAGED
        self.close_blocks(term)
        return MORE

    cdef int keep_range(self, Decoded term) noexcept nogil:
        """Add up a range's postings row by row, in the dense array that estimates otherwise use."""
        cdef Postings *list = &self.lists[0]
        cdef float *sum = self.estimate
        cdef size_t i, word, n = 0
        cdef uint32_t row
        cdef int code = MORE
        for i in range(list.n):
            row = list.at[i].row
            if row < self.ids:
                n += (sum[row] == 0) & (list.at[i].count != 0)
                sum[row] += <float>list.at[i].count
                self.marks[row >> 6] |= <uint64_t>1 << (row & 63)
            elif list.at[i].count:
                code = DAMAGED
        if code == MORE:
            code = self.room_for(term, n)
        for word in range((self.ids >> 6) + 1):
            while self.marks[word]:
                row = <uint32_t>(word << 6 | lowest_bit(self.marks[word]))
                self.marks[word] &= self.marks[word] - 1
                if code == MORE and sum[row] != 0:
                    code = self.keep(term, row, <uint32_t>sum[row])
                sum[row] = 0
        if code == MORE:
            self.close_blocks(term)
        return code

    cdef inline int keep(self, Decoded term, uint32_t row, uint32_t count) noexcept nogil:
        """Append one posting; blocks passed over are closed on the way."""
        cdef float tf
        if row >= self.ids or count > ROW_TOKENS_MAX:
            return DAMAGED
        while self.block <= row >> BLOCK_SHIFT:
            term.start[self.block] = <uint32_t>term.n
            self.block += 1
        term.low[term.n] = <uint16_t>row
        term.count[term.n] = <uint16_t>count
        term.n += 1
        tf = <float>count
        tf = tf / (tf + self.norms_short[self.lengths[row]])
        if tf > term.peak:
            term.peak = tf
        return MORE

    cdef void close_blocks(self, Decoded term) noexcept nogil:
        while self.block < term.blocks:
            term.start[self.block] = <uint32_t>term.n
            self.block += 1
        self.block = 0
