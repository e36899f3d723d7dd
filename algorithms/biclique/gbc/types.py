"""Types that the files of this folder share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lpma.errors import BatchError

from ...arrays import Array

ROWS = ("compact", "htb", "csr")


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


@dataclass(frozen=True)
class GbcOptions:
    """The parts of the method, which can be turned off one by one."""

    rows: str = "compact"
    anchor: bool = True  # anchor on the cheaper layer; else on the left one
    priority: bool = True  # number anchors by their two-hop neighbours; else by id
    common: bool = True  # candidates share enough neighbours with their root; else any
    hybrid: bool = True  # all children of a node at once; else one after the other
    edges: bool = True  # a task is a root with its first candidate; else a root
    stealing: bool = True  # workers take tasks from a shared counter; else from fixed shares

    def __post_init__(self) -> None:
        if self.rows not in ROWS:
            raise BatchError(f"rows={self.rows!r}: give one of {', '.join(ROWS)}")


GBC = GbcOptions(rows="htb")  # the paper's program, for a graph in Border's order
GBL = GbcOptions(rows="csr", hybrid=False, edges=False, stealing=False)  # its baseline


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
