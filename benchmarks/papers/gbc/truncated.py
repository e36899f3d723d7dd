"""Rows as hierarchical truncated bitmaps (HTB), and plain rows in the same form.

Source: GBC, arXiv 2403.07858, section V-A. A neighbour is bit `id % WIDTH` of word `id // WIDTH`.
Only words with a bit are stored: their numbers, sorted, and their bits. A word is found by binary
search, and one AND finds all common neighbours among WIDTH ids. With words of one bit this is the
paper's baseline, binary search in CSR: the number of a word is the neighbour, and its bits are 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.arrays import Array
from lpma.arrays import array_module, row_numbers

WIDTH = 32


class Truncated(NamedTuple):
    """The words of all rows."""

    indptr: Array  # int64[n+1]
    words: Array  # uint32: numbers, rising within a row
    bits: Array  # uint32


def truncated(indptr: Array, indices: Array, packed: bool = True) -> Truncated:
    """Sorted rows as words of WIDTH bits, or if not `packed` of one."""
    xp = array_module(indptr)
    if not packed or len(indices) == 0:
        return Truncated(indptr, indices, xp.ones(len(indices), np.uint32))
    row = row_numbers(indptr, len(indices))
    words = indices // np.uint32(WIDTH)
    begins = xp.ones(len(indices), bool)
    begins[1:] = (words[1:] != words[:-1]) | (row[1:] != row[:-1])
    first = xp.flatnonzero(begins)
    bits = np.uint32(1) << indices % np.uint32(WIDTH)
    # The bits of a word are distinct powers of two, so their union is their sum: a difference of
    # running sums, which may wrap around without harm.
    upto = xp.zeros(len(indices) + 1, np.uint64)
    xp.cumsum(bits, dtype=np.uint64, out=upto[1:])
    ends = xp.append(first[1:], len(indices))
    return Truncated(
        xp.searchsorted(first, indptr).astype(np.int64),
        words[first],
        (upto[ends] - upto[first]).astype(np.uint32),
    )
