"""The triangle count, brought up to date from the changed edges alone.

Triangles of the rows before with a deleted edge are lost, those of the rows after with an inserted
one are won. Both are found by intersecting the two rows of every changed edge. A triangle with
several changed edges is found at each of them, but counts once.

A GPU searches for the entries of the shorter row in the longer one; the CPU looks them up in a
table of it. So a changed edge costs about min(degree) searches or look-ups.

Oracle: recomputation (tests/algorithms/test_tracker.py).
"""

from __future__ import annotations

from typing import ClassVar

from ...triangles import triangle_count
from ...views.simple import View
from ..types import CountAtEdges


class TriangleCount(CountAtEdges):
    """The figure "triangles": see the module, and `types.CountAtEdges`."""

    package = __name__
    PER_EDGE: ClassVar = {"cpu": 10, "cuda": 30}  # on RMAT graphs

    def recompute(self, rows: View) -> None:
        self.value = triangle_count(rows)
