"""Connected components, brought up to date from the changed edges alone where that is certain.

An inserted edge hooks the larger of the two labels at its ends under the smaller, so that a
component's label stays its smallest vertex.

A deleted edge may cut a component. It does not if, in the rows after the change, its ends
    have a common neighbour, or
    climb, moving repeatedly to the neighbour of highest degree, to one vertex or to two adjacent
    ones.
It cuts, but separates nothing else, if it takes away
    a leaf, whose only edge before was the deleted one, or
    a pair, whose only edge before to any other vertex was the deleted one.
In graphs with hubs nearly every edge is one of these. At most LOOKED_AT entries of a row and STEPS
vertices of a climb are examined.

Rule: recompute if a deleted edge is none of these, if a vertex that leaves is the label of others,
or if more than edges / PER_EDGE edges were deleted. Recomputing examines two edges of most
vertices, which costs no more than searching a large component.

Why that is exact: each edge of a path in the graph before remains, or its ends are still connected,
except at leaves and pairs, which are on no path between other vertices. So, these aside, vertices
of one component before are in one component after. The inserted edges join such components, and
there are no other edges.

Oracle: recomputation (tests/algorithms/test_tracker.py).
"""

from __future__ import annotations

import numpy as np

from lpma.arrays import array_module

from ...arrays import Array, by_device
from ...components import NONE, labels
from ..types import Change, Figure, TrackedRows

PER_EDGE = 8


class Components(Figure):
    """The figure "components": see the module, and `types.Figure`. `value` is int32[n], NONE for
    rows that are no vertices. During an update these have labels of their own, as vertices without
    edges do."""

    def __init__(self) -> None:
        self.value: Array = np.empty(0, np.int32)

    def recompute(self, rows: TrackedRows) -> None:
        self.value = labels(rows, is_symmetric=True, present=rows.present)

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
