"""Refining the estimates of core numbers of one shard, on the CPU: see `cores`.

At first the estimates are found by peeling (`core.cpu.peeled`): the rows of others are peeled at
their estimates, whatever becomes of their neighbours here. The level at which an own row is peeled
is where the h-indices would settle. That reads each row once, however far estimates fall. So it is
done anew, from the degrees, until a superstep brings changes to few entries.

Source of the rest: Wen, Qin, Zhang, Lin and Yu, "I/O efficient core graph decomposition at web
scale", ICDE 2016 (SemiCore*). A vertex v is *supported* by the neighbours whose estimates are v's
or more. As long as there are as many of them as its estimate says, the estimate is their h-index
already. When a neighbour falls from a to b, it stops to support those whose estimates lie in
b + 1 … a. A vertex with too little support waits in a ring until it is refined, which reads its row
for the estimate, and the own rows that hold it for their support. Changes of others are few after
the first time, and all are taken over before any vertex is refined.

Invariants, for own rows: 1. support[v] is the number of v's neighbours with estimates of
estimate[v] or more. 2. v waits if support[v] < estimate[v], once.

Requires a simple view whose rows of others are empty, C-contiguous; and estimates of 1 or more of
the others' rows that are named, as vertices with a neighbour have: 0 would not be peeled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..core.cpu import peeled
from ..views.simple import View
from .types import Array

HEAD, COUNT = range(2)  # words of the state: where the ring begins, and how many wait
FEW = 4  # rows with one entry in so many that name a row that fell are refined, not peeled anew


class Refiner:
    """Refines the estimates of own rows in place. estimate: int32[n], at first the degrees.
    holders: of any row, the own rows that hold it: the transpose of the view."""

    def __init__(self, view: View, holders: View, estimate: Array) -> None:
        self._view, self._estimate = view, estimate
        self._held_by = holders.indptr, holders.indices
        self._own = np.flatnonzero(np.diff(view.indptr))
        self._is_peeled = False
        self._waiting: tuple[Array, Array, Array, Array] | None = None

    def refine(self, came: list[Any]) -> None:
        """Take over estimates of others' rows, [(rows, estimates)], and refine until no own
        estimate changes. The first time nothing comes."""
        view, estimate = self._view, self._estimate
        if self._waiting is None:
            if not self._is_peeled or self._is_much(came):
                self._peel(came)
                return
            self._waiting = self._supported()
        for rows, values in came:
            arrays = np.array(rows), np.array(values)  # writable, as the kernel is compiled for
            _fall(*arrays, *self._held_by, estimate, *self._waiting)
        _settle(view.indptr, view.indices, *self._held_by, estimate, *self._waiting)

    def _is_much(self, came: list[Any]) -> bool:
        """Whether so many entries name rows that fell that peeling is cheaper."""
        lengths = np.diff(self._held_by[0])
        touched = sum(int(lengths[rows].sum()) for rows, _ in came)
        return FEW * touched > len(self._view.indices)

    def _peel(self, came: list[Any]) -> None:
        """Find the estimates anew, from the degrees of own rows and the estimates of others'."""
        estimate, own, indptr = self._estimate, self._own, self._view.indptr
        for rows, values in came:
            estimate[rows] = values
        estimate[own] = indptr[own + 1] - indptr[own]
        peeled(*self._held_by, estimate)
        self._is_peeled = True

    def _supported(self) -> tuple[Array, Array, Array, Array]:
        """(support, ring, waits, state), with nobody waiting."""
        view, n = self._view, len(self._estimate)
        support = np.zeros(n, np.int32)
        by_rows(_count_support, view.indptr, view.indptr, view.indices, self._estimate, support)
        ring, waits = np.empty(max(n, 1), np.uint32), np.zeros(n, np.bool_)
        return support, ring, waits, np.zeros(2, np.int64)


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
