# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
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
    # ceil((length - size) / stride) windows follow the first; written so that no sum overflows.
    cdef Py_ssize_t count = 2 + (length - size - 1) // stride
    cdef Py_ssize_t index
    cdef list cut = PyList_New(count)
    for index in range(count):
        window = PyUnicode_Substring(text, index * stride, min(length, index * stride + size))
        Py_INCREF(window)
        PyList_SET_ITEM(cut, index, window)
    return cut
