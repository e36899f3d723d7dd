"""Core numbers, brought up to date together with an order of the vertices that proves them.

Sources: Zhang, Yu, Zhang and Qin, "A fast order-based approach for core maintenance", ICDE 2017,
arXiv 1606.00200 (the order); Montresor, De Pellegrini and Miorandi, "Distributed k-core
decomposition", PODC 2011, arXiv 1103.5320 (the fall). They take one edge at a time; here a whole
batch is taken at once, by any number of threads.

Vertices are ordered by (c, layer, id), where c is the core number. Two counts are kept for each v,
    support   of the neighbours w with c(w) ≥ c(v),
    after     of the neighbours that come after v in the order,
and between updates two invariants hold for all v:
    1. support(v) ≥ c(v). So in {c ≥ k} all degrees are at least k, and no core number is below c.
    2. after(v) ≤ c(v). In any set of vertices, the first in the order has at most c of its
       neighbours in the set. So no vertex with c = k is in a (k + 1)-core, and no core number is
       above c.

A batch changes both counts at the ends of its edges. Then, on the rows after the batch:

*Fall*, while invariant 1 fails. A vertex with too little support falls to a lower number, behind
all others of that number. The neighbours that it supported are checked again; the vertices that it
passed have fewer after them. So invariant 2 can fail only for vertices that fell, and at inserted
edges.

*Rise*, in rounds, while invariant 2 fails. The vertices for which it fails are *reached*: they move
behind all others of their number k. That adds one to `after` of every neighbour passed, and one
whose count then exceeds k is reached as well. The reached vertices are then peeled: one with at
most k neighbours that are above k or still reached is *evicted*, each time to a later layer, so
that it has at most k after it. The vertices left have at least k + 1 such neighbours, and rise:
invariant 1 holds for them. Each is placed before all others of its new number. If one has more than
its new number after it there, another round follows: there are as many rounds as the largest rise,
plus one.

On the CPU the counts, and all steps of a rise, read lists of the neighbours of no lower number
(`core.cpu`), which are kept with the order; only a vertex that falls reads its whole row.

The order is made with the numbers, as that of peeling; after an update that gave up, when one is
tried again. Rule: an update gives up, and the numbers are recomputed, when the rows or lists that
it would read hold more than SHARE of all entries: starting over would have taken as long. Batches
with at least three quarters as many changed edges are then recomputed without a try, up to
PATIENCE.

Oracle: recomputation (tests/algorithms/test_tracker.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lpma.arrays import array_module

from ...arrays import Array, by_device
from ...core import core_numbers
from ...views.simple import View
from ..types import Change, Figure, extended

SHARE = {"cpu": 1.0, "cuda": 4.0}  # of the entries of all rows
LEAST = 1 << 16  # entries that an update may always read
PATIENCE = 16  # batches
MOST_LAYERS = 1 << 30  # in either direction; beyond, the order is made anew


class CoreNumbers(Figure):
    """The figure "core": see the module, and `types.Figure`. `value` is int32[n]."""

    def __init__(self) -> None:
        self.value: Array = np.empty(0, np.int32)
        self._held: list[Array] | None = None  # layer, after, support; None: not made yet
        self._lists: Any = None  # what the device's `order` made for its `follow`
        self._back = self._front = 0  # the next layers to use, behind and before all others
        # Of an update that was begun: the arrays that it changes, its state, and what ends it.
        self._begun: tuple[list[Array], Array, Callable[[], bool]] | None = None
        self._too_many: int | None = None  # changed edges of the batch that last gave up
        self._not_tried = 0  # batches since then

    def recompute(self, rows: View) -> None:
        self.value = core_numbers(rows)
        self._held = self._lists = None
        if self._too_many is None:
            self._make_order(rows)

    def begin(self, change: Change) -> None:
        self._begun = None
        if self._is_hopeless(change.num_changed):
            return
        rows = change.after
        device = by_device(rows.indptr, __name__)
        place = "cuda" if rows.on_device else "cpu"
        if self._held is None or max(self._back, -self._front) > MOST_LAYERS:
            self._make_order(change.before)
        assert self._held is not None
        budget = max(LEAST, int(SHARE[place] * len(rows.indices)))
        state = np.array([self._back, self._front, budget])
        n = max(rows.num_rows, len(self.value))  # vertices that went count, too
        numbers = extended(self.value, n)  # a copy: a returned value never changes
        held = [numbers, *(a if len(a) == n else extended(a, n) for a in self._held)]
        self._begun = held, state, device.begin(change, *held, state, self._lists)

    def update(self, change: Change) -> bool:
        if self._begun is None:
            return False
        held, state, end = self._begun
        self._begun = None
        if not end():
            self._too_many, self._not_tried = change.num_changed, 0
            return False
        self.value, *self._held = (array[: change.after.num_rows] for array in held)
        self._back, self._front = state[:2].tolist()
        return True

    def _make_order(self, rows: View) -> None:
        """Make the order of the present numbers, which are those of the rows."""
        xp = array_module(self.value)
        self._held = [xp.empty(len(self.value), np.int32) for _ in range(3)]
        # Layer 0 is for new vertices.
        back, self._lists = by_device(rows.indptr, __name__).order(rows, self.value, *self._held)
        self._back, self._front = max(1, back), -1

    def _is_hopeless(self, changed: int) -> bool:
        """Whether a batch is not much smaller than one that recently gave up."""
        if self._too_many is None or 4 * changed < 3 * self._too_many:
            return False
        self._not_tried += 1
        if self._not_tried > PATIENCE:
            self._too_many = None
        return self._too_many is not None
