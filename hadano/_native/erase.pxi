"""Erasing rows from the full-text index: what FTS5's secure-delete does, but once for each page.

FTS5 erases posting by posting: for each term of each row it opens the term anew in every segment
and writes a page anew. Here the terms of all rows go in their order through each segment that has
any of them, and each page is read and written once. What is left is what FTS5's own leaves
(fts5_index.c, fts5DoSecureDelete), but for separators and doclist indexes: those name no term that
is gone. A page only ever gets shorter, nothing moves from one to another.

It writes FTS5's own tables, so FTS5 must hold nothing in memory that is not yet written, and must
have marked the file as one from which rows were erased (`version` in `%_config`). It knows in what
order leaves are gone through and what is left out of each, not how one is read and put together,
and not how terms are found in a text.
"""

# What is looked for in a segment: the least and the greatest term of each row, all of them if one
# of these was there, and all of them in any case.
cdef enum Turn:
    EDGES, KEYS, ALL_KEYS, NOTHING


@cython.final
cdef class Eraser(Gone):
    """Takes rows out of the full-text index of one connection's store, for good.

    The arguments are as for Ranker; a view named after `chunks` (chunks_indexed) says what is
    indexed of each row: its id, text, title and words.
    """

    # How many leaves may be gone through for more terms than that, and may be gone through yet.
    cdef size_t leaves_max
    cdef size_t leaves_spare
    cdef readonly bint too_many
    # Where the next step goes on: in which turn, segment and term; and what had been found before
    # that segment. Amid a doclist of many leaves, the next of them, else 0; and the term
    # to go on with after it.
    cdef Turn turn
    cdef int segment_at
    cdef size_t key_at
    cdef size_t before
    cdef int64_t further
    cdef size_t key_after
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

    # The walk over segments and terms.

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

    # Leaves.

    cdef int erase_on_leaf(self, Segment *segment, Key *keys, size_t n) noexcept nogil:
        """Take the rows out of doclists that begin on the leaf of the next key; where the last one
        goes on, tell from which leaf."""
        cdef size_t first = self.key_at
        cdef size_t last = first + 1
        cdef int code
        self.last_met = False
        code = self.find_leaf(segment, keys[first].at, keys[first].n)
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
        code = begin_draft(&self.draft, &self.sheet)
        if code == MORE:
            copy_head(&self.draft, &self.sheet)
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
        return MORE if self.dropping else self.leaf_of_row(
            segment, self.rows_gone[0], &self.further
        )

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
        cdef SheetTerm term
        # With the last term that is left on the draft: no more than all between have in common.
        cdef uint32_t common = TERM_BYTES_MAX
        cdef uint32_t before
        cdef size_t i = 0
        cdef int order
        cdef int code
        before_terms(sheet, &term)
        while True:
            code = next_term_on(sheet, &term)
            if code != MORE:
                return code
            order = -1
            while i < n and order < 0:
                order = key_against(&keys[i], term.bytes, term.n)
                i += order < 0
            before = draft.n
            common = min(common, term.shared)
            put_term(draft, &term, common)
            if order:
                copy(draft, term.doclist, sheet.bytes + term.stop)
            else:
                code = self.thin_rows(term.doclist, sheet.bytes + term.stop, term.closes)
                if code != MORE:
                    return code
                self.last_met = not term.closes
                i += 1
                if term.closes and not self.rows_left:
                    draft.n = before
                    draft.terms -= 1
                    draft.begins_anew |= term.start == sheet.first_term
                    continue
            common = TERM_BYTES_MAX
            if not term.closes:
                return MORE

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
                copy(draft, copied, begin)
                if size & 1:
                    put_number(draft, row - row_kept)
                    put_number(draft, 1)
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
                put_number(draft, row - row_kept)
                copied = body
                torn = False
            row_kept = row
            if row > highest:
                self.passed = True
                break
            at = stop if over else at + (size >> 1)
        copy(draft, copied, stop)
        return MORE

    cdef int erase_further(self, Segment *segment) noexcept nogil:
        """Take the rows out of a doclist on leaves after the one on which it begins."""
        cdef int code
        while self.further and self.leaves_left:
            code = self.read_sheet(segment, self.further)
            if code == MORE:
                code = begin_draft(&self.draft, &self.sheet)
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

    cdef int thin_head(self) noexcept nogil:
        """Copy what a leaf has of a doclist that began before, but for the rows that go, and all
        the rest."""
        cdef Sheet *sheet = &self.sheet
        cdef Draft *draft = &self.draft
        cdef uint32_t head = head_end(sheet)
        cdef uint32_t tail = sheet.first_row if sheet.first_row else head
        cdef uint64_t row = 0
        cdef int code
        if not self.dropping:
            copy(draft, sheet.bytes + PAGE_HEADER, sheet.bytes + tail)
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
        return copy_terms(draft, sheet) if sheet.first_term else MORE

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
            code = begin_draft(&self.draft, &self.sheet)
        if code == MORE:
            copy_head(&self.draft, &self.sheet)
            code = copy_terms(&self.draft, &self.sheet)
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
