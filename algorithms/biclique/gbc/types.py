"""Types that the files of this folder share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...arrays import Array
from ..bipartite import Bipartite


@dataclass(frozen=True)
class Search:
    """A search for the subsets of `depth` anchors with at least `least` common neighbours. The
    anchors are the graph's left side, numbered by rank."""

    graph: Bipartite
    depth: int
    least: int


class Part(NamedTuple):
    """A part of a graph on the host that is counted by itself."""

    graph: Bipartite
    num_candidates: Array  # int32[n]: of each root of the part, and 0 for a vertex that is none


class Prices(NamedTuple):
    """The bytes that a search holds, its graph included: fixed, for each thing in the graph, and
    for the workspace, whose size is that of the largest root."""

    fixed: int
    vertex: int  # of the anchor layer
    edge: int
    other: int  # of the other layer
    column: int  # a candidate of the root with most candidates
    cell: int  # a word of the bitmaps of the root whose bitmaps have most words

    def least(self, vertices: int, edges: int, others: int, columns: int, cells: int) -> int:
        """The smallest memory that a search works in."""
        return (
            self.fixed + self.vertex * vertices + self.edge * edges + self.other * others
            + self.column * columns + self.cell * cells
        )  # fmt: skip
