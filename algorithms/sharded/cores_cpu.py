"""Refining the estimates of core numbers of one shard, on the CPU.

A vertex v is *supported* by the neighbours whose estimates are v's or more. As long as there are as
many of them as its estimate says, the estimate is their h-index already. When a neighbour falls
from a to b, it stops to support those whose estimates lie in b + 1 … a. A vertex with too little
support waits in a ring until it is refined, which reads its row once for the estimate, and the own
neighbours once more for their support.

Invariants, for own rows: 1. support[v] is the number of v's neighbours with estimates of
estimate[v] or more. 2. v waits if support[v] < estimate[v], once.

Requires a simple view whose rows of others are empty, C-contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..views.simple import View
from ..views.transpose_cpu import transpose
from .types import Array

HEAD, COUNT = range(2)  # words of the state: where the ring begins, and how many wait


class Refiner:
    """Refines the estimates of own rows in place. estimate: int32[n]."""

    def __init__(self, view: View, is_owned: Array, estimate: Array) -> None:
        self._view, self._estimate = view, estimate
        self._holders = transpose(view.indptr, view.indices)  # of any row, the own rows holding it
        n = len(estimate)
        self._support = np.zeros(n, np.int32)
        self._ring, self._waits = np.empty(max(n, 1), np.uint32), np.zeros(n, np.bool_)
        self._state = np.zeros(2, np.int64)
        by_rows(
            _count_support, view.indptr, view.indptr, view.indices, estimate, self._support,
            self._waits,
        )  # fmt: skip
        waiting = np.flatnonzero(self._waits)
        self._ring[: len(waiting)] = waiting
        self._state[COUNT] = len(waiting)

    def refine(self, came: list[Any]) -> None:
        """Take over estimates of others' rows, [(rows, estimates)], and refine until no own
        estimate changes."""
        waiting = (self._support, self._ring, self._waits, self._state)
        for rows, values in came:
            _fall(rows, values, *self._holders, self._estimate, *waiting)
        _settle(self._view.indptr, self._view.indices, *self._holders, self._estimate, *waiting)


@compiled
def _count_support(
    first: int, last: int, indptr: Array, indices: Array, estimate: Array, support: Array,
    waits: Array,
) -> None:  # fmt: skip
    for v in range(first, last):
        of_v = estimate[v]
        count = 0
        for w in indices[indptr[v] : indptr[v + 1]]:
            count += estimate[w] >= of_v
        support[v] = count
        waits[v] = count < of_v and indptr[v] < indptr[v + 1]


@compiled
def _lose(
    v: int, before: int, after: int, indptr: Array, indices: Array, estimate: Array, support: Array,
    ring: Array, waits: Array, state: Array,
) -> None:  # fmt: skip
    """Take v's support from the own rows that hold it, v's estimate having fallen."""
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
    count = np.zeros(1024, np.int32)
    while state[COUNT]:
        v = ring[state[HEAD]]
        state[HEAD] = state[HEAD] + 1 if state[HEAD] + 1 < len(ring) else 0
        state[COUNT] -= 1
        waits[v] = False
        bound = estimate[v]
        if len(count) <= bound:
            count = np.zeros(2 * bound, np.int32)
        for w in indices[indptr[v] : indptr[v + np.uint32(1)]]:
            count[min(estimate[w], bound)] += 1
        h = bound
        above = count[h]
        while above < h:  # ends: at h = 0 at the latest
            h -= 1
            above += count[h]
        count[: bound + 1] = 0
        estimate[v] = h
        support[v] = above
        _lose(
            v, bound, h, held_indptr, holders, estimate, support, ring, waits, state
        )  # fmt: skip
