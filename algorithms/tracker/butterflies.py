"""The butterfly count, (2, 2)-bicliques, brought up to date from the changed edges alone.

Butterflies lost are those of the rows before that have a deleted edge, butterflies won those of the
rows after that have an inserted one. Either is counted at every changed edge u, v: over the other
neighbours w of the end of lower degree, what w and the other end have in common. A butterfly with
several edges of the list is found at each of them, and counted at the least, by (smaller end,
larger end): so once.

The graph must be bipartite. Sides are kept from the last count: deletions do not spoil them, and
neither do insertions between the two, or at vertices that had no edge, which take their side from
the other end. Where an insertion lies within a side the graph is coloured anew (`bipartite`). Which
side is called left is no matter, since a butterfly has two vertices on each.

Rule: recompute where changed × PER_EDGE > edges. PER_EDGE is what a changed edge costs, in edges
recounted, on the Gowalla check-ins (docs/notes/algorithms.md).
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from lpma.arrays import array_module

from ..biclique.bipartite import by_sides, colours
from ..biclique.wedges import butterflies
from ..views.simple import Array, View
from .figure import HALF, LOW, Change

PER_EDGE = {"cpu": 180, "cuda": 20}


class ButterflyCount:
    """See the module, and `figure.Figure`. Raises BatchError where the graph is not bipartite."""

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
        self.value += _counter(change.after).difference(change)
        return True


def _sides(before: Array, change: Change) -> Array:
    """The sides after a change, bool[n]."""
    xp = array_module(before)
    rows, n = change.before, change.after.num_vertices
    known = min(len(before), n)
    is_left, has_side = xp.ones(n, bool), xp.zeros(n, bool)
    is_left[:known] = before[:known]
    has_side[:known] = (rows.indptr[1:] > rows.indptr[:-1])[:known]
    u, v = (change.inserted >> HALF).astype(np.int64), (change.inserted & LOW).astype(np.int64)
    # First who is joined with a vertex that has a side; then who is joined with these; then, of
    # two new vertices, the smaller is left.
    for _ in range(2):
        takes = has_side[v] & ~has_side[u]
        is_left[u[takes]] = ~is_left[v[takes]]
        has_side[u[takes]] = True
    new = ~(has_side[u] | has_side[v])
    is_left[u[new]] = u[new] < v[new]
    return colours(change.after) if bool((is_left[u] == is_left[v]).any()) else is_left


def _counter(rows: View) -> ModuleType:
    if rows.on_device:
        from . import butterflies_cuda as on_device

        return on_device
    from . import butterflies_cpu

    return butterflies_cpu
