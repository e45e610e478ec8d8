# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: auto_pickle=False, autotestdict=False
"""Finds where bytes have eight in a row that other bytes have too.

A function of its arguments: whose bytes they are, and what becomes of them, is not known here.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #define PIECE_BYTES 8
    /* Fibonacci hashing (Knuth, TAOCP 6.4): 2**64 over the golden ratio. */
    #define GOLDEN 0x9E3779B97F4A7C15ULL
    """
    const Py_ssize_t PIECE_BYTES
    const uint64_t GOLDEN


cdef inline uint64_t piece_at(const char* place) noexcept nogil:
    cdef uint64_t piece
    memcpy(&piece, place, PIECE_BYTES)
    return piece


@cython.final
cdef class Pieces:
    cdef uint64_t* slots       # by hash, the next free one where that is taken; 0 for none
    cdef uint8_t* dropped      # of each slot, whether what stands there no longer counts
    cdef int slots_log2
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
        if self.slots is NULL or self.dropped is NULL:
            raise MemoryError
        for text in texts:
            self.add(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))

    def __dealloc__(self):
        PyMem_RawFree(self.slots)
        PyMem_RawFree(self.dropped)

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
