"""The subgraph of a root, as bits: made from wedges, and packed when little of it is left.

It is two matrices of bits: a row per left vertex, over the right vertices, and a column per right
vertex, over the left ones.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.instructions import lowest, ones
from lpma.cpu.jit import compiled

from ...arrays import Array

ONE = np.uint64(1)


@compiled
def candidates(
    u: int, indptr: Array, indices: Array, other_indptr: Array, other: Array, least: int,
    counts: Array, number: Array,
) -> int:  # fmt: skip
    """Number the vertices before u that have at least `least` neighbours in common with it:
    number[w] = 1, 2, …; and 0 for those with fewer but at least one. Returns how many got a number.
    counts: zeros, before and after."""
    found = 0
    for v in indices[indptr[u] : indptr[u + 1]]:
        x = np.int64(v)
        for i in range(other_indptr[x], other_indptr[x + 1]):
            w = other[i]
            if w >= u:
                break
            counts[w] += 1
    for v in indices[indptr[u] : indptr[u + 1]]:
        x = np.int64(v)
        for i in range(other_indptr[x], other_indptr[x + 1]):
            w = other[i]
            if w >= u:
                break
            if counts[w] >= least:
                found += 1
                number[w] = found
            elif counts[w] > 0:
                number[w] = 0
            counts[w] = 0
    return found


@compiled
def mark(
    u: int, indptr: Array, indices: Array, other_indptr: Array, other: Array, number: Array,
    rows: Array, columns: Array,
) -> None:  # fmt: skip
    """Set the bits of the edges between numbered vertices and neighbours of u, in matrices of
    zeros."""
    for j in range(indptr[u + 1] - indptr[u]):
        x = np.int64(indices[indptr[u] + j])
        for k in range(other_indptr[x], other_indptr[x + 1]):
            w = other[k]
            if w >= u:
                break
            if number[w]:
                _join(rows, columns, np.int64(number[w]) - 1, j)


@compiled
def pack(rows: Array, left: Array, right: Array, new_rows: Array, new_columns: Array) -> None:
    """The subgraph of two sets of at most 64 vertices each, a word per vertex: uint64[64] each."""
    new_columns[:] = 0
    i = 0
    for word in range(len(left)):
        bits = left[word]
        while bits:
            new_rows[i] = _gathered(rows[64 * word + lowest(bits)], right)
            kept = new_rows[i]
            while kept:
                new_columns[lowest(kept)] |= ONE << np.uint64(i)
                kept &= kept - ONE
            i += 1
            bits &= bits - ONE


@compiled
def _gathered(row: Array, places: Array) -> np.uint64:
    """The row's bits at the places that are set in `places`, packed side by side."""
    gathered, count = np.uint64(0), 0
    for word in range(len(places)):
        bits = places[word]
        found = row[word] & bits
        while found:
            below = (found & (~found + ONE)) - ONE
            gathered |= ONE << np.uint64(count + ones(bits & below))
            found &= found - ONE
        count += ones(bits)
    return gathered


@compiled
def _join(rows: Array, columns: Array, i: int, j: int) -> None:
    rows[i, j >> 6] |= ONE << np.uint64(j & 63)
    columns[j, i >> 6] |= ONE << np.uint64(i & 63)
