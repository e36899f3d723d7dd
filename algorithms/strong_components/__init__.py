"""Strongly connected components: which vertices lead to each other, along the edges' directions.

Components that ignore directions are `connected_components`.

on                            runs
an undirected graph           the components of `connected_components`
the CPU                       Pearce's form of Tarjan's algorithm, in one thread         cpu.py
CUDA                          searches from a pivot, then trimming and colouring         cuda.py
CUDA, more than `cuda.steps`  as on the CPU, on a copy of the rows                       cpu.py

On a CUDA device the vertex with the greatest product of in- and out-degree is the pivot. Vertices
in both searches (algorithms/bfs) from and to it are its component, in most graphs the giant one
(Fleischer, Hendrickson and Pınar, "On identifying strongly connected components in parallel", IPDPS
2000 workshops). No component has vertices in two of the other three sets. These
are treated in rounds (strong_components.cu), in the order of Multistep (Slota, Rajamanickam and
Madduri, "BFS and coloring-based parallel algorithms for strongly connected components and related
problems", IPDPS 2014):

1. Vertices without an edge to or from live vertices of their set are trimmed: each is a component
   (McLendon et al., JPDC 65, 2005). Repeat until there is none.
2. Each vertex takes the least colour that reaches it (Orzan, 2004). Vertices that lead back to
   their colour's origin are a component; colours are the sets of the next round.

Colours are scrambled ids, so that chains of components take a logarithmic number of rounds. A round
takes as many steps as paths are long; when a graph has taken as long as it would on the host, the
device gives up, so that long chains and cycles cost at most a small multiple of that.

Oracle: NetworkX, SciPy and the definition (tests/algorithms/test_strong_components.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of, distinct, row_numbers, to_host

from ..arrays import Array, beside
from ..components import labels as weak_labels
from ..options import algorithm
from ..views.directed import is_symmetric, present, rows, transposed
from ..views.simple import View
from . import cpu

NONE = -1


@algorithm
def strongly_connected_components(s: Any) -> Array:
    """The smallest vertex id of each vertex's strongly connected component: the vertices that it
    leads to and that lead to it. Where directions do not count, `connected_components` has the
    (weakly) connected ones.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read with its directions.

    Returns int32[n], where s lies: −1 for a row that is not a vertex (in a Snapshot, one that is
    not `present`; in anything else every row is a vertex). On the CPU one thread takes
    O(n + m); a graph on a device is copied to the host if its paths are so long that this is
    faster. Raises `lpma.BatchError` if s is not a graph.

    >>> graph = lpma.from_edges([0, 2, 4, 2], [2, 4, 0, 3], device="cpu")
    >>> algorithms.strongly_connected_components(graph.snapshot())
    array([ 0, -1,  0,  3,  0], dtype=int32)
    """
    view = rows(s)
    with device_of(view.indptr):
        if is_symmetric(s):  # each edge leads back
            return weak_labels(view, True, present(s))
        found = _on_device(s, view) if view.on_device else None
        if found is None:
            found = beside(view.indptr, cpu.smallest_members(*_on_host(view)))
        vertices = present(s)
        if vertices is None:
            return found
        labels: Array = array_module(found).where(vertices, found, np.int32(NONE))
    return labels


def components(s: Any) -> tuple[Array, int]:
    """int32[n], on the host: the number of each row's component, after those its edges lead to; and
    how many there are. A row that is not a vertex is a component of its own."""
    view = rows(s)
    found = None
    if view.on_device and not is_symmetric(s):
        with device_of(view.indptr):
            found = _on_device(s, view)
    return _on_host(view) if found is None else in_order(view, found)


def _on_device(s: Any, view: View) -> Array | None:
    """The labels; None if the host is faster."""
    from . import cuda

    return cuda.components(view, transposed(s))


def _on_host(view: View) -> tuple[Array, int]:
    """As `components`, of rows anywhere."""
    found: tuple[Array, int] = cpu.components(to_host(view.indptr), to_host(view.indices))
    return found


def in_order(view: View, labels: Array) -> tuple[Array, int]:
    """As `components`, of rows on a device with known labels: the host searches only the graph of
    the components."""
    with device_of(labels):
        xp = array_module(labels)
        first = xp.flatnonzero(labels == xp.arange(len(labels)))  # of each component
        number = xp.zeros(len(labels), np.int64)
        number[first] = xp.arange(len(first))
        number = number[labels]
        src = number[row_numbers(view.indptr, len(view.indices))]
        dst = number[view.indices]
        apart = src != dst
        links = distinct(src[apart] << 32 | dst[apart])
        indptr = xp.searchsorted(links >> 32, xp.arange(len(first) + 1))
        order, count = _on_host(View(indptr, links.astype(np.uint32)))
        return order[to_host(number)], count
