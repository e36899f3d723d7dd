"""NetworkX's backend "lpma": `nx.core_number(G, backend="lpma")`.

NetworkX loads this module by an entry point. It calls the functions here that bear the names of its
own, with graphs that `convert_from_nx` made. This module only adapts: labels to ids and back, the
names of arguments, NetworkX's errors and its types. The algorithms are in the modules beside it.

A converted graph keeps the graph from which it was made, and a k-core is cut from that, with its
attributes. NetworkX keeps the converted graph beside the original, for the next call.

Graphs are converted to the device named by the environment variable LPMA_DEVICE, which is "auto" if
it is not set. There is no `networkx.backend_info`: NetworkX would import whatever provides it when
it is imported itself, and then everyone with lpma installed would wait for Numba.

If a function cannot do what it is asked for, `can_run` says so, or it raises
NotImplementedError. NetworkX then runs its own function, if its configuration allows that.

    >>> import networkx as nx
    >>> nx.core_number(nx.cycle_graph(4), backend="lpma")
    {0: 2, 1: 2, 2: 2, 3: 2}
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import algorithms
import lpma
from lpma.arrays import to_host
from lpma.optional import optional_import

from .pagerank import power_iteration

Array = npt.NDArray[Any]

FUNCTIONS = (
    "connected_components",
    "core_number",
    "k_core",
    "k_truss",
    "pagerank",
    "single_source_shortest_path_length",
    "triangles",
)


class ConvertedGraph:
    """A NetworkX graph as a snapshot. Vertex i has the label labels[i]."""

    __networkx_backend__ = "lpma"

    def __init__(self, origin: Any, snapshot: lpma.Snapshot, labels: list[Any]) -> None:
        self.origin = origin
        self.snapshot = snapshot
        self.labels = labels
        self.number = {label: i for i, label in enumerate(labels)}

    def is_directed(self) -> bool:
        return bool(self.origin.is_directed())

    def is_multigraph(self) -> bool:
        return bool(self.origin.is_multigraph())

    def by_label(self, values: Array) -> dict[Any, Any]:
        """A dictionary from labels to values, as Python's numbers. values: one for each vertex."""
        return dict(zip(self.labels, to_host(values).tolist(), strict=True))

    def refuse_loops(self) -> None:
        """Raise NetworkX's error if the graph has a self-loop."""
        nx = _networkx()
        if nx.number_of_selfloops(self.origin) > 0:
            raise nx.NetworkXNotImplemented(
                "Input graph has self loops which is not permitted; "
                "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
            )


def _networkx() -> Any:
    return optional_import("networkx", "networkx", "the NetworkX backend")


# Conversion -----------------------------------------------------------------------------------


def convert_from_nx(
    graph: Any, *, edge_attrs: dict[str, Any] | None = None, **_: Any
) -> ConvertedGraph:
    """A NetworkX graph in a store, its nodes numbered in their order. The weights of parallel edges
    are added.

    edge_attrs: the attribute that is the weight, with its default. None: edges have no weight, or
    weigh 1 each in a multigraph, so that parallel edges count. An edge of weight 0 is left out,
    which makes no difference to PageRank, the only function to use weights. Raises
    NotImplementedError on weights that are not numbers, negative or not finite."""
    labels = list(graph)
    number = {label: i for i, label in enumerate(labels)}
    ends = np.fromiter((number[v] for edge in graph.edges() for v in edge), np.int64)
    weights = _weights(graph, edge_attrs)
    store = lpma.Graph(
        directed=graph.is_directed(),
        weight="float64" if edge_attrs or graph.is_multigraph() else None,
        times=False,
        device=_device(),
    )
    store.insert(ends[::2], ends[1::2], weights)
    if labels:
        store.add_vertices(len(labels) - 1)
    # Without `added`, every row is a vertex, as every node should be, isolated or not.
    return ConvertedGraph(graph, replace(store.snapshot(), added=None), labels)


def _weights(graph: Any, edge_attrs: dict[str, Any] | None) -> Any:
    if not edge_attrs:
        return 1.0
    ((name, default),) = edge_attrs.items()
    given = (w for *_, w in graph.edges(data=name, default=default))
    try:
        weights = np.fromiter(given, np.float64)
    except (TypeError, ValueError) as error:
        raise NotImplementedError(f"lpma takes numbers as weights: {error}") from error
    if not bool(np.isfinite(weights).all()) or float(weights.min(initial=0)) < 0:
        raise NotImplementedError("lpma takes weights that are finite and not negative")
    return weights


