# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, auto_pickle=False, autotestdict=False
"""Stage 1's ranking: FTS5's own index read in place, FTS5's own BM25, one to two orders sooner.

FTS5 visits every matching row twice through its virtual table. Everything it looks at lies in
four plain tables beside the index (`%_data`, `%_idx`, `%_docsize`; fts5_index.c documents them),
so this module reads their pages where SQLite keeps them, through prepared statements on the
caller's own connection and inside the caller's transaction, and adds up the same doubles in the
same order. It refuses to know how a query becomes terms, what a document is beyond its number,
and where the limits come from. It writes nothing.

The shared library is two things at once: a Python module, and a SQLite extension whose only act
is to remember the table of SQLite's routines. So the SQLite inside APSW is used, never a second.
"""

cimport cython
from cpython.array cimport array, clone
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcmp, memcpy, memset

cdef extern from "sqlite_api.h" nogil:
    ctypedef struct sqlite3:
        pass
    ctypedef struct sqlite3_stmt:
        pass
    ctypedef struct sqlite_api:
        int (*bind_blob)(sqlite3_stmt *, int, const void *, int, void *) noexcept nogil
        int (*bind_int64)(sqlite3_stmt *, int, int64_t) noexcept nogil
        const void *(*column_blob)(sqlite3_stmt *, int) noexcept nogil
        int (*column_bytes)(sqlite3_stmt *, int) noexcept nogil
        int64_t (*column_int64)(sqlite3_stmt *, int) noexcept nogil
        int (*column_type)(sqlite3_stmt *, int) noexcept nogil
        int (*finalize)(sqlite3_stmt *) noexcept nogil
        int (*get_autocommit)(sqlite3 *) noexcept nogil
        int (*libversion_number)() noexcept nogil
        int (*reset)(sqlite3_stmt *) noexcept nogil
        int (*step)(sqlite3_stmt *) noexcept nogil
        int (*prepare_v3)(
            sqlite3 *, const char *, int, unsigned int, sqlite3_stmt **, const char **
        ) noexcept nogil
    int SQLITE_OK, SQLITE_ROW, SQLITE_DONE, SQLITE_BLOB, SQLITE_PREPARE_PERSISTENT
    const sqlite_api *sqlite_api_loaded
    unsigned varint_ends(uint64_t word)
    bint has_one(uint64_t word)
    unsigned lowest_bit(uint64_t word)
    uint64_t load_word(const uint8_t *at)


# What a step of the reader can come to. The first two are answers, the others end the call.
cdef enum Outcome:
    MORE = 0
    END = 1
    DAMAGED = 2
    NO_MEMORY = 3
    CANCELLED = 4
    STORE_FAILED = 5

# FTS5's fixed record ids and packing (fts5_index.c: FTS5_AVERAGES_ROWID and its neighbours).
cdef enum:
    AVERAGES_RECORD = 1
    STRUCTURE_RECORD = 10
    SEGMENT_SHIFT = 37
    SEGMENTS_MAX = 2000
    LEVELS_MAX = 64
    PAGE_HEADER = 4

# The index's columns, in schema order, as bits of a mask.
cdef enum:
    TITLE_AND_TEXT = 0b011
    WORDS = 0b100

# What is taken for damage beyond: FTS5's tokenizer makes terms of 13 bytes at most, a chunk is a
# window of 800 codepoints, and ids are counted up from 1.
cdef enum:
    TERM_BYTES_MAX = 64
    ROW_TOKENS_MAX = 65534
    POSITION_BYTES_MAX = 1 << 22
    CHUNK_ID_MAX = 0x7FFFFFFF

# Stand-ins in the dense arrays for what is not there.
cdef enum:
    NO_ROW = 65535
    NO_DOCUMENT = 0xFFFFFFFF

cdef enum:
    # Leaves between two of FTS5's own merges (fts5_index.c).
    WORK_UNIT = 64
    # Bytes of a row whose two numbers take one byte each, at most.
    SHORT_ROW = 2 + 63
    # Trigrams of one phrase before the byte that numbers them starts anew.
    MET_MAX = 255
    # A segment of less than such a part of the greatest one's leaves is small.
    GREAT_SEGMENT = 8
    # Rows are packed and scored by blocks of 1,024, scanned by runs of 32.
    BLOCK_SHIFT = 10
    BLOCK_ROWS = 1 << BLOCK_SHIFT
    RUN_ROWS = 32
    # Scores are counted into so many bins; a bin so full is sorted by itself.
    BINS = 2048
    CROWD = 32
    # How many postings can be added up in the time of looking one up; measured.
    LOOK_UP_COST = 4
    # Of so few postings in a block the rows are listed, of more all the block's are looked through.
    FEW_POSTINGS = 128
    # Terms of one query: more than 1,024 codepoints can hold.
    TERMS_MAX = 1024
    # Ranks a caller may ask for, and slots to count their documents in.
    RANKS_MAX = 2048
    SEEN = 4096

