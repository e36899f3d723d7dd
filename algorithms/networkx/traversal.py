"""NetworkX's breadth-first traversals and paths, node by node in NetworkX's order.

All come from one search (ordered_cpu.py). An iterator holds its rows from the call on, and searches
them all before it yields the first edge, so that its results are those as of the call. Errors and
warnings come with the first edge, as in NetworkX.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..views.simple import View
from .converted import ConvertedGraph, is_since, networkx
from .ordered_cpu import search

Edge = tuple[Any, Any]
Paths = dict[Any, list[Any]]

_DEPRECATED = (
    "\n\nbfs_predecessors is deprecated and will be removed in NetworkX 3.9\n"
    "Use ``(t, s) for (s, t) in bfs_edges`` instead"
)


class _Found(NamedTuple):
    """What a search found, in order, sources first."""

    nodes: list[Any]
    parents: list[Any]
    bounds: list[int]  # where each level begins, and the end


class _Search(NamedTuple):
    """A search and what it needs."""

    labels: list[Any]
    rows: View
    starts: Array
    steps: int

    def run(self) -> _Found:
        order, parents, bounds = search(
            self.rows.indptr, self.rows.indices, self.starts, self.steps
        )
        return _Found(self._named(order), self._named(parents), bounds.tolist())

    def _named(self, rows: Array) -> list[Any]:
        return list(map(self.labels.__getitem__, rows.tolist()))


def bfs_edges(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: None = None,
) -> Iterator[Edge]:
    """The edges (parent, child) by which nodes are found."""
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
    """The tree of these edges, a networkx.DiGraph."""
    tree = networkx().DiGraph()
    tree.add_node(source)
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit))
    return tree


def bfs_predecessors(
    G: ConvertedGraph, source: Any, depth_limit: float | None = None, sort_neighbors: None = None
) -> Iterator[Edge]:
    """(node, the node from which it was found), without the source. Warns of deprecation where and
    in the words that NetworkX does, which filters know."""
    return _turned(bfs_edges(G, source, False, depth_limit))


def bfs_successors(
    G: ConvertedGraph, source: Any, depth_limit: float | None = None, sort_neighbors: None = None
) -> Iterator[tuple[Any, list[Any]]]:
    """(node, the nodes found from it), for the source and all nodes from which one was found."""
    return _by_parent(source, bfs_edges(G, source, False, depth_limit))


def bfs_layers(G: ConvertedGraph, sources: Any) -> Iterator[list[Any]]:
    """The nodes at each distance from the sources, one node or several."""
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


def _edges(search: _Search) -> Iterator[Edge]:
    found = search.run()
    yield from zip(found.parents[1:], found.nodes[1:], strict=True)


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


def _layers(search: _Search) -> Iterator[list[Any]]:
    found = search.run()
    for first, last in zip(found.bounds, found.bounds[1:], strict=False):
        yield found.nodes[first:last]


def single_source_shortest_path(
    G: ConvertedGraph, source: Any, cutoff: float | None = None
) -> Paths:
    """A shortest path from the source to each node that it leads to within `cutoff`."""
    G.require(source, f"Source {source} not in G")
    return _paths(G, source, cutoff, False, lambda path, node: [*path, node])


def single_target_shortest_path(
    G: ConvertedGraph, target: Any, cutoff: float | None = None
) -> Paths:
    """A shortest path to the target from each node that leads to it within `cutoff`."""
    G.require(target, f"Target {target} not in G")
    return _paths(G, target, cutoff, True, lambda path, node: [node, *path])


def all_pairs_shortest_path(
    G: ConvertedGraph, cutoff: float | None = None
) -> Iterator[tuple[Any, Paths]]:
    """(source, its shortest paths), for each node."""
    return ((source, single_source_shortest_path(G, source, cutoff)) for source in G.labels)


def _paths(
    G: ConvertedGraph,
    start: Any,
    cutoff: float | None,
    reverse: bool,
    join: Callable[[list[Any], Any], list[Any]],
) -> Paths:
    found = _search(G, [start], cutoff, reverse).run()
    paths = {start: [start]}
    for parent, node in zip(found.parents[1:], found.nodes[1:], strict=True):
        paths[node] = join(paths[parent], node)
    return paths


def _search(G: ConvertedGraph, sources: list[Any], levels: float | None, reverse: bool) -> _Search:
    """levels: how many at most, rounded up; None: all."""
    rows = G.predecessors if reverse else G.structure.rows
    starts = np.array([G.number[source] for source in sources], np.int64)
    steps = len(G) if levels is None else int(np.ceil(min(max(levels, 0), len(G))))
    return _Search(G.labels, rows, starts, steps)
