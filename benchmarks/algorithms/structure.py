"""Strong components, shortest paths, Jaccard of pairs and clustering coefficients, on the CPU.

Strong components are of the directed graph; the rest of the undirected one without loops, its
weights random from 0 to 1 in float32. Paths start from the vertex of the highest degree. Pairs are
PAIRS that have a neighbour in common, as candidates for links have. Each library works on its own
form of the graph, made beforehand; ours has no views kept from round to round.

scipy       csgraph on its CSR matrix; for Jaccard the products of the pairs' rows
networkit   StronglyConnectedComponents, Dijkstra, JaccardIndex, LocalClusteringCoefficient (turbo)
igraph      its own

All answers are compared with SciPy's, and coefficients with igraph's if it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

import algorithms
import lpma
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.cpu.threads import THREADS

from ..keys import Array
from ..report import Report, Setting, beside
from ..stopwatch import WrongAnswer, race
from .graphs import DRAWS, SEED, bare
from .libraries import Runs, entries, upper_edges, upper_weights
from .traversal import check

PEERS = ("scipy", "networkit", "igraph")
REAL = ("sx-mathoverflow", "road-NY", "uk-2007-05-100k")
PAIRS = 10_000
ROUNDS, BUDGET_S = 5, 4.0


class Case(NamedTuple):
    """A graph, and what is asked of it."""

    name: str
    directed: Snapshot
    s: Snapshot  # undirected, weighted
    source: int
    u: Array  # the pairs
    v: Array


def structure(setting: Setting) -> Report:
    report = Report("structure", "seconds, median")
    for case in cases(setting.quick):
        runs: dict[str, Runs] = {"lpma": ours(case)}
        makers = {"scipy": _of_scipy, "networkit": _of_networkit, "igraph": _of_igraph}
        runs |= {peer: make(case) for peer, make in makers.items() if find_spec(peer)}
        for algorithm in runs["lpma"]:
            able = {peer: can[algorithm] for peer, can in runs.items() if algorithm in can}
            standard = next(peer for peer in ("scipy", "igraph", "lpma") if peer in able)
            expected = np.asarray(able[standard]())
            timings = race(
                {peer: run for peer, run in able.items() if setting.wants(peer)},
                _checked(algorithm, expected),
                rounds=ROUNDS, budget_s=BUDGET_S,
            )  # fmt: skip
            row: dict[str, Any] = {"graph": case.name, "edges": case.s.num_edges}
            report.add(row | {"algorithm": algorithm} | beside(timings, PEERS))
    report.notes.append("ratio: the fastest of the others to lpma.")
    return report


def cases(quick: bool) -> Iterator[Case]:
    scale = 12 if quick else 18
    yield _case(f"RMAT {scale}", *generators.rmat(scale, DRAWS << scale, seed=SEED))
    for name in () if quick else REAL:
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield _case(name, edges.src, edges.dst)


def _case(name: str, src: Array, dst: Array) -> Case:
    rng = np.random.default_rng(SEED)
    directed = lpma.Graph(weight_dtype=None, times=False, device="cpu")
    directed.insert(src, dst)
    apart = src != dst
    keys = np.unique(
        np.minimum(src, dst)[apart].astype(np.int64) << 32 | np.maximum(src, dst)[apart]
    )
    graph = lpma.Graph(directed=False, times=False, device="cpu")
    graph.insert(keys >> 32, keys & 0xFFFFFFFF, rng.random(len(keys)))
    s = graph.snapshot()
    source = int(np.diff(s.indptr).argmax())
    return Case(name, directed.snapshot(), s, source, *pairs_of(s, rng, PAIRS))


def pairs_of(s: Snapshot, rng: np.random.Generator, count: int) -> Array:
    """int64[2, count] or a few less: pairs of neighbours of vertices drawn, in rising order, of a
    snapshot on the host."""
    degree = np.diff(s.indptr)
    middle = rng.choice(np.flatnonzero(degree > 1), count)
    places = s.indptr[middle] + (rng.random((2, count)) * degree[middle]).astype(np.int64)
    u, v = s.indices[places].astype(np.int64)
    keys = np.unique((u << 32 | v)[u != v])
    return np.stack((keys >> 32, keys & 0xFFFFFFFF))


def ours(case: Case) -> Runs:
    directed, s, u, v = case.directed, case.s, case.u, case.v
    return {
        "strong components": lambda: algorithms.strongly_connected_components(bare(directed)),
        "shortest paths": lambda: algorithms.shortest_paths(bare(s), case.source),
        "Jaccard": lambda: algorithms.jaccard(bare(s), u, v),
        "clustering": lambda: algorithms.clustering_coefficients(bare(s)),
    }


def _checked(algorithm: str, expected: Array) -> Callable[[str, Any], None]:
    return lambda name, answer: _check(name, algorithm, np.asarray(answer), expected)


def _check(name: str, algorithm: str, answer: Array, expected: Array) -> None:
    """Raise WrongAnswer if an answer differs from the standard's."""
    if algorithm == "strong components":  # a row that is no vertex is one of its own elsewhere
        apart = answer < 0
        check(name, "components", np.where(apart, np.arange(len(answer)), answer), expected)
        return
    answer = np.where(answer > 1e300, np.inf, answer)  # networkit's largest number
    if not np.allclose(answer, expected, rtol=1e-12, atol=0):
        raise WrongAnswer(f"{name}: {algorithm} is wrong")


