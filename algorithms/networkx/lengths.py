"""NetworkX's lengths of shortest paths, in edges: one breadth-first search a source.

Nodes come nearest first, and those at one distance in the order of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import algorithms
from lpma.arrays import to_host

from . import components
from .converted import ConvertedGraph, is_since, networkx

Array = npt.NDArray[Any]
Lengths = dict[Any, int]


def single_source_shortest_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None
) -> Lengths:
    """The number of edges to each node that is reached within `cutoff`."""
    start = G.require(source, f"Source {source} is not in G")
    return _nearest_first(G, _hops(G, start), cutoff)


def single_target_shortest_path_length(
    G: ConvertedGraph, target: Any, cutoff: float | None = None
) -> Lengths:
    """The number of edges from each node that reaches the target within `cutoff`."""
    start = G.require(target, f"Target {target} is not in G")
    return _nearest_first(G, _hops(G, start, reverse=True), cutoff)


def all_pairs_shortest_path_length(
    G: ConvertedGraph, cutoff: float | None = None
) -> Iterator[tuple[Any, Lengths]]:
    """(source, the lengths from it), for each node."""
    each = enumerate(G.labels)
    return ((source, _nearest_first(G, _hops(G, v), cutoff)) for v, source in each)


def shortest_path_length(
    G: ConvertedGraph,
    source: Any = None,
    target: Any = None,
    weight: None = None,
    method: str = "dijkstra",
) -> Any:
    """The number of edges from source to target; of one of them alone, to or from each node; of
    neither, between all pairs."""
    if source is None and target is None:
        return all_pairs_shortest_path_length(G)
    if target is None:
        return single_source_shortest_path_length(G, source)
    if source is None:
        start = G.require(target, f"Source {target} is not in G")  # of the graph turned around
        return _nearest_first(G, _hops(G, start, reverse=True), None)
    found = _distance(G, source, target)
    if found < 0:
        raise networkx().NetworkXNoPath(f"No path between {source} and {target}.")
    return found


def has_path(G: ConvertedGraph, source: Any, target: Any) -> bool:
    """Whether edges lead from source to target. Raises NodeNotFound if either is missing."""
    if G.is_directed():
        return _distance(G, source, target) >= 0
    found, ends = components.labels(G), _both(G, source, target)
    return bool(found[ends[0]] == found[ends[1]])


def descendants_at_distance(G: ConvertedGraph, source: Any, distance: int) -> set[Any]:
    """The nodes at this distance from the source."""
    if source not in G:
        raise networkx().NetworkXError(f"The node {source} is not in the graph.")
    hops = _hops(G, G.number[source])
    return _named(G, (hops == distance) & (hops >= 0))


def descendants(G: ConvertedGraph, source: Any) -> set[Any]:
    """The nodes to which edges lead from the source, without it."""
    return _others(G, source, reverse=False)


def ancestors(G: ConvertedGraph, source: Any) -> set[Any]:
    """The nodes from which edges lead to the source, without it."""
    return _others(G, source, reverse=True)


def average_shortest_path_length(
    G: ConvertedGraph, weight: None = None, method: str | None = None
) -> float:
    """The mean number of edges between the nodes of each pair. Raises NetworkX's errors if there
    are no nodes, or a pair without a path."""
    n = len(G)
    if n == 0:
        raise networkx().NetworkXPointlessConcept(
            "the null graph has no paths, thus there is no average shortest path length"
        )
    if n == 1:
        return 0
    connected = components.is_strongly_connected if G.is_directed() else components.is_connected
    if not connected(G):
        strongly = "strongly " if G.is_directed() else ""
        raise networkx().NetworkXError(f"Graph is not {strongly}connected.")
    return sum(int(_hops(G, v).sum(dtype=np.int64)) for v in range(n)) / (n * (n - 1))


def eccentricity(G: ConvertedGraph, v: Any = None, sp: None = None, weight: None = None) -> Any:
    """The distance of each node, or of `v`, one or several, from the node farthest from it. Raises
    NetworkXError if one is not reached, and NetworkXPointlessConcept if there are no nodes and
    NetworkX does, as it has done since 3.7."""
    if len(G) == 0 and is_since(3, 7):
        raise networkx().NetworkXPointlessConcept("Cannot compute eccentricity of a null graph.")
    found = {node: _farthest(G, G.number[node]) for node in G.chosen(v)}
    return found[v] if v in G else found


def closeness_centrality(
    G: ConvertedGraph,
    u: Any = None,
    distance: None = None,
    wf_improved: bool = True,
    *,
    sp: None = None,
) -> Any:
    """The number of nodes that reach each node, over the sum of their distances; `wf_improved`:
    times their share of all nodes."""
    if u is None:
        return {node: _closeness(G, v, wf_improved) for v, node in enumerate(G.labels)}
    return _closeness(G, G.require(u, f"Source {u} is not in G"), wf_improved)


def _hops(G: ConvertedGraph, start: int, reverse: bool = False) -> Array:
    """int32[n], on the host: −1 where there is no path."""
    hops: Array = to_host(algorithms.bfs(G.reversed_snapshot if reverse else G.snapshot, start))
    return hops


def _nearest_first(G: ConvertedGraph, hops: Array, cutoff: float | None) -> Lengths:
    farthest = np.inf if cutoff is None else max(cutoff, 0)
    reached = np.flatnonzero((hops >= 0) & (hops <= np.ceil(farthest)))
    reached = reached[np.argsort(hops[reached], kind="stable")]
    names = map(G.labels.__getitem__, reached.tolist())
    return dict(zip(names, hops[reached].tolist(), strict=True))


def _both(G: ConvertedGraph, source: Any, target: Any) -> tuple[int, int]:
    start = G.require(source, f"Source {source} is not in G")
    return start, G.require(target, f"Target {target} is not in G")


def _distance(G: ConvertedGraph, source: Any, target: Any) -> int:
    start, end = _both(G, source, target)
    return int(_hops(G, start)[end])


def _others(G: ConvertedGraph, source: Any, reverse: bool) -> set[Any]:
    if source not in G:
        kind = "digraph" if G.is_directed() else "graph"
        raise networkx().NetworkXError(f"The node {source} is not in the {kind}.")
    return _named(G, _hops(G, G.number[source], reverse) > 0)


def _named(G: ConvertedGraph, chosen: Array) -> set[Any]:
    return {G.labels[v] for v in np.flatnonzero(chosen).tolist()}


def _farthest(G: ConvertedGraph, v: int) -> int:
    hops = _hops(G, v)
    if int(hops.min()) < 0:
        how = (
            "the digraph is not strongly connected"
            if G.is_directed()
            else "the graph is not connected"
        )
        raise networkx().NetworkXError(f"Found infinite path length because {how}")
    return int(hops.max())


def _closeness(G: ConvertedGraph, v: int, wf_improved: bool) -> float:
    hops = _hops(G, v, reverse=True)
    reached = hops[hops >= 0]
    total, others = int(reached.sum(dtype=np.int64)), len(reached) - 1.0
    if total == 0 or len(G) == 1:
        return 0.0
    return others / total * (others / (len(G) - 1)) if wf_improved else others / total
