"""Components, BFS, PageRank, triangles and core numbers by other libraries, on one undirected
snapshot without loops.

Each works on its own form of the graph, made beforehand, with as many threads as ours.

scipy       csgraph on its CSR matrix
networkit   ParallelConnectedComponents; BFS; PageRank with the L1 norm; TriangleEdgeScore, which
            counts the triangles at every edge, edges numbered and sorted before
graphblas   SuiteSparse; BFS by masked products, its direction its own; PageRank as LAGraph's for
            the GAP benchmark does it, in float32; triangles by the product of the lower and the
            upper triangle, masked by the lower (LAGraph's Sandia_LUT), both taken in the timed part
igraph      its own; PageRank by PRPACK, which has no tolerance to choose; triangles are the
            numerator of transitivity_undirected
networkx    core numbers alone
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from lpma import Snapshot

from ..keys import Array

DAMPING, TOLERANCE, ROUNDS = 0.85, 1e-6, 100
NETWORKX_EDGES = 1 << 20  # beyond that it takes minutes

Run = Callable[[], Any]  # returns an array with a value per vertex, or a count
Runs = dict[str, Run]  # by algorithm: "components", "bfs", "pagerank"; or by library


def traversals(s: Snapshot, source: int, threads: int) -> dict[str, Runs]:
    """What each library that is installed can run."""
    made = {"scipy": of_scipy(s, source)}
    others = {
        "networkit": _networkit_traversals,
        "graphblas": _graphblas_traversals,
        "igraph": _igraph_traversals,
    }
    made |= {n: make(s, source, threads) for n, make in others.items() if find_spec(n)}
    return made


def triangles(s: Snapshot, threads: int) -> Runs:
    """A count by each library that is installed."""
    others = {
        "graphblas": _graphblas_triangles,
        "networkit": _networkit_triangles,
        "igraph": _igraph_triangles,
    }
    return {name: make(s, threads) for name, make in others.items() if find_spec(name)}


def core_numbers(s: Snapshot, threads: int) -> tuple[Runs, dict[str, float]]:
    """Core numbers by each library that is installed, and the seconds that each took to read the
    edges."""
    made: Runs = {}
    seconds: dict[str, float] = {}
    makers = {"networkit": _networkit_cores, "igraph": _igraph_cores, "networkx": _networkx_cores}
    for name, make in makers.items():
        if find_spec(name) and (name != "networkx" or s.num_edges < NETWORKX_EDGES):
            ends = upper_edges(s)
            start = time.perf_counter()
            made[name] = make(s.num_rows, *ends, threads)
            seconds[name] = time.perf_counter() - start
    return made, seconds


def entries(s: Snapshot) -> tuple[Array, Array]:
    """The ends of each entry of the rows: of an undirected edge both ways."""
    src = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    return src, s.indices.astype(np.int64)


def upper_edges(s: Snapshot) -> tuple[Array, Array]:
    """Each undirected edge once."""
    src, dst = entries(s)
    once = src <= dst
    return src[once], dst[once]


def upper_weights(s: Snapshot) -> Array:
    """float64: the weights of `upper_edges`."""
    src, dst = entries(s)
    assert s.weights is not None
    weights: Array = s.weights[src <= dst].astype(np.float64)
    return weights


def of_scipy(s: Snapshot, source: int) -> Runs:
    """SciPy's, with which the others' answers are compared too."""
    from scipy.sparse import csgraph

    matrix = s.to_scipy()
    return {
        "components": lambda: csgraph.connected_components(matrix, directed=False)[1],
        "bfs": lambda: csgraph.dijkstra(matrix, True, source, unweighted=True),
    }


# networkit --------------------------------------------------------------------------------------


def _networkit(n: int, src: Array, dst: Array, threads: int) -> Any:
    """The graph, its edges added as they would be to an existing graph."""
    import networkit as nk

    nk.setNumberOfThreads(threads)
    graph = nk.Graph(n)
    graph.addEdges((src.astype(np.uint64), dst.astype(np.uint64)))
    return graph


def _networkit_traversals(s: Snapshot, source: int, threads: int) -> Runs:
    import networkit as nk

    graph = _networkit(s.num_rows, *upper_edges(s), threads)

    def components() -> Any:
        found = nk.components.ParallelConnectedComponents(graph, False)
        found.run()
        return found.getPartition().getVector()

    def bfs() -> Any:
        found = nk.distance.BFS(graph, source, False)
        found.run()
        return found.getDistances()

    def pagerank() -> Any:
        found = networkit_pagerank(graph)
        found.run()
        return found.scores()

    return {"components": components, "bfs": bfs, "pagerank": pagerank}


def networkit_pagerank(graph: Any) -> Any:
    """PageRank as all libraries here are asked for it, not run yet."""
    import networkit as nk

    sinks = nk.centrality.SinkHandling.DistributeSinks
    found = nk.centrality.PageRank(graph, DAMPING, TOLERANCE, distributeSinks=sinks)
    found.norm = nk.centrality.Norm.l1norm
    found.maxIterations = ROUNDS
    return found


def _networkit_triangles(s: Snapshot, threads: int) -> Run:
    import networkit as nk

    graph = _networkit(s.num_rows, *upper_edges(s), threads)
    graph.indexEdges()
    graph.sortEdges()

    def count() -> int:
        found = nk.sparsification.TriangleEdgeScore(graph)
        found.run()
        return int(np.sum(found.scores())) // 3

    return count


def _networkit_cores(n: int, src: Array, dst: Array, threads: int) -> Run:
    import networkit as nk

    graph = _networkit(n, src, dst, threads)

    def run() -> Any:
        found = nk.centrality.CoreDecomposition(graph)
        found.run()
        return np.array(found.scores())

    return run


# graphblas --------------------------------------------------------------------------------------


def _graphblas_traversals(s: Snapshot, source: int, threads: int) -> Runs:
    import graphblas as gb
    from graphblas import Matrix, Vector, binary, semiring, unary

    gb.ss.config["nthreads"] = threads
    n, columns = s.num_rows, s.indices.astype(np.int64)
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


def _graphblas_triangles(s: Snapshot, threads: int) -> Run:
    import graphblas as gb
    from graphblas import Matrix, monoid, semiring

    gb.ss.config["nthreads"] = threads
    n = s.num_rows
    pattern = Matrix.from_csr(s.indptr, s.indices.astype(np.int64), True, ncols=n)

    def count() -> int:
        lower, upper = pattern.select("tril", -1).new(), pattern.select("triu", 1).new()
        common = Matrix(np.uint64, n, n)
        common(lower.S) << semiring.plus_pair(lower @ upper.T)
        return int(common.reduce_scalar(monoid.plus).new().value)

    return count


# igraph and networkx ----------------------------------------------------------------------------


def _igraph(n: int, src: Array, dst: Array) -> Any:
    import igraph

    return igraph.Graph(n=n, edges=np.column_stack((src, dst)))


def _igraph_traversals(s: Snapshot, source: int, threads: int) -> Runs:
    graph = _igraph(s.num_rows, *upper_edges(s))
    return {
        "components": lambda: graph.connected_components().membership,
        "bfs": lambda: graph.distances([source])[0],
        "pagerank": lambda: graph.pagerank(damping=DAMPING),
    }


def _igraph_triangles(s: Snapshot, threads: int) -> Run:
    graph = _igraph(s.num_rows, *upper_edges(s))
    degree = np.diff(s.indptr).astype(object)  # Python's integers: exact
    wedges = int((degree * (degree - 1) // 2).sum())
    return lambda: round(graph.transitivity_undirected(mode="zero") * wedges / 3)


def _igraph_cores(n: int, src: Array, dst: Array, threads: int) -> Run:
    graph = _igraph(n, src, dst)
    return lambda: np.array(graph.coreness())


def _networkx_cores(n: int, src: Array, dst: Array, threads: int) -> Run:
    import networkx as nx

    graph = nx.empty_graph(n)
    graph.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))

    def run() -> Any:
        cores = nx.core_number(graph)
        return np.array([cores[u] for u in range(n)])

    return run
