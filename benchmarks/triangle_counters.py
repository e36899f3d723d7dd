"""Triangles counted by other libraries, on the graph of one undirected snapshot without loops.

Each counts on its own form of the graph, made beforehand, with as many threads as ours.

    graphblas  SuiteSparse: the product of the lower and the upper triangle, masked by the lower
               (LAGraph's Sandia_LUT); the triangles of the matrix are taken in the timed part
    networkit  TriangleEdgeScore: the triangles at every edge; edges are numbered and sorted before
    igraph     transitivity_undirected, whose numerator they are
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from lpma import Snapshot

from .traversals import upper_edges

Count = Callable[[], int]


def by_library(s: Snapshot, threads: int) -> dict[str, Count]:
    """A count by each library that is installed."""
    others = {"graphblas": _graphblas, "networkit": _networkit, "igraph": _igraph}
    return {name: make(s, threads) for name, make in others.items() if find_spec(name)}


def _graphblas(s: Snapshot, threads: int) -> Count:
    import graphblas as gb
    from graphblas import Matrix, monoid, semiring

    gb.ss.config["nthreads"] = threads
    n = s.num_vertices
    pattern = Matrix.from_csr(s.indptr, s.indices.astype(np.int64), True, ncols=n)

    def count() -> int:
        lower, upper = pattern.select("tril", -1).new(), pattern.select("triu", 1).new()
        common = Matrix(np.uint64, n, n)
        common(lower.S) << semiring.plus_pair(lower @ upper.T)
        return int(common.reduce_scalar(monoid.plus).new().value)

    return count


def _networkit(s: Snapshot, threads: int) -> Count:
    import networkit as nk

    nk.setNumberOfThreads(threads)
    ends = tuple(end.astype(np.uint64) for end in upper_edges(s))
    graph = nk.GraphFromCoo(ends, n=s.num_vertices, directed=False)
    graph.indexEdges()
    graph.sortEdges()

    def count() -> int:
        found = nk.sparsification.TriangleEdgeScore(graph)
        found.run()
        return int(np.sum(found.scores())) // 3

    return count


def _igraph(s: Snapshot, threads: int) -> Count:
    import igraph

    graph = igraph.Graph(n=s.num_vertices, edges=np.column_stack(upper_edges(s)))
    degree = np.diff(s.indptr).astype(object)  # Python's integers: exact
    wedges = int((degree * (degree - 1) // 2).sum())

    def count() -> Any:
        return round(graph.transitivity_undirected(mode="zero") * wedges / 3)

    return count