# FTS5's own (fts5_aux.c, fts5Bm25Function), and by how much an estimate in single precision may
# stray from a score, as a share of it: far above the truth.
cdef double K1 = 1.2
cdef double B = 0.75
cdef double IDF_FLOOR = 1e-6
cdef float ROUNDING = 1e-4

# What `load_extension` takes: this very library, and the name of its entry point.
LIBRARY = __file__
ENTRY_POINT = "sqlite3_hadano_rank_init"
SUBSTRING = 0
WORD = 1
ANYWHERE = 2


class DamagedIndex(Exception):
    """The full-text index breaks its own format, or disagrees with the chunks it indexes."""


class Cancelled(Exception):
    """The caller raised the cancel flag, or interrupted the connection."""


class StoreFailed(Exception):
    """SQLite refused a read; the argument is its result code."""


# The prepared statements, in the order of their texts.
cdef enum:
    LEAVES, RECORD, SEPARATOR, FOLLOWING, LENGTHS, DOCUMENTS, LENGTH_OF, DOCUMENT_OF, NEWEST
    STATEMENTS

STATEMENT_TEXTS = (
    "SELECT id, block FROM {index}_data WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    "SELECT block FROM {index}_data WHERE id = ?1",
    "SELECT pgno FROM {index}_idx WHERE segid = ?1 AND term <= ?2 ORDER BY term DESC LIMIT 1",
    "SELECT pgno FROM {index}_idx WHERE segid = ?1 AND term > ?2 ORDER BY term LIMIT 1",
    "SELECT id, sz FROM {index}_docsize ORDER BY id",
    "SELECT id, doc FROM {chunks}",
    "SELECT id, sz FROM {index}_docsize WHERE id = ?1",
    "SELECT id, doc FROM {chunks} WHERE id = ?1",
    "SELECT max(id) FROM {index}_docsize",
)

include "format.pxi"
include "doclists.pxi"
include "terms.pxi"
include "snapshot.pxi"
include "postings.pxi"
include "agreement.pxi"


# A ranked chunk.
cdef struct Ranked:
    double score
    uint32_t row

# A term as the scorer sees it: its postings (see Decoded), its idf, what that is in an estimate,
# the most that it can add to a score, and the most that it and all commoner terms can together.
cdef struct Weighted:
    const uint32_t *start
    const uint16_t *low
    const uint16_t *count
    size_t n
    double idf
    float weight
    double most
    double rest


cdef inline uint32_t count_in(const Weighted *term, uint32_t row) noexcept nogil:
    """A term's count in `row`: a search by halves in the row's block, without branches."""
    cdef const uint32_t *start = term.start + (row >> BLOCK_SHIFT)
    cdef size_t n = start[1] - start[0]
    cdef const uint16_t *at = term.low + start[0]
    cdef uint16_t low = <uint16_t>row
    cdef size_t half
    if n == 0:
        return 0
    while n > 1:
        half = n >> 1
        at += half * (at[half - 1] < low)
        n -= half
    return term.count[at - term.low] if at[0] == low else 0


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


cdef void sort_best_first(
    Ranked *list, Ranked *spare, size_t n, uint32_t *bins
) noexcept nogil:
    """Order by score, best first, equals by row: spread over bins, then by insertion."""
    cdef size_t i, j
    cdef double low, high, scale
    cdef uint32_t sum = 0, held
    cdef int bin
    cdef Ranked one
    if n < 2:
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
    for i in range(n):
        one = spare[i]
        j = i
        while j and best_first(&one, &list[j - 1]) < 0:
            list[j] = list[j - 1]
            j -= 1
        list[j] = one


