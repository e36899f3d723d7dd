"""Components, BFS and PageRank by other libraries, on the graph of one snapshot.

Each works on its own form of the graph, made beforehand, with as many threads as ours.

    scipy      csgraph on its CSR matrix
    networkit  ParallelConnectedComponents, BFS, PageRank with the L1 norm
    graphblas  SuiteSparse; BFS by masked products, its direction its own; PageRank as LAGraph's
               for the GAP benchmark does it, in float32
    igraph     its own; PageRank by PRPACK, which has no tolerance to choose
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from lpma import Snapshot

from .keys import Array

DAMPING, TOLERANCE, ROUNDS = 0.85, 1e-6, 100

Run = Callable[[], Any]  # an array a vertex
Runs = dict[str, Run]  # by algorithm: "components", "bfs", "pagerank"


def by_library(s: Snapshot, source: int, threads: int) -> dict[str, Runs]:
    """What each library that is installed can run on an undirected snapshot."""
    made = {"scipy": of_scipy(s, source)}
    others = {"networkit": _networkit, "graphblas": _graphblas, "igraph": _igraph}
    made |= {n: make(s, source, threads) for n, make in others.items() if find_spec(n)}
    return made


def upper_edges(s: Snapshot) -> tuple[Array, Array]:
    """Each undirected edge once."""
    src = np.repeat(np.arange(s.num_vertices), np.diff(s.indptr))
    once = src <= s.indices
    return src[once], s.indices[once].astype(np.int64)


def of_scipy(s: Snapshot, source: int) -> Runs:
    """SciPy's, which are the standard too."""
    from scipy.sparse import csgraph

    matrix = s.to_scipy()
    return {
        "components": lambda: csgraph.connected_components(matrix, directed=False)[1],
        "bfs": lambda: csgraph.dijkstra(matrix, True, source, unweighted=True),
    }


def _networkit(s: Snapshot, source: int, threads: int) -> Runs:
    import networkit as nk

    nk.setNumberOfThreads(threads)
    ends = tuple(end.astype(np.uint64) for end in upper_edges(s))
    graph = nk.GraphFromCoo(ends, n=s.num_vertices, directed=False)

    def components() -> Any:
        found = nk.components.ParallelConnectedComponents(graph, False)
        found.run()
        return found.getPartition().getVector()

    def bfs() -> Any:
        found = nk.distance.BFS(graph, source, False)
        found.run()
        return found.getDistances()

    def pagerank() -> Any:
        found = nk.centrality.PageRank(
            graph, DAMPING, TOLERANCE, distributeSinks=nk.centrality.SinkHandling.DistributeSinks
        )
        found.norm = nk.centrality.Norm.l1norm
        found.maxIterations = ROUNDS
        found.run()
        return found.scores()

    return {"components": components, "bfs": bfs, "pagerank": pagerank}


def _graphblas(s: Snapshot, source: int, threads: int) -> Runs:
    import graphblas as gb
    from graphblas import Matrix, Vector, binary, semiring, unary

    gb.ss.config["nthreads"] = threads
    n, columns = s.num_vertices, s.indices.astype(np.int64)
    pattern = Matrix.from_csr(s.indptr, columns, True, ncols=n)
    ones = Matrix.from_csr(s.indptr, columns, np.float32(1), ncols=n)
    degree = np.diff(s.indptr)
    divisor = Vector.from_dense(np.where(degree == 0, 1, degree / DAMPING).astype(np.float32))

    def bfs() -> Array:
        levels, frontier = Vector(np.int32, n), Vector(bool, n)
        frontier[source], level = True, 0
        while frontier.nvals:
            levels(frontier.S)[:] = level
            reached = Vector(bool, n)
            reached(~levels.S, replace=True) << frontier.vxm(pattern, semiring.any_pair)
            frontier, level = reached, level + 1
        return levels.to_dense(fill_value=-1)

    def pagerank() -> Array:
        ranks = Vector.from_dense(np.full(n, 1 / n, np.float32))
        for _ in range(ROUNDS):
            before = ranks
            dangling = float(before.to_dense()[degree == 0].sum())
            base = (1 - DAMPING + DAMPING * dangling) / n
            ranks = Vector.from_dense(np.full(n, base, np.float32))
            shares = before.ewise_mult(divisor, binary.truediv).new()
            ranks(binary.plus) << ones.mxv(shares, semiring.plus_second)
            change = before.ewise_add(ranks, binary.minus).new().apply(unary.abs).reduce().new()
            if change.value < TOLERANCE:
                break
        return ranks.to_dense()

    return {"bfs": bfs, "pagerank": pagerank}


def _igraph(s: Snapshot, source: int, threads: int) -> Runs:
    import igraph

    graph = igraph.Graph(n=s.num_vertices, edges=np.column_stack(upper_edges(s)))
    return {
        "components": lambda: graph.connected_components().membership,
        "bfs": lambda: graph.distances([source])[0],
        "pagerank": lambda: graph.pagerank(damping=DAMPING),
    }
