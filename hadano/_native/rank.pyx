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
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

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

cdef extern from "heap.h" nogil:
    void one_heap_for_all()


# What a step of the reader can come to. The first two are answers, the others end the call.
cdef enum Outcome:
    MORE = 0
    END = 1
    DAMAGED = 2
    NO_MEMORY = 3
    CANCELLED = 4
    STORE_FAILED = 5

# FTS5's fixed record ids and packing (fts5_index.c: FTS5_AVERAGES_ROWID and its neighbours); a
# segment's id is from 1 to how many there may be (fts5AllocateSegid). There may be as many levels
# (fts5StructureDecode): each merge of all into one segment puts two on top, until there are 65.
cdef enum:
    AVERAGES_RECORD = 1
    STRUCTURE_RECORD = 10
    SEGMENT_SHIFT = 37
    SEGMENTS_MAX = 2000
    PAGE_HEADER = 4

# The index's columns, in schema order, as bits of a mask.
cdef enum:
    COLUMNS = 3
    TITLE_AND_TEXT = 0b011
    WORDS = 0b100

# What is taken for damage beyond: FTS5's tokenizer makes terms of 13 bytes at most, a chunk is a
# window of 800 codepoints, and ids are counted up from 1.
cdef enum:
    TERM_BYTES_MAX = 64
    ROW_TOKENS_MAX = 65534
    POSITION_BYTES_MAX = 1 << 22
    CHUNK_ID_MAX = 0x7FFFFFFF

# Sums of tokens are below.
cdef uint64_t TOKENS_END = <uint64_t>1 << 53

# Stand-ins in the dense arrays for what is not there.
cdef enum:
    NO_ROW = 65535
    NO_DOCUMENT = 0xFFFFFFFF

cdef enum:
    # Bytes of a row whose two numbers take one byte each, at most.
    SHORT_ROW = 2 + 63
    # Trigrams of one phrase before the byte that numbers them starts anew.
    MET_MAX = 255
    # What stands in place of the cost of a trigram that has been read, of one whose list is at hand
    # already, and of those that a cover does without: the first of these, less what it would cost.
    READ = -1
    REPEATED = -2
    LEFT_OUT = -3
    # How many leaves can be run past while the rows of one are held against another list; measured.
    ROW_CHECK_COST = 8
    # How many leaves can be run past while one row's text is read; measured.
    TEXT_COST = 4
    # A trigram that a cover does without may cost such a part of what is left to read of it.
    LEFT_OUT_SHARE = 64
    # A segment of less than such a part of the greatest one's leaves is small.
    GREAT_SEGMENT = 8
    # Rows are packed and scored by blocks of 1,024, scanned by runs of 32.
    BLOCK_SHIFT = 10
    BLOCK_ROWS = 1 << BLOCK_SHIFT
    RUN_ROWS = 32
    # A posting's lower bits, and what they say where a count does not fit into them.
    COUNT_BITS = 16 - BLOCK_SHIFT
    MANY = (1 << COUNT_BITS) - 1
    # Scores are counted into so many bins; a bin so full is sorted by itself.
    BINS = 2048
    CROWD = 32
    # How many postings can be added up in the time of looking one up; measured.
    LOOK_UP_COST = 4
    # Of so few postings in a block the rows are listed, of more all the block's are looked through.
    FEW_POSTINGS = 128
    # Changed rows that are remembered; of more at once, reading all anew is as fast.
    CHANGES_MAX = 1024
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

# Threads that start from now on share one heap, where the C library (glibc) would give each its
# own: what one thread decoded and another lets go of would be room for the first alone.
one_heap_for_all()

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
include "leaves.pxi"
include "doclists.pxi"
include "terms.pxi"
include "snapshot.pxi"
include "changes.pxi"
include "postings.pxi"
include "score.pxi"
include "agreement.pxi"
include "sheets.pxi"
include "separators.pxi"
include "gone.pxi"
include "erase.pxi"


@cython.final
cdef class Ranker(Scorer):
    """Ranks the chunks of one connection's store.

    `connection` is the APSW connection, kept alive as long as the ranker; `index` names the FTS5
    table, `chunks` the table whose `doc` column gives a chunk's document number; beside it are the
    view of what is indexed of each chunk (chunks_indexed) and the list of those of which something
    was taken out of the index (chunks_unindexed: `n` counts them, `chunk` is one's id; what drops
    out of it is the oldest). `cache_bytes` bounds the postings kept decoded between calls.
    The library must have been loaded into the connection first (see `ENTRY_POINT`); else
    RuntimeError.
    """

    # How many chunks of a document were listed, in an open hash of documents.
    cdef Posting seen[SEEN]

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
            weighted[i].posting = term.posting
            weighted[i].many = term.many
            weighted[i].many_n = term.many_n
            weighted[i].n = term.n
            weighted[i].idf = self.idf(term.n)
            weighted[i].weight = <float>(weighted[i].idf * (K1 + 1.0))
            weighted[i].most = weighted[i].idf * (K1 + 1.0) * self.peak_of(term) * (1 + ROUNDING)
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

    def make_ready(self, int kind, str text) -> bool:
        """Decode a term for when it is asked for; False where there is no room for it beside those
        that are kept already. To be called as `rank` is; raises what it does.
        """
        cdef bint kept
        if self.statement[LEAVES] == NULL or self.sql.get_autocommit(self.db):
            raise ValueError("ranking needs an open transaction")
        self.refresh()
        kept = self.keep_more(kind, text)
        self.sql.reset(self.statement[LEAVES])
        return kept

    def adopt(self, Ranker other) -> bool:
        """Take what another ranker of the same file has made ready. Where room is short, terms kept
        here stay, and of the other's the last ones go first. The other must not be in use by
        another thread, may be closed, and is of no use afterwards.

        False, and no term is taken, where what happened to the index since is not known. To be
        called as `rank` is; raises what it does.
        """
        cdef dict places
        if self.statement[LEAVES] == NULL or self.sql.get_autocommit(self.db):
            raise ValueError("ranking needs an open transaction")
        if other.snapshot is None:
            return False
        stages = list(other.stages)
        if self.snapshot is None:
            self.move_from(other)
        self.refresh()
        places = {stage[2]: self.place_of(stage) for stage in stages}
        self.take_over(other.cache, places)
        return any(place >= 0 for place in places.values())

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
