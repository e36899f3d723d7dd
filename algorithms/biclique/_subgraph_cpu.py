"""The subgraph of a root, as bits: found among wedges, and packed when little of it is left.

A subgraph of a left and b right vertices is two matrices of bits in one array of words, from a
start on: a rows, over right vertices, then b columns, over left ones.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from ._bits_cpu import lowest, words_for

Array = npt.NDArray[Any]

ONE = np.uint64(1)


@numba.njit(cache=True, nogil=True)
def cells_for(a: int, b: int) -> int:
    """How many words such a subgraph takes."""
    return a * words_for(b) + b * words_for(a)


@numba.njit(cache=True, nogil=True)
def matrices(cells: Array, start: int, a: int, b: int) -> tuple[Array, Array]:
    """Rows uint64[a, words] and columns uint64[b, words]."""
    middle, end = start + a * words_for(b), start + cells_for(a, b)
    rows = cells[start:middle].reshape((a, words_for(b)))
    return rows, cells[middle:end].reshape((b, words_for(a)))


@numba.njit(cache=True, nogil=True)
def candidates(
    u: int, indptr: Array, indices: Array, other_indptr: Array, other: Array, least: int,
    counts: Array, number: Array,
) -> int:  # fmt: skip
    """number[w] = 1, 2, … for those before u that have `least` neighbours in common with it, 0 for
    the others that have any; how many there are."""
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


@numba.njit(cache=True, nogil=True)
def mark(
    u: int, indptr: Array, indices: Array, other_indptr: Array, other: Array, number: Array,
    rows: Array, columns: Array,
) -> None:  # fmt: skip
    """The bits of the numbered vertices before u and of u's neighbours, into zeros."""
    for j in range(indptr[u + 1] - indptr[u]):
        x = np.int64(indices[indptr[u] + j])
        for k in range(other_indptr[x], other_indptr[x + 1]):
            w = other[k]
            if w >= u:
                break
            if number[w]:
                _join(rows, columns, np.int64(number[w]) - 1, j)


@numba.njit(cache=True, nogil=True)
def pack(
    rows: Array, left: Array, right: Array, new_rows: Array, new_columns: Array, number: Array
) -> None:
    """The part of a subgraph within two sets of vertices, into zeros. number: int64, for as many
    right vertices as there are."""
    count = 0
    for word in range(len(right)):
        bits = right[word]
        while bits:
            number[64 * word + lowest(bits)] = count
            count += 1
            bits &= bits - ONE
    i = 0
    for word in range(len(left)):
        bits = left[word]
        while bits:
            row = rows[64 * word + lowest(bits)]
            for k in range(len(right)):
                kept = row[k] & right[k]
                while kept:
                    _join(new_rows, new_columns, i, number[64 * k + lowest(kept)])
                    kept &= kept - ONE
            i += 1
            bits &= bits - ONE


@numba.njit(cache=True, nogil=True)
def _join(rows: Array, columns: Array, i: int, j: int) -> None:
    rows[i, j >> 6] |= ONE << np.uint64(j & 63)
    columns[j, i >> 6] |= ONE << np.uint64(i & 63)
