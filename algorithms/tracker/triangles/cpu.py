"""The triangles that have one of the listed edges, counted on the CPU: see the package.

Edges are grouped by their end of higher degree. Its row is marked in a table once, and the rows of
the other ends are looked up there: a sum of bytes, without a branch. If all those rows are much
shorter than the marked one would be, their entries are searched for in it instead.

A triangle with j listed edges counts WHOLE in all, WHOLE / j at each, so that no order is needed.
The marks are WHOLE at a neighbour of the marked vertex, WHOLE / 2 if the edge to it is listed. What
is found at a listed edge of the other end, of which a batch has few, is then corrected.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.threads import cuts, run_all
from lpma.pma.keys import HALF, LOW

from ...arrays import Array
from ...views.simple import View
from ..listed_cpu import gallop, has

PIECE = 1 << 11  # entries of the list that a thread takes at a time
WHOLE = 6  # divisible by 1, 2 and 3: the listed edges that a triangle can have
SEARCHED = 16  # entries that are marked and cleared in the time of one search


def count_touching(rows: View, edges: Array) -> int:
    """The number of triangles with an edge of the list. edges: uint64, as in Change.

    REQUIRES: all edges of the list are in the rows."""
    if not len(edges):
        return 0
    targets = (edges & LOW).astype(np.uint32)
    sources = (edges >> HALF).astype(np.uint32)
    pieces = cuts(len(edges), PIECE, per_thread=4)
    parts = run_all(_count, [(*cut, sources, targets, rows.indptr, rows.indices) for cut in pieces])
    return int(sum(parts)) // WHOLE


@compiled
def _count(
    first: int, last: int, sources: Array, targets: Array, indptr: Array, indices: Array
) -> np.int64:
    """WHOLE times the triangles, summed over the entries first … last - 1."""
    total = np.int64(0)
    marks = np.zeros(len(indptr) - 1, np.uint8)
    while first < last:
        u = np.int64(sources[first])
        end = first + 1
        while end < last and sources[end] == u:
            end += 1
        row = indices[indptr[u] : indptr[u + 1]]
        shorter = np.int64(0)  # entries to look up
        for v in targets[first:end]:
            degree = indptr[np.int64(v) + 1] - indptr[v]
            shorter += degree if _is_owner(len(row), u, degree, v) else 0
        # All that are listed at u, also in another piece, lie around this one.
        low, high = first, end
        while low > 0 and sources[low - 1] == u:
            low -= 1
        while high < len(sources) and sources[high] == u:
            high += 1
        if shorter:
            at_u = targets[low:high]
            searched = SEARCHED * shorter < len(row)
            if not searched:
                _mark(row, at_u, marks)
            for v in targets[first:end]:
                other = indices[indptr[v] : indptr[np.int64(v) + 1]]
                if _is_owner(len(row), u, len(other), v):
                    at_v = _listed(sources, targets, v)
                    if searched:
                        total += _search(other, row, at_u, at_v)
                    else:
                        total += _look_up(other, marks, at_v)
            if not searched:
                for w in row:
                    marks[w] = 0
        first = end
    return total


@compiled
def _is_owner(degree: int, u: int, degree_of_v: int, v: int) -> bool:
    """Whether the edge u, v is counted at u's entry of it: at the end of the higher degree."""
    return degree > degree_of_v or (degree == degree_of_v and u < v)


@compiled
def _listed(sources: Array, targets: Array, u: int) -> Array:
    """The other ends of the listed edges at u, rising."""
    low = np.searchsorted(sources, np.uint32(u))
    high = low
    while high < len(sources) and sources[high] == u:
        high += 1
    return targets[low:high]


@compiled
def _mark(row: Array, listed: Array, marks: Array) -> None:
    for w in row:
        marks[w] = WHOLE
    for w in listed:
        marks[w] = WHOLE // 2


@compiled
def _look_up(row: Array, marks: Array, listed: Array) -> np.int64:
    """What an edge adds, by the marks of its other end. listed: as for `_listed`, at the row's
    vertex."""
    total = np.int64(0)
    for w in row:
        total += marks[w]
    if len(listed) > 1:  # the edge itself adds nothing
        for w in listed:
            total -= _too_much(marks[w])
    return total


@compiled
def _search(row: Array, longer: Array, listed_longer: Array, listed: Array) -> np.int64:
    """As `_look_up`, where the other end's row is not marked, but searched."""
    total = np.int64(0)
    at = 0
    for w in row:
        at = gallop(longer, at, w)
        if at == len(longer):
            break
        if longer[at] == w:
            mark = WHOLE // 2 if has(listed_longer, w) else WHOLE
            total += mark - (_too_much(mark) if has(listed, w) else 0)
    return total


@compiled
def _too_much(mark: int) -> int:
    """By how much this mark is too much if the third edge is listed, too: WHOLE / 2 instead of
    WHOLE, or WHOLE / 3 instead of WHOLE / 2."""
    if mark == WHOLE:
        return WHOLE - WHOLE // 2
    return WHOLE // 2 - WHOLE // 3 if mark else 0
