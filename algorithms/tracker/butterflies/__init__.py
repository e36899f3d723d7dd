"""The butterfly count, of (2, 2)-bicliques, brought up to date from the changed edges.

Butterflies of the rows before with a deleted edge are lost, those of the rows after with an
inserted one are won. At a changed edge u, v, v of lower degree, they are counted over the other
neighbours w of v, by the common neighbours of w and u. A butterfly with several changed edges is
found at each, and counted only at the least, by (smaller end, larger end).

REQUIRES: the graph is bipartite. The sides are kept from one count to the next. Deletions leave
them valid, and so do insertions between the two sides, and at vertices that had no edge, which take
their side from the other end. If an insertion lies within a side, the graph is coloured anew
(`biclique.bipartite`). Which side is called left does not matter.

Rule: recompute if changed edges × PER_EDGE > edges. PER_EDGE is the cost of a changed edge in edges
recounted, on the Gowalla check-ins (docs/notes/algorithms.md).

Oracle: recomputation (tests/algorithms/test_tracker_butterflies.py).
"""

from __future__ import annotations

import numpy as np

from lpma.arrays import any_of, array_module
from lpma.pma.keys import HALF, LOW

from ...arrays import Array, by_device
from ...biclique.bipartite import by_sides, colours
from ...biclique.wedges import butterflies
from ...views.simple import View
from ..types import Change, Figure

PER_EDGE = {"cpu": 180, "cuda": 20}


class ButterflyCount(Figure):
    """The figure "butterflies": see the module, and `types.Figure`. `value` is an int. Both methods
    raise BatchError if the graph is not bipartite."""

    def __init__(self) -> None:
        self.value = 0
        self._is_left: Array = np.empty(0, bool)

    def recompute(self, rows: View) -> None:
        self._is_left = colours(rows)
        self.value = butterflies(by_sides(rows, self._is_left))

    def update(self, change: Change) -> bool:
        per_edge = PER_EDGE["cuda" if change.after.on_device else "cpu"]
        if change.num_changed * per_edge > len(change.after.indices) // 2:
            return False
        self._is_left = _sides(self._is_left, change)
        self.value += by_device(change.after.indptr, __name__).difference(change)
        return True


def _sides(before: Array, change: Change) -> Array:
    """bool[n]: which vertices are on the left after a change, from those before it."""
    xp = array_module(before)
    rows, n = change.before, change.after.num_rows
    known = min(len(before), n)
    is_left, has_side = xp.ones(n, bool), xp.zeros(n, bool)
    is_left[:known] = before[:known]
    has_side[:known] = (rows.indptr[1:] > rows.indptr[:-1])[:known]
    u, v = (change.inserted >> HALF).astype(np.int64), (change.inserted & LOW).astype(np.int64)
    # New vertices take their side from a neighbour that has one; in the second pass, from vertices
    # of the first. Of two ends that still have none, the smaller goes left.
    for _ in range(2):
        takes = has_side[v] & ~has_side[u]
        is_left[u[takes]] = ~is_left[v[takes]]
        has_side[u[takes]] = True
    new = ~(has_side[u] | has_side[v])
    is_left[u[new]] = u[new] < v[new]
    return colours(change.after) if any_of(is_left[u] == is_left[v]) else is_left
