"""Cores of bipartite graphs, and graphs numbered in another order, on the CPU.

A core is found by peeling: vertices with too few neighbours are queued; removing one lowers its
neighbours' degrees, which may queue them in turn. REQUIRES: sorted rows, as in `types`.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.threads import run_all

from ...arrays import Array, starts_of
from ...triangles.cpu import by_falling_degree
from .types import Bipartite

__all__ = ["by_falling_degree", "peel", "renumbered"]


@compiled
def peel(
    left_indptr: Array,
    left: Array,
    right_indptr: Array,
    right: Array,
    degrees: Array,
    of_left: int,
    of_right: int,
) -> None:
    """Remove vertices with too few neighbours, `of_left` for left ones and `of_right` for right
    ones, until none is left. degrees: int64[a+b], the left side first, lowered by what is removed.
    ENSURES: the core is the vertices whose degree still suffices."""
    a = len(left_indptr) - 1
    queue = np.empty(len(degrees), np.int64)
    head, tail = 0, 0
    for v in range(len(degrees)):
        queue[tail] = v
        tail += degrees[v] < (of_left if v < a else of_right)
    while head < tail:
        v = queue[head]
        head += 1
        if v < a:
            row, shift, needed = left[left_indptr[v] : left_indptr[v + 1]], a, of_right
        else:
            row, shift, needed = right[right_indptr[v - a] : right_indptr[v - a + 1]], 0, of_left
        for entry in row:
            w = np.int64(entry) + shift
            if degrees[w] == needed:
                queue[tail] = w
                tail += 1
            degrees[w] -= 1


def renumbered(b: Bipartite, left: Array, right: Array) -> Bipartite:
    """As `bipartite.renumbered`."""
    forth = starts_of(np.diff(b.left_indptr)[left]), left, right, b.right_indptr, b.right_indices
    back = starts_of(np.diff(b.right_indptr)[right]), right, left, b.left_indptr, b.left_indices
    of_left, of_right = run_all(_append_by_rank, [forth, back])
    return Bipartite(forth[0], of_left, back[0], of_right, b.left_ids[left], b.right_ids[right])


@compiled
def _append_by_rank(
    starts: Array, order: Array, other_order: Array, other_indptr: Array, other: Array
) -> Array:
    """The rows of one side. Vertices of the other side append their ranks to their neighbours'
    rows in the order of ranks, so that rows come out sorted."""
    places = np.empty(len(order), np.int64)
    for rank in range(len(order)):
        places[order[rank]] = starts[rank]
    rows = np.empty(len(other), np.uint32)
    for rank in range(len(other_order)):
        v = np.int64(other_order[rank])
        for x in other[other_indptr[v] : other_indptr[v + 1]]:
            rows[places[x]] = rank
            places[x] += 1
    return rows
