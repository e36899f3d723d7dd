"""Wedges counted on the CPU: what `wedges` asks of both devices.

A start u goes through its neighbours v and, from the end of v's row, through the w after u. A
table by w counts; who was the first of its w is remembered, so that only those are cleared. Rows
end with vertices of low degree, for which a table of the whole side is no burden: what is touched
often lies at its front. Threads take starts, some at a time, from one counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL, THREADS, together

from .bipartite import Bipartite
from .progress import watched

Array = npt.NDArray[Any]

STARTS = 16  # that a thread takes at a time


def butterflies(b: Bipartite, after: Array) -> int:
    """Butterflies whose first vertex in the order by degree is a left one. after: `first_after`
    of the left side."""
    return int(sum(_shared(_sum_pairs, b, lambda: (after,))))


def histogram(b: Bipartite, least: int) -> Array:
    """uint64[c]: how many pairs of left vertices have c common neighbours, for c ≥ `least` ≥ 1."""
    length = int(b.left_degrees.max(initial=0)) + 1
    found: Array = sum(_shared(_count_pairs, b, lambda: (np.zeros(length, np.uint64),)))
    found[:least] = 0
    return found


def _shared(kernel: Any, b: Bipartite, own: Any) -> list[Any]:
    """Call a kernel in every thread; own(): what each has for itself beside its tables."""
    threads = THREADS if b.num_edges >= SMALL else 1
    counter = np.zeros(1, np.int64)
    rows = (b.left_indptr, b.left_indices, b.right_indptr, b.right_indices)
    tables = [np.zeros((2, b.num_left), np.uint32) for _ in range(threads)]
    calls = [(counter, *rows, *own(), count, first) for count, first in tables]
    with watched(counter, b.num_left):
        return together(kernel, calls)


@compiled
def _sum_pairs(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array,
    after: Array, counts: Array, touched: Array,
) -> np.int64:  # fmt: skip
    """The pairs of wedges with the same ends, from starts that come before the wedges' middles
    and ends in the order by degree."""
    n = len(indptr) - 1
    pairs = np.int64(0)
    while True:
        start = fetch_add(counter, 0, STARTS)
        if start >= n:
            return pairs
        for u in range(start, min(start + STARTS, n)):
            number = 0
            for e in range(indptr[u + 1] - 1, indptr[u] - 1, -1):
                v = np.int64(indices[e])
                if v < after[u]:
                    break
                for i in range(other_indptr[v + 1] - 1, other_indptr[v] - 1, -1):
                    w = np.int64(other[i])
                    if w <= u:
                        break
                    so_far = counts[w]
                    counts[w] = so_far + np.uint32(1)
                    pairs += np.int64(so_far)
                    touched[number] = w
                    number += so_far == 0
            for i in range(number):
                counts[touched[i]] = 0


@compiled
def _count_pairs(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array,
    found: Array, counts: Array, touched: Array,
) -> Array:  # fmt: skip
    """found[c] += the number of pairs with c common neighbours, from the starts taken."""
    n = len(indptr) - 1
    while True:
        start = fetch_add(counter, 0, STARTS)
        if start >= n:
            return found
        for u in range(start, min(start + STARTS, n)):
            number = 0
            for v in indices[indptr[u] : indptr[u + 1]]:
                x = np.int64(v)
                for i in range(other_indptr[x + 1] - 1, other_indptr[x] - 1, -1):
                    w = np.int64(other[i])
                    if w <= u:
                        break
                    so_far = counts[w]
                    counts[w] = so_far + np.uint32(1)
                    touched[number] = w
                    number += so_far == 0
            for i in range(number):
                w = np.int64(touched[i])
                found[counts[w]] += np.uint64(1)
                counts[w] = 0
