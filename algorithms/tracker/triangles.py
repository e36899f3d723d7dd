"""The triangle count, brought up to date from the changed edges alone.

Triangles lost are those of the rows before that have a deleted edge, triangles won those of the
rows after that have an inserted one; all others are the same before and after. Either is counted
by intersecting the two rows of every changed edge. A triangle with several edges of the list is
found at each of them, and counted at the least, by (smaller end, larger end): so once.

Searching what the shorter row holds in the longer costs about min(degree) searches a changed edge.
Rule: recompute where changed edges × PER_EDGE > edges. PER_EDGE is what a changed edge costs, in
edges recounted: on RMAT graphs about 30 on the CPU and on a GPU (docs/notes/algorithms.md).
"""

from __future__ import annotations

from types import ModuleType

from ..triangles import triangle_count
from ..views.simple import View
from .figure import Change

PER_EDGE = 30


class TriangleCount:
    """See the module, and `figure.Figure`."""

    def __init__(self) -> None:
        self.value = 0

    def recompute(self, rows: View) -> None:
        self.value = triangle_count((rows.indptr, rows.indices))

    def update(self, change: Change) -> bool:
        edges = len(change.after.indices) // 2
        if change.num_changed * PER_EDGE > edges:
            return False
        self.value += _counter(change.after).difference(change)
        return True


def _counter(rows: View) -> ModuleType:
    if rows.on_device:
        from . import triangles_cuda as on_device

        return on_device
    from . import triangles_cpu

    return triangles_cpu
