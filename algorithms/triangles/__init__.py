"""Triangles: how many triples of vertices are joined pairwise: in all, at a vertex, or at an edge.

Sources: Schank and Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005;
paper, section VII-D, which counts triangles over the store's sorted rows. Every triangle is found
once, in the ranked view of the graph:

ranked.py         the ranked view: rows of neighbours of higher degree; `EdgeList`, `Listed`
cpu.py            the ranked view on the CPU, and the loop that lists triangles
cuda.py, rank.cu  the ranked view on a CUDA device
list.cu           the kernels that list triangles

A triangle at a vertex is a triangle at two of the vertex's edges, so counts by vertex are half the
sums of supports.

Oracle: NetworkX, igraph, sparse products and known counts (tests/algorithms/test_triangles.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lpma.arrays import array_module, device_of, row_numbers
from lpma.snapshot.vertices import OfRows

from ..arrays import Array
from ..options import algorithm
from ..views.given import Distributed
from .ranked import Listed as Listed
from .ranked import lister, ranked


class _Support(NamedTuple):
    src: Array
    dst: Array
    support: Array


class Support(OfRows, _Support):
    """Every edge of the simple undirected graph once, sorted by (src, dst), where the graph lies:
    src and dst, uint32[m], the edge's rows, the smaller first; support, int32[m], how many
    triangles it is in.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> found = algorithms.edge_support(graph.snapshot())
    >>> list(zip(found.src.tolist(), found.dst.tolist(), found.support.tolist()))
    [(0, 1, 1), (0, 2, 1), (1, 2, 1), (2, 3, 0)]
    """

    row_fields = ("src", "dst")


@algorithm
def triangle_count(s: Any) -> int:
    """The number of triangles, each counted once.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a
    simple undirected graph. Raises `lpma.BatchError` if s is not a graph, or has 2^31 edges or
    more.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> algorithms.triangle_count(graph.snapshot())
    1
    """
    if isinstance(s, Distributed):
        return s.dispatch("triangle_count")
    ranks = ranked(s)
    with device_of(ranks.indptr):
        return int(lister(ranks.view).count(ranks))


@algorithm
def triangles(s: Any) -> Array:
    """The number of triangles each vertex is in: int64[n], where s lies. For s and errors see
    `triangle_count`.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> algorithms.triangles(graph.snapshot())
    array([1, 1, 1, 0])
    """
    return at_vertices(listed(s))


@algorithm
def edge_support(s: Any) -> Support:
    """The number of triangles each edge is in, where s lies. For s and errors see `triangle_count`.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> algorithms.edge_support(graph.snapshot()).support
    array([1, 1, 1, 0], dtype=int32)
    """
    ranks, support = listed(s)
    with device_of(ranks.indptr):
        edges = lister(ranks.view).edge_list(ranks)
        return Support(edges.src, edges.dst, support[edges.slot]).of(s)


def listed(s: Any) -> Listed:
    """List a graph's triangles where it lies. For s and errors see `triangle_count`; a Listed is
    returned as it is."""
    if isinstance(s, Listed):
        return s
    ranks = ranked(s)
    with device_of(ranks.indptr):
        return Listed(ranks, lister(ranks.view).support(ranks))


def at_vertices(found: Listed) -> Array:
    """int64[n]: how many of the listed triangles each vertex is in."""
    ranks = found.ranks
    with device_of(ranks.indptr):
        xp = array_module(ranks.indptr)
        n, m = ranks.view.num_rows, ranks.num_edges
        by_vertex = xp.zeros(n, np.int64)
        if m == 0:
            return by_vertex
        support = found.support.astype(np.float64)  # sums of floats, but exact: below 2^53
        ends = (row_numbers(ranks.indptr, m), ranks.indices)
        sums = [xp.bincount(end, weights=support, minlength=n) for end in ends]
        by_vertex[ranks.order] = (sums[0] + sums[1]).astype(np.int64) // 2
        return by_vertex
