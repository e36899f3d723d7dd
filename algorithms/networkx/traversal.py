"""NetworkX's breadth-first traversals and paths, node by node in NetworkX's order.

All come from one search: `algorithms.bfs` finds levels in no order, but edges, trees and paths
depend on the order of NetworkX's dictionaries. One thread runs a queue, on the host; most of the
time goes to making Python objects of the result.

An iterator holds its rows from the call on, and searches them all before it yields the first edge,
so that its results are those as of the call. Errors and warnings come with the first edge, as in
NetworkX.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from lpma.cpu.jit import compiled

from ..arrays import Array
from .converted import ConvertedGraph, is_since, networkx

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
        order, parents, bounds = _queue(rows.indptr, rows.indices, starts, steps)
        return G.named(order), G.named(parents), bounds.tolist()

    return run


@compiled
def _queue(
    indptr: Array, indices: Array, sources: Array, levels: int
) -> tuple[Array, Array, Array]:
    """uint32[k], the vertices found within `levels` steps, in order, distinct sources first;
    uint32[k], from which vertex each was found, a source from itself; and int64[l+1], where each
    level begins, and the end."""
    n = len(indptr) - 1
    order, parents = np.empty(n, np.uint32), np.empty(n, np.uint32)
    bounds = np.empty(n + 2, np.int64)
    seen = np.zeros(n, np.bool_)
    end = 0
    for source in sources:
        seen[source] = True
        order[end] = parents[end] = source
        end += 1
    bounds[0], begin, level = 0, 0, 0
    while begin < end:
        level += 1
        bounds[level] = end
        if level > levels:
            break
        for i in range(begin, bounds[level]):
            u = np.int64(order[i])
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if not seen[v]:
                    seen[v] = True
                    order[end], parents[end] = v, u
                    end += 1
        begin = bounds[level]
    return order[:end], parents[:end], bounds[: level + 1]
