"""Doclists: the rows of one term in one segment, counted, located, or held against a phrase.

It knows one doclist at a time; which terms, and which of several segments is right about a row, is
decided above.
"""


@cython.internal
cdef class Doclists(Leaves):
    """What is made of the doclist under the finger."""

    # The first trigram's pages, and the phrase starts of rows that a later trigram thinned out.
    cdef Bytes bytes
    cdef Positions positions
    cdef uint32_t met

    def __dealloc__(self):
        free(self.bytes.at)
        free(self.positions.at)

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
                        hit = first_from(hit, last, delta)
                        if hit == last:
                            return MORE
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
