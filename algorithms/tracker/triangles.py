"""The triangle count, brought up to date from the changed edges alone.

Triangles lost are those of the rows before that have a deleted edge, triangles won those of the
rows after that have an inserted one; all others are the same before and after. Either is counted
by intersecting the two rows of every changed edge. A triangle with several edges of the list is
found at each of them, and counted at the least, by (smaller end, larger end): so once.

Searching what the shorter row holds in the longer costs about min(degree) searches a changed edge.
Rule: recompute where PER_EDGE changed edges or fewer for each that there is would cost more, that
is, where changed × PER_EDGE > edges. PER_EDGE is what a changed edge costs, in edges recounted, on
RMAT 20 with 10 M edges (docs/performance.md).
"""

from __future__ import annotations

from types import ModuleType

from .._views import View
from ..triangles import triangle_count
from .figure import Change

PER_EDGE = {"cpu": 10, "cuda": 40}


class TriangleCount:
    """See the module, and `figure.Figure`."""

    def __init__(self) -> None:
        self.value = 0

    def recompute(self, rows: View) -> None:
        self.value = triangle_count((rows.indptr, rows.indices))

    def update(self, change: Change) -> bool:
        edges = len(change.after.indices) // 2
        if change.num_changed * PER_EDGE[_place(change.after)] > edges:
            return False
        self.value += _counter(change.after).difference(change)
        return True


def _place(rows: View) -> str:
    return "cuda" if rows.on_device else "cpu"


def _counter(rows: View) -> ModuleType:
    if rows.on_device:
        from ..cuda import tracker_triangles as on_device

        return on_device
    from . import _triangles_cpu

    return _triangles_cpu
