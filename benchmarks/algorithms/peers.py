"""The algorithms of other libraries, each as (run, read): `run` is the algorithm alone, and `read`
makes an array of what it returned. See live.py.

networkit   CoreDecomposition; TriangleEdgeScore; ConnectedComponents, which is faster than the
            parallel one on two cores; BFS without paths; PageRank with the L1 norm
igraph      coreness; transitivity_undirected, whose numerator triangles are; connected_components,
            with a vertex more, since a graph once found connected is known to be from then on;
            distances; PageRank by PRPACK, which has no tolerance to choose
scipy       csgraph: connected_components; breadth_first_order, whose answer is the tree. Its matrix
            is of doubles, which it would otherwise make first
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from lpma import Snapshot

from ..keys import Array
from .libraries import DAMPING, entries, networkit_pagerank, upper_edges

Pair = tuple[Callable[[], Any], Callable[[Any], Any]]  # run, read
Peers = dict[str, Pair]  # by library


def peers(algorithm: str, s: Snapshot, source: int, threads: int) -> Peers:
    """What the libraries that are installed run on s. BFS and PageRank follow its directions; for
    the others, REQUIRES an undirected snapshot without loops."""
    makers = {"networkit": _networkit, "igraph": _igraph, "scipy": _scipy}
    made = {name: make(algorithm, s, source, threads) for name, make in makers.items()
            if find_spec(name)}  # fmt: skip
    return {name: pair for name, pair in made.items() if pair is not None}


def _ends(s: Snapshot) -> tuple[Array, Array]:
    """Each edge once."""
    return entries(s) if s.directed else upper_edges(s)


def _networkit(algorithm: str, s: Snapshot, source: int, threads: int) -> Pair | None:
    import networkit as nk

    nk.setNumberOfThreads(threads)
    graph = nk.Graph(s.num_rows, directed=s.directed)
    src, dst = _ends(s)
    graph.addEdges((src.astype(np.uint64), dst.astype(np.uint64)))
    graph.indexEdges()
    graph.sortEdges()
    made: dict[str, Pair] = {
        "core": (lambda: nk.centrality.CoreDecomposition(graph), lambda a: a.scores()),
        "triangles": (
            lambda: nk.sparsification.TriangleEdgeScore(graph),
            lambda a: int(np.sum(a.scores())) // 3,
        ),
        "components": (
            lambda: nk.components.ConnectedComponents(graph),
            lambda a: a.getPartition().getVector(),
        ),
        "bfs": (lambda: nk.distance.BFS(graph, source, False), lambda a: a.getDistances()),
        "pagerank": (lambda: networkit_pagerank(graph), lambda a: a.scores()),
    }
    make, read = made[algorithm]

    def run() -> Any:
        found = make()
        found.run()
        return found

    return run, read


def _igraph(algorithm: str, s: Snapshot, source: int, threads: int) -> Pair | None:
    import igraph

    ends = np.column_stack(_ends(s))
    n = s.num_rows
    graph = igraph.Graph(n=n + (algorithm == "components"), edges=ends, directed=s.directed)
    degree = np.diff(s.indptr).astype(object)  # Python's integers: exact
    wedges = int((degree * (degree - 1) // 2).sum())
    made: dict[str, Pair] = {
        "core": (lambda: graph.coreness(), lambda a: a),
        "triangles": (
            lambda: graph.transitivity_undirected(mode="zero"),
            lambda a: round(a * wedges / 3),
        ),
        "components": (lambda: graph.connected_components(), lambda a: a.membership[:n]),
        "bfs": (lambda: graph.distances([source]), lambda a: a[0]),
        "pagerank": (lambda: graph.pagerank(damping=DAMPING), lambda a: a),
    }
    return made[algorithm]


def _scipy(algorithm: str, s: Snapshot, source: int, threads: int) -> Pair | None:
    from scipy.sparse import csgraph

    matrix = s.to_scipy().astype(np.float64)
    made: dict[str, Pair] = {
        "components": (
            lambda: csgraph.connected_components(matrix, directed=False),
            lambda a: a[1],
        ),
        "bfs": (lambda: csgraph.breadth_first_order(matrix, source), lambda a: _hops(*a)),
    }
    return made.get(algorithm)


def _hops(order: Array, parent: Array) -> Array:
    """int32[n]: the depth in a breadth-first tree; −1 outside it."""
    hops = np.full(len(parent), -1, np.int32)
    hops[order[0]] = 0
    for v in order[1:]:
        hops[v] = hops[parent[v]] + 1
    return hops
