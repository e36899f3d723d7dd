"""Wedges counted on the CPU.

From a start u, the kernels go through its neighbours v, and through v's row from the end back to u,
so that every w comes after u. A table counts the wedges to each w. The w that were met are listed,
so that only their counters have to be cleared. The table covers a whole side, yet the counters that
are touched often lie together at its front, where the vertices of high degree are. Threads take
starts, a few at a time, from one counter.

REQUIRES: a graph numbered by degree, as `bipartite.order.by_degree` leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL
from lpma.cpu.threads import THREADS, run_all

from ...arrays import Array
from ..bipartite import Bipartite
from ..progress import watched

STARTS = 16  # taken by a thread at a time


def butterflies(b: Bipartite, after: Array) -> int:
    """The number of butterflies whose first vertex in the order by degree is a left one.

    after: int64[a], of the left side, by `bipartite.order.first_after`."""
    return int(sum(_in_threads(_sum_pairs, b, lambda: (after,))))


def histogram(b: Bipartite, least: int) -> Array:
    """uint64[largest left degree + 1]: at c, the number of pairs of left vertices with c common
    neighbours, for c ≥ `least` ≥ 1, and 0 below."""
    length = int(b.left_degrees.max(initial=0)) + 1
    found: Array = sum(_in_threads(_count_pairs, b, lambda: (np.zeros(length, np.uint64),)))
    found[:least] = 0
    return found


def _in_threads(kernel: Any, b: Bipartite, own: Callable[[], tuple[Any, ...]]) -> list[Any]:
    """What a kernel returns from each thread. own(): its arguments for one thread, apart from the
    tables."""
    threads = THREADS if b.num_edges >= SMALL else 1
    counter = np.zeros(1, np.int64)
    rows = (b.left_indptr, b.left_indices, b.right_indptr, b.right_indices)
    tables = [np.zeros((2, b.num_left), np.uint32) for _ in range(threads)]
    calls = [(counter, *rows, *own(), count, first) for count, first in tables]
    with watched(counter, b.num_left):
        return run_all(kernel, calls)


@compiled
def _sum_pairs(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array,
    after: Array, counts: Array, touched: Array,
) -> np.int64:  # fmt: skip
    """The number of pairs of wedges with the same ends, over wedges whose start comes before their
    middle and end in the order by degree."""
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
                    before = counts[w]
                    counts[w] = before + np.uint32(1)
                    pairs += np.int64(before)
                    touched[number] = w
                    number += before == 0
            for i in range(number):
                counts[touched[i]] = 0


@compiled
def _count_pairs(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array,
    found: Array, counts: Array, touched: Array,
) -> Array:  # fmt: skip
    """Add to found[c] the number of pairs with c common neighbours, from the starts taken."""
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
                    before = counts[w]
                    counts[w] = before + np.uint32(1)
                    touched[number] = w
                    number += before == 0
            for i in range(number):
                w = np.int64(touched[i])
                found[counts[w]] += np.uint64(1)
                counts[w] = 0
