"""Changed edges merged into simple rows on the CPU: see `rows`.

Both directions of all edges that may have changed are sorted, and searched for in the rows. The
*effect* of one on the number of entries is +1, −1 or 0, and the sum of the effects before an entry
is the distance by which it moves. All threads merge the rows, in tiles, by a few block copies each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.instructions import prefetch
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.cpu.search import first_not_below
from lpma.cpu.threads import cuts, run_all
from lpma.results import TouchedEdges

from .types import HALF, LOW, Change, Memory, TrackedRows

Array = npt.NDArray[Any]

TILE = 1 << 19  # entries, or rows, that a thread takes at a time
KEYS = 1 << 13  # keys that a thread searches for at a time
AHEAD = 16  # keys whose rows are prefetched before their turn
SPARE = 8  # new memory has room for an eighth more than is needed


def changed(rows: TrackedRows, touched: TouchedEdges, spare: Memory | None) -> Change:
    """How the touched edges change the rows. spare: the memory of rows that are not read again."""
    n = touched.num_vertices
    keys = _both_ways(touched)
    places = np.empty(len(keys), np.int64)
    effects = np.empty(len(keys), np.int8)
    run_all(
        _search,
        [(*cut, keys, rows.indptr, rows.indices, places, effects) for cut in cuts(len(keys), KEYS)],
    )
    edges, places, shifts = _effective(keys, places, effects)
    comes = shifts[1:] > shifts[:-1]
    inserted, deleted = edges[comes], edges[~comes]
    alone, noted = _alone(rows, touched, n)
    if not len(edges) and n == rows.num_vertices:
        after = rows
        if len(noted):
            present = _present(rows, rows.indptr, alone, noted, edges)
            after = TrackedRows(rows.indptr, rows.indices, alone, present, rows.memory)
        return Change(rows, after, inserted, deleted)
    m = len(rows.indices) + len(inserted) - len(deleted)
    memory = _room(spare, n + 1, m)
    indptr, indices = memory[0][: n + 1], memory[1][:m]
    run_all(_start_rows, [(*cut, edges, shifts, rows.indptr, indptr) for cut in cuts(n + 1, TILE)])
    run_all(
        _move_entries,
        [(*cut, places, shifts, rows.indices, indices)
         for cut in cuts(len(rows.indices), TILE, per_thread=8)],
    )  # fmt: skip
    _put(edges, places, shifts, indices)
    present = _present(rows, indptr, alone, noted, edges)
    after = TrackedRows(indptr, indices, alone, present, memory)
    return Change(rows, after, inserted, deleted)


def _effective(keys: Array, places: Array, effects: Array) -> tuple[Array, Array, Array]:
    """The edges that come or go, as in Change; the place of each; and shifts[j], by how much those
    before edge j move what follows."""
    at = np.flatnonzero(effects)
    keys = keys[at]
    edges = keys >> np.uint64(33) << HALF | (keys >> np.uint64(1)) & LOW
    shifts = np.zeros(len(at) + 1, np.int64)
    np.cumsum(effects[at], out=shifts[1:])
    return edges, places[at], shifts


def _room(memory: Memory | None, starts: int, entries: int) -> Memory:
    """Arrays of at least these lengths: those given, if they are long enough. New memory is slower
    to write, since the system clears it first."""
    if memory is not None and len(memory[0]) >= starts and len(memory[1]) >= entries:
        return memory
    starts, entries = (length + length // SPARE for length in (starts, entries))
    return np.empty(starts, np.int64), np.empty(entries, np.uint32)


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


def _present(rows: TrackedRows, indptr: Array, alone: Array, noted: Array, edges: Array) -> Array:
    """`TrackedRows.present` after the change, which may differ at the rows noted and at the sources
    of the edges that came or went."""
    n = len(indptr) - 1
    present = np.zeros(n, np.bool_)
    kept = min(n, rows.num_vertices)
    present[:kept] = rows.present[:kept]
    _look_at(noted << HALF, indptr, alone, present)
    _look_at(edges, indptr, alone, present)
    return present


@compiled
def _look_at(edges: Array, indptr: Array, alone: Array, present: Array) -> None:
    for edge in edges:
        u = np.int64(edge >> HALF)
        if u < len(present):
            present[u] = indptr[u + 1] > indptr[u] or alone[0, u] or alone[1, u]


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
    both = np.concatenate(ways)
    both.sort()
    return both


@compiled
def _search(
    first: int, last: int, keys: Array, indptr: Array, indices: Array, places: Array,
    effects: Array,
) -> None:  # fmt: skip
    """places[j]: where key j's entry is in the rows, or would be. Of equal keys only the last has
    an effect; it is then also the last key at its place."""
    n = np.int64(len(indptr) - 1)
    starts, places_of = indptr.ctypes.data, indices.ctypes.data
    for j in range(first, last):
        far = np.int64(keys[min(j + AHEAD, last - 1)] >> np.uint64(33))
        prefetch(starts + 8 * min(far, n))
        soon = min(np.int64(keys[min(j + AHEAD // 2, last - 1)] >> np.uint64(33)), n)
        prefetch(places_of + 2 * (indptr[soon] + indptr[min(soon + 1, n)]))  # its middle
        key = keys[j]
        u = np.int64(key >> np.uint64(33))
        v = np.uint32(key >> np.uint64(1) & np.uint64(0xFFFFFFFF))
        end = indptr[min(u + 1, n)]
        at = first_not_below(indices, indptr[min(u, n)], end, v)
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
    j = np.searchsorted(edges, np.uint64(first) << HALF)
    at, known = first, len(old) - 1
    while at < last:
        source: Any = np.int64(last - 1)
        if j < len(edges) and edges[j] >> HALF < np.uint64(last):
            source = np.int64(edges[j] >> HALF)
        shift = shifts[j]
        for u in range(at, min(source + 1, known)):
            indptr[u] = old[u] + shift
        for u in range(max(at, known), source + 1):
            indptr[u] = old[known] + shift
        at = source + 1
        while j < len(edges) and edges[j] >> HALF < np.uint64(at):
            j += 1


@compiled
def _move_entries(
    first: int, last: int, places: Array, shifts: Array, old: Array, new: Array
) -> None:
    """Copy old[first:last] to their new places, one run between two changes at a time."""
    j = np.searchsorted(places, first)
    at = first
    while at < last:
        while j < len(places) and places[j] == at:
            j += 1
        if j > 0 and places[j - 1] == at and shifts[j] < shifts[j - 1]:
            at += 1  # deleted
            continue
        end = min(last, places[j]) if j < len(places) else last
        # With indices that may be negative, Numba's loop moves one entry at a time.
        run, to = old[at:end], new[at + shifts[j] : end + shifts[j]]
        for i in range(len(run)):
            to[i] = run[i]
        at = end


@compiled
def _put(edges: Array, places: Array, shifts: Array, new: Array) -> None:
    """Write the inserted entries."""
    for j in range(len(edges)):
        if shifts[j + 1] > shifts[j]:
            new[places[j] + shifts[j]] = np.uint32(edges[j] & LOW)
