"""The same algorithms by other libraries, each on its own form of a graph, made beforehand.

A method for each algorithm gives (run, read): `run` is the algorithm alone, which is timed, and
`read` makes an array or a number of what it returned. All have as many threads as ours.

networkit   CoreDecomposition; TriangleEdgeScore, edges numbered and sorted before;
            ConnectedComponents, which is faster than the parallel one on two cores; BFS without
            paths; PageRank with the L1 norm
graphblas   SuiteSparse; BFS by masked products; PageRank as LAGraph's for the GAP benchmark does
            it, in float32; triangles by the product of the lower and the upper triangle, masked by
            the lower (LAGraph's Sandia_LUT), both taken in the timed part; k-truss as LAGraph's, by
            masked products until no edge goes
igraph      coreness; transitivity_undirected, whose numerator triangles are; connected_components,
            with a vertex more, since a graph once found connected is known to be from then on;
            distances; PageRank by PRPACK, which has no tolerance to choose
scipy       csgraph: connected_components; breadth_first_order, whose answer is the tree. Its matrix
            is of doubles, which it would otherwise make first
networkx    core numbers and k-truss
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np

from lpma import Snapshot
from lpma.cpu.threads import THREADS

from ..keys import Array

DAMPING, TOLERANCE, ROUNDS = 0.85, 1e-6, 100
K = 10  # of a k-truss

Run = Callable[[], Any]
Runs = dict[str, Run]  # by algorithm
Pair = tuple[Run, Callable[[Any], Any]]  # run, read
Pairs = dict[str, Pair]  # by library


def pairs(algorithm: str, s: Snapshot, names: Iterable[str], source: int = 0) -> Pairs:
    """What those of the named libraries that are installed, and have the algorithm, run on s. BFS
    and PageRank follow its directions; for the others, REQUIRES an undirected snapshot without
    loops."""
    given = (source,) if algorithm == "bfs" else ()
    graphs = {name: LIBRARIES[name](s) for name in names if find_spec(name)}
    able = {name: graph for name, graph in graphs.items() if hasattr(graph, algorithm)}
    return {name: getattr(graph, algorithm)(*given) for name, graph in able.items()}


def runs_of(others: Pairs) -> Runs:
    return {name: run for name, (run, _) in others.items()}


def read(others: Pairs, check: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    """A check of (name, answer) that is given what the libraries' answers are read as."""
    return lambda name, answer: check(name, others[name][1](answer) if name in others else answer)


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


def _ends(s: Snapshot) -> tuple[Array, Array]:
    """Each edge once."""
    return entries(s) if s.directed else upper_edges(s)


class Networkit:
    def __init__(self, s: Snapshot) -> None:
        self.graph = self.read(s.num_rows, *_ends(s), directed=s.directed)

    @staticmethod
    def read(n: int, src: Array, dst: Array, directed: bool = False) -> Any:
        """The graph of these edges, added as they would be to an existing graph."""
        import networkit as nk

        nk.setNumberOfThreads(THREADS)
        graph = nk.Graph(n, directed=directed)
        graph.addEdges((src.astype(np.uint64), dst.astype(np.uint64)))
        return graph

    def core(self) -> Pair:
        import networkit as nk

        return _ran(lambda: nk.centrality.CoreDecomposition(self.graph)), lambda a: a.scores()

    def triangles(self) -> Pair:
        import networkit as nk

        self.graph.indexEdges()
        self.graph.sortEdges()
        run = _ran(lambda: nk.sparsification.TriangleEdgeScore(self.graph))
        return run, lambda a: int(np.sum(a.scores())) // 3

    def components(self) -> Pair:
        import networkit as nk

        run = _ran(lambda: nk.components.ConnectedComponents(self.graph))
        return run, lambda a: a.getPartition().getVector()

    def bfs(self, source: int) -> Pair:
        import networkit as nk

        run = _ran(lambda: nk.distance.BFS(self.graph, source, False))
        return run, lambda a: a.getDistances()

    def pagerank(self) -> Pair:
        import networkit as nk

        def make() -> Any:
            sinks = nk.centrality.SinkHandling.DistributeSinks
            found = nk.centrality.PageRank(self.graph, DAMPING, TOLERANCE, distributeSinks=sinks)
            found.norm = nk.centrality.Norm.l1norm
            found.maxIterations = ROUNDS
            return found

        return _ran(make), lambda a: a.scores()


def _ran(make: Run) -> Run:
    def run() -> Any:
        found = make()
        found.run()
        return found

    return run


