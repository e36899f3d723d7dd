"""The simple undirected and the oriented view of a graph on the CPU: see `_views`.

*Simple*, in O(n + m): the transpose by a counting sort over targets, whose rows come out sorted
because the sources are passed in rising order; where the graph's own rows are not sorted,
transposing twice sorts them. Each row is then merged with its transpose's.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from ._rows import by_rows

Array = npt.NDArray[Any]
Rows = tuple[Array, Array]  # indptr int64[n+1], indices uint32[m]


def simple(indptr: Array, indices: Array) -> Rows:
    """Rows of the union with the transpose, without loops and repeats."""
    reverse_indptr, reverse = _transpose(indptr, indices)
    if not _rows_rise(indptr, indices):
        indptr, indices = _transpose(reverse_indptr, reverse)
    lengths = np.zeros(len(indptr), np.int64)
    by_rows(_count_union, indptr, indptr, indices, reverse_indptr, reverse, lengths)
    union_indptr = np.cumsum(lengths)
    union = np.empty(int(union_indptr[-1]), np.uint32)
    by_rows(_fill_union, indptr, indptr, indices, reverse_indptr, reverse, union_indptr, union)
    return union_indptr, union


def without_loops(indptr: Array, indices: Array) -> Rows:
    """The same rows without loops; the same arrays where there are none."""
    loops = _count_loops(indptr, indices)
    if loops == 0:
        return indptr, indices
    kept_indptr = np.zeros_like(indptr)
    kept = np.empty(len(indices) - loops, np.uint32)
    _drop_loops(indptr, indices, kept_indptr, kept)
    return kept_indptr, kept


def oriented(indptr: Array, indices: Array) -> Rows:
    """Of a simple view the entries from the lower to the higher end by (degree, id)."""
    lengths = np.zeros(len(indptr), np.int64)
    by_rows(_count_up, indptr, indptr, indices, lengths)
    up_indptr = np.cumsum(lengths)
    up = np.empty(int(up_indptr[-1]), np.uint32)
    by_rows(_fill_up, indptr, indptr, indices, up_indptr, up)
    return up_indptr, up


def induced(indptr: Array, indices: Array, inside: Array) -> Rows:
    """The entries both of whose ends are `inside`, bool[n]."""
    lengths = np.zeros(len(indptr), np.int64)
    by_rows(_count_inside, indptr, indptr, indices, inside, lengths)
    kept_indptr = np.cumsum(lengths)
    kept = np.empty(int(kept_indptr[-1]), np.uint32)
    by_rows(_fill_inside, indptr, indptr, indices, inside, kept_indptr, kept)
    return kept_indptr, kept


@numba.njit(cache=True, nogil=True)
def _rows_rise(indptr: Array, indices: Array) -> bool:
    """Whether no row falls anywhere (repeats are allowed)."""
    for u in range(len(indptr) - 1):
        for i in range(indptr[u] + 1, indptr[u + 1]):
            if indices[i] < indices[i - 1]:
                return False
    return True


@numba.njit(cache=True, nogil=True)
def _transpose(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """Rows of the transpose, sorted, repeats kept."""
    n = len(indptr) - 1
    # One place further right than where a row starts, so that filling leaves the starts behind.
    starts = np.zeros(n + 2, np.int64)
    for v in indices:
        starts[v + np.uint32(2)] += 1
    for v in range(2, n + 2):
        starts[v] += starts[v - 1]
    reverse = np.empty(len(indices), np.uint32)
    for u in range(n):
        for i in range(indptr[u], indptr[u + 1]):
            place = indices[i] + np.uint32(1)
            reverse[starts[place]] = u
            starts[place] += 1
    return starts[: n + 1], reverse


@numba.njit(cache=True, nogil=True)
def _count_loops(indptr: Array, indices: Array) -> int:
    loops = 0
    for u in range(len(indptr) - 1):
        for i in range(indptr[u], indptr[u + 1]):
            loops += indices[i] == u
    return loops


@numba.njit(cache=True, nogil=True)
def _drop_loops(indptr: Array, indices: Array, kept_indptr: Array, kept: Array) -> None:
    place = 0
    for u in range(len(indptr) - 1):
        for i in range(indptr[u], indptr[u + 1]):
            if indices[i] != u:
                kept[place] = indices[i]
                place += 1
        kept_indptr[u + 1] = place


@numba.njit(cache=True, nogil=True)
def _merge_row(u: int, a: Array, b: Array, out: Array) -> int:
    """Write the union of two sorted rows without u and repeats; return its length.

    An empty `out` only counts."""
    i = j = length = 0
    last = np.int64(-1)
    while i < len(a) or j < len(b):
        if j == len(b) or (i < len(a) and a[i] <= b[j]):
            v = np.int64(a[i])
            i += 1
        else:
            v = np.int64(b[j])
            j += 1
        if v != last and v != u:
            if len(out):
                out[length] = v
            length += 1
        last = v
    return length


@numba.njit(cache=True, nogil=True)
def _count_union(
    first: int, last: int, ai: Array, a: Array, bi: Array, b: Array, lengths: Array
) -> None:
    nothing = np.empty(0, np.uint32)
    for u in range(first, last):
        row, reverse = a[ai[u] : ai[u + 1]], b[bi[u] : bi[u + 1]]
        lengths[u + 1] = _merge_row(u, row, reverse, nothing)


@numba.njit(cache=True, nogil=True)
def _fill_union(
    first: int, last: int, ai: Array, a: Array, bi: Array, b: Array, indptr: Array, out: Array
) -> None:
    for u in range(first, last):
        row, reverse = a[ai[u] : ai[u + 1]], b[bi[u] : bi[u + 1]]
        _merge_row(u, row, reverse, out[indptr[u] : indptr[u + 1]])


@numba.njit(cache=True, nogil=True)
def _is_up(u: int, v: int, indptr: Array) -> bool:
    """Whether v comes after u in the order by (degree, id)."""
    du, dv = indptr[u + 1] - indptr[u], indptr[v + 1] - indptr[v]
    return du < dv or (du == dv and u < v)


@numba.njit(cache=True, nogil=True)
def _count_up(first: int, last: int, indptr: Array, indices: Array, lengths: Array) -> None:
    for u in range(first, last):
        length = 0
        for i in range(indptr[u], indptr[u + 1]):
            length += _is_up(u, np.int64(indices[i]), indptr)
        lengths[u + 1] = length


@numba.njit(cache=True, nogil=True)
def _fill_up(
    first: int, last: int, indptr: Array, indices: Array, out_indptr: Array, out: Array
) -> None:
    for u in range(first, last):
        place = out_indptr[u]
        for i in range(indptr[u], indptr[u + 1]):
            if _is_up(u, np.int64(indices[i]), indptr):
                out[place] = indices[i]
                place += 1


@numba.njit(cache=True, nogil=True)
def _count_inside(
    first: int, last: int, indptr: Array, indices: Array, inside: Array, lengths: Array
) -> None:
    for u in range(first, last):
        if inside[u]:
            length = 0
            for i in range(indptr[u], indptr[u + 1]):
                length += inside[indices[i]]
            lengths[u + 1] = length


@numba.njit(cache=True, nogil=True)
def _fill_inside(
    first: int,
    last: int,
    indptr: Array,
    indices: Array,
    inside: Array,
    out_indptr: Array,
    out: Array,
) -> None:
    for u in range(first, last):
        if inside[u]:
            place = out_indptr[u]
            for i in range(indptr[u], indptr[u + 1]):
                if inside[indices[i]]:
                    out[place] = indices[i]
                    place += 1
