# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""Merges a ranking of chunks into a ranking of their documents, by reciprocal ranks.

A function of its arguments: every limit arrives as one, and what a chunk or a document holds is
not known here.
"""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    /* Fibonacci hashing (Knuth, TAOCP 6.4): 2**64 over the golden ratio. */
    #define GOLDEN 0x9E3779B97F4A7C15ULL
    """
    const uint64_t GOLDEN

cdef struct Document:
    int64_t number
    double score
    Py_ssize_t held
    Py_ssize_t best_rank   # counted from 0
    Py_ssize_t last_rank

cdef struct Merge:
    Document* documents    # in the order of their best ranks
    Py_ssize_t found
    Py_ssize_t* slots      # hash of a number -> 1 + its index in documents, 0 for none
    int slots_log2
    Py_ssize_t* earlier    # rank -> the rank before it that went to the same document
    int64_t* ranked        # rank -> chunk


cdef Document* document_of(Merge* merge, int64_t number, Py_ssize_t rank) noexcept nogil:
    """The document of that number; one not yet seen is added with this rank as its best."""
    cdef Py_ssize_t mask = (<Py_ssize_t> 1 << merge.slots_log2) - 1
    cdef Py_ssize_t slot = (<uint64_t> number * GOLDEN) >> (64 - merge.slots_log2)
    cdef Document* document
    while merge.slots[slot]:
        document = &merge.documents[merge.slots[slot] - 1]
        if document.number == number:
            return document
        slot = (slot + 1) & mask
    document = &merge.documents[merge.found]
    merge.found += 1
    merge.slots[slot] = merge.found
    document.number = number
    document.best_rank = rank
    return document


cdef void walk(
    Merge* merge,
    const int64_t* chunks,
    const int64_t* docs,
    Py_ssize_t length,
    Py_ssize_t per_doc,
    Py_ssize_t ranks,
    Py_ssize_t constant,
) noexcept nogil:
    cdef Py_ssize_t i, rank = 0
    cdef Document* document
    for i in range(length):
        if rank == ranks:
            return
        document = document_of(merge, docs[i], rank)
        if document.held == per_doc:
            continue
        merge.ranked[rank] = chunks[i]
        merge.earlier[rank] = document.last_rank
        document.last_rank = rank
        document.held += 1
        rank += 1
        document.score += 1.0 / (constant + rank)


cdef inline bint is_better(const Document* left, const Document* right) noexcept nogil:
    if left.score != right.score:
        return left.score > right.score
    return left.best_rank < right.best_rank


cdef Py_ssize_t choose(
    const Merge* merge, const Document** best, Py_ssize_t count
) noexcept nogil:
    """List the best `count` documents, best first; answer how many there are.

    They are met in the order of their best ranks, so most that are not among the best are worse
    than the last of those, and need no sorting.
    """
    cdef const Document* document
    cdef Py_ssize_t i, j
    cdef Py_ssize_t held = 0
    for i in range(merge.found):
        document = &merge.documents[i]
        if held < count:
            held += 1
        elif count == 0 or not is_better(document, best[held - 1]):
            continue
        j = held - 1
        while j and is_better(document, best[j - 1]):
            best[j] = best[j - 1]
            j -= 1
        best[j] = document
    return held


cdef list chunks_of(const Merge* merge, const Document* document):
    cdef Py_ssize_t rank = document.last_rank, i
    cdef list held = [None] * document.held
    for i in range(document.held - 1, -1, -1):
        held[i] = merge.ranked[rank]
        rank = merge.earlier[rank]
    return held


def fuse(
    const int64_t[::1] chunks not None,
    const int64_t[::1] docs not None,
    Py_ssize_t per_doc,
    Py_ssize_t ranks,
    Py_ssize_t constant,
    Py_ssize_t top,
):
    cdef Py_ssize_t length = chunks.shape[0]
    if docs.shape[0] != length:
        raise ValueError("chunks and docs must be of one length")
    if per_doc < 1 or ranks < 0 or constant < 0 or top < 0:
        raise ValueError("limits out of range")
    # No more documents are found than ranks are given: a new document always takes one.
    cdef Py_ssize_t most = min(ranks, length)
    if most == 0:
        return [], False
    cdef Merge merge = Merge(NULL, 0, NULL, 1, NULL, NULL)
    cdef const Document** chosen = NULL
    cdef Py_ssize_t i, chosen_n
    while (<Py_ssize_t> 1 << merge.slots_log2) < 2 * most:
        merge.slots_log2 += 1
    try:
        merge.documents = <Document*> allocate(most, sizeof(Document))
        merge.slots = <Py_ssize_t*> allocate(
            <Py_ssize_t> 1 << merge.slots_log2, sizeof(Py_ssize_t)
        )
        merge.earlier = <Py_ssize_t*> allocate(most, sizeof(Py_ssize_t))
        merge.ranked = <int64_t*> allocate(most, sizeof(int64_t))
        chosen = <const Document**> allocate(min(top, most), sizeof(Document*))
        with nogil:
            walk(&merge, &chunks[0], &docs[0], length, per_doc, ranks, constant)
            chosen_n = choose(&merge, chosen, top)
        return [listed(&merge, chosen[i]) for i in range(chosen_n)], merge.found > top
    finally:
        PyMem_RawFree(chosen)
        PyMem_RawFree(merge.documents)
        PyMem_RawFree(merge.slots)
        PyMem_RawFree(merge.earlier)
        PyMem_RawFree(merge.ranked)


cdef void* allocate(Py_ssize_t count, size_t size) except NULL:
    """Zeroed memory."""
    cdef void* allocated = PyMem_RawCalloc(count, size)
    if allocated == NULL:
        raise MemoryError
    return allocated


cdef tuple listed(const Merge* merge, const Document* document):
    return document.number, document.score, chunks_of(merge, document)
