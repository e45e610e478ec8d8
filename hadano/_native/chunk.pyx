# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""Cuts a text into overlapping windows, counted in codepoints.

A function of its arguments: how large a window is, and what becomes of it, is not known here.
"""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_GET_LENGTH, PyUnicode_Substring


def windows(str text not None, Py_ssize_t size, Py_ssize_t stride):
    if not 0 < stride <= size:
        raise ValueError("a window needs 0 < stride <= size")
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    if length <= size:
        return [text]
    # 1 + ceil((length - size) / stride)
    cdef Py_ssize_t count = 2 + (length - size - 1) // stride
    cdef Py_ssize_t index, start
    cdef list cut = PyList_New(count)
    cdef str window
    for index in range(count):
        start = index * stride
        # Copies from the text's storage, of whatever width, into the narrowest that holds it.
        window = PyUnicode_Substring(text, start, min(length, start + size))
        Py_INCREF(window)  # for the list: PyList_SET_ITEM takes over a reference
        PyList_SET_ITEM(cut, index, window)
    return cut
