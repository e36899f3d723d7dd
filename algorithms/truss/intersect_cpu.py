"""Truss numbers without an incidence on the CPU, `method="intersect"`.

Edges are peeled as in `peel_cpu`, but an edge's triangles are found by intersecting the rows of its
ends. If these differ much in length, the longer is searched for the entries of the shorter, each
search starting where the last ended; otherwise they are merged. Edges that are gone are dropped
from the rows whenever the number of living edges has halved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.cpu.search import first_not_below

from ..arrays import Array
from ..triangles.ranked import EdgeList
from ..views.simple import View
from . import peel_cpu
from .peel_cpu import GONE, HELD, LIVING, Peeling

SEARCHED = 8  # a row this many times as long as the other is searched, not merged


class EdgeRows(NamedTuple):
    """The simple view, with the number of every entry's edge in the edge list sorted by (src, dst).

    `last`, `indices` and `edge` are copies: peeling drops edges from the rows."""

    src: Array  # uint32[m]: the edge's ends, in the order of the edge list
    dst: Array  # uint32[m]
    first: Array  # int64[n] or longer: row u is first[u] … last[u] - 1
    last: Array  # int64[n]
    indices: Array  # uint32[2m], sorted within a row
    edge: Array  # int32[2m]


def edge_rows(view: View, edges: EdgeList) -> EdgeRows:
    """REQUIRES: the edges are the view's, sorted."""
    number = np.empty(len(view.indices), np.int32)
    upper = np.searchsorted(edges.src, np.arange(view.num_rows + 1))
    by_rows(_number_entries, view.indptr, view.indptr, view.indices, upper, number)
    first, last = view.indptr[:-1].copy(), view.indptr[1:].copy()
    return EdgeRows(edges.src, edges.dst, first, last, view.indices.copy(), number)


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
def shorter_first(u: int, v: int, first: Array, last: Array) -> tuple[int, int, int, int]:
    """Where the rows of u and v start and end, the shorter one first."""
    if last[u] - first[u] > last[v] - first[v]:
        u, v = v, u
    return first[u], last[u], first[v], last[v]


@compiled
def next_common(i: int, end_i: int, j: int, end_j: int, indices: Array) -> tuple[int, int]:
    """The first places from i and j on that hold the same vertex; (end_i, _) if there are none.
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


def by_intersection(rows: EdgeRows, support: Array, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then. Takes
    over `rows` and `support`."""
    state = peel_cpu.start(support, until)
    held = len(support)  # living edges when the rows were last compacted
    while peel_cpu.next_level(until, state):
        if 2 * state.counters[LIVING] <= held:
            _squeeze(state.fate, rows.first, rows.last, rows.indices, rows.edge)
            held = int(state.counters[LIVING])
        while state.counters[peel_cpu.DONE] < state.counters[peel_cpu.QUEUED]:
            peel_cpu.one_round(_peel_round, state, *rows)
    return state.truss


@compiled
def _squeeze(fate: Array, first: Array, last: Array, indices: Array, edge: Array) -> None:
    """Drop the entries whose edges are gone."""
    for u in range(len(first)):
        place = first[u]
        for i in range(first[u], last[u]):
            if fate[edge[i]] != GONE:
                indices[place], edge[place] = indices[i], edge[i]
                place += 1
        last[u] = place


@compiled
def _peel_round(
    begin: int, end: int, state: Peeling, src: Array, dst: Array, first: Array, last: Array,
    indices: Array, edge: Array,
) -> None:  # fmt: skip
    """As in `peel_cpu`, of which these are the edges queue[begin:end]."""
    support, fate, truss, queue, _, counters = state
    held = np.empty(HELD, np.int32)
    for place in range(begin, end):
        e = queue[place]
        count = 0
        i, end_i, j, end_j = shorter_first(src[e], dst[e], first, last)
        i, j = next_common(i, end_i, j, end_j, indices)
        while i < end_i:
            if peel_cpu.takes(e, edge[i], edge[j], fate):
                if count > HELD - 2:
                    peel_cpu.lose(held[:count], support, truss, queue, counters)
                    count = 0
                count = peel_cpu.hold(edge[i], fate, held, count)
                count = peel_cpu.hold(edge[j], fate, held, count)
            i, j = next_common(i + 1, end_i, j + 1, end_j, indices)
        peel_cpu.lose(held[:count], support, truss, queue, counters)
