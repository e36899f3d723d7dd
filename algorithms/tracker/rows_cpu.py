"""Changed edges merged into simple rows on the CPU: see `rows`.

Both directions of all edges that may have changed are sorted, and searched for in the rows. The
*effect* of one on the number of entries is +1, −1 or 0, and the sum of the effects before an entry
is the distance by which it moves. All threads merge the rows, in tiles, by a few block copies each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.cpu.search import first_not_below
from lpma.cpu.threads import cuts, run_all
from lpma.results import TouchedEdges

from .types import HALF, LOW, Change, TrackedRows

Array = npt.NDArray[Any]

TILE = 1 << 17  # entries, or rows, that a thread takes at a time
KEYS = 1 << 11  # keys that a thread searches for at a time


def changed(rows: TrackedRows, touched: TouchedEdges) -> Change:
    """How the touched edges change the rows."""
    n = touched.num_vertices
    keys = _both_ways(touched)
    places = np.empty(len(keys), np.int64)
    effects = np.empty(len(keys), np.int8)
    run_all(
        _search,
        [(*cut, keys, rows.indptr, rows.indices, places, effects) for cut in cuts(len(keys), KEYS)],
    )
    shifts = np.zeros(len(keys) + 1, np.int64)
    np.cumsum(effects, out=shifts[1:])
    edges = keys >> np.uint64(33) << HALF | (keys >> np.uint64(1)) & LOW
    inserted, deleted = edges[effects > 0], edges[effects < 0]
    alone, noted = _alone(rows, touched, n)
    if not len(inserted) and not len(deleted) and n == rows.num_vertices:
        after = rows
        if len(noted):
            present = _present(rows, rows.indptr, alone, noted)
            after = TrackedRows(rows.indptr, rows.indices, alone, present)
        return Change(rows, after, inserted, deleted)
    indptr = np.empty(n + 1, np.int64)
    indices = np.empty(len(rows.indices) + int(shifts[-1]), np.uint32)
    run_all(_start_rows, [(*cut, edges, shifts, rows.indptr, indptr) for cut in cuts(n + 1, TILE)])
    run_all(
        _move_entries,
        [(*cut, places, effects, shifts, rows.indices, indices)
         for cut in cuts(len(rows.indices), TILE, per_thread=8)],
    )  # fmt: skip
    _put(edges, places, effects, shifts, indices)
    present = _present(
        rows, indptr, alone, np.concatenate((inserted >> HALF, deleted >> HALF, noted))
    )
    return Change(rows, TrackedRows(indptr, indices, alone, present), inserted, deleted)


def _alone(rows: TrackedRows, touched: TouchedEdges, n: int) -> tuple[Array, Array]:
    """`TrackedRows.alone` after the change, and the rows whose loops or markers were touched."""
    u, v = touched.keys >> HALF, touched.keys & LOW
    is_loop, is_marker = (u == v) & (u < n), (v == LOW) & (u < n)
    noted = u[is_loop | is_marker]
    if n == rows.num_vertices and not len(noted):
        return rows.alone, noted
    alone = np.zeros((2, n), np.bool_)
    kept = min(n, rows.num_vertices)
    alone[:, :kept] = rows.alone[:, :kept]
    for flags, is_touched in zip(alone, (is_loop, is_marker), strict=True):
        flags[u[is_touched]] = touched.there[is_touched]
    return alone, noted


def _present(rows: TrackedRows, indptr: Array, alone: Array, looked_at: Array) -> Array:
    """`TrackedRows.present` after the change. REQUIRES: `looked_at` has every row that may have
    become a vertex or ceased to be one."""
    n = len(indptr) - 1
    present = np.zeros(n, np.bool_)
    kept = min(n, rows.num_vertices)
    present[:kept] = rows.present[:kept]
    at = looked_at[looked_at < n].astype(np.int64)
    present[at] = (indptr[at + 1] > indptr[at]) | alone[0, at] | alone[1, at]
    return present


def find_loops(indptr: Array, indices: Array, looped: Array) -> None:
    """Set looped[u], bool[n], to whether row u contains u."""
    by_rows(_find_loops, indptr, indptr, indices, looped)


@compiled
def _find_loops(first: int, last: int, indptr: Array, indices: Array, looped: Array) -> None:
    for u in range(first, last):
        at = first_not_below(indices, indptr[u], indptr[u + 1], u)
        looped[u] = at < indptr[u + 1] and indices[at] == u


def _both_ways(touched: TouchedEdges) -> Array:
    """source << 33 | target << 1 | whether the edge exists now, rising, in both directions of every
    touched key that can be an edge of the view. An edge that is listed twice has the same last bit
    both times."""
    u, v = touched.keys >> np.uint64(32), touched.keys & np.uint64(0xFFFFFFFF)
    edge = (u != v) & (v != np.uint64(0xFFFFFFFF))
    u, v, there = u[edge], v[edge], touched.there[edge].astype(np.uint64)
    one = np.uint64(1)
    ways = [a << np.uint64(33) | b << one | there for a, b in ((u, v), (v, u))]
    return np.sort(np.concatenate(ways), kind="stable")


@compiled
def _search(
    first: int, last: int, keys: Array, indptr: Array, indices: Array, places: Array,
    effects: Array,
) -> None:  # fmt: skip
    """places[j]: where key j's entry is in the rows, or would be. Of equal keys only the last has
    an effect; it is then also the last key at its place."""
    n = np.int64(len(indptr) - 1)
    for j in range(first, last):
        key = keys[j]
        u = np.int64(key >> np.uint64(33))
        v = np.uint32(key >> np.uint64(1) & np.uint64(0xFFFFFFFF))
        low = indptr[min(u, n)]
        end = indptr[min(u + 1, n)]
        at = low + np.searchsorted(indices[low:end], v)
        places[j] = at
        there = key & np.uint64(1) != np.uint64(0)
        was = at < end and indices[at] == v
        is_last = j + 1 == len(keys) or keys[j + 1] != key
        effects[j] = (np.int8(there) - np.int8(was)) if is_last else 0


@compiled
def _start_rows(
    first: int, last: int, edges: Array, shifts: Array, old: Array, indptr: Array
) -> None:
    """Fill in indptr[first:last]: the old starts, moved by the effects of smaller sources."""
    j = np.searchsorted(edges, np.uint64(first) << np.uint64(32))
    for u in range(first, last):
        while j < len(edges) and edges[j] >> np.uint64(32) < np.uint64(u):
            j += 1
        indptr[u] = old[min(u, len(old) - 1)] + shifts[j]


@compiled
def _move_entries(
    first: int, last: int, places: Array, effects: Array, shifts: Array, old: Array, new: Array
) -> None:
    """Copy old[first:last] to their new places, one run between two changes at a time."""
    j = np.searchsorted(places, first)
    at = first
    while at < last:
        while j < len(places) and places[j] == at:
            j += 1
        if j > 0 and places[j - 1] == at and effects[j - 1] < 0:
            at += 1  # deleted
            continue
        end = min(last, places[j]) if j < len(places) else last
        new[at + shifts[j] : end + shifts[j]] = old[at:end]
        at = end


@compiled
def _put(edges: Array, places: Array, effects: Array, shifts: Array, new: Array) -> None:
    """Write the inserted entries."""
    for j in range(len(edges)):
        if effects[j] > 0:
            new[places[j] + shifts[j]] = np.uint32(edges[j] & np.uint64(0xFFFFFFFF))