def _of_scipy(case: Case) -> Runs:
    from scipy.sparse import csgraph

    digraph, matrix = case.directed.to_scipy(), case.s.to_scipy().astype(float)
    pattern = matrix.copy()
    pattern.data[:] = 1
    degree = np.diff(matrix.indptr)

    def jaccard() -> Array:
        common = np.asarray(pattern[case.u].multiply(pattern[case.v]).sum(axis=1)).ravel()
        shares: Array = common / (degree[case.u] + degree[case.v] - common)
        return shares

    return {
        "strong components": lambda: csgraph.connected_components(digraph, connection="strong")[1],
        "shortest paths": lambda: csgraph.dijkstra(matrix, True, case.source),
        "Jaccard": jaccard,
    }


def _of_networkit(case: Case) -> Runs:
    import networkit as nk

    nk.setNumberOfThreads(THREADS)
    edges = upper_weights(case.s), upper_edges(case.s)
    graph = nk.GraphFromCoo(edges, n=case.s.num_rows, weighted=True, directed=False)
    digraph = nk.GraphFromCoo(entries(case.directed), n=case.directed.num_rows, directed=True)
    pairs = list(zip(case.u.tolist(), case.v.tolist(), strict=True))

    def scores(algorithm: Any, read: str) -> Any:
        algorithm.run()
        return getattr(algorithm, read)()

    def strong() -> Any:
        return scores(
            nk.components.StronglyConnectedComponents(digraph), "getPartition"
        ).getVector()

    def jaccard() -> Any:
        return [score for _, score in nk.linkprediction.JaccardIndex(graph).runOn(pairs)]

    return {
        "strong components": strong,
        "shortest paths": lambda: scores(
            nk.distance.Dijkstra(graph, case.source, storePaths=False), "getDistances"
        ),
        "Jaccard": jaccard,
        "clustering": lambda: scores(
            nk.centrality.LocalClusteringCoefficient(graph, turbo=True), "scores"
        ),
    }


def _of_igraph(case: Case) -> Runs:
    import igraph

    graph = igraph.Graph(n=case.s.num_rows, edges=np.column_stack(upper_edges(case.s)))
    graph.es["weight"] = upper_weights(case.s).tolist()
    ends = np.column_stack(entries(case.directed))
    digraph = igraph.Graph(case.directed.num_rows, ends, directed=True)
    pairs = list(zip(case.u.tolist(), case.v.tolist(), strict=True))
    return {
        "strong components": lambda: digraph.connected_components("strong").membership,
        "shortest paths": lambda: graph.distances(
            [case.source], weights="weight", algorithm="dijkstra"
        )[0],
        "Jaccard": lambda: graph.similarity_jaccard(pairs=pairs, loops=False),
        "clustering": lambda: graph.transitivity_local_undirected(mode="zero"),
    }
