"""Types that the files of this folder share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...arrays import Array


@dataclass(frozen=True)
class Anchored:
    """The sorted rows of both layers of a bipartite graph. Subsets are enumerated on one layer, the
    anchor, whose vertices are numbered by rank."""

    indptr: Array  # int64[n+1]: of the anchor's vertices
    indices: Array  # uint32[m]: vertices of the other layer
    back_indptr: Array  # int64[n'+1]: of the other layer's vertices
    back: Array  # uint32[m]: ranks of anchors

    @property
    def num_anchors(self) -> int:
        return len(self.indptr) - 1

    @property
    def rows(self) -> tuple[Array, Array, Array, Array]:
        """The four arrays, in the order in which all kernels take them."""
        return self.indptr, self.indices, self.back_indptr, self.back


@dataclass(frozen=True)
class Search:
    """A search for the subsets of `depth` anchors with at least `least` common neighbours."""

    graph: Anchored
    depth: int
    least: int


class Part(NamedTuple):
    """A part of a graph on the host that is counted by itself."""

    graph: Anchored
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
