"""Connected components, brought up to date from the changed edges alone where that is certain.

Inserted edges join: the two labels at their ends are hooked together, the larger under the smaller,
and so the label stays the smallest vertex of its component.

Deleted edges cut or do not. None of these does, seen in the rows after the change:
    ends with a common neighbour,
    ends from which climbing, again and again to the neighbour of highest degree, leads to one
    vertex or to two that are joined;
And these cut, but cut nothing else apart, for they leave their components by themselves:
    a leaf, whose one edge before was the deleted one;
    a pair, whose one edge before to anybody else was the deleted one.
In graphs with hubs that is nearly every edge. A look is at LOOKED_AT entries of a row and STEPS
vertices of a climb at most. Rule: where one deleted edge is none of these, or who leaves was the
label of others, the components are recomputed from the rows, which looks at two edges of most
vertices and costs no more than a search through a large component; likewise where more than
edges / PER_EDGE were deleted.

Why that is exact: any path of the graph before goes, edge by edge, either over an edge that is
left, or over a deleted one whose ends are joined otherwise; leaves and pairs are on no path between
others. So vertices of one component before, those aside, are in one component after. With the
inserted edges joined to that, nothing more is in the graph.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from lpma.arrays import array_module

from ..components import NONE, labels
from ..views.simple import Array, View
from .figure import Change, TrackedRows

PER_EDGE = 8


class Components:
    """See the module, and `figure.Figure`. `value` is int32[n], NONE for rows that are no
    vertices: while it is updated, they are labelled by themselves as vertices without edges are."""

    def __init__(self) -> None:
        self.value: Array = np.empty(0, np.int32)

    def recompute(self, rows: TrackedRows) -> None:
        self.value = labels(rows, is_symmetric=True, present=rows.present)

    def update(self, change: Change) -> bool:
        if change.num_deleted * PER_EDGE > len(change.after.indices) // 2:
            return False
        xp = array_module(self.value)
        n, known = change.after.num_vertices, min(len(self.value), change.after.num_vertices)
        value = xp.arange(n, dtype=np.int32)
        value[:known] = xp.where(self.value[:known] == NONE, value[:known], self.value[:known])
        tools = _tools(change.after)
        if change.num_deleted and not tools.separate(change, value):
            return False
        if change.num_inserted:
            tools.join(change.inserted, value)
        value[~change.after.present] = NONE
        self.value = value
        return True


def _tools(rows: View) -> ModuleType:
    if rows.on_device:
        from . import components_cuda as on_device

        return on_device
    from . import components_cpu

    return components_cpu
