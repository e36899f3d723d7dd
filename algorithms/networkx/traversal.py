"""NetworkX's breadth-first traversals and paths, node by node in NetworkX's order.

All come from one search (ordered_cpu.py). An iterator holds its rows from the call on, and searches
them all before it yields the first edge, so that its results are those as of the call. Errors and
warnings come with the first edge, as in NetworkX.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from .converted import ConvertedGraph, is_since, networkx
from .ordered_cpu import search

Edge = tuple[Any, Any]
Paths = dict[Any, list[Any]]
# The nodes found, in order, sources first; from which each was found; and where each level begins,
# and the end.
Search = Callable[[], tuple[list[Any], list[Any], list[int]]]

_DEPRECATED = (
    "\n\nbfs_predecessors is deprecated and will be removed in NetworkX 3.9\n"
    "Use ``(t, s) for (s, t) in bfs_edges`` instead"
)


def bfs_edges(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: None = None,
) -> Iterator[Edge]:
    if source not in G:
        kind = "digraph" if G.is_directed() else "graph"
        return _raising(networkx().NetworkXError(f"The node {source} is not in the {kind}."))
    return _edges(_search(G, [source], depth_limit, reverse))


def bfs_tree(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: None = None,
) -> Any:
    tree = networkx().DiGraph()
    tree.add_node(source)
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit))
    return tree


def bfs_predecessors(
    G: ConvertedGraph, source: Any, depth_limit: float | None = None, sort_neighbors: None = None
) -> Iterator[Edge]:
    """Warns of deprecation where and in the words that NetworkX does, which filters know."""
    return _turned(bfs_edges(G, source, False, depth_limit))


def bfs_successors(
    G: ConvertedGraph, source: Any, depth_limit: float | None = None, sort_neighbors: None = None
) -> Iterator[tuple[Any, list[Any]]]:
    return _by_parent(source, bfs_edges(G, source, False, depth_limit))


def bfs_layers(G: ConvertedGraph, sources: Any) -> Iterator[list[Any]]:
    try:
        begun = list({sources} if sources in G else set(sources))
    except TypeError as error:
        return _raising(error)
    for source in begun:
        if source not in G:
            return _raising(networkx().NetworkXError(f"The node {source} is not in the graph."))
    return _layers(_search(G, begun, None, False))


def _raising(error: Exception) -> Iterator[Any]:
    """Raise the error when the first item is requested."""
    yield from _raised(error)


def _raised(error: Exception) -> list[Any]:
    raise error


def _edges(search: Search) -> Iterator[Edge]:
    nodes, parents, _ = search()
    yield from zip(parents[1:], nodes[1:], strict=True)


def _turned(edges: Iterator[Edge]) -> Iterator[Edge]:
    if is_since(3, 7):
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=2)
    for parent, child in edges:
        yield child, parent


def _by_parent(source: Any, edges: Iterator[Edge]) -> Iterator[tuple[Any, list[Any]]]:
    at = source
    children: list[Any] = []
    for parent, child in edges:
        if parent != at:
            yield at, children
            at, children = parent, []
        children.append(child)
    yield at, children


def _layers(search: Search) -> Iterator[list[Any]]:
    nodes, _, bounds = search()
    for first, last in pairwise(bounds):
        yield nodes[first:last]


def single_source_shortest_path(
    G: ConvertedGraph, source: Any, cutoff: float | None = None
) -> Paths:
    G.require(source, f"Source {source} not in G")
    return _paths(G, source, cutoff, False, lambda path, node: [*path, node])


def single_target_shortest_path(
    G: ConvertedGraph, target: Any, cutoff: float | None = None
) -> Paths:
    G.require(target, f"Target {target} not in G")
    return _paths(G, target, cutoff, True, lambda path, node: [node, *path])


def all_pairs_shortest_path(
    G: ConvertedGraph, cutoff: float | None = None
) -> Iterator[tuple[Any, Paths]]:
    return ((source, single_source_shortest_path(G, source, cutoff)) for source in G.labels)


def _paths(
    G: ConvertedGraph,
    start: Any,
    cutoff: float | None,
    reverse: bool,
    join: Callable[[list[Any], Any], list[Any]],
) -> Paths:
    paths = {start: [start]}
    for parent, node in _edges(_search(G, [start], cutoff, reverse)):
        paths[node] = join(paths[parent], node)
    return paths


def _search(G: ConvertedGraph, sources: list[Any], levels: float | None, reverse: bool) -> Search:
    """levels: how many at most, rounded up; None: all."""
    rows = G.predecessors if reverse else G.structure.rows
    starts = np.array([G.number[source] for source in sources], np.int64)
    steps = len(G) if levels is None else int(np.ceil(min(max(levels, 0), len(G))))

    def run() -> tuple[list[Any], list[Any], list[int]]:
        order, parents, bounds = search(rows.indptr, rows.indices, starts, steps)
        return G.named(order), G.named(parents), bounds.tolist()

    return run
