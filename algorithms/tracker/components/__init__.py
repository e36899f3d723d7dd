"""Connected components, brought up to date from the changed edges alone where that is certain.

An inserted edge joins two components: the larger of the two labels at its ends is hooked under the
smaller. So the label of a component stays its smallest vertex.

A deleted edge may cut a component. It does not if, in the rows after the change, its ends
    have a common neighbour, or
    climb, by moving again and again to the neighbour of highest degree, to one vertex or to two
    adjacent ones.
It does cut, but separates nothing else, if it takes away
    a leaf, whose only edge before was the deleted one, or
    a pair, whose only edge before to any other vertex was the deleted one.
In graphs with hubs nearly every edge is one of these. At most LOOKED_AT entries of a row and STEPS
vertices of a climb are looked at.

Rule: recompute if one deleted edge is none of these, or if a vertex that leaves is the label of
others, or if more than edges / PER_EDGE edges were deleted. To recompute is to look at two edges of
most vertices, which costs no more than a search through a large component.

Why that is exact: consider a path of the graph before. Each of its edges either remains, or was
deleted and its ends are still connected. Leaves and pairs are on no path between other vertices.
So, these aside, vertices of one component before are in one component after. The inserted edges
join such components, and there are no other edges.
"""

from __future__ import annotations

import numpy as np

from lpma.arrays import array_module

from ...arrays import Array, by_device
from ...components import NONE, labels
from ..types import Change, TrackedRows

PER_EDGE = 8


class Components:
    """The figure "components": see the module, and `types.Figure`. `value` is int32[n], NONE for
    rows that are no vertices. During an update these have labels of their own, as vertices without
    edges do."""

    def __init__(self) -> None:
        self.value: Array = np.empty(0, np.int32)

    def recompute(self, rows: TrackedRows) -> None:
        self.value = labels(rows, is_symmetric=True, present=rows.present)

    def begin(self, change: Change) -> None:
        pass

    def update(self, change: Change) -> bool:
        if change.num_deleted * PER_EDGE > len(change.after.indices) // 2:
            return False
        xp = array_module(self.value)
        n, known = change.after.num_rows, min(len(self.value), change.after.num_rows)
        value = xp.arange(n, dtype=np.int32)
        value[:known] = xp.where(self.value[:known] == NONE, value[:known], self.value[:known])
        device = by_device(change.after.indptr, __name__)
        if change.num_deleted and not device.separate(change, value):
            return False
        if change.num_inserted:
            device.join(change.inserted, value)
        value[~change.after.present] = NONE
        self.value = value
        return True
