"""Triangles on the CPU: the ranked view, and the one loop behind counts, edge supports and trusses.

A triangle w < v < u, by ranks, is found at its middle vertex v. The row of v is marked in a table,
and for every u whose row holds v, the entries of that row before v are looked up in the table. That
is *forward* (Schank and Wagner, WEA 2005) with a table in place of the merge. A triangle is
represented by its three slots only:

    uv   where u's row holds v         uw   the entry looked up        vw   what the table says

Tricks: only what is before v in u's row is looked up, half of it on average, and never the rows of
hubs in full. Ranks make hubs neighbours in the table, so that the entries looked up most stay in
the cache. A merge branches at every step, a lookup never: on RMAT graphs this is four times as
fast. Short rows need no special case, since marking one costs as much as merging it.

Requires a simple undirected view of fewer than 2^31 edges, C-contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows, pass_over

from ..arrays import Array, inverse_of
from ..views.simple import View
from .ranked import EdgeList, Ranked


def rank(view: View) -> Ranked:
    """The ranked view of a simple view. REQUIRES: at most MOST_EDGES edges."""
    n = view.num_rows
    order = by_falling_degree(view.indptr)
    lower = np.empty(n, np.int32)
    pass_over(_count_lower, view.indptr, view.indptr, view.indices, lower)
    starts, in_starts = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    _start_rows(view.indptr, order, lower, starts, in_starts)
    columns = append_by_rank(view.indptr, view.indices, order, starts)
    return Ranked(view, order, starts, columns[0], in_starts, *columns[1:])


def edge_list(ranks: Ranked) -> EdgeList:
    """The edges under the vertices' ids, and where each is among the ranks' rows."""
    view, m = ranks.view, ranks.num_edges
    rank_of = inverse_of(ranks.order)
    starts = np.zeros(view.num_rows + 1, np.int64)
    by_rows(_count_larger, view.indptr, view.indptr, view.indices, starts)
    np.cumsum(starts, out=starts)
    edges = EdgeList(np.empty(m, np.uint32), np.empty(m, np.uint32), np.empty(m, np.int32))
    by_rows(
        _fill_edges, view.indptr, view.indptr, view.indices, rank_of, ranks.indptr, ranks.indices,
        starts, edges.src, edges.dst, edges.slot,
    )  # fmt: skip
    return edges


def count(ranks: Ranked) -> int:
    """How many triangles there are."""
    return int(sum(by_middle(_count, ranks)))


def support(ranks: Ranked) -> Array:
    """How many triangles each slot's edge is in: int32[m]."""
    found = np.zeros(ranks.num_edges, np.int32)
    by_middle(_support, ranks, found)
    return found


def by_middle(kernel: Any, ranks: Ranked, *arguments: Any) -> list[Any]:
    """Call kernel(first, last, indptr, indices, in_indptr, in_slot, in_length, *arguments) over
    ranges of middle vertices, with about the same number of row entries each."""
    return by_rows(
        kernel, ranks.in_indptr, ranks.indptr, ranks.indices, ranks.in_indptr, ranks.in_slot,
        ranks.in_length, *arguments,
    )  # fmt: skip


# The view ---------------------------------------------------------------------------------------


@compiled
def by_falling_degree(indptr: Array) -> Array:
    """The vertices from the highest degree down, ties by ascending id: a counting sort."""
    n = len(indptr) - 1
    largest = np.int64(0)
    for u in range(n):
        largest = max(largest, indptr[u + 1] - indptr[u])
    start = np.zeros(largest + 2, np.int64)
    for u in range(n):
        start[largest - (indptr[u + 1] - indptr[u]) + 1] += 1
    for d in range(largest + 1):
        start[d + 1] += start[d]
    order = np.empty(n, np.uint32)
    for u in range(n):
        place = largest - (indptr[u + 1] - indptr[u])
        order[start[place]] = u
        start[place] += 1
    return order


@compiled
def _count_lower(first: int, last: int, indptr: Array, indices: Array, lower: Array) -> None:
    """lower[u] is the number of u's neighbours of smaller rank."""
    for u in range(first, last):
        of_u = indptr[u + 1] - indptr[u]
        count = 0
        for v in indices[indptr[u] : indptr[u + 1]]:
            of_v = indptr[v + np.uint32(1)] - indptr[v]
            count += (of_v > of_u) | ((of_v == of_u) & (v < u))
        lower[u] = count


