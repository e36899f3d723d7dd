"""Subgraphs and cores of bipartite graphs on the CPU.

A core is found by peeling: vertices with too few neighbours are queued; removing one lowers its
neighbours' degrees, which may queue them in turn. REQUIRES: sorted rows, as in `types`.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ...arrays import Array
from ...views.simple import View
from ...views.simple_cpu import packed


def part(view: View, is_row: Array, is_entry: Array) -> tuple[Array, Array]:
    """(indptr int64[r+1], indices uint32[m]): the rows that `is_row` selects, with the entries that
    `is_entry` selects, both renumbered. The masks are bool, one for each side."""
    indptr, indices = view.indptr, view.indices
    number = (np.cumsum(is_entry) - 1).astype(np.uint32)
    kept, lengths = np.empty(len(indices), np.uint32), np.zeros(len(indptr), np.int64)
    by_rows(_keep_part, indptr, indptr, indices, is_row, is_entry, number, kept, lengths)
    starts, entries = packed(indptr, kept, lengths)
    return np.concatenate((starts[:-1][is_row], starts[-1:])), entries


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


@compiled
def _keep_part(
    first: int, last: int, indptr: Array, indices: Array, is_row: Array, is_entry: Array,
    number: Array, kept: Array, lengths: Array,
) -> None:  # fmt: skip
    for u in range(first, last):
        if is_row[u]:
            place = indptr[u]
            for v in indices[indptr[u] : indptr[u + 1]]:
                kept[place] = number[v]
                place += is_entry[v]
            lengths[u + 1] = place - indptr[u]
