"""Truss numbers: the largest k for which an edge is in the k-truss, and the k-truss itself.

The k-truss is the largest subgraph of which every edge is in at least k - 2 triangles of it (Cohen,
"Trusses: cohesive subgraphs for social network analysis", 2008). An edge in no triangle has truss
number 2.

method=       when                          how
"incidence"   "auto", if it needs at most   Every triangle is listed once, and kept under each of
              half of the free memory;      its edges as the two others: 24 bytes on CUDA, 16 on
              on CUDA up to LISTED_MOST     the CPU. Edges are peeled by support; no row is read
              triangles (6 GiB)             again.
"intersect"   "auto", else                  The same peeling, but an edge's triangles are found by
                                            intersecting the rows of its ends. The memory goes by
                                            the edges: on CUDA 41 bytes each, and 8 per 1,024
                                            entries of the shorter of its rows, rounded up, beside
                                            the ranked view's 12 and the simple view's 8.
"affected"    on request                    The program of Ding, Duan and Liu ("K-truss
                                            decomposition", ECE508): triangles of edges that lost
                                            one are counted again, level by level.

cpu.py, cuda.py      the methods on each device, with what each needs
peel_cpu.py          peeling on the CPU: levels, rounds and threads; `incidence` itself
incidence_cpu.py       every edge's triangles
intersect_cpu.py       `intersect`, and rows that know the numbers of edges
peel.cuh, truss.cu   the same on CUDA, all levels in one launch
listed.cuh, intersect.cuh    an edge's triangles there
edge_rows.cu, edge_rows.cuh    rows that know the numbers of edges
paper/               `affected`

Oracle: NetworkX, the slides' examples and known trusses (tests/algorithms/test_truss.py).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from lpma.arrays import array_module, device_of
from lpma.snapshot.snapshot import Snapshot
from lpma.snapshot.vertices import OfRows

from ..arrays import Array, by_device
from ..options import MOST, Limits, algorithm
from ..triangles.ranked import ranked
from ..views.simple import as_snapshot, simple

METHODS = ("incidence", "intersect", "affected")
NO_LIMIT = MOST


class _Truss(NamedTuple):
    src: Array
    dst: Array
    truss: Array


class Truss(OfRows, _Truss):
    """Every edge of the simple undirected graph once, sorted by (src, dst), where the graph lies:
    src and dst, uint32[m], the edge's rows, the smaller first; truss, int32[m], 2 or more.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> src, dst, truss = algorithms.truss_numbers(graph.snapshot())
    >>> list(zip(src.tolist(), dst.tolist(), truss.tolist()))
    [(0, 1, 3), (0, 2, 3), (1, 2, 3), (2, 3, 2)]
    """

    row_fields = ("src", "dst")


@algorithm
def truss_numbers(
    s: Any, method: Annotated[str, Limits(choices=("auto", *METHODS))] = "auto"
) -> Truss:
    """The truss number of every edge.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.
    method: how edges are peeled. "incidence", "intersect", "affected" (the K-truss slides'), or
    "auto", which takes incidence if the memory allows it, and otherwise intersect.

    Returns a Truss, where s lies. Raises `lpma.BatchError` on any other method, and if s is not
    a graph, or has 2^31 edges or more.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> algorithms.truss_numbers(graph.snapshot()).truss
    array([3, 3, 3, 2], dtype=int32)
    """
    return _decompose(s, method, NO_LIMIT)


@algorithm
def k_truss(s: Any, k: Annotated[int, Limits(ge=2, most=NO_LIMIT - 1)]) -> Snapshot:
    """The k-truss, as an undirected Snapshot without weights and times.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.
    k: the least truss number. Every edge is in the 2-truss.

    The result holds the edges of truss number k and above, and its vertices are their ends. These
    keep their ids, so the result has as many rows as s; `present` is True for the vertices. `ids`,
    `version` and `time` are those of s, if that is a Snapshot. Peels no further than k. Raises
    `lpma.BatchError` on a k below 2, and as `truss_numbers` does.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> truss = algorithms.k_truss(graph.snapshot(), 3)
    >>> truss.num_edges, truss.present.tolist()
    (3, [True, True, True, False])
    """
    src, dst, truss = _decompose(s, "auto", k)
    n = simple(s).num_rows
    with device_of(src):
        xp = array_module(src)
        kept = truss >= k
        src, dst = src[kept], dst[kept]
        upper = xp.searchsorted(src, xp.arange(n + 1, dtype=np.uint32)).astype(np.int64)
        return as_snapshot(simple((upper, dst)), s)


def _decompose(s: Any, method: str, until: int) -> Truss:
    """Truss numbers below `until`, and `until` for the edges that are left then."""
    ranks = ranked(s)
    with device_of(ranks.indptr):
        edges, truss = by_device(ranks.indptr, __name__).decompose(ranks, method, until)
        return Truss(edges.src, edges.dst, truss).of(s)
