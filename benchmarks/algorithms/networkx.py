"""NetworkX's functions by the backend "lpma", beside NetworkX itself, on graphs of NetworkX.

*converting* includes the conversion of the graph, *converted* is a call on a graph that was
converted before and has answered nothing yet. `convert` is the conversion alone, beside
`to_scipy_sparse_array`, with which NetworkX itself begins a PageRank. Graphs are converted to the
device that LPMA_DEVICE names. Every answer is compared with NetworkX's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from algorithms.networkx import backend
from lpma.backend import is_cuda
from lpma.cpu.threads import THREADS

from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import NAN, Kernel, WrongAnswer, measure, plain
from .graphs import DRAWS, SEED, real, rmat
from .libraries import entries

ROUNDS, BUDGET_S = 3, 12.0
PAIRS = 100_000  # that link prediction scores
TRUSS = 10  # the k of k_truss
COLUMNS = ("networkx", "converting", "converted")

# nx-cugraph 25.02 on a GeForce RTX 3090 beside NetworkX 3.4 on a Xeon w9-3495X: amazon0302, of
# 262,111 nodes and 1,234,877 edges, in seconds, from "Benchmarks" in cuGraph's documentation.
PUBLISHED = {
    "core_number": (1.520, 0.067706), "triangles": (2.591, 0.045977),
    "clustering": (6.775, 0.049747), "average_clustering": (6.745, 0.022988),
    "transitivity": (7.525, 0.022726), "k_truss": (6.103, 0.011309),
    "weakly_connected_components": (0.493186, 0.064240), "pagerank": (2.828, 0.037065),
    "single_source_shortest_path_length": (0.280148, 0.044572), "bfs_edges": (1.260, 3.292),
    "bfs_layers": (0.327838, 0.034548), "descendants": (1.259, 0.032708),
    "degree_centrality": (0.075040, 0.026474), "overall_reciprocity": (4.525, 0.008032),
}  # fmt: skip
UNDIRECTED = (
    "core_number", "k_truss", "triangles", "clustering", "square_clustering",
    "connected_components", "pagerank", "hits", "single_source_shortest_path_length",
    "single_source_shortest_path", "bfs_edges", "degree_centrality", "jaccard_coefficient",
    "adamic_adar_index",
)  # fmt: skip
DIRECTED = ("weakly_connected_components", "strongly_connected_components", "overall_reciprocity")
# NetworkX takes minutes for these on a graph of a million edges.
LONG = ("k_truss", "clustering", "square_clustering")


def networkx(setting: Setting) -> Report:
    place = "CUDA" if is_cuda(os.environ.get("LPMA_DEVICE", "auto")) else f"{THREADS} threads"
    report = Report("networkx", f"seconds, median; ours on {place}")
    for name, graph in _graphs(setting.quick):
        pairs = _pairs(graph)
        for function in ("convert", *(DIRECTED if graph.is_directed() else UNDIRECTED)):
            if setting.out_of_time() or (name.startswith("RMAT 16") and function in LONG):
                continue
            kernels = _convert(graph) if function == "convert" else _call(function, graph, pairs)
            wanted = {column: run for column, run in kernels.items() if setting.wants(column)}
            report.add(_row(name, graph, function, wanted))
    report.notes += [
        "ratio: networkx to `converting`. published: NetworkX to nx-cugraph on amazon0302, another",
        "graph and machine; its page does not say whether nx-cugraph's time includes a conversion.",
    ]
    return report


def _graphs(quick: bool) -> Iterator[tuple[str, Any]]:
    """The undirected graphs, and then RMAT with each edge in one direction or both."""
    import networkx as nx

    scale = 10 if quick else 16
    if not quick:
        yield "email-Enron", _filled(nx.Graph(), entries(real("email-Enron", "cpu")))
    src, dst = entries(rmat(scale, "cpu"))
    yield f"RMAT {scale}", _filled(nx.Graph(), (src, dst))
    kept = np.random.default_rng(SEED).random(len(src)) < 0.5
    yield f"RMAT {scale}, directed", _filled(nx.DiGraph(), (src[kept], dst[kept]))


def _filled(graph: Any, ends: tuple[Array, Array]) -> Any:
    graph.add_edges_from(zip(*(end.tolist() for end in ends), strict=True))
    return graph


def _pairs(graph: Any) -> list[tuple[Any, Any]]:
    nodes = list(graph)
    rows = np.random.default_rng(SEED).integers(0, len(nodes), (min(PAIRS, DRAWS * len(nodes)), 2))
    return [(nodes[u], nodes[v]) for u, v in rows.tolist() if u != v]


def _convert(graph: Any) -> dict[str, Kernel]:
    import networkx as nx

    def convert() -> int:
        return int(backend.convert_from_nx(graph).snapshot.indptr[-1])

    return {
        "networkx": plain(lambda: int(nx.to_scipy_sparse_array(graph).nnz)),
        "converting": plain(convert),
    }


def _call(name: str, graph: Any, pairs: list[tuple[Any, Any]]) -> dict[str, Kernel]:
    import networkx as nx

    arguments = _arguments(name, graph, pairs)
    attributes = {"weight": 1} if name in ("pagerank", "hits") else None
    theirs: Any = getattr(nx, name).orig_func
    ours: Callable[..., Any] = getattr(backend, name)

    def convert(_: int) -> Any:
        converted = backend.convert_from_nx(graph, edge_attrs=attributes)
        assert len(converted.number) == converted.snapshot.num_rows  # both are made now
        return converted

    def converting() -> Any:
        converted = backend.convert_from_nx(graph, edge_attrs=attributes)
        return _whole(ours(converted, *arguments))

    return {
        "networkx": plain(lambda: _whole(theirs(graph, *arguments))),
        "converting": plain(converting),
        "converted": Kernel(convert, lambda converted: _whole(ours(converted, *arguments))),
    }


def _arguments(name: str, graph: Any, pairs: list[tuple[Any, Any]]) -> tuple[Any, ...]:
    if name.startswith(("single_source", "bfs")):
        return (max(graph, key=graph.degree),)
    if name.endswith(("_coefficient", "_index")):
        return (pairs,)
    return (TRUSS,) if name == "k_truss" else ()


def _whole(answer: Any) -> Any:
    """An answer with nothing left to compute."""
    return list(answer) if hasattr(answer, "__next__") else answer


def _row(name: str, graph: Any, function: str, kernels: Mapping[str, Kernel]) -> dict[str, Any]:
    answers: dict[str, Any] = {}

    def keep(column: str, _: int, answer: Any) -> None:
        answers[column] = answer

    timings = measure(kernels, keep, rounds=ROUNDS, budget_s=BUDGET_S)
    for column, answer in answers.items():
        if not _alike(answer, answers.get("networkx", answer)):
            raise WrongAnswer(f"{column}: {function} of {name} is not NetworkX's")
    found = {column: timings[column].median if column in timings else NAN for column in COLUMNS}
    cpu, gpu = PUBLISHED.get(function, (NAN, NAN))
    return {
        "graph": name, "edges": graph.number_of_edges(), "function": function, **found,
        "ratio": found["networkx"] / float(found["converting"]), "published": cpu / gpu,
    }  # fmt: skip


def _alike(ours: Any, theirs: Any) -> bool:
    import networkx as nx

    if isinstance(theirs, nx.Graph):
        return bool(nx.utils.graphs_equal(ours, theirs))
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_alike(ours[v], theirs[v]) for v in theirs)
    if isinstance(theirs, tuple | list) and theirs and isinstance(theirs[0], set):
        return {frozenset(part) for part in ours} == {frozenset(part) for part in theirs}
    if isinstance(theirs, tuple | list):
        return len(ours) == len(theirs) and all(map(_alike, ours, theirs))
    if isinstance(theirs, float):
        return bool(abs(ours - theirs) <= 1e-6 * max(1.0, abs(theirs)))
    return bool(ours == theirs)
