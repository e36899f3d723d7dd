"""The butterfly count, of (2, 2)-bicliques, brought up to date from the changed edges.

Butterflies of the rows before with a deleted edge are lost, those of the rows after with an
inserted one are won. At a changed edge u, v, v of lower degree, they are counted over the other
neighbours w of v, by the common neighbours of w and u. A butterfly with several changed edges is
found at each, and counted only at the least, by (smaller end, larger end).

REQUIRES: the graph is bipartite. The sides are kept from one count to the next. Deletions leave
them valid, and so do insertions between the two sides, and at vertices that had no edge, which take
their side from the other end. If an insertion lies within a side, the graph is coloured anew
(`biclique.bipartite`). Which side is called left does not matter.

Oracle: recomputation (tests/algorithms/test_tracker_butterflies.py).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from lpma.arrays import any_of
from lpma.pma.keys import HALF, LOW

from ...arrays import Array
from ...biclique.bipartite import by_sides, colours
from ...biclique.wedges import butterflies
from ...views.simple import View
from ..types import Change, CountAtEdges, extended


class ButterflyCount(CountAtEdges):
    """The figure "butterflies": see the module, and `types.CountAtEdges`. Both methods raise
    BatchError if the graph is not bipartite."""

    package = __name__
    PER_EDGE: ClassVar = {"cpu": 180, "cuda": 20}  # on the Gowalla check-ins
    _is_left: Array

    def recompute(self, rows: View) -> None:
        self._is_left = colours(rows)
        self.value = butterflies(by_sides(rows, self._is_left))

    def update(self, change: Change) -> bool:
        if not super().update(change):
            return False
        self._is_left = _sides(self._is_left, change)
        return True


def _sides(before: Array, change: Change) -> Array:
    """bool[n]: which vertices are on the left after a change, from those before it."""
    indptr, n = change.before.indptr, change.after.num_rows
    is_left, has_side = extended(before, n), extended(indptr[1:] > indptr[:-1], n)
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
