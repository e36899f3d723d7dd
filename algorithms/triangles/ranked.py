"""The ranked view: what triangles are listed over, on the device where the graph lies.

Vertices are ranked from the highest degree down, ties by id, and called by their ranks. Every edge
is one entry, its *slot*, in the row of its end of larger rank; the rows hold neighbours of smaller
rank, so that none is longer than sqrt(2m), which bounds the work of everything that compares them
(Chiba and Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14, 1985;
Latapy, TCS 407, 2008). For every vertex v the view also says in which rows it stands, since all
triangles w < v < u are found at v.

`_intersect_cpu` and `cuda.intersect` both offer `rank`, `edge_list`, `count`, `support` and
`incidence`; `lister` gives the one for a view.

Requires fewer than 2^31 edges: slots are int32.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import device_of
from lpma.errors import BatchError

from ..views.cache import cached
from ..views.simple import View, simple

Array = npt.NDArray[Any]  # or cupy.ndarray

MOST_EDGES = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class Ranked:
    """Rows under ranks, and for each vertex the rows that it is in."""

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


def ranked(s: Any) -> Ranked:
    """The ranked view of a graph, cached on a Snapshot. Raises BatchError on what is no graph and
    where there are too many edges."""
    return cached(s, "ranked", lambda: _ranked(simple(s)))


def _ranked(view: View) -> Ranked:
    edges = len(view.indices) // 2
    if edges > MOST_EDGES:
        raise BatchError(f"{edges} edges: triangles are listed for at most {MOST_EDGES}")
    with device_of(view.indptr):
        return lister(view).rank(view)


def lister(view: View) -> ModuleType:
    """The module that lists triangles where the view lies."""
    if view.on_device:
        from . import cuda as on_device

        return on_device
    from . import cpu

    return cpu
