"""What the k-core experiments share: graphs, other libraries, and what the paper published.

Graphs are real ones and RMAT with 16 draws a vertex; RMAT 20 has the 18 million draws with which
the paper's own code was measured on an H200.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

import lpma
from algorithms import core_numbers
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import to_host

from .keys import Array
from .measure import Kernel, Timing, WrongAnswer, measure
from .traversals import upper_edges

REAL = ("email-Enron", "ego-twitter", "dblp-2010", "uk-2007-05-100k", "wiki-Vote", "road-NY")
QUICK_SCALES, CPU_SCALES, GPU_SCALES = (12,), (18, 20), (18, 19, 20, 21, 22)
DRAWS, DRAWS_OF_20 = 16, 18_000_000
BUDGET_S = 20.0
NETWORKX_EDGES = 1 << 20  # it takes minutes beyond

Run = Callable[[], Any]


def graphs(device: str, quick: bool) -> Iterator[tuple[str, Snapshot]]:
    """Undirected snapshots without loops; `fresh` ones show what a directed one's view costs."""
    scales = QUICK_SCALES if quick else CPU_SCALES if device == "cpu" else GPU_SCALES
    for name in REAL[:1] if quick else REAL:
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield name, _snapshot(edges.src, edges.dst, device)
    for scale in scales:
        draws = DRAWS_OF_20 if scale == 20 else DRAWS << scale
        yield f"RMAT {scale}", _snapshot(*generators.rmat(scale, draws, seed=1), device)


def _snapshot(src: Array, dst: Array, device: str) -> Snapshot:
    g = lpma.Graph(directed=False, weight=None, times=False, device=device)
    apart = src != dst
    g.insert(src[apart], dst[apart])
    return g.snapshot()


def fresh(s: Snapshot) -> Snapshot:
    """The same graph on the host without views, each edge in one direction, so that its simple
    view must be built."""
    g = lpma.Graph(weight=None, times=False, device="cpu")
    g.insert(*upper_edges(on_host(s)))
    return g.snapshot()


def on_host(s: Snapshot) -> Snapshot:
    """The same graph on the host, without views."""
    arrays = {"indptr": to_host(s.indptr), "indices": to_host(s.indices)}
    return replace(s, **arrays, views={})


def expected(s: Snapshot) -> Array:
    """By bucket peeling in one thread, on the host."""
    return core_numbers(on_host(s), "bz")


def about(name: str, s: Snapshot, numbers: Array) -> dict[str, Any]:
    """The first columns of a row."""
    most = int(numbers.max(initial=0))
    return {"graph": name, "vertices": s.num_present, "edges": s.num_edges, "k max": most}


def race(runs: Mapping[str, Run], right: Array, rounds: int) -> dict[str, Timing]:
    """Times of each; its last answer is compared with the right one."""

    def verify(name: str, _: int, answer: Any) -> None:
        if not np.array_equal(to_host(answer), right):
            raise WrongAnswer(f"{name}: core numbers are wrong")

    def kernel(run: Run) -> Kernel:
        return Kernel(lambda _: None, lambda _: run())

    kernels = {name: kernel(run) for name, run in runs.items()}
    return measure(kernels, verify, rounds=rounds, budget_s=BUDGET_S)


def libraries(s: Snapshot, threads: int) -> tuple[dict[str, Run], dict[str, float]]:
    """Core numbers by other libraries, and the seconds that each took to read the edges."""
    made: dict[str, Run] = {}
    seconds: dict[str, float] = {}
    makers = {"networkit": _networkit, "igraph": _igraph, "networkx": _networkx}
    for name, make in makers.items():
        if find_spec(name) and (name != "networkx" or s.num_edges < NETWORKX_EDGES):
            src, dst = upper_edges(s)
            start = time.perf_counter()
            made[name] = make(s.num_vertices, src, dst, threads)
            seconds[name] = time.perf_counter() - start
    return made, seconds


def _networkit(n: int, src: Array, dst: Array, threads: int) -> Run:
    import networkit as nk

    nk.setNumberOfThreads(threads)
    graph = nk.Graph(n)
    graph.addEdges((src.astype(np.uint64), dst.astype(np.uint64)))

    def run() -> Any:
        found = nk.centrality.CoreDecomposition(graph)
        found.run()
        return np.array(found.scores())

    return run


def _igraph(n: int, src: Array, dst: Array, threads: int) -> Run:
    import igraph

    graph = igraph.Graph(n=n, edges=np.column_stack((src, dst)))
    return lambda: np.array(graph.coreness())


def _networkx(n: int, src: Array, dst: Array, threads: int) -> Run:
    import networkx as nx

    graph = nx.empty_graph(n)
    graph.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))

    def run() -> Any:
        cores = nx.core_number(graph)
        return np.array([cores[u] for u in range(n)])

    return run


# Of the paper's Tables III and V, on a Tesla P100: milliseconds, and peak megabytes. None: it ran
# out of memory, or for an hour without end.
PUBLISHED_GRAPHS = (
    "amazon0601", "wiki-Talk", "web-Google", "web-BerkStan", "as-skitter", "patentcite", "in-2004",
    "dblp-author", "wb-edu", "soc-LiveJournal1", "wikipedia-link-de", "hollywood-2009",
    "com-orkut", "trackers", "indochina-2004", "uk-2002", "arabic-2005", "uk-2005",
    "webbase-2001", "it-2004",
)  # fmt: skip
PUBLISHED_MS: dict[str, tuple[int | None, ...]] = {
    "Medusa-MPM": (34835, None, 44423, None, None, 7964, None, 15110, None, 3128970)
    + (None,) * 10,
    "Medusa-Peel": (588, 12657, 1986, 38141, 22665, 17290, 37089, 2209, 187674, 181851, 598142,
                    455682, 929049, None, 2455986, 1596779, None, None, None, None),
    "Gunrock": (38, 1236, 127, 822, 723, 1282, 2577, 233, 10880, 7567, 54046, 26442, 10800, 208473,
                248785, 44604, None, None, None, None),
    "GSwitch": (30, 168, 62, 309, 238, 319, 523, 78, 5096, 1343, 1240, 1077, 1635, 5072, 10278,
                11070, 35190, 23914, None, None),
}  # fmt: skip
PUBLISHED_MB: dict[str, tuple[int | None, ...]] = {
    "Medusa-MPM": (427, None, 521, None, None, 1137, None, 959, None, 2353) + (None,) * 10,
    "Medusa-Peel": (429, 579, 527, 635, 861, 1161, 959, 993, 2645, 2387, 3935, 2927, 5751, None,
                    7391, 12707, None, None, None, None),
    "Gunrock": (325, 511, 467, 559, 745, 991, 829, 855, 2223, 2015, 3307, 5097, 4815, 6131, 8851,
                10597, None, None, None, None),
    "GSwitch": (253, 663, 611, 647, 747, 897, 767, 531, 1529, 1329, 1809, 1423, 2401, 3519, 3057,
                5095, 9679, 13697, None, None),
}  # fmt: skip


def published(values: Mapping[str, tuple[int | None, ...]]) -> list[dict[str, Any]]:
    """Rows of the paper's table for the systems that were not run again."""
    return [
        {"graph": f"{graph} (published)", **{name: column[i] for name, column in values.items()}}
        for i, graph in enumerate(PUBLISHED_GRAPHS)
    ]
