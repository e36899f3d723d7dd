"""Clustering: how many of the pairs of a vertex's neighbours are neighbours themselves.

Source: Watts and Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998, for
coefficients of vertices; Newman, Watts and Strogatz, "Random graph models of social networks", PNAS
99, 2002, for the transitivity of a graph.

The coefficient of a vertex with d neighbours and t triangles is 2t / d(d − 1). Triangles and
degrees are counted (`algorithms.triangles`) and divided on the graph's device; coefficients are
summed on the host, so that both devices give the same mean.

Oracle: NetworkX, to the last bit, and trying all pairs (tests/algorithms/test_clustering.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of, to_host

from ..arrays import Array
from ..options import algorithm
from ..triangles import triangle_count, triangles
from ..views.directed import present
from ..views.simple import simple


@algorithm
def clustering_coefficients(s: Any) -> Array:
    """The share of the pairs of each vertex's neighbours that are joined: 0 with fewer than two
    neighbours, and for a row that is not a vertex.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.

    Returns float64[n], where s lies. Raises `lpma.BatchError` if s is not a graph, or has 2^31
    edges or more.

    >>> graph = lpma.from_edges([0, 0, 1, 0], [1, 2, 2, 3], device="cpu")
    >>> algorithms.clustering_coefficients(graph.snapshot()).round(3)
    array([0.333, 1.   , 1.   , 0.   ])
    """
    return _shares(_pairs(s), triangles(s))


@algorithm
def average_clustering(s: Any) -> float:
    """The mean of the vertices' clustering coefficients: 0 without a vertex. For s and errors see
    `clustering_coefficients`.

    >>> graph = lpma.from_edges([0, 0, 1], [1, 2, 2], device="cpu")
    >>> algorithms.average_clustering(graph.snapshot())
    1.0
    """
    return mean_of_vertices(s, to_host(clustering_coefficients(s)))


def mean_of_vertices(s: Any, coefficients: Array) -> float:
    """The mean of `coefficients`, float64[n] on the host and 0 for a row that is not a vertex, over
    the vertices of s."""
    vertices = present(s)
    count = len(coefficients) if vertices is None else int(np.count_nonzero(to_host(vertices)))
    return float(coefficients.sum()) / max(count, 1)


@algorithm
def transitivity(s: Any) -> float:
    """The share of the paths of two edges whose ends are joined: three times the triangles, over
    the pairs of edges that meet; 0 if none do. For s and errors see `clustering_coefficients`.

    >>> graph = lpma.from_edges([0, 0, 1, 0], [1, 2, 2, 3], device="cpu")
    >>> algorithms.transitivity(graph.snapshot())
    0.6
    """
    paths = int(to_host(_pairs(s)).sum())
    return 3 * triangle_count(s) / max(paths, 1)


def clustering_and_transitivity(s: Any) -> tuple[Array, float]:
    """`clustering_coefficients` and `transitivity` from one listing of the triangles, each of which
    is counted at three vertices."""
    pairs, closed = _pairs(s), triangles(s)
    with device_of(pairs):
        paths, triples = int(pairs.sum()), int(closed.sum())
    return _shares(pairs, closed), triples / max(paths, 1)


def _shares(pairs: Array, closed: Array) -> Array:
    """float64[n]: what share of the pairs is closed; 0 if there are none."""
    with device_of(pairs):
        xp = array_module(pairs)
        found: Array = closed.astype(np.float64) / xp.maximum(pairs, 1).astype(np.float64)
        return found


def _pairs(s: Any) -> Array:
    """int64[n]: the pairs of each vertex's neighbours."""
    view = simple(s)
    with device_of(view.indptr):
        degrees = view.indptr[1:] - view.indptr[:-1]
        return degrees * (degrees - 1) // 2
