"""The gap of a b-tree page: bytes that no cell has, and that may still hold copies of some.

When SQLite splits a page it moves cells to a new one and leaves their bytes in the gap of the old
one. `secure_delete` overwrites a cell that is deleted, not copies of one that was moved. After the
file format's description (sqlite.org/fileformat2.html, section 1.6); refuses to know what the cells
mean.
"""

from typing import Final

_FILE_HEADER_BYTES: Final = 100
#: By a page's first byte: where the list of its cells begins. All other pages begin with a page
#: number of four bytes or with zeros; such a number begins with a byte of these only in a file of
#: more than 2^25 pages.
_LIST_AT: Final = {2: 12, 5: 12, 10: 8, 13: 8}
PAGES_MAX: Final = 2**25


def without_gap(page: bytes, number: int) -> bytes:
    """The page as it is, but for zeros in its gap; `number` counts from 1. A page that is of no
    b-tree, or not as it should be, is left alone."""
    head = _FILE_HEADER_BYTES if number == 1 else 0
    list_at = _LIST_AT.get(page[head])
    if list_at is None or number >= PAGES_MAX:
        return page
    start = head + list_at + 2 * int.from_bytes(page[head + 3 : head + 5], "big")
    # An offset of zero stands for 65,536.
    end = int.from_bytes(page[head + 5 : head + 7], "big") or 65_536
    if not start < end <= len(page):
        return page
    return page[:start] + bytes(end - start) + page[end:]
