"""Core numbers on the CPU, `method="owners"`: peeling level by level, each thread owning a range of
vertices.

Idea: as in ParK (Dasari, Ranjan and Zubair, IEEE BigData 2014), level k peels its frontier, the
vertices of degree k; vertices that fall to k on the way form the next frontier. Three things
differ. *No scan of all vertices per level*: the list of living vertices is compacted while it is
read, and the same pass finds the least degree left and the vertices that have it, so that empty
levels are skipped. A vertex is read at most once for every level up to its core number: O(n + m) in
all. *No atomics*: rows are sorted, and a thread handles only the part of a row in its own range of
vertices, whose degrees no other thread writes. A peeled vertex keeps its degree, which is its core
number. *Few hand-overs*: a frontier of fewer than LARGE entries is peeled by the thread that found
it.

Tricks: rows and degrees, at random places, are prefetched. A neighbour's new degree is computed
without a branch, which would be mispredicted every other time.

In a small graph (`pieces.is_small`) one thread owns all vertices, and rows need not be sorted.

`settle` refines estimates by h-indices instead, for `method="h-index"` and for shards.

Requires indptr int64[n+1] and indices uint32[m] of a simple undirected view, C-contiguous.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from lpma.cpu.instructions import prefetch
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows, is_small
from lpma.cpu.search import first_not_below
from lpma.cpu.threads import THREADS, run_all

from ..arrays import Array, starts_of

LARGE = 1 << 16  # entries of a frontier worth handing to other threads
MOST_OWNERS = 8  # each searches every row of a frontier for its part
AHEAD = 16  # rows, and entries of a row, that are prefetched before their turn
CACHED = 1 << 18  # degrees that fit in a core's cache, so that none need be prefetched
HEAD, TAIL, LEVEL, LIVING = range(4)  # words of the state


def by_owners(indptr: Array, indices: Array) -> Array:
    """int32[n]: core numbers."""
    return peeled(indptr, indices, np.diff(indptr).astype(np.int32))


def peeled(indptr: Array, indices: Array, degree: Array) -> Array:
    """int32[n]: the level at which each vertex is peeled, written over `degree`, int32[n]. Peeling
    a vertex takes one from every vertex in its row."""
    n = len(indptr) - 1
    living = np.empty(n + 1, np.uint32)  # the last entry is written but not kept
    queue = np.zeros(n + AHEAD + 1, np.uint32)  # frontiers; prefetching reads beyond the last
    addresses = (indptr.ctypes.data, indices.ctypes.data, degree.ctypes.data)
    graph = (indptr, indices, degree, *addresses)
    fences = _fences(indptr)
    found = np.empty(n, np.uint32)  # each owner's share begins at its first vertex
    state = np.zeros(4, np.int64)
    state[LIVING] = _start(degree, living)
    large = LARGE if len(fences) > 2 else np.iinfo(np.int64).max
    while True:
        _advance(*graph, living, queue, state, large)
        head, tail, level, alive = state.tolist()
        if alive == 0:
            return degree
        calls = [
            (*graph, queue[head : tail + AHEAD + 1], tail - head, level, low, high, found[low:high])
            for low, high in pairwise(fences)
        ]
        counts = run_all(_peel_part, calls)
        state[HEAD] = tail
        for low, count in zip(fences[:-1], counts, strict=True):
            queue[tail : tail + count] = found[low : low + count]
            tail += count
        state[TAIL] = tail


def _fences(indptr: Array) -> list[int]:
    """Where the owners' ranges of vertices begin, of about as many entries each; and n."""
    n, owners = len(indptr) - 1, min(THREADS, MOST_OWNERS)
    if is_small(indptr):
        return [0, n]
    even = np.linspace(0, int(indptr[-1]), owners + 1)[1:-1]
    cuts = np.minimum(np.searchsorted(indptr, even), n)
    return sorted({0, n, *cuts.tolist()})


@compiled
def _start(degree: Array, living: Array) -> int:
    """List the vertices that have neighbours as living. Returns their number."""
    alive = 0
    for u in range(len(degree)):
        living[alive] = u
        alive += degree[u] > 0
    return alive


@compiled
def _next_level(degree: Array, living: Array, alive: int, level: int, queue: Array) -> Any:
    """Keep the vertices above `level` in `living`, and queue those of least degree. Returns how
    many are kept, how many queued, and the least degree."""
    kept = tail = 0
    least = np.int32(2**31 - 1)
    for i in range(alive):
        u = living[i]
        d = degree[u]
        living[kept] = u
        if d > level:
            kept += 1
            if d < least:
                least = d
                tail = 0
            queue[tail] = u
            tail += d == least
    return kept, tail, least


@compiled
def _entries_up_to(indptr: Array, queue: Array, head: int, tail: int, limit: int) -> int:
    """The number of entries in the frontier's rows, or some number above `limit`."""
    entries = 0
    for i in range(head, tail):
        entries += indptr[queue[i] + 1] - indptr[queue[i]]
        if entries > limit:
            break
    return entries


