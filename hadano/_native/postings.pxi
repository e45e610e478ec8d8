"""Terms decoded for the scorer, and the bounded cache of them.

It knows how a (kind, text) pair is looked up and how its postings are packed; not how they are
weighed.
"""


@cython.internal
cdef class Decoded:
    """The postings of one term, rows ascending, every count above zero.

    Two bytes a posting: above, which row of its block it is of, below, the count, or MANY where
    that stands in `many`, rows ascending. Posting i belongs to the block of 1,024 rows b with
    start[b] <= i < start[b + 1]. `peak` is the most that a posting counts for where rows are
    `average` tokens long, tf / (tf + norm); `seen` is how many changes of the index had been met
    when it was true, and `room` for how many postings there is room.
    """

    cdef uint32_t *start
    cdef uint16_t *posting
    cdef Posting *many
    cdef size_t many_n
    cdef size_t many_room
    cdef size_t n
    cdef size_t blocks
    cdef size_t room
    cdef int64_t seen
    cdef double peak
    cdef double average

    def __dealloc__(self):
        free(self.start)
        free(self.many)


cdef bytes key_of(int kind, str text):
    """What the index's terms begin with, or are one behind the other, where a term is found."""
    cdef size_t n = len(text)
    if kind == WORD:
        if not 1 <= n <= 2:
            raise ValueError("a word term has one or two codepoints")
        text = f"\x1f{text}" if n == 2 else f"\x1f{text}\x1f"
    elif kind == ANYWHERE:
        if not 1 <= n <= 2:
            raise ValueError("a term found anywhere has one or two codepoints")
    elif n < 3:
        raise ValueError("a substring term has three codepoints or more")
    return b"0" + text.encode().lower()


cdef inline uint16_t packed(uint32_t row, uint32_t count) noexcept nogil:
    """A row's posting."""
    return <uint16_t>((row & (BLOCK_ROWS - 1)) << COUNT_BITS | min(count, <uint32_t>MANY))


cdef inline size_t place_in(Decoded term, uint32_t row) noexcept nogil:
    """Where a row's posting is among those of its block, or is to be."""
    cdef size_t at = term.start[row >> BLOCK_SHIFT]
    cdef size_t stop = term.start[(row >> BLOCK_SHIFT) + 1]
    cdef uint16_t least = packed(row, 0)
    cdef size_t middle
    while at < stop:
        middle = (at + stop) >> 1
        if term.posting[middle] < least:
            at = middle + 1
        else:
            stop = middle
    return at


cdef inline size_t place_of_many(const Posting *many, size_t n, uint32_t row) noexcept nogil:
    """Where a row is among those of many occurrences, or is to be."""
    cdef size_t at = 0
    cdef size_t middle
    while at < n:
        middle = (at + n) >> 1
        if many[middle].row < row:
            at = middle + 1
        else:
            n = middle
    return at


cdef void shift(Decoded term, size_t at, size_t block, int by) noexcept nogil:
    """Make room for a posting of a block (1), or take it out (-1)."""
    cdef size_t gone = by < 0
    cdef size_t bytes = (term.n - at - gone) * sizeof(uint16_t)
    memmove(term.posting + at + (by > 0), term.posting + at + gone, bytes)
    term.n += by
    for block in range(block + 1, term.blocks):
        term.start[block] += by


cdef int put_many(Decoded term, uint32_t row, uint32_t count) noexcept nogil:
    """Make `count` what stands in `many` of a row: nothing, where it fits into a posting."""
    cdef size_t at = place_of_many(term.many, term.many_n, row)
    cdef size_t there = at < term.many_n and term.many[at].row == row
    cdef size_t wanted = count >= MANY
    cdef void *moved
    if wanted and term.many_n == term.many_room:
        moved = realloc(term.many, grown(term.many_room, term.many_n + 1) * sizeof(Posting))
        if moved == NULL:
            return NO_MEMORY
        term.many = <Posting *>moved
        term.many_room = grown(term.many_room, term.many_n + 1)
    if there != wanted:
        memmove(
            term.many + at + wanted,
            term.many + at + there,
            (term.many_n - at - there) * sizeof(Posting),
        )
        term.many_n += wanted
        term.many_n -= there
    if wanted:
        term.many[at].row = row
        term.many[at].count = count
    return MORE