@cython.final
cdef class Ranker(Vocabulary):
    """Ranks the chunks of one connection's store.

    `connection` is the APSW connection, kept alive as long as the ranker; `index` names the FTS5
    table, `chunks` the table whose `doc` column gives a chunk's document number. `cache_bytes`
    bounds the postings kept decoded between calls. The library must have been loaded into the
    connection first (see `ENTRY_POINT`); else RuntimeError.
    """

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
    cdef Posting seen[SEEN]

    def __dealloc__(self):
        free(self.ranked)

    @property
    def cached_bytes(self) -> int:
        """What the decoded postings kept between calls take."""
        return self.cache_used

    def rank(self, terms, int per_doc, int ranks):
        """Rank the chunks that hold any of `terms`, best first.

        `terms` are (kind, text) pairs, distinct, in query order: SUBSTRING (three codepoints or
        more, in title or text), WORD (a unit of the words column, one or two codepoints),
        ANYWHERE (one or two codepoints, in title or text); in search form, ASCII case aside.
        Answers two arrays of int64: chunk ids, and the numbers of their documents. They go on until
        `ranks` chunks have been listed, not counting those whose document already had `per_doc`
        listed, or until all matches are. Scores are FTS5's bm25 (k1 1.2, b 0.75) to the last bit;
        equals go by chunk id.

        Must be called inside an open transaction (else ValueError) that has not itself changed
        the index. Raises DamagedIndex, Cancelled, StoreFailed, MemoryError.
        """
        cdef list decoded_terms = []
        cdef Decoded term
        cdef Weighted *weighted
        cdef size_t n, i
        cdef size_t found = 0
        cdef int code
        cdef size_t wanted
        if not 1 <= per_doc or not 1 <= ranks <= RANKS_MAX:
            raise ValueError("per_doc or ranks is out of range")
        if self.statement[LEAVES] == NULL or self.sql.get_autocommit(self.db):
            raise ValueError("ranking needs an open transaction")
        self.refresh()
        for kind, text in terms:
            decoded_terms.append(self.decode(kind, text))
        self.sql.reset(self.statement[LEAVES])
        n = len(decoded_terms)
        if n > TERMS_MAX:
            raise ValueError("too many terms")
        weighted = <Weighted *>malloc((n + 1) * sizeof(Weighted))
        if weighted == NULL:
            raise MemoryError
        for i in range(n):
            term = <Decoded>decoded_terms[i]
            weighted[i].start = term.start
            weighted[i].low = term.low
            weighted[i].count = term.count
            weighted[i].n = term.n
            weighted[i].idf = self.idf(term.n)
            weighted[i].weight = <float>(weighted[i].idf * (K1 + 1.0))
            weighted[i].most = weighted[i].idf * (K1 + 1.0) * term.peak * (1 + ROUNDING)
        with nogil:
            # On real notes the cap passes over a few dozen; an eighth is rarely too few.
            wanted = <size_t>ranks + <size_t>ranks // 8 + 1
            while True:
                code = self.score(weighted, n, wanted, &found)
                if code != MORE or found < wanted or self.enough(found, per_doc, ranks):
                    break
                wanted *= 2
        free(weighted)
        self.complain(code)
        return self.answer(found)

    cdef double idf(self, size_t n) noexcept nogil:
        cdef double idf = log((self.rows - <int64_t>n + 0.5) / (<int64_t>n + 0.5))
        return idf if idf > 0.0 else IDF_FLOOR

    cdef tuple answer(self, size_t found):
        cdef array chunks = clone(array("q"), found, False)
        cdef array docs = clone(array("q"), found, False)
        cdef size_t i
        for i in range(found):
            if self.lengths[self.ranked[i].row] == NO_ROW:
                raise DamagedIndex("a chunk in the index has no length")
            if self.documents[self.ranked[i].row] == NO_DOCUMENT:
                raise DamagedIndex("a chunk in the index has no document")
            chunks.data.as_longlongs[i] = self.ranked[i].row
            docs.data.as_longlongs[i] = self.documents[self.ranked[i].row]
        return chunks, docs

    cdef bint enough(self, size_t found, int per_doc, int ranks) noexcept nogil:
        """Whether `ranks` of the ranked chunks are left once each document is held to its cap.

        The cap is at most 20 and the ranks at most 1,000, so a small open hash of documents does.
        """
        cdef size_t i, slot
        cdef uint32_t doc
        cdef int taken = 0
        memset(self.seen, 0, sizeof(self.seen))
        for i in range(found):
            doc = self.documents[self.ranked[i].row]
            slot = (doc * <uint32_t>2654435761) >> 20
            while self.seen[slot].count and self.seen[slot].row != doc:
                slot = (slot + 1) & (SEEN - 1)
            self.seen[slot].row = doc
            if self.seen[slot].count < <uint32_t>per_doc:
                self.seen[slot].count += 1
                taken += 1
                if taken == ranks:
                    return True
        return False

    cdef int score(self, Weighted *terms, size_t n, size_t wanted, size_t *found) noexcept nogil:
        """Fill `ranked` with the best `wanted` chunks in order, or with all.

        MaxScore, block by block: the rare terms first, until the others cannot lift a chunk that
        has none of the rare ones over the bar, which `wanted` chunks reach; the others are then
        looked up in the candidates alone. Estimates in single precision choose the candidates, with
        a margin; their scores are then FTS5's own.
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
        self.score_candidates(terms, n, k)
        sort_best_first(self.ranked, self.ranked + k, k, self.bins)
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
            row = term.low[i] & (BLOCK_ROWS - 1)
            tf = <float>term.count[i]
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
                row = terms[j].low[i] & (BLOCK_ROWS - 1)
                tf = <float>terms[j].count[i]
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
                self.block_estimate[terms[j].low[i] & (BLOCK_ROWS - 1)] = 0

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

    cdef void score_candidates(self, Weighted *terms, size_t n, size_t k) noexcept nogil:
        """FTS5's sum, in its order and its doubles, for the chunks in `ranked`."""
        cdef size_t i, j
        cdef double tf
        cdef Weighted *term
        for j in range(k):
            self.ranked[j].score = 0
        for i in range(n):
            term = &terms[i]
            for j in range(k):
                tf = count_in(term, self.ranked[j].row)
                if tf != 0:
                    self.ranked[j].score += term.idf * (
                        (tf * (K1 + 1.0)) / (tf + self.norms[self.lengths[self.ranked[j].row]])
                    )
