"""NetworkX's lengths of shortest paths: in edges, by one breadth-first search a source; and by
weight, by Dijkstra's and by Bellman and Ford's names.

Nodes come nearest first, those at one distance in the order of the graph. Without negative weights
both names stand for the same lengths. Lengths are floats even of integer weights, exact below 2^53;
where one is or might be larger, NetworkX's own functions serve.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import algorithms
from lpma import Snapshot
from lpma.arrays import to_host

from ..arrays import Array
from . import components
from .converted import ConvertedGraph, is_since, networkx

Lengths = dict[Any, int]
WeightedLengths = dict[Any, float]

EXACT = 2.0**53  # integers below it are exact as floats


def single_source_shortest_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None
) -> Lengths:
    return _nearest_first(G, G.require(source, f"Source {source} is not in G"), cutoff)


def single_target_shortest_path_length(
    G: ConvertedGraph, target: Any, cutoff: float | None = None
) -> Lengths:
    start = G.require(target, f"Target {target} is not in G")
    return _nearest_first(G, start, cutoff, reverse=True)


def all_pairs_shortest_path_length(
    G: ConvertedGraph, cutoff: float | None = None
) -> Iterator[tuple[Any, Lengths]]:
    return ((source, _nearest_first(G, v, cutoff)) for v, source in enumerate(G.labels))


def shortest_path_length(
    G: ConvertedGraph,
    source: Any = None,
    target: Any = None,
    weight: None = None,
    method: str = "dijkstra",
) -> Any:
    """Of one end alone, to or from each node; of neither, between all pairs."""
    if source is None and target is None:
        return all_pairs_shortest_path_length(G)
    if target is None:
        return single_source_shortest_path_length(G, source)
    if source is None:
        start = G.require(target, f"Source {target} is not in G")  # of the graph turned around
        return _nearest_first(G, start, None, reverse=True)
    found = _distance(G, source, target)
    if found < 0:
        raise networkx().NetworkXNoPath(f"No path between {source} and {target}.")
    return found


def has_path(G: ConvertedGraph, source: Any, target: Any) -> bool:
    if G.is_directed():
        return _distance(G, source, target) >= 0
    found, (start, end) = components.labels(G), _both(G, source, target)
    return bool(found[start] == found[end])


def descendants_at_distance(G: ConvertedGraph, source: Any, distance: int) -> set[Any]:
    if source not in G:
        raise networkx().NetworkXError(f"The node {source} is not in the graph.")
    hops = _hops(G, G.number[source])
    return _named(G, (hops == distance) & (hops >= 0))


def descendants(G: ConvertedGraph, source: Any) -> set[Any]:
    return _others(G, source, reverse=False)


def ancestors(G: ConvertedGraph, source: Any) -> set[Any]:
    return _others(G, source, reverse=True)


def average_shortest_path_length(
    G: ConvertedGraph, weight: None = None, method: str | None = None
) -> float:
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
    """Only since 3.7 NetworkX refuses a graph without nodes."""
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
    if u is None:
        return {node: _closeness(G, v, wf_improved) for v, node in enumerate(G.labels)}
    return _closeness(G, G.require(u, f"Source {u} is not in G"), wf_improved)


def _hops(G: ConvertedGraph, start: int, reverse: bool = False) -> Array:
    """int32[n], on the host: −1 where there is no path."""
    hops: Array = to_host(algorithms.bfs(G.reversed_snapshot if reverse else G.snapshot, start))
    return hops


def _nearest_first(
    G: ConvertedGraph, start: int, cutoff: float | None, reverse: bool = False
) -> Lengths:
    hops = _hops(G, start, reverse)
    farthest = np.inf if cutoff is None else max(cutoff, 0)
    return _by_length(G, hops, (hops >= 0) & (hops <= np.ceil(farthest)))


def _by_length(G: ConvertedGraph, lengths: Array, chosen: Array) -> dict[Any, Any]:
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    return dict(zip(G.named(rows), lengths[rows].tolist(), strict=True))


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
    return set(G.named(np.flatnonzero(chosen)))


def _farthest(G: ConvertedGraph, v: int) -> int:
    hops = _hops(G, v)
    if int(hops.min()) < 0:
        how = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise networkx().NetworkXError(f"Found infinite path length because the {how} connected")
    return int(hops.max())


def _closeness(G: ConvertedGraph, v: int, wf_improved: bool) -> float:
    hops = _hops(G, v, reverse=True)
    reached = hops[hops >= 0]
    total, others = int(reached.sum(dtype=np.int64)), len(reached) - 1.0
    if total == 0 or len(G) == 1:
        return 0.0
    return others / total * (others / (len(G) - 1)) if wf_improved else others / total


# By weight ----------------------------------------------------------------------------------------


def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> WeightedLengths:
    start = G.require(source, f"Node {source} not found in graph")
    return _within(G, _distances(G, start, weight), start, cutoff)


def all_pairs_dijkstra_path_length(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[tuple[Any, WeightedLengths]]:
    """Lengths that might be too large are refused at once, since NetworkX cannot take over later;
    no path has more than n − 1 edges."""
    s = G.weighted(weight, by_row=True)
    if s._weights is not None:
        _refuse_beyond_exact(float(to_host(s._weights).max(initial=0)) * (len(G) - 1))
    return ((u, _within(G, _found(s, v), v, cutoff)) for v, u in enumerate(G.labels))


def dijkstra_path_length(
    G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight"
) -> float:
    start = G.require(source, f"Node {source} not found in graph")
    no_path = f"Node {target} not reachable from {source}"
    return _length(G, start, source, target, weight, no_path)


def single_source_bellman_ford_path_length(
    G: ConvertedGraph, source: Any, weight: str | None = "weight"
) -> WeightedLengths:
    start = G.require(source, f"Source {source} not in G")
    return _within(G, _distances(G, start, weight), start, None)


def bellman_ford_path_length(
    G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight"
) -> float:
    to_itself = f"Node {source} not found in graph"
    start = G.require(source, to_itself if source == target else f"Source {source} not in G")
    no_path = f"node {target} not reachable from {source}"
    return _length(G, start, source, target, weight, no_path)


def _length(
    G: ConvertedGraph, start: int, source: Any, target: Any, weight: str | None, no_path: str
) -> float:
    if source == target:
        return 0
    found = _distances(G, start, weight)[G.number[target]] if target in G else np.inf
    if found == np.inf:
        raise networkx().NetworkXNoPath(no_path)
    return float(found)


def _distances(G: ConvertedGraph, start: int, weight: str | None) -> Array:
    """float64[n], on the host: infinity where there is no path. Raises NotImplementedError if one
    may not be exact."""
    found = _found(G.weighted(weight, by_row=True), start)
    _refuse_beyond_exact(float(found[np.isfinite(found)].max()))
    return found


def _found(s: Snapshot, start: int) -> Array:
    if s._weights is None:  # one each
        hops = to_host(algorithms.bfs(s, start))
        return np.where(hops < 0, np.inf, hops)
    found: Array = to_host(algorithms.shortest_paths(s, start))
    return found


def _refuse_beyond_exact(longest: float) -> None:
    if longest >= EXACT:
        raise NotImplementedError("lpma's lengths are floats: these are too large to be exact")


def _within(
    G: ConvertedGraph, distances: Array, start: int, cutoff: float | None
) -> WeightedLengths:
    chosen = np.isfinite(distances) & (distances <= (np.inf if cutoff is None else cutoff))
    chosen[start] = True
    return _by_length(G, distances, chosen)
