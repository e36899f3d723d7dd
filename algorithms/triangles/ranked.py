"""The ranked view: what triangles are listed over, on the device where the graph lies.

Vertices are numbered by rank, from the highest degree down, ties by id. Each edge is one entry, its
*slot*, in the row of its end of larger rank. Rows hold neighbours of smaller rank; none is longer
than sqrt(2m), which bounds the work of everything that compares rows (Chiba and Nishizeki,
"Arboricity and subgraph listing algorithms", SIAM J. Comput. 14, 1985; Latapy, "Main-memory
triangle computations for very large (sparse (power-law)) graphs", TCS 407, 2008). For every vertex
v the view also has the rows that hold v, since triangles w < v < u are found at v.

Requires fewer than 2^31 edges: slots are int32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lpma.arrays import device_of
from lpma.errors import BatchError

from ..arrays import Array, by_device
from ..views.cache import cached
from ..views.simple import View, simple

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
    """A graph whose triangles were listed once."""

    ranks: Ranked
    support: Array  # int32[m]: how many triangles the edge of each slot is in


def ranked(s: Any) -> Ranked:
    """The ranked view of a graph, cached on a Snapshot. Raises BatchError if s is not a graph, or
    has more than MOST_EDGES edges."""
    return cached(s, "ranked", lambda: _ranked(simple(s)))


def _ranked(view: View) -> Ranked:
    edges = len(view.indices) // 2
    if edges > MOST_EDGES:
        raise BatchError(f"{edges} edges: triangles are listed for at most {MOST_EDGES}")
    with device_of(view.indptr):
        return lister(view).rank(view)


def lister(view: View) -> Any:
    """The module that lists triangles where the view lies: `cpu` or `cuda`."""
    return by_device(view.indptr, __package__)
