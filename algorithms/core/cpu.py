"""Core numbers on the CPU: peeling level by level, each thread owning a range of vertices.

Idea: as ParK does, a level k peels its frontier, the vertices of degree k, and what falls to k on
the way forms the next frontier. Three things differ.
*No scan of all vertices a level*: the list of the living is compacted while it is read, and the
same pass finds the least degree left, so that empty levels are skipped, and the vertices that have
it. A vertex is read once for every level up to its core number at most: O(n + m) in all.
*No atomics*: rows are sorted, and a thread handles only the part of a row that lies in its own
range of vertices; nobody else writes these degrees. A vertex peeled stays at its degree, for k
neither rises above it nor lets it fall, so that it ends as its core number.
*Few hand-overs*: a frontier of less than LARGE entries is peeled where it is found.
Rows and degrees are asked for ahead of their use: their places are random, and most of the time
of the plain loop goes to waiting for them. What a neighbour's degree becomes is computed without a
branch, since one would be guessed wrong every other time.

Requires the simple undirected view.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.instructions import prefetch
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import THREADS, together
from lpma.cpu.search import first_not_below

Array = npt.NDArray[Any]

LARGE = 1 << 16  # entries of a frontier worth handing to other threads
MOST_OWNERS = 8  # each searches every row of a frontier for its part
AHEAD = 16  # rows, and entries of a row, that are asked for before their turn
CACHED = 1 << 18  # degrees that a core's cache holds, so that none need be asked for
HEAD, TAIL, LEVEL, LIVING = range(4)  # words of the state


def by_owners(indptr: Array, indices: Array) -> Array:
    """int32[n]: core numbers."""
    n = len(indptr) - 1
    degree = np.empty(n, np.int32)
    living = np.empty(n + 1, np.uint32)  # one more, for what is written and not kept
    queue = np.zeros(n + AHEAD + 1, np.uint32)  # frontiers; the end is read ahead
    addresses = (indptr.ctypes.data, indices.ctypes.data, degree.ctypes.data)
    graph = (indptr, indices, degree, *addresses)
    fences = _fences(indptr)
    found = np.empty(n, np.uint32)  # each owner's share begins at its first vertex
    state = np.zeros(4, np.int64)
    state[LIVING] = _start(indptr, degree, living)
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
        counts = together(_peel_part, calls)
        state[HEAD] = tail
        for low, count in zip(fences[:-1], counts, strict=True):
            queue[tail : tail + count] = found[low : low + count]
            tail += count
        state[TAIL] = tail


def _fences(indptr: Array) -> list[int]:
    """Where owners' ranges of vertices begin, with about as many entries each; and n."""
    n, owners = len(indptr) - 1, min(THREADS, MOST_OWNERS)
    even = np.linspace(0, int(indptr[-1]), owners + 1)[1:-1]
    cuts = np.minimum(np.searchsorted(indptr, even), n)
    return sorted({0, n, *cuts.tolist()})


@compiled
def _start(indptr: Array, degree: Array, living: Array) -> int:
    """Degrees, and the vertices that have neighbours; their number."""
    alive = 0
    for u in range(len(indptr) - 1):
        degree[u] = indptr[u + 1] - indptr[u]
        living[alive] = u
        alive += degree[u] > 0
    return alive


@compiled
def _next_level(degree: Array, living: Array, alive: int, level: int, queue: Array) -> Any:
    """Keep the vertices above `level`, queue those of the least degree. Their numbers, and it."""
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
    """The entries of the frontier's rows; where they exceed `limit`, some number above it."""
    entries = 0
    for i in range(head, tail):
        entries += indptr[queue[i] + 1] - indptr[queue[i]]
        if entries > limit:
            break
    return entries


@compiled
def _ask_ahead(queue: Array, i: int, indptr: Array, starts: int, entries: int) -> None:
    """Prefetch the places of the row AHEAD of queue[i], and the first entries of one half so."""
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
    """Peel frontiers and levels until a frontier is large or nobody lives."""
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
            _ask_ahead(queue, head, indptr, starts, entries)
            u = queue[head]
            head += 1
            for e in range(indptr[u], indptr[u + 1]):
                if spread:
                    prefetch(degrees + 4 * np.int64(indices[min(e + AHEAD, last)]))
                v = indices[e]
                d = degree[v]
                degree[v] = max(d - np.int32(1), min(d, level))
                if d == level + 1:
                    queue[tail] = v
                    tail += 1
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
    """Peel a frontier of `count` as far as vertices low … high - 1 are concerned; write those
    that fall to the level, return their number."""
    level = np.int32(at_level)
    last = len(indices) - 1
    spread = len(degree) > CACHED
    number = 0
    for i in range(count):
        _ask_ahead(frontier, i, indptr, starts, entries)
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
            degree[v] = max(d - np.int32(1), min(d, level))
            if d == level + 1:
                found[number] = v
                number += 1
    return number
