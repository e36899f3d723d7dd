"""What a search holds in memory, as far as it depends on the graph: an engine's prices.

A part of a graph costs what its vertices, edges and neighbours cost, and the workspace, which the
root of most candidates and the root of the largest bitmaps decide.
"""

from __future__ import annotations

from typing import NamedTuple


class Prices(NamedTuple):
    """Bytes, the graph's own arrays among them."""

    fixed: int
    vertex: int  # of the anchor layer
    edge: int
    other: int  # of the other layer
    column: int  # of the root that has most candidates, each
    cell: int  # of the root whose bitmaps have most words, each

    def least(self, vertices: int, edges: int, others: int, columns: int, cells: int) -> int:
        """The smallest memory that a search works in."""
        return (
            self.fixed + self.vertex * vertices + self.edge * edges + self.other * others
            + self.column * columns + self.cell * cells
        )  # fmt: skip
