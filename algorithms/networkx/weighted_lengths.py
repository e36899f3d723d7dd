"""NetworkX's lengths of shortest paths by weight, by Dijkstra's and by Bellman and Ford's names.

Where no weight is negative both are the same lengths, and they come nearest first, those at one
distance in the order of the graph. They are floats also where weights are integers. Integers below
2^53 are exact as floats, and so are their sums; where a length is or might be larger, of whatever
weights, NetworkX's own serve.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import algorithms
from lpma import Snapshot
from lpma.arrays import to_host

from .converted import ConvertedGraph, networkx

Array = npt.NDArray[Any]
Lengths = dict[Any, float]

EXACT = 2.0**53  # integers below it are floats; one from it on is not rounded to less


def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Lengths:
    """The length of a shortest path to each node that is reached within `cutoff`."""
    start = G.require(source, f"Node {source} not found in graph")
    return _nearest_first(G, _distances(G, start, weight), start, cutoff)


def all_pairs_dijkstra_path_length(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[tuple[Any, Lengths]]:
    """(source, the lengths from it), for each node. What might be too large is refused at once,
    since NetworkX cannot take over later; no path has more than n − 1 edges."""
    s = G.weighted(weight, by_row=True)
    if s._weights is not None:
        _refuse_beyond_exact(float(to_host(s._weights).max(initial=0)) * (len(G) - 1))
    return ((u, _nearest_first(G, _found(s, v), v, cutoff)) for v, u in enumerate(G.labels))


def dijkstra_path_length(
    G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight"
) -> float:
    """The length of a shortest path from source to target."""
    start = G.require(source, f"Node {source} not found in graph")
    no_path = f"Node {target} not reachable from {source}"
    return _length(G, start, source, target, weight, no_path)


def single_source_bellman_ford_path_length(
    G: ConvertedGraph, source: Any, weight: str | None = "weight"
) -> Lengths:
    """The length of a shortest path to each node that is reached."""
    start = G.require(source, f"Source {source} not in G")
    return _nearest_first(G, _distances(G, start, weight), start, None)


def bellman_ford_path_length(
    G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight"
) -> float:
    """The length of a shortest path from source to target."""
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


def _nearest_first(
    G: ConvertedGraph, distances: Array, start: int, cutoff: float | None
) -> Lengths:
    within = np.isfinite(distances) & (distances <= (np.inf if cutoff is None else cutoff))
    within[start] = True
    reached = np.flatnonzero(within)
    reached = reached[np.argsort(distances[reached], kind="stable")]
    names = map(G.labels.__getitem__, reached.tolist())
    return dict(zip(names, distances[reached].tolist(), strict=True))
