"""What names the leaves of a segment: separators, and the indexes of long doclists.

A separator (`%_idx`) is the beginning of a term; a doclist index says which row begins each leaf of
a doclist. Either may hold what only an erased row had, and FTS5's secure-delete leaves both as they
are; here they are written anew from what the leaves hold. It refuses to know which rows go, and
what becomes of a leaf.
"""

cdef enum:
    # Levels that a doclist's own index may have (fts5_index.c, FTS5_DATA_HEIGHT_B bits).
    HEIGHTS = 32
    HEIGHT_SHIFT = 31


cdef inline int64_t doclist_index(const Segment *segment) noexcept nogil:
    """The record of the doclist index of a segment's leaf 0, if it had one."""
    return (segment.id << SEGMENT_SHIFT) + (<int64_t>1 << (SEGMENT_SHIFT - 1))


@cython.internal
cdef class Separators(Sheets):
    """The separator at hand, and what is mended of it and of the doclist index that it tells of."""

    # The leaf on which a term would lie, its separator, and whether its last doclist has an index;
    # and the next leaf that has a separator, or else the segment's last.
    cdef int64_t page
    cdef uint8_t separator[TERM_BYTES_MAX]
    cdef uint32_t separator_n
    cdef bint indexed
    cdef int64_t next_page
    cdef uint8_t limit[TERM_BYTES_MAX]
    cdef uint32_t limit_n

    cdef int find_leaf(self, Segment *segment, const uint8_t *key, uint32_t n) noexcept nogil:
        """Find the leaf on which a term would lie, by its separator, and the next one's."""
        cdef int64_t place = 0
        cdef int code = self.look_up(
            BEFORE, segment, key, n, &place, self.separator, &self.separator_n
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
        code = self.look_up(AFTER, segment, key, n, &place, self.limit, &self.limit_n)
        self.next_page = max(self.page, place >> 1)
        if code > END:
            return code
        return DAMAGED if self.next_page > segment.last else MORE

    cdef int look_up(
        self, int which, Segment *segment, const uint8_t *key, uint32_t n,
        int64_t *place, uint8_t *term, uint32_t *term_n
    ) noexcept nogil:
        cdef sqlite3_stmt *statement = self.writing[which]
        cdef uint32_t found_n
        self.sql.bind_int64(statement, 1, segment.id)
        self.sql.bind_blob(statement, 2, key, <int>n, NULL)
        term_n[0] = 0
        if self.sql.step(statement) != SQLITE_ROW:
            return self.done_with(statement, END)
        place[0] = self.sql.column_int64(statement, 0)
        found_n = <uint32_t>self.sql.column_bytes(statement, 1)
        if 0 < found_n <= TERM_BYTES_MAX:  # SQLite gives no address of an empty blob
            memcpy(term, self.sql.column_blob(statement, 1), found_n)
        term_n[0] = found_n
        self.sql.reset(statement)
        return MORE if found_n <= TERM_BYTES_MAX else DAMAGED

    cdef int leaf_of_row(self, Segment *segment, uint64_t row, int64_t *page) noexcept nogil:
        """Up to the next leaf that has a separator, the last that begins with a row not above
        `row`; if there is none, the one given."""
        cdef int64_t low = page[0]
        cdef int64_t high = self.next_page + 1
        cdef int64_t middle, probe
        cdef uint64_t first
        cdef int code
        while low < high:
            middle = (low + high) >> 1
            probe = middle
            first = 0
            # A leaf may hold nothing but a piece of a long position list.
            while first == 0 and probe >= low:
                code = self.first_row_of(segment, probe, &first)
                if code != MORE:
                    return code
                probe -= first == 0
            if first > row:
                high = probe
                continue
            if first:
                page[0] = probe
            low = middle + 1
        return MORE

    cdef int separate_anew(self, Segment *segment) noexcept nogil:
        """Mend the separator of a leaf that begins with another term than before, as the draft has
        it.

        It gets the shortest beginning of that term which is above what it was, and so above all
        terms before; a leaf without a term has none, but for a segment's first, which is empty.
        """
        cdef Draft *draft = &self.draft
        cdef const uint8_t *term
        if self.separator_n == 0:
            return MORE
        if draft.terms == 0:
            return self.tell_separator(REMOVE, segment)
        term = draft.bytes + draft.starts[0]
        return self.name_leaf(segment, term + 1, term[0])

    cdef int name_leaf(self, Segment *segment, const uint8_t *term, uint32_t n) noexcept nogil:
        """Have the separator at hand be a beginning of the term with which its leaf begins."""
        cdef uint32_t at = 0
        cdef int code
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

    cdef int mend_doclist_index(self, Segment *segment) noexcept nogil:
        """Write the index of a doclist anew from the leaves: a leaf's number and its first row,
        then for each leaf after it by how much its first row is greater, 0 where it has none.

        One of more than one record stays as it is: it may name rows that are gone, and FTS5 does
        not mind (fts5IndexIntegrityCheckSegment).
        """
        cdef Draft *draft = &self.draft
        cdef int64_t page
        cdef int64_t told = 0
        cdef int64_t gap
        cdef uint64_t row
        cdef uint64_t before = 0
        cdef int code = self.read_record_into_sheet(doclist_index(segment) + self.page)
        if code != MORE or self.sheet.bytes[0]:
            return code
        draft.n = 0
        for page in range(self.page + 1, self.next_page + 1):
            code = self.first_row_of(segment, page, &row)
            if code == MORE:
                gap = page - max(told, self.page)
                code = draft_room(draft, 1 + draft.n + gap + 2 * VARINT_BYTES_MAX)
            if code != MORE:
                return code
            if row == 0:
                continue
            if row <= before:
                return DAMAGED
            if told == 0:
                put_number(draft, 0)  # there is no record above it
                put_number(draft, page)
            else:
                memset(draft.bytes + draft.n, 0, page - told - 1)
                draft.n += <uint32_t>(page - told - 1)
            put_number(draft, row - before)
            before = row
            told = page
        if told == 0:
            return self.drop_doclist_index(segment)
        return self.write(doclist_index(segment) + self.page, draft.bytes, <int>draft.n)

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

    cdef int clear_leftovers(self) noexcept nogil:
        """Remove what a merge under way has done with and FTS5 still keeps until its end: segments
        that have been emptied, separators and doclist indexes of leaves that have been, and what
        the separator of a leaf tells of terms that were cut from its beginning."""
        cdef sqlite3_stmt *forget = self.writing[FORGET]
        cdef int64_t all_pages = <int64_t>1 << HEIGHT_SHIFT
        cdef int64_t stop
        cdef Segment *segment
        cdef int i
        cdef int code = MORE
        for i in range(self.segments_n + self.segments_emptied):
            segment = &self.segments[i]
            if segment.first == 1:
                continue
            stop = segment.first if segment.first else all_pages
            if segment.first == 0:
                code = self.drop_records(segment.id << SEGMENT_SHIFT, all_pages)
            if code == MORE:
                code = self.drop_doclist_indexes(segment, 0, stop)
            if code == MORE:
                self.sql.bind_int64(forget, 1, segment.id)
                self.sql.bind_int64(forget, 2, stop)
                self.sql.step(forget)
                code = self.done_with(forget)
            if code == MORE and segment.first:
                code = self.name_first_leaf(segment)
            if code != MORE:
                return code
        return MORE

    cdef int name_first_leaf(self, Segment *segment) noexcept nogil:
        """Mend the separator of the first leaf of those that are left, which may be of a term that
        only the new segment has. All terms begin with a byte above 0."""
        cdef SheetTerm term
        cdef int64_t place = 0
        cdef uint8_t least = 0
        cdef int code = self.look_up(
            AFTER, segment, &least, 1, &place, self.separator, &self.separator_n
        )
        if code > END:
            return code
        if code == END or place >> 1 != segment.first:
            return MORE
        code = self.read_sheet(segment, segment.first)
        if code != MORE:
            return code
        if self.sheet.first_term == 0:
            return DAMAGED
        before_terms(&self.sheet, &term)
        code = next_term_on(&self.sheet, &term)
        return self.name_leaf(segment, term.bytes, term.n) if code == MORE else code
