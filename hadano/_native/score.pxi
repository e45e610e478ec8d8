"""Scores and their order: BM25 as FTS5 computes it, over as few chunks as can matter.

It knows terms by their postings and lengths by their row; not what a document is, and not where
either comes from.
"""

# A ranked chunk.
cdef struct Ranked:
    double score
    uint32_t row

# A term as the scorer sees it: its postings (see Decoded), its idf, what that is in an estimate,
# the most that it can add to a score, and the most that it and all commoner terms can together.
cdef struct Weighted:
    const uint32_t *start
    const uint16_t *posting
    const Posting *many
    size_t many_n
    size_t n
    double idf
    float weight
    double most
    double rest


cdef inline uint32_t count_of(
    const Weighted *term, uint16_t posting, size_t block
) noexcept nogil:
    """The count of a posting of a block."""
    cdef uint32_t count = posting & MANY
    if count == MANY:
        return count_of_many(term, <uint32_t>(block << BLOCK_SHIFT) | (posting >> COUNT_BITS))
    return count


cdef uint32_t count_of_many(const Weighted *term, uint32_t row) noexcept nogil:
    return term.many[place_of_many(term.many, term.many_n, row)].count


cdef inline uint32_t count_in(const Weighted *term, uint32_t row) noexcept nogil:
    """A term's count in `row`: a search by halves in the row's block, without branches."""
    cdef const uint32_t *start = term.start + (row >> BLOCK_SHIFT)
    cdef size_t n = start[1] - start[0]
    cdef const uint16_t *at = term.posting + start[0]
    cdef uint16_t least = packed(row, 0)
    cdef size_t half
    if n == 0:
        return 0
    while n > 1:
        half = n >> 1
        at += half * (at[half - 1] < least)
        n -= half
    if at[0] | MANY != packed(row, MANY):
        return 0
    return count_of(term, at[0], row >> BLOCK_SHIFT)


cdef inline size_t postings_in(const Weighted *term, size_t block) noexcept nogil:
    return term.start[block + 1] - term.start[block]


cdef void rarest_first(Weighted *terms, size_t n, Weighted **order) noexcept nogil:
    cdef size_t i, j
    for i in range(n):
        j = i
        while j and order[j - 1].n > terms[i].n:
            order[j] = order[j - 1]
            j -= 1
        order[j] = &terms[i]


cdef inline int best_first(const void *a, const void *b) noexcept nogil:
    cdef const Ranked *x = <const Ranked *>a
    cdef const Ranked *y = <const Ranked *>b
    if x.score != y.score:
        return -1 if x.score > y.score else 1
    return -1 if x.row < y.row else 1


cdef void insert_best_first(Ranked *list, size_t n) noexcept nogil:
    """Order by score, best first, equals by row, what is nearly so already, or is short."""
    cdef size_t i, j
    cdef Ranked one
    for i in range(1, n):
        one = list[i]
        j = i
        while j and best_first(&one, &list[j - 1]) < 0:
            list[j] = list[j - 1]
            j -= 1
        list[j] = one


cdef void sort_best_first(
    Ranked *list, Ranked *spare, size_t n, uint32_t *bins
) noexcept nogil:
    """As insert_best_first, of any order and length: spread over bins before."""
    cdef size_t i
    cdef double low, high, scale
    cdef uint32_t sum = 0, held
    cdef int bin
    if n <= CROWD:
        insert_best_first(list, n)
        return
    low = high = list[0].score
    for i in range(1, n):
        low = min(low, list[i].score)
        high = max(high, list[i].score)
    scale = (BINS - 1) / (high - low) if high > low else 0
    if scale > 1e300:
        scale = 0
    memset(bins, 0, BINS * sizeof(uint32_t))
    for i in range(n):
        bins[<int>((high - list[i].score) * scale)] += 1
    for bin in range(BINS):
        held = bins[bin]
        bins[bin] = sum
        sum += held
    for i in range(n):
        bin = <int>((high - list[i].score) * scale)
        spare[bins[bin]] = list[i]
        bins[bin] += 1
    held = 0
    for bin in range(BINS):
        if bins[bin] - held > CROWD:
            qsort(spare + held, bins[bin] - held, sizeof(Ranked), best_first)
        held = bins[bin]
    memcpy(list, spare, n * sizeof(Ranked))
    insert_best_first(list, n)


