"""Wedges counted on the CPU.

From a start u, the kernels go through its neighbours v, and through v's row from the end back to u,
so that every w comes after u. A table counts the wedges to each w; those met are listed, so that
only their counters need clearing. The counters touched most lie together at the table's front,
where vertices of high degree are. Threads take starts, a few at a time, from one counter.

REQUIRES: a graph numbered by degree, as `bipartite.by_degree` leaves it.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL
from lpma.cpu.threads import THREADS, run_all

from ...arrays import Array
from ..bipartite import Bipartite
from ..gbc import total
from ..progress import watched

STARTS = 16  # taken by a thread at a time


def butterflies(b: Bipartite, after: Array) -> int:
    """The number of butterflies whose first vertex in the order by degree is a left one.

    after: int64[a], of the left side, by `bipartite.first_after`."""
    return total(_pairs(b, after), 2)


def histogram(b: Bipartite, least: int) -> Array:
    """uint64[largest left degree + 1]: at c, the number of pairs of left vertices with c common
    neighbours, for c ≥ `least` ≥ 1, and 0 below."""
    found = _pairs(b, np.zeros(b.num_left, np.int64))
    found[:least] = 0
    return found


def _pairs(b: Bipartite, after: Array) -> Array:
    """uint64: at c, the number of pairs of left vertices u < w with c common neighbours from
    after[u] on."""
    threads = THREADS if b.num_edges >= SMALL else 1
    counter = np.zeros(1, np.int64)
    found = np.zeros((threads, int(b.left_degrees.max(initial=0)) + 1), np.uint64)
    tables = np.zeros((threads, 2, b.num_left), np.uint32)
    calls = [
        (counter, *b.rows, after, own, *table) for own, table in zip(found, tables, strict=True)
    ]
    with watched(counter, b.num_left):
        run_all(_count_pairs, calls)
    summed: Array = found.sum(axis=0)
    return summed


@compiled
def _count_pairs(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array,
    after: Array, found: Array, counts: Array, touched: Array,
) -> None:  # fmt: skip
    """`_pairs`, added to `found`, from the starts that this call takes from `counter`."""
    n = len(indptr) - 1
    while True:
        start = fetch_add(counter, 0, STARTS)
        if start >= n:
            return
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
                    touched[number] = w
                    number += before == 0
            for i in range(number):
                w = np.int64(touched[i])
                found[counts[w]] += np.uint64(1)
                counts[w] = 0
