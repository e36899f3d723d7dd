"""Similar vertices: how many neighbours two have in common, for predicting and judging links.

Source: Jaccard, "The distribution of the flora in the alpine zone", New Phytologist 11, 1912, for
sets in general; Liben-Nowell and Kleinberg, "The link-prediction problem for social networks",
JASIST 58, 2007, for neighbours in graphs.

cpu.py                  intersections of the rows of pairs, and of one vertex's with all others'
cuda.py, similarity.cu  the same on a CUDA device

The graph is read as a simple undirected one. Both devices give the same bits.

Oracle: NetworkX and sets (tests/algorithms/test_similarity.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lpma.arrays import array_module, device_of
from lpma.errors import BatchError
from lpma.snapshot.vertices import OfRows

from .. import arguments
from ..arrays import Array, by_device
from ..options import Vertex, algorithm
from ..views.simple import View, simple

__all__ = ["Similar", "common_neighbors", "jaccard", "similar"]

Vertices = Any  # integers, or in a Snapshot with names, names: an array or a list


class _Similar(NamedTuple):
    vertex: Array
    jaccard: Array


class Similar(OfRows, _Similar):
    """Vertices by their similarity to one, the most similar first (see `similar`): vertex, uint32,
    their rows; jaccard, float64, above 0.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 3, 3], device="cpu")
    >>> algorithms.similar(graph.snapshot(), 0, 5)
    Similar(vertex=array([3], dtype=uint32), jaccard=array([1.]))

    A graph with names has these beside its rows:

    >>> graph = lpma.from_edges(["ann", "bob"], ["bob", "cem"], device="cpu")
    >>> algorithms.similar(graph, "ann", 5).vertices.vertex.tolist()
    ['cem']
    """

    row_fields = ("vertex",)


@algorithm
def common_neighbors(s: Any, u: Vertices, v: Vertices) -> Array:
    """How many neighbours u[i] and v[i] have in common, for each pair.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.
    u, v: the pairs: arrays or lists of one length, of rows, or in a Snapshot with names, of names.
    Rows in CuPy arrays stay where they are, if the graph lies there too.

    Returns int64[len(u)], where s lies. A vertex is no neighbour of itself; beside itself it has
    all of its neighbours in common. Raises `lpma.BatchError` if s is not a graph, or if u and v
    differ in length, and `lpma.VertexError` if one of them is not a vertex (in a Snapshot, a row
    that is `present`).

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 3, 3], device="cpu")
    >>> algorithms.common_neighbors(graph.snapshot(), [0, 0], [3, 1])
    array([2, 0])
    """
    return _of_pairs(s, u, v)[0]


@algorithm
def jaccard(s: Any, u: Vertices, v: Vertices) -> Array:
    """The number of common neighbours of u[i] and v[i], over the number of vertices that are
    neighbours of either, for each pair: 0 if neither has any.

    Returns float64[len(u)], where s lies. For s, u, v and errors see `common_neighbors`.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 3, 4], device="cpu")
    >>> algorithms.jaccard(graph.snapshot(), [0, 0], [3, 1])
    array([0.5, 0. ])
    """
    count, either = _of_pairs(s, u, v)
    with device_of(count):
        shares: Array = count / array_module(count).maximum(either, 1)
        return shares


@algorithm
def similar(s: Any, vertex: Vertex, k: int, unlinked: bool = False) -> Similar:
    """The k vertices whose neighbours are most like those of one vertex, by `jaccard`; all if fewer
    have a neighbour in common with it.

    s: as for `common_neighbors`.
    vertex: the vertex to compare with. A row; in a Snapshot with names, a name.
    k: how many vertices at most.
    unlinked: leave out the vertex's own neighbours. What remains are candidates for a new link.

    Exact: every vertex that shares a neighbour is scored, in one pass over the rows of the
    neighbours. Of equal ones those with smaller ids come first. Returns arrays where s lies. Raises
    `lpma.BatchError` if s is not a graph or k is not a number from 0 on, and `lpma.VertexError` if
    `vertex` is not one of its vertices.

    >>> graph = lpma.from_edges([0, 0, 1, 2, 1], [1, 2, 2, 3, 4], device="cpu")
    >>> algorithms.similar(graph.snapshot(), 0, 2).vertex
    array([3, 4], dtype=uint32)
    """
    view = simple(s)
    row = arguments.vertex(s, view.num_rows, vertex, "vertex")
    with device_of(view.indptr):
        return _most_similar(view, row, k, unlinked).of(s)


def _of_pairs(s: Any, u: Vertices, v: Vertices) -> tuple[Array, Array]:
    """int64 each: each pair's number of common neighbours, and of neighbours of either."""
    view = simple(s)
    left = arguments.vertices_beside(view.indptr, s, u, "u")
    right = arguments.vertices_beside(view.indptr, s, v, "v")
    if len(left) != len(right):
        raise BatchError(f"u, v: {len(left)} vertices and {len(right)}: give pairs")
    with device_of(view.indptr):
        count, _, either = of_pairs(view, left, right)
    return count, either


def of_pairs(
    view: View, left: Array, right: Array, values: Array | None = None
) -> tuple[Array, Array, Array]:
    """For pairs of rows, int64 each, on the view's device: int64, the number of common neighbours;
    float64, the sum of their `values`, float64[n], or 0 without; and int64, how many are neighbours
    of either."""
    found: tuple[Array, Array, Array] = by_device(view.indptr, __name__).of_pairs(
        view, left, right, values
    )
    return found


def _most_similar(view: View, row: int, k: int, unlinked: bool) -> Similar:
    """As `similar`, of a row of the simple view."""
    xp = array_module(view.indptr)
    counts = by_device(view.indptr, __name__).with_all(view, row)
    if unlinked:
        counts[view.indices[view.indptr[row] : view.indptr[row + 1]]] = 0
    others = xp.flatnonzero(counts)
    degrees = view.indptr[1:] - view.indptr[:-1]
    score = counts[others] / (degrees[row] + degrees[others] - counts[others])
    if xp is np and k < len(score):  # sort only those that may be among the best
        least = np.partition(score, len(score) - k)[len(score) - k] if k else np.inf
        others, score = others[score >= least], score[score >= least]
    best = xp.argsort(-score, kind="stable")[:k]
    return Similar(others[best].astype(np.uint32), score[best])