@cython.internal
cdef class Scorer(Vocabulary):
    """The best chunks of a query, block by block of rows."""

    cdef Ranked *ranked
    cdef size_t ranked_n
    cdef size_t ranked_room
    # Estimates of one block's rows, and those of its rows that may still reach the bar.
    cdef float block_estimate[BLOCK_ROWS]
    cdef uint16_t candidate[BLOCK_ROWS]
    # How many of the ranked have an estimate in each bin; in the bar's bin and above it.
    cdef uint32_t bins[BINS]
    cdef float scale
    cdef int bar_bin
    cdef size_t above
    cdef float bar

    def __dealloc__(self):
        free(self.ranked)

    cdef int score(self, Weighted *terms, size_t n, size_t wanted, size_t *found) noexcept nogil:
        """Fill `ranked` with the best `wanted` chunks in order, or with all.

        MaxScore, block by block: the rare terms first, until the others cannot lift a chunk that
        has none of the rare ones over the bar, which `wanted` chunks reach; the others are then
        looked up in the candidates alone. Estimates in single precision choose the candidates, with
        a margin, and order them; FTS5's own scores decide where they are too close to tell.
        """
        cdef Weighted *rare_first[TERMS_MAX + 1]
        cdef Weighted none
        cdef size_t i, k
        cdef size_t block
        rarest_first(terms, n, rare_first)
        none.rest = 0
        rare_first[n] = &none
        for i in range(n, 0, -1):
            rare_first[i - 1].rest = rare_first[i].rest + rare_first[i - 1].most
        self.start_bar(rare_first[0].rest)
        self.ranked_n = 0
        for block in range((self.ids >> BLOCK_SHIFT) + 1):
            if self.cancelled:
                return CANCELLED
            if self.ranked_for(self.ranked_n + BLOCK_ROWS) != MORE:
                return NO_MEMORY
            self.score_block(rare_first, n, block)
            self.raise_bar(wanted)
        k = self.drop()
        sort_best_first(self.ranked, self.ranked + k, k, self.bins)
        self.order_close(terms, n, k)
        found[0] = min(k, wanted)
        return MORE

    cdef int ranked_for(self, size_t n) noexcept nogil:
        """Room for `n` ranked chunks, and as many again to sort them."""
        cdef void *moved
        if 2 * n > self.ranked_room:
            moved = realloc(self.ranked, 4 * n * sizeof(Ranked))
            if moved == NULL:
                return NO_MEMORY
            self.ranked = <Ranked *>moved
            self.ranked_room = 4 * n
        return MORE

    cdef void start_bar(self, double most) noexcept nogil:
        """Nothing is ranked yet; no estimate will be above `most`."""
        memset(self.bins, 0, sizeof(self.bins))
        self.scale = <float>((BINS - 1) / (most * (1 + ROUNDING))) if most > 0 else 0
        self.bar_bin = 0
        self.above = 0
        self.bar = 0

    cdef void raise_bar(self, size_t wanted) noexcept nogil:
        """As high as leaves `wanted` of the ranked at or above it, less the estimates' rounding."""
        while self.bar_bin < BINS - 1 and self.above - self.bins[self.bar_bin] >= wanted:
            self.above -= self.bins[self.bar_bin]
            self.bar_bin += 1
        if self.bar_bin:
            self.bar = <float>self.bar_bin / self.scale * (1 - ROUNDING)

    cdef void score_block(self, Weighted **terms, size_t n, size_t block) noexcept nogil:
        """Rank those of a block's rows that may reach the bar."""
        cdef size_t held = 0
        cdef size_t i = 0
        cdef size_t j, candidates
        cdef bint few
        while i < n and terms[i].rest >= self.bar:
            held += postings_in(terms[i], block)
            i += 1
        if held == 0:
            return
        few = held < FEW_POSTINGS
        candidates = self.add_few(terms, i, block) if few else self.add_many(terms, i, block)
        candidates = self.reaching(candidates, self.bar - terms[i].rest)
        for j in range(i, n):
            if candidates * LOOK_UP_COST > postings_in(terms[j], block):
                self.add(terms[j], block)
                few = False
            else:
                self.look_up(terms[j], block, candidates)
            candidates = self.reaching(candidates, self.bar - terms[j + 1].rest)
        for j in range(candidates):
            self.keep_ranked(<uint32_t>(block << BLOCK_SHIFT), self.candidate[j])
        if few:
            self.clear_few(terms, i, block)
        else:
            memset(self.block_estimate, 0, sizeof(self.block_estimate))

    cdef inline void keep_ranked(self, uint32_t base, uint32_t row) noexcept nogil:
        cdef float estimate = self.block_estimate[row]
        cdef int bin = <int>(estimate * self.scale)
        self.ranked[self.ranked_n].row = base | row
        self.ranked[self.ranked_n].score = estimate
        self.ranked_n += 1
        self.bins[bin] += 1
        self.above += bin >= self.bar_bin

    cdef void add(self, const Weighted *term, size_t block) noexcept nogil:
        """Add one term to the estimates of all its rows in a block."""
        cdef float *estimate = self.block_estimate
        cdef const uint16_t *lengths = self.lengths + (block << BLOCK_SHIFT)
        cdef float weight = term.weight
        cdef float tf
        cdef uint32_t row
        cdef size_t i
        for i in range(term.start[block], term.start[block + 1]):
            row = term.posting[i] >> COUNT_BITS
            tf = <float>count_of(term, term.posting[i], block)
            estimate[row] += weight * tf / (tf + self.norms_short[lengths[row]])

    cdef size_t add_many(self, Weighted **terms, size_t n, size_t block) noexcept nogil:
        """Add terms to the estimates of a block; how many rows are candidates by that.

        They are found run by run, for a compiler makes few instructions of the first inner loop.
        """
        cdef const float *estimate = self.block_estimate
        cdef float bar = max(self.bar - <float>terms[n].rest, <float>1e-30)
        cdef size_t i, run
        cdef size_t found = 0
        cdef bint any
        for i in range(n):
            self.add(terms[i], block)
        for run in range(<size_t>(BLOCK_ROWS // RUN_ROWS)):
            any = False
            for i in range(<size_t>RUN_ROWS):
                any |= estimate[run * RUN_ROWS + i] >= bar
            if any:
                for i in range(run * RUN_ROWS, (run + 1) * RUN_ROWS):
                    self.candidate[found] = <uint16_t>i
                    found += estimate[i] >= bar
        return found

    cdef size_t add_few(self, Weighted **terms, size_t n, size_t block) noexcept nogil:
        """As add_many; every row that was added to is a candidate, in no order."""
        cdef float *estimate = self.block_estimate
        cdef const uint16_t *lengths = self.lengths + (block << BLOCK_SHIFT)
        cdef size_t found = 0
        cdef size_t i, j
        cdef uint32_t row
        cdef float tf, before
        for j in range(n):
            for i in range(terms[j].start[block], terms[j].start[block + 1]):
                row = terms[j].posting[i] >> COUNT_BITS
                tf = <float>count_of(terms[j], terms[j].posting[i], block)
                before = estimate[row]
                self.candidate[found] = <uint16_t>row
                found += before == 0
                estimate[row] = (
                    before + terms[j].weight * tf / (tf + self.norms_short[lengths[row]])
                )
        return found

    cdef void clear_few(self, Weighted **terms, size_t n, size_t block) noexcept nogil:
        cdef size_t i, j
        for j in range(n):
            for i in range(terms[j].start[block], terms[j].start[block + 1]):
                self.block_estimate[terms[j].posting[i] >> COUNT_BITS] = 0

    cdef void look_up(self, const Weighted *term, size_t block, size_t n) noexcept nogil:
        """Add one term to the estimates of the candidates."""
        cdef uint32_t base = <uint32_t>(block << BLOCK_SHIFT)
        cdef float tf
        cdef uint32_t row
        cdef size_t i
        for i in range(n):
            row = self.candidate[i]
            tf = <float>count_in(term, base | row)
            if tf != 0:
                self.block_estimate[row] += (
                    term.weight * tf / (tf + self.norms_short[self.lengths[base | row]])
                )

    cdef size_t reaching(self, size_t n, double bar) noexcept nogil:
        """Keep those of the candidates that reach `bar`; answer how many are left."""
        cdef float least = <float>bar
        cdef size_t left = 0
        cdef size_t i
        cdef uint16_t row
        for i in range(n):
            row = self.candidate[i]
            self.candidate[left] = row
            left += self.block_estimate[row] >= least
        return left

    cdef size_t drop(self) noexcept nogil:
        """Drop the ranked that do not reach the bar as it has become; answer how many are left."""
        cdef size_t i
        cdef size_t left = 0
        for i in range(self.ranked_n):
            self.ranked[left] = self.ranked[i]
            left += self.ranked[i].score >= self.bar
        return left

    cdef void order_close(self, Weighted *terms, size_t n, size_t k) noexcept nogil:
        """Order those of the `k` ranked, which are in the order of their estimates, whose estimates
        do not tell.

        An estimate is a sum of `n` positive terms: each is rounded five times (its weight, the
        norm, a sum, a product, a quotient), and each addition once, to 24 bits. So a score lies
        within n + 8 units of rounding around it, as a share, what is of second order included.
        """
        cdef double unit = 1.0 / (1 << 24)
        cdef double most = 1 + (n + 8) * unit
        cdef double least = 1 - (n + 8) * unit
        cdef size_t first = 0
        cdef size_t i
        for i in range(1, k + 1):
            if i == k or self.ranked[i - 1].score * least > self.ranked[i].score * most:
                if i - first > 1:
                    self.score_exactly(terms, n, self.ranked + first, i - first)
                    sort_best_first(
                        self.ranked + first, self.ranked + k, i - first, self.bins
                    )
                first = i

    cdef void score_exactly(
        self, Weighted *terms, size_t n, Ranked *list, size_t k
    ) noexcept nogil:
        """FTS5's sum, in its order and its doubles, for each of `list`."""
        cdef size_t i, j
        cdef double tf
        cdef Weighted *term
        for j in range(k):
            list[j].score = 0
        for i in range(n):
            term = &terms[i]
            for j in range(k):
                tf = count_in(term, list[j].row)
                if tf != 0:
                    list[j].score += term.idf * (
                        (tf * (K1 + 1.0)) / (tf + self.norms[self.lengths[list[j].row]])
                    )