@cython.internal
cdef class Vocabulary(Changes):
    """Decoded terms, from the index or from the cache."""

    # The block that the term being packed has got to
    cdef size_t block

    cdef Decoded decode(self, int kind, str text):
        """The postings of one term, from the cache if they are in it."""
        cdef Decoded term = self.cache.pop((kind, text), None)
        cdef size_t bytes
        if term is not None:
            self.cache_used -= self.bytes_of(term)
            if not self.made_true(term, kind, text):
                term = None
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

    cdef bint keep_more(self, int kind, str text) except -1:
        """Decode a term and keep it, but drop no other for it; False where there is no room."""
        cdef Decoded term
        cdef size_t bytes
        if (kind, text) in self.cache:
            return True
        term = self.decoded(kind, text)
        bytes = self.bytes_of(term)
        if self.cache_used + bytes > self.cache_room:
            return False
        self.cache_used += bytes
        self.cache[kind, text] = term
        return True

    cdef int take_over(self, dict cache, dict places) except -1:
        """Keep the terms of another cache, as less recently used than those that are here, and its
        first as the last to go; in `places`, how many changes had been met here when the other had
        met so many."""
        cdef dict held = self.cache
        cdef Decoded term
        self.cache = {}
        self.cache_used = 0
        for key in reversed(cache):
            term = cache[key]
            if key not in held and places.get(term.seen, -1) >= 0:
                term.seen = places[term.seen]
                self.cache[key] = term
        self.cache.update(held)
        for term in self.cache.values():
            self.cache_used += self.bytes_of(term)
        self.make_room()
        return 0

    cdef Decoded decoded(self, int kind, str text):
        cdef Decoded term = Decoded()
        self.block = 0
        self.complain(self.decode_into(term, kind, text))
        term.seen = self.changes_end()
        return term

    cdef bint made_true(self, Decoded term, int kind, str text) except -1:
        """Make a term that is kept true of the snapshot at hand; False: it cannot be."""
        cdef bytes folded = key_of(kind, text)
        cdef const uint8_t *sought = <const uint8_t *><const char *>folded + 1
        cdef size_t n = len(folded) - 1
        cdef uint32_t columns = WORDS if kind == WORD else TITLE_AND_TEXT
        cdef Change *change
        cdef int code = MORE
        if term.seen == self.changes_end() and term.blocks == self.blocks():
            return True
        if term.seen < self.dropped:
            return False
        with nogil:
            term.peak = self.peak_of(term)
            term.average = self.average
            while term.seen < self.changes_end() and code == MORE:
                change = &self.changes[term.seen - self.dropped]
                code = self.put(term, change.row, occurrences_in(change, sought, n, columns))
                term.seen += 1
                if self.cancelled:
                    code = CANCELLED
            if code == MORE and term.blocks != self.blocks():
                code = self.widen(term, term.n)
        self.complain(code)
        return True

    cdef int put(self, Decoded term, uint32_t row, uint32_t count) noexcept nogil:
        """Make `count` the count of a row, whatever it was."""
        cdef size_t block = row >> BLOCK_SHIFT
        cdef size_t at
        cdef bint there
        cdef int code
        if count > ROW_TOKENS_MAX:
            return DAMAGED
        if count and (block + 1 >= term.blocks or term.n == term.room):
            code = self.widen(term, term.n + term.n // 32 + 64)
            if code != MORE:
                return code
        if block + 1 >= term.blocks:
            return MORE
        if put_many(term, row, count) != MORE:
            return NO_MEMORY
        at = place_in(term, row)
        there = at < term.start[block + 1] and term.posting[at] | MANY == packed(row, MANY)
        if there != (count != 0):
            shift(term, at, block, 1 if count else -1)
        if count:
            term.posting[at] = packed(row, count)
            self.raise_peak(term, row, count)
        return MORE

    cdef int widen(self, Decoded term, size_t room) noexcept nogil:
        """Room for so many postings, and for all blocks that there are: fewer than before where
        the term was decoded by another ranker, which had room for more rows."""
        cdef uint32_t *start = term.start
        cdef uint16_t *posting = term.posting
        cdef size_t blocks = term.blocks
        cdef size_t block
        if self.room_for(term, room) != MORE:
            return NO_MEMORY
        memcpy(term.start, start, min(blocks, term.blocks) * sizeof(uint32_t))
        for block in range(blocks, term.blocks):
            term.start[block] = <uint32_t>term.n
        memcpy(term.posting, posting, term.n * sizeof(uint16_t))
        free(start)
        return MORE

    cdef double peak_of(self, Decoded term) noexcept nogil:
        """The most that a posting of the term counts for in the snapshot at hand: where rows are
        longer on average, no norm is smaller than by that share."""
        if term.peak == 0 or self.average <= term.average:
            return term.peak
        return term.peak * (self.average / term.average)

    cdef size_t blocks(self) noexcept nogil:
        return (self.ids >> BLOCK_SHIFT) + 2

    cdef size_t bytes_of(self, Decoded term) noexcept:
        return (
            term.room * sizeof(uint16_t)
            + term.blocks * sizeof(uint32_t)
            + term.many_room * sizeof(Posting)
            + 256
        )

    cdef int decode_into(self, Decoded term, int kind, str text) except -1:
        cdef bytes folded = key_of(kind, text)
        cdef uint32_t n = <uint32_t>len(text)
        cdef uint32_t *heads
        cdef const uint8_t *at = <const uint8_t *><const char *>folded
        cdef uint32_t size = <uint32_t>len(folded)
        cdef uint32_t i
        cdef int code
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
            code = self.locate_phrase(at, heads, n - 2, is_readable(at + 1, size - 1))
            if code == MORE and self.by_text:
                code = self.keep_read(term, at + 1, size - 1)
            elif code == MORE:
                code = self.keep_hits(term)
        free(heads)
        return code

    cdef int room_for(self, Decoded term, size_t n) noexcept nogil:
        cdef size_t blocks = self.blocks()
        cdef uint32_t *start = <uint32_t *>malloc(
            blocks * sizeof(uint32_t) + n * sizeof(uint16_t)
        )
        if start == NULL:
            return NO_MEMORY
        term.room = n
        term.blocks = blocks
        term.average = self.average
        term.start = start
        term.posting = <uint16_t *>(start + blocks)
        return MORE

    cdef int keep_counts(self, Decoded term) noexcept nogil:
        """Keep lists[0], but for what is deleted or in other columns."""
        cdef Postings *list = &self.lists[0]
        cdef size_t i, n = 0
        cdef int code
        for i in range(list.n):
            n += list.at[i].count != 0
        if self.room_for(term, n) != MORE:
            return NO_MEMORY
        for i in range(list.n):
            if list.at[i].count:
                code = self.keep(term, list.at[i].row, list.at[i].count)
                if code != MORE:
                    return code
        self.close_blocks(term)
        return MORE

    cdef int keep_hits(self, Decoded term) noexcept nogil:
        cdef Hits *list = &self.hits[0]
        cdef const uint8_t *readable = self.bytes.at + self.bytes.room
        cdef Hit *hit
        cdef int64_t count
        cdef size_t i
        cdef int code
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
            if count:
                code = self.keep(term, hit.row, <uint32_t>count)
                if code != MORE:
                    return code
        self.close_blocks(term)
        return MORE

    cdef int keep_read(self, Decoded term, const uint8_t *sought, size_t n) noexcept nogil:
        """Keep those of hits[0] in whose texts a phrase is."""
        cdef Hits *list = &self.hits[0]
        cdef int64_t count
        cdef size_t i
        cdef int code = MORE
        if self.room_for(term, list.n) != MORE:
            return NO_MEMORY
        for i in range(list.n):
            if self.cancelled:
                return CANCELLED
            if list.at[i].bytes == 0:
                continue
            count = self.times_in_row(&list.at[i], sought, n)
            if count < 0:
                return <int>-count
            if count:
                code = self.keep(term, list.at[i].row, <uint32_t>count)
            if code != MORE:
                return code
        self.close_blocks(term)
        return MORE

    cdef int64_t times_in_row(
        self, const Hit *hit, const uint8_t *sought, size_t n
    ) noexcept nogil:
        """How often a phrase is in a row's title and text; as times_in_text. The first trigram's
        positions tell whether the title can have it: a byte 0x01 is before each column's but the
        text's, which comes first."""
        cdef Change change
        cdef int64_t count
        cdef int code
        if hit.form == RAW and memchr(self.bytes.at + hit.at, 1, hit.bytes) == NULL:
            return self.times_in_text(hit.row, sought, n)
        change.row = hit.row
        change.text = NULL
        code = self.read_text(&change)
        count = occurrences_in(&change, sought, n, TITLE_AND_TEXT) if code == MORE else -code
        free(change.text)
        return count

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
        if row >= self.ids or count > ROW_TOKENS_MAX:
            return DAMAGED
        while self.block <= row >> BLOCK_SHIFT:
            term.start[self.block] = <uint32_t>term.n
            self.block += 1
        if count >= MANY and put_many(term, row, count) != MORE:
            return NO_MEMORY
        term.posting[term.n] = packed(row, count)
        term.n += 1
        self.raise_peak(term, row, count)
        return MORE

    cdef inline void raise_peak(self, Decoded term, uint32_t row, uint32_t count) noexcept nogil:
        cdef float tf = <float>count
        tf = tf / (tf + self.norms_short[self.lengths[row]])
        if tf > term.peak:
            term.peak = tf

    cdef void close_blocks(self, Decoded term) noexcept nogil:
        while self.block < term.blocks:
            term.start[self.block] = <uint32_t>term.n
            self.block += 1
        self.block = 0
