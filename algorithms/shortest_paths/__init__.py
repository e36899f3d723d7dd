"""Shortest paths: the least sum of weights on a path from one vertex to every other.

A path's length is the sum of its weights in float64, added one by one from the source on; a
vertex's distance is the least length of a path to it. Adding a weight ≥ 0 never makes a sum smaller
and keeps the order of two sums, rounding included. So distances do not depend on the order of the
search: they are the same in every run, and in any program that adds in this order, to the last bit.

cpu.py             Dijkstra's algorithm, and predecessors from distances
cuda.py, paths.cu  near and far piles on a CUDA device (Davidson et al., IPDPS 2014)

The least number of edges, whatever they weigh, is `bfs`.

Oracle: SciPy, NetworkX and Bellman and Ford's rounds, to the last bit
(tests/algorithms/test_shortest_paths.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lpma.arrays import array_module, device_of, to_host
from lpma.errors import BatchError
from lpma.snapshot.vertices import OfRows, go_by, vertices_of

from .. import arguments
from ..arrays import Array
from ..options import Vertex, algorithm
from ..views.cache import cached
from ..views.directed import entry_weights, rows
from ..views.simple import View
from . import cpu
from .cpu import Lengths

__all__ = ["PathTree", "shortest_path_tree", "shortest_paths"]


class _PathTree(NamedTuple):
    distance: Array
    predecessor: Array


class PathTree(OfRows, _PathTree):
    """Distances from a vertex, and a shortest path to each, by the vertex before the last: for each
    row distance, float64[n] (see `shortest_paths`), and predecessor, int32[n], a row, or −1 at the
    source and where no path leads.

    >>> graph = lpma.from_edges([0, 0, 1], [1, 2, 2], weight=[1.0, 5.0, 2.0], device="cpu")
    >>> algorithms.shortest_path_tree(graph.snapshot(), 0).predecessor
    array([-1,  0,  1], dtype=int32)
    """

    row_fields = ("predecessor",)
    is_by_row = True


@algorithm
def shortest_paths(s: Any, source: Vertex) -> Array:
    """The least sum of weights on a path from `source` to each vertex.

    s: a Snapshot with weights or a scipy or cupyx CSR matrix, read with its directions; a stored 0
    is an edge of no length.
    source: the vertex to start from. A row; in a Snapshot with names, a name.

    Returns float64[n], where s lies: 0 at the source itself, infinity where no path leads from it,
    or where the sum is beyond float64. Weights are added in float64 from the source on, which makes
    the result exact to the last bit: see the package. On the CPU computed by one thread.

    Raises `lpma.BatchError` if s is not a graph or has no weights, and if a weight anywhere in the
    graph is negative, infinite or not a number: the message names the edge. Raises
    `lpma.VertexError` if `source` is not one of its vertices (in a Snapshot, one of the rows that
    are `present`).

    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1, 3], [1, 2, 2, 0], weight=[1.0, 5.0, 2.0, 1.0])
    >>> algorithms.shortest_paths(graph.snapshot(), 0)
    array([ 0.,  1.,  3., inf])
    """
    view = rows(s)
    with device_of(view.indptr):
        return _distances(view, *_asked(s, view, source))


@algorithm
def shortest_path_tree(s: Any, source: Vertex) -> PathTree:
    """Distances as `shortest_paths` has them, and the vertex before each on a shortest path: of
    several shortest paths one with the fewest edges, and of these the one whose last vertex but one
    has the smallest id. Follow predecessors back to the source.

    Takes, returns where, and raises what `shortest_paths` does.

    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1, 3], [1, 2, 2, 0], weight=[1.0, 5.0, 2.0, 1.0])
    >>> distance, before = algorithms.shortest_path_tree(graph.snapshot(), 0)
    >>> path = [2]
    >>> while path[-1] != 0:
    ...     path.append(int(before[path[-1]]))
    >>> path[::-1]
    [0, 1, 2]
    """
    view = rows(s)
    with device_of(view.indptr):
        lengths, start = _asked(s, view, source)
        distance = _distances(view, lengths, start)
        if view.on_device:
            from . import cuda

            before = cuda.predecessors(view, lengths, start, distance)
        else:
            before = cpu.predecessors(view.indptr, view.indices, lengths.weights, start, distance)
        return PathTree(distance, before).of(s)


def _distances(view: View, lengths: Lengths, start: int) -> Array:
    if view.on_device:
        from . import cuda

        return cuda.distances(view, lengths, start)
    found: Array = cpu.distances(view.indptr, view.indices, lengths.weights, start)
    return found


def _asked(s: Any, view: View, source: Any) -> tuple[Lengths, int]:
    """The checked weights, and the row to start from."""
    lengths = cached(s, "lengths", lambda: _lengths(s, view))
    return lengths, arguments.vertex(s, view.num_rows, source, "source")


def _lengths(s: Any, view: View) -> Lengths:
    """The weights of a graph, where it lies. Raises BatchError unless they can be lengths."""
    weights = entry_weights(s)
    if weights is None:
        raise BatchError("this graph has no weights: give one that has; `bfs` counts edges")
    if weights.dtype.kind not in "iufb":
        raise BatchError(f"weights are real numbers, not {weights.dtype}")
    kind = weights.dtype if weights.dtype in (np.float32, np.float64) else np.float64
    weights = array_module(weights).ascontiguousarray(weights, kind)
    if view.on_device:
        from . import cuda

        wrong, mean = cuda.measure(weights)
    else:
        wrong, mean = cpu.first_refused(weights), np.nan
    if wrong >= 0:
        u = int(np.searchsorted(to_host(view.indptr), wrong, side="right")) - 1
        edge = vertices_of(go_by(s), [u, int(view.indices[wrong])]).tolist()
        raise BatchError(
            f"the edge {edge[0]!r} → {edge[1]!r} weighs {weights[wrong]}: paths need weights that "
            "are finite and not negative"
        )
    return Lengths(weights, mean)