@compiled
def _start_rows(indptr: Array, order: Array, lower: Array, starts: Array, in_starts: Array) -> None:
    """Where the rows of ranks start, and where the lists of those that they are in."""
    place = in_place = np.int64(0)
    for r in range(len(order)):
        u = order[r]
        starts[r], in_starts[r] = place, in_place
        place += lower[u]
        in_place += indptr[u + np.uint32(1)] - indptr[u] - lower[u]
    starts[-1], in_starts[-1] = place, in_place


@compiled
def append_by_rank(
    indptr: Array, indices: Array, order: Array, starts: Array
) -> tuple[Array, Array, Array]:
    """The rows, and which vertices are in them. Every rank in turn appends itself to its
    neighbours' rows, which thus come out sorted. A row is full when its vertex's turn is over."""
    n, m = len(order), starts[-1]
    cursor = np.empty((n, 2), np.int32)  # where a vertex's row goes on, and where it starts
    for r in range(n):
        cursor[order[r]] = starts[r]
    rows = np.empty(m, np.uint32)
    in_slot, in_length = np.empty(m, np.int32), np.empty(m, np.int32)
    k = 0
    for r in range(n):
        u = order[r]
        for x in indices[indptr[u] : indptr[u + np.uint32(1)]]:
            place = cursor[x, 0]
            if place >= 0:
                rows[place] = r
                cursor[x, 0] = place + 1
                in_slot[k] = place
                in_length[k] = place - cursor[x, 1]
                k += 1
        cursor[u, 0] = -1
    return rows, in_slot, in_length


@compiled
def _count_larger(first: int, last: int, indptr: Array, indices: Array, starts: Array) -> None:
    """starts[u + 1] is the number of u's neighbours of larger id."""
    for u in range(first, last):
        row = indices[indptr[u] : indptr[u + 1]]
        starts[u + 1] = len(row) - np.searchsorted(row, np.uint32(u))


@compiled
def _fill_edges(
    first: int, last: int, indptr: Array, indices: Array, rank_of: Array, ranked_indptr: Array,
    ranked_indices: Array, starts: Array, src: Array, dst: Array, slot: Array,
) -> None:  # fmt: skip
    for u in range(first, last):
        larger = indices[indptr[u + 1] - (starts[u + 1] - starts[u]) : indptr[u + 1]]
        place = starts[u]
        for v in larger:
            low, high = min(rank_of[u], rank_of[v]), np.int64(max(rank_of[u], rank_of[v]))
            row = ranked_indices[ranked_indptr[high] : ranked_indptr[high + 1]]
            src[place], dst[place] = u, v
            slot[place] = ranked_indptr[high] + np.searchsorted(row, low)
            place += 1


# The loop -----------------------------------------------------------------------------------------


@compiled
def _looked_up(row: Array, table: Array) -> np.uint32:
    """How many of a row's entries are marked."""
    found = np.uint32(0)
    for w in row:
        found += table[w]
    return found


@compiled
def _count(
    first: int, last: int, indptr: Array, indices: Array, in_indptr: Array, in_slot: Array,
    in_length: Array,
) -> np.int64:  # fmt: skip
    marked = np.zeros(last, np.uint8)
    total = np.int64(0)
    for v in range(first, last):
        row = indices[indptr[v] : indptr[v + 1]]
        if len(row) == 0:
            continue
        for w in row:
            marked[w] = 1
        for i in range(in_indptr[v], in_indptr[v + 1]):
            uv = in_slot[i]
            total += _looked_up(indices[uv - in_length[i] : uv], marked)
        for w in row:
            marked[w] = 0
    return total


@compiled
def _support(
    first: int, last: int, indptr: Array, indices: Array, in_indptr: Array, in_slot: Array,
    in_length: Array, support: Array,
) -> None:  # fmt: skip
    """Additions are atomic, since other ranges write to the same slots: one for all triangles of
    (u, v) at v, one for those of (v, w), and one per triangle for (u, w)."""
    counted = np.zeros(last, np.int32)  # 1 + the triangles of (v, w) so far, 0 without such an edge
    for v in range(first, last):
        row = indices[indptr[v] : indptr[v + 1]]
        if len(row) == 0:
            continue
        for w in row:
            counted[w] = 1
        for i in range(in_indptr[v], in_indptr[v + 1]):
            uv = in_slot[i]
            found = 0
            for uw in range(uv - in_length[i], uv):
                w = indices[uw]
                if counted[w]:
                    counted[w] += 1
                    found += 1
                    fetch_add(support, uw, 1)
            if found:
                fetch_add(support, uv, found)
        for k in range(len(row)):
            if counted[row[k]] > 1:
                fetch_add(support, indptr[v] + k, counted[row[k]] - 1)
            counted[row[k]] = 0
