# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: auto_pickle=False, autotestdict=False
"""Finds where bytes have eight in a row that other bytes have too.

A function of its arguments: whose bytes they are, and what becomes of them, is not known here.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

cdef extern from *:
    """
    #define PIECE_BYTES 8
    /* Fibonacci hashing (Knuth, TAOCP 6.4): 2**64 over the golden ratio. */
    #define GOLDEN 0x9E3779B97F4A7C15ULL
    #define HIGH_BITS 0x8080808080808080ULL
    """
    const Py_ssize_t PIECE_BYTES
    const uint64_t GOLDEN, HIGH_BITS

# A piece that touches what is not ASCII has no more bytes before it: the last of them may be the
# base of a mark, and part of what the two are composed to. Behind it nothing is composed.
cdef enum:
    BEFORE_BYTES = 8
    BEHIND_BYTES = 7

# A bit is set for each piece that counts: one in 32 at most, so that most bytes are passed over
# without a look at the slots, and no more of them than a core's own cache holds.
cdef enum:
    BITS_PER_SLOT_LOG2 = 4
    BITS_LOG2_MAX = 21
    # With more slots than these, to set the bits again takes longer than it saves.
    SLOTS_LOG2_AGAIN = 16


cdef inline uint64_t piece_at(const char* place) noexcept nogil:
    cdef uint64_t piece
    memcpy(&piece, place, PIECE_BYTES)
    return piece


@cython.final
cdef class Pieces:
    cdef uint64_t* slots       # by hash, the next free one where that is taken; 0 for none
    cdef uint8_t* dropped      # of each slot, whether what stands there no longer counts
    cdef int slots_log2
    cdef uint8_t* bits         # by hash, whether some piece that counts is there
    cdef int bits_log2
    cdef bint has_zero         # the piece that would look like no piece

    def __cinit__(self, tuple texts not None):
        cdef size_t count = 0
        cdef bytes text
        for text in texts:
            count += PyBytes_GET_SIZE(text)
        self.slots_log2 = 4
        while (<size_t> 1 << self.slots_log2) < 2 * count:
            self.slots_log2 += 1
        self.slots = <uint64_t*> PyMem_RawCalloc(<size_t> 1 << self.slots_log2, sizeof(uint64_t))
        self.dropped = <uint8_t*> PyMem_RawCalloc(<size_t> 1 << self.slots_log2, 1)
        self.bits_log2 = min(self.slots_log2 + BITS_PER_SLOT_LOG2, BITS_LOG2_MAX)
        self.bits = <uint8_t*> PyMem_RawCalloc(<size_t> 1 << (self.bits_log2 - 3), 1)
        if self.slots is NULL or self.dropped is NULL or self.bits is NULL:
            raise MemoryError
        for text in texts:
            self.add(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        self.set_bits()

    def __dealloc__(self):
        PyMem_RawFree(self.slots)
        PyMem_RawFree(self.dropped)
        PyMem_RawFree(self.bits)

    cdef inline size_t bit_of(self, uint64_t piece) noexcept nogil:
        return (piece * GOLDEN) >> (64 - self.bits_log2)

    cdef inline bint may_have(self, uint64_t piece) noexcept nogil:
        cdef size_t bit = self.bit_of(piece)
        return self.bits[bit >> 3] >> (bit & 7) & 1

    cdef void set_bits(self) noexcept nogil:
        """For the pieces that count."""
        cdef size_t slot, bit
        memset(self.bits, 0, <size_t> 1 << (self.bits_log2 - 3))
        self.bits[0] = self.has_zero
        for slot in range(<size_t> 1 << self.slots_log2):
            if self.slots[slot] and not self.dropped[slot]:
                bit = self.bit_of(self.slots[slot])
                self.bits[bit >> 3] |= <uint8_t> (1 << (bit & 7))

    cdef inline size_t slot_of(self, uint64_t piece) noexcept nogil:
        """Where the piece is, or the free slot where it would be: half of them are free."""
        cdef size_t last = (<size_t> 1 << self.slots_log2) - 1
        cdef size_t at = (piece * GOLDEN) >> (64 - self.slots_log2)
        while self.slots[at] and self.slots[at] != piece:
            at = (at + 1) & last
        return at

    cdef void add(self, const char* text, Py_ssize_t length) noexcept nogil:
        cdef Py_ssize_t at
        cdef uint64_t piece
        for at in range(length - PIECE_BYTES + 1):
            piece = piece_at(text + at)
            self.slots[self.slot_of(piece)] = piece
            self.has_zero |= piece == 0

    cdef inline bint has(self, uint64_t piece) noexcept nogil:
        cdef size_t slot
        if not self.may_have(piece):
            return False
        if piece == 0:
            return self.has_zero
        slot = self.slot_of(piece)
        return self.slots[slot] != 0 and not self.dropped[slot]

    def drop(self, bytes text not None):
        cdef const char* start = PyBytes_AS_STRING(text)
        cdef Py_ssize_t at
        cdef uint64_t piece
        for at in range(PyBytes_GET_SIZE(text) - PIECE_BYTES + 1):
            piece = piece_at(start + at)
            self.dropped[self.slot_of(piece)] = piece != 0
            self.has_zero &= piece != 0
        if self.slots_log2 <= SLOTS_LOG2_AGAIN:
            self.set_bits()

    def run(self, bytes said not None, Py_ssize_t start, Py_ssize_t most):
        cdef const char* text = PyBytes_AS_STRING(said)
        cdef Py_ssize_t end = PyBytes_GET_SIZE(said) - PIECE_BYTES + 1
        cdef Py_ssize_t at
        start = max(start, 0)
        while start < end and not self.has(piece_at(text + start)):
            start += 1
        if start >= end:
            return None
        at = start + 1
        while at < end and at - start + PIECE_BYTES <= most and self.has(piece_at(text + at)):
            at += 1
        return start, at - 1 + PIECE_BYTES


cdef inline bint is_ascii_in_line(const uint8_t* text, Py_ssize_t at) noexcept nogil:
    return text[at] < 0x80 and text[at] != c"\n"


cdef Py_ssize_t end_of_stretch(
    const uint8_t* text, Py_ssize_t at, Py_ssize_t length
) noexcept nogil:
    """Where a stretch that begins at `at` has its last byte that is not ASCII, and one more."""
    cdef Py_ssize_t end = at
    while at < length and at - end <= BEHIND_BYTES + BEFORE_BYTES:
        if text[at] >= 0x80:
            end = at + 1
        elif text[at] == c"\n":
            break
        at += 1
    return end


cdef Py_ssize_t copy_beyond_ascii(
    const uint8_t* text, Py_ssize_t length, char* into
) noexcept nogil:
    """Two stretches are further apart than they reach, so all of them have room in the length."""
    cdef Py_ssize_t at = 0, start, end, copied = 0
    while True:
        while at + PIECE_BYTES <= length and not piece_at(<const char*> text + at) & HIGH_BITS:
            at += PIECE_BYTES
        while at < length and text[at] < 0x80:
            at += 1
        if at >= length:
            return copied
        start = at
        while start > 0 and at - start < BEFORE_BYTES and is_ascii_in_line(text, start - 1):
            start -= 1
        at = end_of_stretch(text, at, length)
        end = at
        while end < length and end - at < BEHIND_BYTES and is_ascii_in_line(text, end):
            end += 1
        memcpy(into + copied, text + start, end - start)
        copied += end - start
        into[copied] = c"\n"
        copied += 1
        at = end


def beyond_ascii(bytes lines not None):
    cdef Py_ssize_t length = PyBytes_GET_SIZE(lines)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, length + 1)
    cdef char* into = PyBytes_AS_STRING(found)
    length = copy_beyond_ascii(<const uint8_t*> PyBytes_AS_STRING(lines), length, into)
    return found[:length]


cdef inline Py_ssize_t end_of_line(
    const char* text, Py_ssize_t at, Py_ssize_t length
) noexcept nogil:
    cdef const char* end = <const char*> memchr(text + at, c"\n", length - at)
    return length if end is NULL else end - text


def lowered_lines(bytes lines not None, bytes without not None):
    cdef Py_ssize_t length = PyBytes_GET_SIZE(lines), most = PyBytes_GET_SIZE(without)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, length + 1)
    cdef const char* text = PyBytes_AS_STRING(lines)
    cdef const char* head = PyBytes_AS_STRING(without)
    cdef char* into = PyBytes_AS_STRING(found)
    cdef Py_ssize_t at = 0, end, copied = 0
    cdef char c
    while at < length:
        end = end_of_line(text, at, length)
        if end - at >= most and memcmp(text + at, head, most) == 0:
            at += most
        if end - at >= PIECE_BYTES:
            for at in range(at, end):
                c = text[at]
                into[copied] = c + (c"a" - c"A") if c"A" <= c <= c"Z" else c
                copied += 1
            into[copied] = c"\n"
            copied += 1
        at = end + 1
    return found[:copied]


def other_lines(bytes lines not None, bytes than not None):
    cdef Py_ssize_t length = PyBytes_GET_SIZE(lines), others = PyBytes_GET_SIZE(than)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, length + 1)
    cdef const char* text = PyBytes_AS_STRING(lines)
    cdef const char* other = PyBytes_AS_STRING(than)
    cdef char* into = PyBytes_AS_STRING(found)
    cdef Py_ssize_t at = 0, end, there = 0, stop, copied = 0
    while at < length:
        end = end_of_line(text, at, length)
        stop = end_of_line(other, there, others) if there < others else there
        if end - at >= PIECE_BYTES and (
            end - at != stop - there or memcmp(text + at, other + there, end - at)
        ):
            memcpy(into + copied, text + at, end - at)
            copied += end - at
            into[copied] = c"\n"
            copied += 1
        at, there = end + 1, stop + 1
    return found[:copied]