class GraphBLAS:
    def __init__(self, s: Snapshot) -> None:
        import graphblas as gb

        gb.ss.config["nthreads"] = THREADS
        self.n, self.degree = s.num_rows, np.diff(s.indptr)
        columns = s.indices.astype(np.int64)
        self.pattern = gb.Matrix.from_csr(s.indptr, columns, True, ncols=self.n)

    def bfs(self, source: int) -> Pair:
        from graphblas import Vector, semiring

        n = self.n

        def run() -> Any:
            levels, frontier = Vector(np.int32, n), Vector(bool, n)
            frontier[source], level = True, 0
            while frontier.nvals:
                levels(frontier.S)[:] = level
                reached = Vector(bool, n)
                reached(~levels.S, replace=True) << frontier.vxm(self.pattern, semiring.any_pair)
                frontier, level = reached, level + 1
            return levels

        return run, lambda levels: levels.to_dense(fill_value=-1)

    def pagerank(self) -> Pair:
        from graphblas import Vector, binary, semiring, unary

        n, degree = self.n, self.degree
        incoming = self.pattern.T.new(dtype=np.float32)
        divisor = Vector.from_dense(np.where(degree == 0, 1, degree / DAMPING).astype(np.float32))

        def run() -> Any:
            ranks = Vector.from_dense(np.full(n, 1 / n, np.float32))
            for _ in range(ROUNDS):
                before = ranks
                dangling = float(before.to_dense()[degree == 0].sum())
                base = (1 - DAMPING + DAMPING * dangling) / n
                ranks = Vector.from_dense(np.full(n, base, np.float32))
                shares = before.ewise_mult(divisor, binary.truediv).new()
                ranks(binary.plus) << incoming.mxv(shares, semiring.plus_second)
                change = before.ewise_add(ranks, binary.minus).new().apply(unary.abs).reduce().new()
                if change.value < TOLERANCE:
                    break
            return ranks

        return run, lambda ranks: ranks.to_dense()

    def triangles(self) -> Pair:
        from graphblas import Matrix, monoid, semiring

        def run() -> int:
            lower = self.pattern.select("tril", -1).new()
            upper = self.pattern.select("triu", 1).new()
            common = Matrix(np.uint64, self.n, self.n)
            common(lower.S) << semiring.plus_pair(lower @ upper.T)
            return int(common.reduce_scalar(monoid.plus).new().value)

        return run, int

    def k_truss(self) -> Pair:
        from graphblas import Matrix, semiring

        def run() -> Any:
            left, edges = self.pattern, -1
            while left.nvals != edges:
                edges = left.nvals
                support = Matrix(np.uint32, self.n, self.n)
                support(left.S) << semiring.plus_pair(left @ left.T)
                left = support.select(">=", K - 2).new()
            return left

        return run, lambda left: left.nvals // 2


class Igraph:
    def __init__(self, s: Snapshot) -> None:
        self.n, self.degree = s.num_rows, np.diff(s.indptr)
        self.graph = self.read(s.num_rows, *_ends(s), directed=s.directed)

    @staticmethod
    def read(n: int, src: Array, dst: Array, directed: bool = False) -> Any:
        import igraph

        return igraph.Graph(n=n, edges=np.column_stack((src, dst)), directed=directed)

    def core(self) -> Pair:
        return self.graph.coreness, np.asarray

    def triangles(self) -> Pair:
        degree = self.degree.astype(object)  # Python's integers: exact
        wedges = int((degree * (degree - 1) // 2).sum())
        run = self.graph.transitivity_undirected
        return lambda: run(mode="zero"), lambda share: round(share * wedges / 3)

    def components(self) -> Pair:
        graph = self.graph.copy()
        graph.add_vertices(1)
        return graph.connected_components, lambda found: found.membership[: self.n]

    def bfs(self, source: int) -> Pair:
        return lambda: self.graph.distances([source]), lambda found: found[0]

    def pagerank(self) -> Pair:
        return lambda: self.graph.pagerank(damping=DAMPING), np.asarray


class SciPy:
    def __init__(self, s: Snapshot) -> None:
        self.matrix = s.to_scipy().astype(np.float64)

    def components(self) -> Pair:
        from scipy.sparse import csgraph

        run = csgraph.connected_components
        return lambda: run(self.matrix, directed=False), lambda found: found[1]

    def bfs(self, source: int) -> Pair:
        from scipy.sparse import csgraph

        run = csgraph.breadth_first_order
        return lambda: run(self.matrix, source), lambda found: _hops(*found)


def _hops(order: Array, parent: Array) -> Array:
    """int32[n]: the depth in a breadth-first tree; −1 outside it."""
    hops = np.full(len(parent), -1, np.int32)
    hops[order[0]] = 0
    for v in order[1:]:
        hops[v] = hops[parent[v]] + 1
    return hops


class NetworkX:
    def __init__(self, s: Snapshot) -> None:
        self.graph = self.read(s.num_rows, *upper_edges(s))

    @staticmethod
    def read(n: int, src: Array, dst: Array) -> Any:
        import networkx as nx

        graph = nx.empty_graph(n)
        graph.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))
        return graph

    def core(self) -> Pair:
        import networkx as nx

        run = lambda: nx.core_number(self.graph, backend="networkx")  # noqa: E731
        return run, lambda found: [found[u] for u in range(len(self.graph))]

    def k_truss(self) -> Pair:
        import networkx as nx

        run = lambda: nx.k_truss(self.graph, K, backend="networkx")  # noqa: E731
        return run, lambda found: found.number_of_edges()


LIBRARIES: dict[str, Any] = {
    "networkit": Networkit, "graphblas": GraphBLAS, "igraph": Igraph, "scipy": SciPy,
    "networkx": NetworkX,
}  # fmt: skip
