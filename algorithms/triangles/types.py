"""What lists triangles and what reads the lists share: the ranked view, and the functions that both
devices offer on it.

Requires fewer than 2^31 edges: slots are int32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..views.simple import View

Array = npt.NDArray[Any]  # or cupy.ndarray

MOST_EDGES = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class Ranked:
    """The ranked view (see `ranked`): rows under ranks, and for each vertex the rows it is in."""

    view: View  # the simple view, under ids
    order: Array  # uint32[n]: the vertex of each rank
    indptr: Array  # int64[n+1], by rank
    indices: Array  # uint32[m]: ranks smaller than the row's, rising
    in_indptr: Array  # int64[n+1]: v's part of the two columns below
    in_slot: Array  # int32[m]: where a row of larger rank holds v; rows in no order
    in_length: Array  # int32[m]: how many entries that row has before v

    @property
    def num_edges(self) -> int:
        return len(self.indices)


@dataclass(frozen=True)
class EdgeList:
    """The edges of the simple view, sorted by (src, dst)."""

    src: Array  # uint32[m], each smaller than its dst
    dst: Array  # uint32[m]
    slot: Array  # int32[m]: where `Ranked.indices` holds the edge


class Listed(NamedTuple):
    """A graph whose triangles were listed once, for all that need them."""

    ranks: Ranked
    support: Array  # int32[m]: how many triangles the edge of each slot is in


class Lister(Protocol):
    """What the modules `cpu` and `cuda` offer. The arrays lie on the module's device."""

    def rank(self, view: View) -> Ranked:
        """The ranked view of a simple view. REQUIRES: at most MOST_EDGES edges."""

    def edge_list(self, ranks: Ranked) -> EdgeList:
        """The edges under the vertices' ids, and where each is among the ranks' rows."""

    def count(self, ranks: Ranked) -> int:
        """How many triangles there are."""

    def support(self, ranks: Ranked) -> Array:
        """int32[m]: how many triangles each slot's edge is in."""
