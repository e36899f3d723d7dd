"""Trusses without an incidence, on the CPU: triangles are found anew by intersecting rows.

*intersect* peels as `_truss_cpu` does, and where that reads an edge's list, this intersects the
rows of its ends: where they differ much in length, by searching the longer for what the shorter
holds, each search from where the last ended; else by merging. Edges that are gone are dropped from
the rows whenever the living have halved.
*affected* is the slides' program (Ding, Duan and Liu, "K-truss decomposition", ECE508): for k = 3,
4, … every edge is affected; count the triangles of the affected ones, mark for deletion those with
fewer than k - 2, and as affected the other edges of their triangles; delete what is marked, the
*short update*; again, until no edge is affected. Edges stay in their rows, deleted or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.cpu.search import first_not_below

from ..triangles.ranked import EdgeList
from ..views.simple import View
from . import peel_cpu as peeling
from .peel_cpu import GONE, HELD, LIVING, Peeling

Array = npt.NDArray[Any]

SEARCHED = 8  # a row this many times as long as the other is searched, not merged


@dataclass(frozen=True)
class EdgeRows:
    """The simple view with the number, in the list, of every entry's edge."""

    src: Array  # uint32[m]
    dst: Array  # uint32[m]
    first: Array  # int64[n]: row u is first[u] … last[u] - 1
    last: Array  # int64[n]
    indices: Array  # uint32[2m], sorted within a row
    edge: Array  # int32[2m]

    @property
    def columns(self) -> tuple[Array, ...]:
        return self.src, self.dst, self.first, self.last, self.indices, self.edge


def edge_rows(view: View, edges: EdgeList) -> EdgeRows:
    """REQUIRES: edges are the view's, sorted. The arrays may be written, but for src and dst."""
    number = np.empty(len(view.indices), np.int32)
    upper = np.searchsorted(edges.src, np.arange(view.num_vertices + 1))
    by_rows(_number_entries, view.indptr, view.indptr, view.indices, upper, number)
    first, last = view.indptr[:-1].copy(), view.indptr[1:].copy()
    return EdgeRows(edges.src, edges.dst, first, last, view.indices.copy(), number)


