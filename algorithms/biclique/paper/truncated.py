"""Rows as truncated bitmaps (HTB), and as plain rows in the same form.

Source: Qiu et al., GBC, section V-A. A row's neighbours are hashed to bit `id mod WIDTH` of word
`id div WIDTH`, and only words with a bit are kept: their numbers, sorted, and their bits. A word is
found by binary search, and ANDing two finds every neighbour in common among WIDTH at once. With one
bit a word the same is the binary search on CSR that the paper compares with: a word's number is the
neighbour, and its bits are 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, row_numbers

Array = npt.NDArray[Any]  # or cupy.ndarray

WIDTH = 32


@dataclass(frozen=True)
class Truncated:
    """The words of every row."""

    indptr: Array  # int64[n+1]
    words: Array  # uint32: numbers, rising within a row
    bits: Array  # uint32

    @property
    def nbytes(self) -> int:
        return int(self.indptr.nbytes + self.words.nbytes + self.bits.nbytes)


def truncated(indptr: Array, indices: Array, width: int = WIDTH) -> Truncated:
    """The words of sorted rows, of `width` bits: 32, or 1 for plain rows."""
    xp = array_module(indptr)
    if width == 1 or len(indices) == 0:
        return Truncated(indptr, indices, xp.ones(len(indices), np.uint32))
    row = row_numbers(indptr, len(indices))
    words = indices // np.uint32(width)
    begins = xp.ones(len(indices), bool)
    begins[1:] = (words[1:] != words[:-1]) | (row[1:] != row[:-1])
    first = xp.flatnonzero(begins)
    bits = np.uint32(1) << indices % np.uint32(width)
    # Bits of a word are distinct powers of two, so that their sum is their union: under 2^32, and
    # sums of all bits before it wrap without harm.
    upto = xp.zeros(len(indices) + 1, np.uint64)
    xp.cumsum(bits, dtype=np.uint64, out=upto[1:])
    ends = xp.append(first[1:], len(indices))
    return Truncated(
        xp.searchsorted(first, indptr).astype(np.int64),
        words[first],
        (upto[ends] - upto[first]).astype(np.uint32),
    )
