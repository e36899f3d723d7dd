"""Breadth-first search on the CPU: one compiled call, or level by level in threads.

*Direction.* `_pays` predicts which of top-down and bottom-up examines fewer edges. If edges are
spread evenly, a share of edges/unseen of those into unreached vertices come from the frontier, so a
vertex examines unseen/edges of its own to find one, or all it has. Beamer's rule compares the
frontier with the unseen edges alone, and goes bottom-up in graphs of small degrees, where that
costs more. In a web graph, whose pages link within their site, edges are not spread evenly. So a
bottom-up level that examines more edges than leave its frontier is the last.

*One thread* runs the whole search in a graph of up to ALONE entries, at some 1.3 ns per edge
examined. Tricks:

- One bit per vertex says whether it was reached: those of 2^18 vertices fit in the first cache.
- Row starts, then first entries, are prefetched ahead of their turn in the queue.
- hops are written level by level, outside the loop over edges.
- Bottom-up, a copy of the bits serves as the frontier: an in-neighbour that was reached before this
  level is on the last one, or the vertex would have been reached earlier.

*Threads* share wide levels of a larger graph; narrow ones, of which a road network has hundreds,
run in one compiled call. hops[v] is −1 until v is reached. Several threads may then write it, but
all write the same level; v may stand in the next frontier once per thread, which costs a second
scan of its row and changes nothing. Bottom-up compares with the last level, which cannot be
confused with −1 or the level being written.

Requires rows as `ScatteredRows` says, C-contiguous; repeats do no harm.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.instructions import lowest, prefetch
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL, by_rows, even_rows
from lpma.cpu.threads import run_all
from lpma.snapshot.row_versions import ScatteredRows

from ..arrays import Array, starts_of

NO_ROWS = np.empty(0, np.int64)

TRANSPOSING = 4  # edges examined top-down in the time that transposing takes per edge
ALONE = 1 << 22  # entries of a graph that one thread searches
BETA = 18
STEP = 8  # vertices skipped in the time of examining one edge
AHEAD = 16  # places in the queue by which row starts are prefetched

BITS = np.uint64(6)  # of a vertex's number, below that of its word
LAST = np.uint64(63)
BIT = np.uint64(1)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def search(
    rows: ScatteredRows,
    reverse: ScatteredRows | None,
    start: int,
    narrow: int = SMALL,
    alone: int = ALONE,
) -> tuple[Array, int]:
    """int32[n]: hops from `start`, −1 for a vertex that is not reached; and how many edges were
    examined for want of the transpose.

    reverse: the rows of the transpose; None: all levels are top-down. One thread runs levels of at
    most `narrow` edges, and the whole search in a graph of at most `alone` entries."""
    n = rows.num_rows
    if rows.size <= alone:
        hops = np.empty(n, np.int32)
        back = (NO_ROWS, NO_ROWS, rows.entries) if reverse is None else reverse[:3]
        return hops, int(_search(*rows[:3], *back, hops, start, rows.size))
    hops = np.full(n, -1, np.int32)
    hops[start] = level = in_vain = 0
    frontier = np.array([start], np.uint32)
    unseen = rows.size  # edges of vertices not yet in a frontier
    may_turn = True
    while True:
        frontier, level, edges, expanded = _narrow_levels(*rows[:3], hops, frontier, level, narrow)
        unseen -= expanded + edges
        if len(frontier) == 0:
            return hops, in_vain
        turns = may_turn and _pays(edges, unseen, n - np.count_nonzero(hops >= 0), n)
        if turns and reverse is not None:
            level, reached, may_turn = _bottom_up_levels(
                rows, reverse, hops, len(frontier), edges, level
            )
            frontier = np.flatnonzero(hops == level).astype(np.uint32)
            unseen -= reached
        else:
            in_vain += edges if turns else 0
            level += 1
            frontier = top_down(rows, hops, frontier, level)
        # The edges of the new frontier are counted when it is expanded.


def top_down(rows: ScatteredRows, hops: Array, frontier: Array, level: int) -> Array:
    """The vertices of `level`, found along the edges of the frontier before it."""
    ends = starts_of(rows.ends[frontier] - rows.starts[frontier])
    found = by_rows(_expand, ends, ends, frontier, *rows[:3], hops, level)
    return np.concatenate(found)


def _bottom_up_levels(
    rows: ScatteredRows, reverse: ScatteredRows, hops: Array, size: int, edges: int, level: int
) -> tuple[int, int, bool]:
    """Find levels bottom-up until one is narrow or costs more than it saves. Returns that level,
    how many edges leave the levels before it, and whether they all paid. size, edges: of the
    vertices on `level`."""
    n, reached = rows.num_rows, 0
    arrays = (*reverse[:3], rows.starts, rows.ends, hops)
    while True:
        level += 1
        counts = run_all(_look_back, [(*piece, *arrays, level) for piece in even_rows(n)])
        found, leaving, examined = (sum(column) for column in zip(*counts, strict=True))
        pays = examined <= edges
        if not pays or (found <= size and found < max(1, n // BETA)):
            return level, reached, pays
        reached += leaving
        size, edges = found, leaving


@compiled
def _search(
    starts: Array, ends: Array, entries: Array, from_starts: Array, from_ends: Array,
    from_entries: Array, hops: Array, start: int, size: int,
) -> np.int64:  # fmt: skip
    """The whole search of `size` entries, by one thread. from_…: the rows of the transpose; if
    empty, all levels are top-down. Returns how many edges of these would have been saved."""
    n = np.int64(len(hops))
    hops[:] = -1
    hops[start] = level = np.int32(0)
    queue = np.empty(n, np.uint32)
    queue[0] = start
    first, last = np.int64(0), np.int64(1)  # the frontier's part of the queue
    reached = np.zeros((n >> 6) + 1, np.uint64)  # a bit for each vertex
    reached[n >> 6] = ALL << (np.uint64(n) & LAST)  # bits beyond the last vertex
    reached[start >> 6] |= BIT << (np.uint64(start) & LAST)
    before = np.empty(len(reached) if len(from_starts) else 0, np.uint64)
    unseen = np.int64(size)
    missed = np.int64(0)
    may_turn = True
    edges = ends[start] - starts[start]
    while first < last:
        unseen -= edges
        level += np.int32(1)
        turns = may_turn and _pays(edges, unseen, n - last, n)
        if turns and len(from_starts):
            before[:] = reached
            end, examined = _level_back(
                from_starts, from_ends, from_entries, before, reached, queue, last
            )
            may_turn = examined <= edges
        else:
            missed += edges if turns else 0
            end = _level_on(starts, ends, entries, reached, queue, first, last)
        first, last = last, end
        edges = np.int64(0)
        for i in range(first, last):
            u = np.int64(queue[i])
            hops[u] = level
            edges += ends[u] - starts[u]
    return missed


@compiled
def _level_on(
    starts: Array, ends: Array, entries: Array, reached: Array, queue: Array, first: int, last: int
) -> np.int64:
    """Append what queue[first:last] reaches to the queue. Returns its new end."""
    end = np.int64(last)
    starts_at, entries_at = starts.ctypes.data, entries.ctypes.data
    for i in range(first, last):
        far, near = min(i + AHEAD, last - 1), min(i + AHEAD // 2, last - 1)
        prefetch(starts_at + 8 * np.int64(queue[far]))
        prefetch(entries_at + 4 * starts[np.int64(queue[near])])
        u = np.int64(queue[i])
        for e in range(starts[u], ends[u]):
            v = np.uint64(entries[e])
            word, bit = reached[v >> BITS], BIT << (v & LAST)
            if not word & bit:
                reached[v >> BITS] = word | bit
                queue[end] = v
                end += 1
    return end


@compiled
def _level_back(
    starts: Array, ends: Array, entries: Array, before: Array, reached: Array, queue: Array,
    last: int,
) -> tuple[np.int64, np.int64]:  # fmt: skip
    """Append the vertices with an in-neighbour reached `before` to the queue, from `last` on.
    Returns its new end, and how many edges were examined."""
    end, examined = np.int64(last), np.int64(0)
    for w in range(len(before)):
        left = ~before[w]
        found = np.uint64(0)
        while left:
            v = (w << 6) + lowest(left)
            bit = left & (~left + BIT)
            left ^= bit
            begin, stop = starts[v], ends[v]
            e = begin
            while e < stop:
                u = np.uint64(entries[e])
                if before[u >> BITS] >> (u & LAST) & BIT:
                    break
                e += 1
            examined += e - begin
            if e < stop:
                found |= bit
                queue[end] = v
                end += 1
        reached[w] |= found
    return end, examined


@compiled
def _pays(edges: int, unseen: int, unreached: int, n: int) -> bool:
    """Whether the next level is predicted to examine fewer edges bottom-up. edges: that leave the
    frontier; unseen: that leave unreached vertices."""
    return edges > 0 and edges > n // STEP + min(unseen, unreached * (unseen / edges))


@compiled
def _narrow_levels(
    starts: Array,
    ends: Array,
    entries: Array,
    hops: Array,
    frontier: Array,
    level: int,
    narrow: int,
) -> tuple[Array, int, int, int]:
    """Expand frontiers while they have at most `narrow` edges. Returns the first that has more, or
    an empty one; its level; the number of its edges; and the number of edges expanded."""
    expanded = 0
    while True:
        sums = np.zeros(len(frontier) + 1, np.int64)
        for i in range(len(frontier)):
            u = np.int64(frontier[i])
            sums[i + 1] = sums[i] + ends[u] - starts[u]
        edges = sums[-1]
        if len(frontier) == 0 or edges > narrow:
            return frontier, level, edges, expanded
        expanded += edges
        level += 1
        frontier = _expand(0, len(frontier), sums, frontier, starts, ends, entries, hops, level)


@compiled
def _expand(
    first: int, last: int, sums: Array, frontier: Array, starts: Array, ends: Array, entries: Array,
    hops: Array, level: int,
) -> Array:  # fmt: skip
    """uint32: the unreached vertices that frontier[first:last] reaches. sums: of the edges of the
    vertices before each."""
    found = np.empty(min(sums[last] - sums[first], len(hops)), np.uint32)
    count = 0
    for i in range(first, last):
        u = np.int64(frontier[i])
        for e in range(starts[u], ends[u]):
            v = entries[e]
            if hops[v] < 0:
                hops[v] = level
                found[count] = v
                count += 1
    return found[:count]


@compiled
def _look_back(
    first: int, last: int, starts: Array, ends: Array, entries: Array, out_starts: Array,
    out_ends: Array, hops: Array, level: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Reach the vertices of first … last - 1 with an in-neighbour on the last level. Returns their
    number, how many edges leave them, and how many were examined."""
    count = edges = examined = 0
    for u in range(first, last):
        if hops[u] < 0:
            begin, end = starts[u], ends[u]
            e = begin
            while e < end and hops[entries[e]] != level - 1:
                e += 1
            examined += e - begin
            if e < end:
                hops[u] = level
                count += 1
                edges += out_ends[u] - out_starts[u]
    return count, edges, examined