def _device() -> str:
    return os.environ.get("LPMA_DEVICE", "auto")


def convert_to_nx(result: Any, **_: Any) -> Any:
    """A function's result for NetworkX: the original of a converted graph, and anything else as it
    is."""
    return result.origin if isinstance(result, ConvertedGraph) else result


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """True if a function can take these arguments; else a sentence that says why not."""
    graph = args[0] if args else kwargs["G"]
    if name in ("core_number", "k_core") and graph.is_directed():
        return "lpma's cores are of undirected graphs"
    if name == "pagerank":
        # In NetworkX's order: G, alpha, personalization, max_iter, tol, nstart, weight, dangling.
        for place, option in ((2, "personalization"), (5, "nstart"), (7, "dangling")):
            given = args[place] if len(args) > place else kwargs.get(option)
            if given is not None:
                return f"lpma's PageRank has no {option}"
    return True


# The functions --------------------------------------------------------------------------------


def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    """The nodes of each component, in the order of the first of each."""
    components: dict[int, set[Any]] = {}
    for label, root in G.by_label(algorithms.connected_components(G.snapshot)).items():
        components.setdefault(root, set()).add(label)
    yield from components.values()


def core_number(G: ConvertedGraph) -> dict[Any, int]:
    """The core number of each node."""
    G.refuse_loops()
    return G.by_label(algorithms.core_numbers(G.snapshot))


def k_core(
    G: ConvertedGraph, k: int | None = None, core_number: dict[Any, int] | None = None
) -> Any:
    """The subgraph of the nodes with core number k or more. k: by default the largest core
    number."""
    if core_number is None:
        G.refuse_loops()
        core_number = G.by_label(algorithms.core_numbers(G.snapshot))
    least = max(core_number.values()) if k is None else k
    return G.origin.subgraph([v for v, core in core_number.items() if core >= least]).copy()


def pagerank(
    G: ConvertedGraph,
    alpha: float = 0.85,
    personalization: None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: None = None,
    weight: str | None = "weight",
    dangling: None = None,
) -> dict[Any, float]:
    """The rank of each node. NetworkX's `tol` is for one node, ours for the sum over all. The
    attribute that `weight` names was read when the graph was converted."""
    s = G.snapshot
    ranks, converged = power_iteration(
        s, alpha, tol * len(G.labels), max_iter, weighted=s.weights is not None
    )
    if not converged:
        raise _networkx().PowerIterationFailedConvergence(max_iter)
    return G.by_label(ranks)


def single_source_shortest_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None
) -> dict[Any, int]:
    """The number of hops to each node that is reached within `cutoff`, nearest first."""
    if source not in G.number:
        raise _networkx().NodeNotFound(f"Source {source} is not in G")
    hops = to_host(algorithms.bfs(G.snapshot, G.number[source]))
    farthest = np.inf if cutoff is None else max(cutoff, 0)
    reached = np.flatnonzero((hops >= 0) & (hops <= farthest))
    nearest_first = reached[np.argsort(hops[reached], kind="stable")]
    return {G.labels[v]: int(hops[v]) for v in nearest_first}


def triangles(G: ConvertedGraph, nodes: Any = None) -> dict[Any, int] | int:
    """The number of triangles at each node, or at each of `nodes`, or at one node."""
    counts = G.by_label(algorithms.triangles(G.snapshot))
    if nodes is None:
        return counts
    if nodes in G.origin:
        return counts[nodes]
    return {v: counts[v] for v in G.origin.nbunch_iter(nodes)}


def k_truss(G: ConvertedGraph, k: int) -> Any:
    """The subgraph that remains when edges in fewer than k − 2 triangles are removed until there
    are none, and then the nodes without edges."""
    G.refuse_loops()
    src, dst, truss = (to_host(column) for column in algorithms.truss_numbers(G.snapshot))
    gone = truss < k
    ends = ([G.labels[v] for v in end[gone].tolist()] for end in (src, dst))
    remaining = G.origin.copy()
    remaining.remove_edges_from(zip(*ends, strict=True))
    remaining.remove_nodes_from(list(_networkx().isolates(remaining)))
    return remaining
