"""NetworkX's cores and trusses: parts of the original graph, with its attributes.

Only the edges of a part are copied, where NetworkX copies the graph and removes edges, or filters
all of it. Core and truss numbers are kept with the converted graph.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, le, lt
from typing import Any

import numpy as np

import algorithms
from lpma.arrays import row_numbers, to_host

from ..arrays import Array
from .convert import is_plain
from .converted import ConvertedGraph

Numbers = dict[Any, int] | None


def core_number(G: ConvertedGraph) -> dict[Any, int]:
    G.refuse_loops()
    return G.by_label(G.values("cores", lambda: algorithms.core_numbers(G.snapshot)))


def k_core(G: ConvertedGraph, k: int | None = None, core_number: Numbers = None) -> Any:
    return _by_core(G, k, core_number, ge)


def k_shell(G: ConvertedGraph, k: int | None = None, core_number: Numbers = None) -> Any:
    return _by_core(G, k, core_number, eq)


def k_crust(G: ConvertedGraph, k: int | None = None, core_number: Numbers = None) -> Any:
    """By default, less than the largest core number, and not up to it."""
    return _by_core(G, k, core_number, lt if k is None else le)


def k_corona(G: ConvertedGraph, k: int | None, core_number: Numbers = None) -> Any:
    numbers = _given_or_own(G, core_number)
    wanted = max(numbers.values()) if k is None else k

    def is_in(node: Any) -> bool:
        if numbers[node] != wanted:
            return False
        return wanted == sum(numbers[v] >= wanted for v in G.structure.neighbors(G.number[node]))

    return _part(G, [node for node in numbers if is_in(node)])


def k_truss(G: ConvertedGraph, k: int) -> Any:
    G.refuse_loops()
    src, dst, truss = G.kept("trusses", lambda: _trusses(G))
    ends, key = _edges(G), np.array([len(G), 1])  # an edge is known by its smaller and larger row
    remains = np.stack((src, dst))[:, truss >= k].astype(np.int64)
    kept = ends[:, np.isin(key @ ends, key @ remains)]
    return _copied(G, np.unique(kept), kept)


def _trusses(G: ConvertedGraph) -> list[Array]:
    """The smaller and the larger row of each edge, and its truss number."""
    return [to_host(column) for column in algorithms.truss_numbers(G.snapshot)]


def _given_or_own(G: ConvertedGraph, given: Numbers) -> dict[Any, int]:
    return core_number(G) if given is None else given


def _by_core(
    G: ConvertedGraph, k: int | None, given: Numbers, belongs: Callable[[int, int], bool]
) -> Any:
    """The subgraph of the nodes whose core number belongs to k; None: the largest."""
    numbers = _given_or_own(G, given)
    bound = max(numbers.values()) if k is None else k
    return _part(G, [node for node, core in numbers.items() if belongs(core, bound)])


def _part(G: ConvertedGraph, nodes: list[Any]) -> Any:
    """The subgraph that these nodes induce; any that are not in the graph are ignored."""
    inside = np.zeros(len(G), np.bool_)
    inside[[G.number[node] for node in nodes if node in G]] = True
    ends = _edges(G)
    return _copied(G, np.flatnonzero(inside), ends[:, inside[ends[0]] & inside[ends[1]]])


def _edges(G: ConvertedGraph) -> Array:
    """int64[2, m]: the rows of each edge's ends, once, in NetworkX's order."""
    view = G.structure.rows
    src, dst = row_numbers(view.indptr, len(view.indices)), view.indices.astype(np.int64)
    return np.stack((src, dst))[:, src <= dst]


def _copied(G: ConvertedGraph, rows: Array, ends: Array) -> Any:
    """A graph of these nodes and edges, with copies of the original's attributes."""
    origin = G.unchanged_origin()
    if not is_plain(origin):
        return _copied_by_networkx(G, origin, rows, ends)
    nodes, adjacent = origin._node, origin._adj
    part = origin.__class__()
    part.graph.update(origin.graph)
    part.add_nodes_from((label, nodes[label]) for label in G.named(rows))
    pairs = zip(*map(G.named, ends), strict=True)
    part.add_edges_from((u, v, adjacent[u][v]) for u, v in pairs)
    return part


def _copied_by_networkx(G: ConvertedGraph, origin: Any, rows: Array, ends: Array) -> Any:
    """As `_copied`, of a view or a subclass, by NetworkX's own copy."""
    part = origin.subgraph(G.named(rows)).copy()
    wanted = set(zip(*map(G.named, ends), strict=True))
    part.remove_edges_from([(u, v) for u, v in part.edges() if not wanted & {(u, v), (v, u)}])
    return part