@compiled
def _prefetch_rows(queue: Array, i: int, indptr: Array, starts: int, entries: int) -> None:
    """Prefetch the start of the row AHEAD of queue[i], and the first entries of the one half as
    far ahead."""
    prefetch(starts + 8 * np.int64(queue[i + AHEAD]))
    at = entries + 4 * indptr[queue[i + AHEAD // 2]]
    prefetch(at)
    prefetch(at + 64)


@compiled
def _advance(
    indptr: Array,
    indices: Array,
    degree: Array,
    starts: int,  # the arrays' addresses
    entries: int,
    degrees: int,
    living: Array,
    queue: Array,
    state: Array,
    large: int,
) -> None:
    """Peel frontiers and levels until a frontier is large or no vertex lives."""
    head, tail, alive = state[HEAD], state[TAIL], state[LIVING]
    level = np.int32(state[LEVEL])
    last = len(indices) - 1
    spread = len(degree) > CACHED
    while alive:
        if head == tail:
            head = 0
            alive, tail, least = _next_level(degree, living, alive, level, queue)
            if alive == 0:
                break
            level = least
        end = tail
        if _entries_up_to(indptr, queue, head, end, large) > large:
            break
        while head < end:
            _prefetch_rows(queue, head, indptr, starts, entries)
            u = queue[head]
            head += 1
            for e in range(indptr[u], indptr[u + 1]):
                if spread:
                    prefetch(degrees + 4 * np.int64(indices[min(e + AHEAD, last)]))
                v = indices[e]
                d = degree[v]
                degree[v] = d - np.int32(d > level)
                queue[np.uint64(tail)] = v  # unsigned, which spares a test of its sign
                tail += np.int64(d == level + 1)
    state[HEAD], state[TAIL], state[LEVEL], state[LIVING] = head, tail, level, alive


@compiled
def _peel_part(
    indptr: Array,
    indices: Array,
    degree: Array,
    starts: int,
    entries: int,
    degrees: int,
    frontier: Array,
    count: int,
    at_level: int,
    low: int,
    high: int,
    found: Array,
) -> int:
    """Peel a frontier of `count` vertices, changing only the degrees of vertices low … high - 1.
    Writes those that fall to the level to `found`. Returns their number."""
    level = np.int32(at_level)
    last = len(indices) - 1
    spread = len(degree) > CACHED
    number = 0
    for i in range(count):
        _prefetch_rows(frontier, i, indptr, starts, entries)
        u = frontier[i]
        first, end = indptr[u], indptr[u + 1]
        if low > 0:
            first = first_not_below(indices, first, end, low)
        for e in range(first, end):
            v = indices[e]
            if v >= high:
                break
            if spread:
                prefetch(degrees + 4 * np.int64(indices[min(e + AHEAD, last)]))
            d = degree[v]
            degree[v] = d - np.int32(d > level)
            if d == level + 1:
                found[number] = v
                number += 1
    return number


def settle(indptr: Array, indices: Array, estimate: Array, marked: Array) -> None:
    """Refine estimates of core numbers, int32[n], in place: of the marked rows, then of those that
    this concerns, until none falls. An empty row keeps its own. marked: bool[n], overwritten.

    Source: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011. An
    estimate becomes the h-index of the neighbours' estimates. From the degrees, estimates never
    rise, and never fall below the core number."""
    lengths = np.diff(indptr)
    while len(rows := np.flatnonzero(marked)):
        marked[:] = False
        by_rows(_refine, starts_of(lengths[rows]), rows, indptr, indices, estimate, marked)


@compiled
def _refine(
    first: int,
    last: int,
    rows: Array,
    indptr: Array,
    indices: Array,
    estimate: Array,
    marked: Array,
) -> None:
    """Refine the estimates of rows[first:last], and mark the neighbours that a change concerns. A
    value that another thread has refined meanwhile is only closer to the result."""
    count = np.empty(1024, np.int32)
    for v in rows[first:last]:
        bound, row = estimate[v], indices[indptr[v] : indptr[v + 1]]
        if len(row) == 0:
            continue
        if len(count) <= bound:
            count = np.empty(2 * bound, np.int32)
        h, _ = h_index_of(row, estimate, bound, count)
        if h < bound:
            estimate[v] = h
            for w in row:
                if estimate[w] > h:
                    marked[w] = True


@compiled
def h_index_of(row: Array, estimate: Array, bound: int, count: Array) -> tuple[int, int]:
    """The largest h ≤ bound such that h of the row's vertices have estimates of h or more, and how
    many have. count: int32[bound + 1] or longer, overwritten."""
    count[: bound + 1] = 0
    for w in row:
        count[min(estimate[w], bound)] += 1
    h, above = bound, count[bound]
    while above < h:  # ends: at h = 0 at the latest
        h -= 1
        above += count[h]
    return h, above


METHODS = {"auto": by_owners, "owners": by_owners}
