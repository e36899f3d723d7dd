"""Cores of bipartite graphs on the CPU.

A core is found by peeling: vertices with too few neighbours are queued; removing one lowers its
neighbours' degrees, which may queue them in turn. REQUIRES: sorted rows, as in `types`.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled

from ...arrays import Array


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
