"""The ranked view: what triangles are listed over, on the device where the graph lies.

Vertices are ranked from the highest degree down, ties by id, and called by their ranks. Every edge
is one entry, its *slot*, in the row of its end of larger rank. The rows hold neighbours of smaller
rank, so none is longer than sqrt(2m), which bounds the work of everything that compares rows (Chiba
and Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14, 1985; Latapy,
"Main-memory triangle computations for very large (sparse (power-law)) graphs", TCS 407, 2008). For
every vertex v the view also says which rows hold v, since all triangles w < v < u are found at v.
"""

from __future__ import annotations

from typing import Any

from lpma.arrays import device_of
from lpma.errors import BatchError

from ..views.cache import cached
from ..views.simple import View, simple
from . import cpu
from .types import MOST_EDGES, Lister, Ranked


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


def lister(view: View) -> Lister:
    """The module that lists triangles where the view lies."""
    if not view.on_device:
        return cpu
    from . import cuda

    return cuda
