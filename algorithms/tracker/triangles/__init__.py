"""The triangle count, brought up to date from the changed edges alone.

Triangles of the rows before with a deleted edge are lost, those of the rows after with an inserted
one are won. Both are found by intersecting the two rows of every changed edge. A triangle with
several changed edges is found at each of them, but counts once.

A GPU searches for the entries of the shorter row in the longer one; the CPU looks them up in a
table of it. So a changed edge costs about min(degree) searches or look-ups. Rule: recompute if
changed edges × PER_EDGE > edges. PER_EDGE is the cost of a changed edge in edges recounted, on RMAT
graphs (docs/notes/algorithms.md).

Oracle: recomputation (tests/algorithms/test_tracker.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ...arrays import by_device
from ...triangles import triangle_count
from ...views.simple import View
from ..types import Change, Figure

PER_EDGE = {"cpu": 10, "cuda": 30}


class TriangleCount(Figure):
    """The figure "triangles": see the module, and `types.Figure`. `value` is an int."""

    def __init__(self) -> None:
        self.value = 0
        self._end: Callable[[], int] | None = None  # of what was begun

    def recompute(self, rows: View) -> None:
        self.value = triangle_count(rows)

    def begin(self, change: Change) -> None:
        self._end = None
        per_edge = PER_EDGE["cuda" if change.after.on_device else "cpu"]
        if change.num_changed * per_edge <= len(change.after.indices) // 2:
            self._end = by_device(change.after.indptr, __name__).begin(change)

    def update(self, change: Change) -> bool:
        if self._end is None:
            return False
        self.value += self._end()
        return True
