"""Core numbers, brought up to date together with an order of the vertices that proves them.

Sources: Zhang, Yu, Zhang and Qin, "A fast order-based approach for core maintenance", ICDE 2017
(the order); Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011
(the fall). Theirs takes an edge at a time; here a batch is taken at once, by any number of threads.

Beside its number c a vertex has a *layer*, and vertices stand in the order of (c, layer, id). Two
counts are kept of each,
    support   of neighbours w with c(w) ≥ c(v),
    after     of neighbours that stand after it,
and between updates
    1. support(v) ≥ c(v): in {c ≥ k} all degrees are k or more, so no core number is below c;
    2. after(v) ≤ c(v): of any set of vertices the first has at most its c neighbours there, so
       nobody with c = k is in a (k + 1)-core, and no core number is above c.

*A batch* changes both counts at the ends of its edges. Then, on the rows after it:

*Fall*, while 1 fails. A vertex short of support falls, to behind all others of its new number; who
counted on it is looked at again. Whom it passed has fewer after it. So 2 can fail for those who
fell, and at inserted edges, and nowhere else.

*Rise*, in rounds, while 2 fails. Those for whom it does are *reached*. They are to stand after all
others of their number k: that adds one to `after` of each neighbour passed, and whoever comes above
k by it is reached as well; who does not keeps 2. The reached are then peeled: again and again, who
has at most k neighbours above k or still there is *evicted*, each time to a later layer. So it has
at most k after it. Who is left has k + 1 such neighbours, and rises: 1 holds for it. It stands
before all others of its new number, and where it has more than that after it, a round follows.

A round in which nobody rises is the last, so that there are as many as the largest rise, and one.
The order is that of peeling at first, made when an update needs it. Rule: an update gives up, and
the numbers are peeled anew, when the rows that it lists hold more than SHARE of all entries; and
three quarters of its changed edges or more are not tried until PATIENCE batches were let go by.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from lpma.arrays import array_module

from ..core import core_numbers
from ..views.simple import Array, View
from .figure import Change

SHARE = {"cpu": 0.3, "cuda": 4.0}
LEAST = 1 << 16  # entries that may be read in any case
PATIENCE = 16
MOST_LAYERS = 1 << 30  # either way; then the order is made anew


class CoreNumbers:
    """See the module, and `figure.Figure`. `value` is int32[n]."""

    def __init__(self) -> None:
        self.value: Array = np.empty(0, np.int32)
        self._held: list[Array] | None = None  # layer, after, support; None: to be made
        self._back = self._front = 0  # the layers next to be used
        self._too_many: int | None = None  # changed edges
        self._let_go = 0

    def recompute(self, rows: View) -> None:
        self.value = core_numbers((rows.indptr, rows.indices))
        self._held = None

    def update(self, change: Change) -> bool:
        if self._is_hopeless(change.num_changed):
            return False
        rows = change.after
        tools = _tools(rows)
        place = "cuda" if rows.on_device else "cpu"
        if self._held is None or max(self._back, -self._front) > MOST_LAYERS:
            xp = array_module(self.value)
            self._held = [xp.empty(len(self.value), np.int32) for _ in range(3)]
            self._back = max(1, tools.order(change.before, self.value, *self._held))  # new: 0
            self._front = -1
        budget = max(LEAST, int(SHARE[place] * len(rows.indices)))
        state = np.array([self._back, self._front, budget])
        n = max(rows.num_vertices, len(self.value))  # those that went are asked for, too
        numbers = _extended(self.value, n)  # what was handed out does not change; the rest may
        held = [numbers, *(a if len(a) == n else _extended(a, n) for a in self._held)]
        if not tools.follow(change, *held, state):
            self._too_many, self._let_go = change.num_changed, 0
            return False
        self.value, *self._held = (array[: rows.num_vertices] for array in held)
        self._back, self._front = state[:2].tolist()
        return True

    def _is_hopeless(self, changed: int) -> bool:
        """Whether a batch is not much smaller than one that gave up lately."""
        if self._too_many is None or 4 * changed < 3 * self._too_many:
            return False
        self._let_go += 1
        if self._let_go > PATIENCE:
            self._too_many = None
        return self._too_many is not None


def _extended(array: Array, n: int) -> Array:
    """A copy with zeros behind, n in all."""
    if len(array) == n:
        return array.copy()
    extended: Array = array_module(array).zeros(n, array.dtype)
    extended[: len(array)] = array
    return extended


def _tools(rows: View) -> ModuleType:
    if rows.on_device:
        from . import core_cuda as on_device

        return on_device
    from . import core_cpu

    return core_cpu
