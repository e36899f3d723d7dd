"""Refining the estimates of core numbers of one shard, on the CPU: see `cores`.

Source: Wen, Qin, Zhang, Lin and Yu, "I/O efficient core graph decomposition at web scale", ICDE
2016 (SemiCore*). A vertex v is *supported* by the neighbours whose estimates are v's or more. With
as many of them as its estimate, that is their h-index. A neighbour that falls from a to b ceases to
support estimates in b + 1 … a. A vertex with too little support waits in a ring until it is
refined, which reads its row for the estimate, and the own rows that hold it for their support. All
changes of others are taken over before any vertex is refined.

Invariants, for own rows: 1. support[v] is the number of v's neighbours with estimates of
estimate[v] or more. 2. v waits if support[v] < estimate[v], once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ...arrays import Array
from ...core.cpu import h_index_of
from ...views.simple import View

HEAD, COUNT = range(2)  # words of the state: where the ring begins, and how many wait


class Follower:
    """Refines the estimates of own rows, int32[n], in place, after those of others have fallen.
    holders: of any row, the own rows that hold it: the transpose of the view. REQUIRES: own
    estimates are the h-indices of their neighbours' estimates."""

    def __init__(self, view: View, holders: View, estimate: Array) -> None:
        self._view, self._holders, self._estimate = view, holders, estimate
        n = len(estimate)
        support, waits = np.zeros(n, np.int32), np.zeros(n, np.bool_)
        by_rows(_count_support, view.indptr, view.indptr, view.indices, estimate, support)
        self.waiting = support, np.empty(max(n, 1), np.uint32), waits, np.zeros(2, np.int64)

    def follow(self, came: list[Any]) -> None:
        """Take over estimates of others' rows, [(rows, estimates)], and refine until none falls."""
        held_by = self._holders.indptr, self._holders.indices
        for rows, values in came:
            arrays = np.array(rows), np.array(values)  # writable, as the kernel is compiled for
            _fall(*arrays, *held_by, self._estimate, *self.waiting)
        rows_of = self._view.indptr, self._view.indices
        _settle(*rows_of, *held_by, self._estimate, *self.waiting)


@compiled
def _count_support(
    first: int, last: int, indptr: Array, indices: Array, estimate: Array, support: Array
) -> None:
    for v in range(first, last):
        of_v = estimate[v]
        count = 0
        for w in indices[indptr[v] : indptr[v + 1]]:
            count += estimate[w] >= of_v
        support[v] = count


@compiled
def _lose(
    v: int, before: int, after: int, indptr: Array, indices: Array, estimate: Array, support: Array,
    ring: Array, waits: Array, state: Array,
) -> None:  # fmt: skip
    """Take v's support, after its estimate has fallen, from the own rows that hold it."""
    for w in indices[indptr[v] : indptr[v + 1]]:
        of_w = estimate[w]
        if after < of_w <= before:
            support[w] -= 1
            if support[w] < of_w and not waits[w]:
                waits[w] = True
                place = state[HEAD] + state[COUNT]
                ring[place - len(ring) if place >= len(ring) else place] = w
                state[COUNT] += 1


@compiled
def _fall(
    rows: Array, values: Array, indptr: Array, indices: Array, estimate: Array, support: Array,
    ring: Array, waits: Array, state: Array,
) -> None:  # fmt: skip
    """Take over the estimates of rows of others."""
    for i in range(len(rows)):
        v = rows[i]
        before = estimate[v]
        if values[i] < before:
            estimate[v] = values[i]
            _lose(v, before, values[i], indptr, indices, estimate, support, ring, waits, state)


@compiled
def _settle(
    indptr: Array, indices: Array, held_indptr: Array, holders: Array, estimate: Array,
    support: Array, ring: Array, waits: Array, state: Array,
) -> None:  # fmt: skip
    """Refine whatever waits, until nothing does."""
    count = np.empty(1024, np.int32)
    while state[COUNT]:
        v = ring[state[HEAD]]
        state[HEAD] = state[HEAD] + 1 if state[HEAD] + 1 < len(ring) else 0
        state[COUNT] -= 1
        waits[v] = False
        bound = estimate[v]
        if len(count) <= bound:
            count = np.empty(2 * bound, np.int32)
        row = indices[indptr[v] : indptr[v + np.uint32(1)]]
        h, supporting = h_index_of(row, estimate, bound, count)
        estimate[v], support[v] = h, supporting
        _lose(v, bound, h, held_indptr, holders, estimate, support, ring, waits, state)
