"""What the algorithms read a graph as: the simple undirected view and the oriented view.

*Simple*: rows of the union of the graph and its transpose, without loops and repeats. Made in
O(n + m): the transpose by a counting sort over targets, whose rows come out sorted because the
sources are passed in rising order; where the graph's own rows are not sorted, transposing twice
sorts them. Each row is then merged with its transpose's. An undirected snapshot already is its own
transpose, so that at most its loops are dropped.
*Oriented*: of each edge of the simple view only the direction from the smaller to the larger end,
ordered by (degree, id). No row is then longer than sqrt(2m), which bounds the work of everything
that compares rows (Chiba and Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J.
Comput. 14, 1985; Latapy, TCS 407, 2008).

Both are built once for a Snapshot and kept in its `views`: preparing often costs more than the
algorithm. Weights play no part, and a stored entry is an edge even where its weight is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from lpma.arrays import to_host
from lpma.errors import BatchError
from lpma.snapshot import Snapshot

Array = npt.NDArray[Any]

THREADS = numba.config.NUMBA_NUM_THREADS  # the cores this process may use, unless set by the user
PIECES_PER_THREAD = 16  # rows differ in work: many pieces even it out
SMALL = 1 << 15  # entries below which starting a thread costs more than it saves


@dataclass(frozen=True)
class View:
    """Rows of vertex ids, sorted within a row."""

    indptr: Array  # int64[n+1]
    indices: Array  # uint32[m]

    @property
    def num_vertices(self) -> int:
        return len(self.indptr) - 1


def simple(s: Any) -> View:
    """The simple undirected view of a Snapshot, a scipy CSR matrix, or (indptr, indices).

    Raises BatchError where these are no graph."""
    return _cached(s, "simple", lambda: _build_simple(s))


def oriented(s: Any) -> View:
    """The oriented view of the same: one direction of each edge, from low to high degree."""
    return _cached(s, "oriented", lambda: _build_oriented(simple(s)))


def _cached(s: Any, name: str, build: Callable[[], View]) -> View:
    if not isinstance(s, Snapshot):
        return build()
    view = s.views.get(name)
    if view is None:
        # Two threads may both build it; setdefault lets them agree on one.
        view = s.views.setdefault(name, build())
    return view


def _build_simple(s: Any) -> View:
    if isinstance(s, Snapshot):
        indptr, indices = to_host(s.indptr), to_host(s.indices)
        if not s.directed:
            return _without_loops(View(indptr, indices))
        is_sorted = True
    else:
        indptr, indices = _checked_rows(s)
        is_sorted = bool(_rows_rise(indptr, indices))
    reverse_indptr, reverse = _transpose(indptr, indices)
    if not is_sorted:
        indptr, indices = _transpose(reverse_indptr, reverse)
    lengths = np.zeros(len(indptr), np.int64)
    by_rows(_count_union, indptr, indptr, indices, reverse_indptr, reverse, lengths)
    union_indptr = np.cumsum(lengths)
    union = np.empty(int(union_indptr[-1]), np.uint32)
    by_rows(_fill_union, indptr, indptr, indices, reverse_indptr, reverse, union_indptr, union)
    return View(union_indptr, union)


def _without_loops(view: View) -> View:
    """The same rows without their loops; the view itself where there are none."""
    loops = _count_loops(view.indptr, view.indices)
    if loops == 0:
        return view
    indptr = np.zeros_like(view.indptr)
    indices = np.empty(len(view.indices) - loops, np.uint32)
    _drop_loops(view.indptr, view.indices, indptr, indices)
    return View(indptr, indices)


def _build_oriented(view: View) -> View:
    lengths = np.zeros(len(view.indptr), np.int64)
    by_rows(_count_up, view.indptr, view.indptr, view.indices, lengths)
    indptr = np.cumsum(lengths)
    indices = np.empty(int(indptr[-1]), np.uint32)
    by_rows(_fill_up, view.indptr, view.indptr, view.indices, indptr, indices)
    return View(indptr, indices)


def _checked_rows(s: Any) -> tuple[Array, Array]:
    """indptr and indices of a CSR matrix or a pair, as int64 and uint32."""
    if hasattr(s, "indptr") and hasattr(s, "indices"):
        if getattr(s, "format", "csr") != "csr":
            raise BatchError(f"a {s.format} matrix: convert it with .tocsr() first")
        given = s.indptr, s.indices
        columns = s.shape[1]
    elif isinstance(s, tuple | list) and len(s) == 2:
        given = s[0], s[1]
        columns = None
    else:
        raise BatchError(
            f"a {type(s).__name__} is no graph here: give a Snapshot, a CSR matrix, or "
            "(indptr, indices)"
        )
    indptr, indices = np.asarray(to_host(given[0])), np.asarray(to_host(given[1]))
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            raise BatchError(f"{name}: expected integers in one dimension")
    n = len(indptr) - 1
    if n < 0 or int(indptr[0]) != 0 or int(indptr[-1]) != len(indices):
        raise BatchError("indptr must go from 0 to the number of indices")
    if bool((indptr[1:] < indptr[:-1]).any()):
        raise BatchError("indptr must not fall")
    if columns not in (None, n):
        raise BatchError(f"a matrix of {n} by {columns}: a graph's is square")
    if n > np.iinfo(np.uint32).max:
        raise BatchError("at most 2^32 - 1 rows are taken")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < n:
        raise BatchError(f"indices must lie from 0 to {n - 1}, the last row")
    return indptr.astype(np.int64, copy=False), indices.astype(np.uint32, copy=False)


def by_rows(kernel: Callable[..., Any], indptr: Array, *arguments: Any) -> list[Any]:
    """Call `kernel(first, last, *arguments)` over pieces of the rows, each with about as many
    entries as any other, in a few threads. Requires a kernel that lets go of the GIL."""
    n = len(indptr) - 1
    if indptr[-1] < SMALL:
        return [kernel(0, n, *arguments)]
    pieces = PIECES_PER_THREAD * THREADS
    cuts = np.searchsorted(indptr, np.linspace(0, int(indptr[-1]), pieces + 1)[1:-1])
    bounds = np.concatenate(([0], np.minimum(cuts, n), [n]))
    with ThreadPoolExecutor(THREADS) as pool:
        calls = [
            pool.submit(kernel, first, last, *arguments)
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
            if first < last
        ]
        return [call.result() for call in calls]


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