def by_intersection(rows: EdgeRows, support: Array, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then. Takes
    `rows` and `support` over."""
    state = peeling.start(support, until)
    held = len(support)  # by the rows
    while peeling.next_level(until, state):
        if 2 * state.counters[LIVING] <= held:
            _squeeze(state.fate, rows.first, rows.last, rows.indices, rows.edge)
            held = int(state.counters[LIVING])
        while state.counters[peeling.DONE] < state.counters[peeling.QUEUED]:
            peeling.one_round(_peel_round, state, *rows.columns)
    return state.truss


def by_affected(rows: EdgeRows, until: int) -> Array:
    """As `by_intersection`."""
    m = len(rows.src)
    truss = np.full(m, until, np.int32)
    standing, deleted, affected = np.ones((3, m), np.uint8)
    deleted[:] = 0
    k = 3
    while k <= until and standing.any():
        affected[:] = standing
        while len(checked := np.flatnonzero(affected)):
            affected[:] = 0
            work = _work(rows, checked)
            by_rows(_check, work, checked, k - 2, standing, *rows.columns, deleted, affected)
            truss[deleted != 0] = k - 1
            standing[deleted != 0] = 0
            deleted[:] = 0
            affected &= standing
        k += 1
    return truss


def _work(rows: EdgeRows, edges: Array) -> Array:
    """int64[edges + 1]: the running sum of the lengths of the edges' rows."""
    length = rows.last - rows.first
    work = np.zeros(len(edges) + 1, np.int64)
    np.cumsum(length[rows.src[edges]] + length[rows.dst[edges]], out=work[1:])
    return work


@compiled
def _number_entries(
    first: int, last: int, indptr: Array, indices: Array, upper: Array, number: Array
) -> None:
    """upper[u] is the number of the first edge from u to a larger id."""
    for u in range(first, last):
        start, end = indptr[u], indptr[u + 1]
        larger = end - (upper[u + 1] - upper[u])
        for i in range(start, larger):
            v = np.int64(indices[i])
            # Among v's neighbours of larger id, u stands as far from the end as v's edge to it.
            row = indices[indptr[v] : indptr[v + 1]]
            number[i] = upper[v + 1] - (len(row) - np.searchsorted(row, np.uint32(u)))
        for i in range(larger, end):
            number[i] = upper[u] + i - larger


@compiled
def _squeeze(fate: Array, first: Array, last: Array, indices: Array, edge: Array) -> None:
    """Rows keep the entries whose edges are not gone."""
    for u in range(len(first)):
        place = first[u]
        for i in range(first[u], last[u]):
            if fate[edge[i]] != GONE:
                indices[place], edge[place] = indices[i], edge[i]
                place += 1
        last[u] = place


@compiled
def _next_common(i: int, end_i: int, j: int, end_j: int, indices: Array) -> tuple[int, int]:
    """The first places from i and j on that hold the same; (end_i, _) where there are none.
    REQUIRES: the part from i is not the longer one."""
    if end_j - j > SEARCHED * (end_i - i):
        while i < end_i:
            wanted = indices[i]
            j = first_not_below(indices, j, end_j, wanted)
            if j < end_j and indices[j] == wanted:
                return i, j
            i += 1
        return end_i, j
    while i < end_i and j < end_j:
        a, b = indices[i], indices[j]
        if a == b:
            return i, j
        i += a < b
        j += b < a
    return end_i, j


@compiled
def _shorter_first(u: int, v: int, first: Array, last: Array) -> tuple[int, int, int, int]:
    if last[u] - first[u] > last[v] - first[v]:
        u, v = v, u
    return first[u], last[u], first[v], last[v]


@compiled
def _peel_round(
    begin: int, end: int, state: Peeling, src: Array, dst: Array, first: Array, last: Array,
    indices: Array, edge: Array,
) -> None:  # fmt: skip
    support, fate, truss, queue, _, counters = state
    held = np.empty(HELD, np.int32)
    for place in range(begin, end):
        e = queue[place]
        count = 0
        i, end_i, j, end_j = _shorter_first(src[e], dst[e], first, last)
        i, j = _next_common(i, end_i, j, end_j, indices)
        while i < end_i:
            if peeling.takes(e, edge[i], edge[j], fate):
                if count > HELD - 2:
                    peeling.lose(held[:count], support, truss, queue, counters)
                    count = 0
                count = peeling.hold(edge[i], fate, held, count)
                count = peeling.hold(edge[j], fate, held, count)
            i, j = _next_common(i + 1, end_i, j + 1, end_j, indices)
        peeling.lose(held[:count], support, truss, queue, counters)


@compiled
def _check(
    begin: int, end: int, checked: Array, least: int, standing: Array, src: Array, dst: Array,
    first: Array, last: Array, indices: Array, edge: Array, deleted: Array, affected: Array,
) -> None:  # fmt: skip
    """Delete what has fewer than `least` standing triangles, and mark the others of these."""
    for e in checked[begin:end]:
        start_i, end_i, start_j, end_j = _shorter_first(src[e], dst[e], first, last)
        found = 0
        i, j = _next_common(start_i, end_i, start_j, end_j, indices)
        while i < end_i and found < least:
            found += standing[edge[i]] & standing[edge[j]]
            i, j = _next_common(i + 1, end_i, j + 1, end_j, indices)
        if found >= least:
            continue
        deleted[e] = 1
        i, j = _next_common(start_i, end_i, start_j, end_j, indices)
        while i < end_i:
            if standing[edge[i]] and standing[edge[j]]:
                affected[edge[i]] = affected[edge[j]] = 1
            i, j = _next_common(i + 1, end_i, j + 1, end_j, indices)
