"""NetworkX's triangles and clustering coefficients.

A coefficient is 0, an integer, where there is no triangle, as in NetworkX. Triangles and degrees
are those of the simple undirected graph. The triangles of a directed graph, which count by their
directions, and squares are found on the host: the paths of two edges from a node, its wedges, are
walked once, and counted by where they end. A node at which c wedges end is the opposite corner of
c(c − 1)/2 squares; an end that is a neighbour closes triangles. O(Σ degree²), in threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import algorithms
from lpma.arrays import row_numbers, to_host
from lpma.cpu.jit import compiled
from lpma.cpu.merged import contains
from lpma.cpu.pieces import by_rows
from lpma.pma.keys import keys_of

from ..arrays import Array
from ..views.simple import simple, symmetric
from .converted import ConvertedGraph, networkx

Coefficients = dict[Any, float]


def triangles(G: ConvertedGraph, nodes: Any = None) -> dict[Any, int] | int:
    if nodes is not None and G.is_multigraph():
        raise networkx().NetworkXNotImplemented("not implemented for multigraph type")
    return _at(G, G.values("triangles", lambda: algorithms.triangles(G.snapshot)), nodes)


def clustering(G: ConvertedGraph, nodes: Any = None, weight: None = None) -> Coefficients | float:
    found = G.kept("clustering", lambda: _directed(G) if G.is_directed() else _undirected(G))
    return _at(G, found, nodes)


def average_clustering(
    G: ConvertedGraph, nodes: Any = None, weight: None = None, count_zeros: bool = True
) -> float:
    found: Any = clustering(G, nodes)
    coefficients = list(found.values())  # of one node there is no mean: NetworkX's AttributeError
    if not count_zeros:
        coefficients = [c for c in coefficients if abs(c) > 0]
    return sum(coefficients) / len(coefficients)


def transitivity(G: ConvertedGraph) -> float:
    return algorithms.transitivity(G.snapshot) or 0


def square_clustering(G: ConvertedGraph, nodes: Any = None) -> Coefficients | float:
    return _at(G, G.kept("square clustering", lambda: _squares(G)), nodes)


def _undirected(G: ConvertedGraph) -> list[float]:
    found = to_host(algorithms.clustering_coefficients(G.snapshot)).tolist()
    return [coefficient or 0 for coefficient in found]


def _directed(G: ConvertedGraph) -> list[float]:
    """A triangle counts for each way in which its edges, either way, make one."""
    view = G.structure.sorted_rows
    both = symmetric(view)
    both_rows = both.indptr, both.indices
    at = row_numbers(both.indptr, len(both.indices))
    here, back = keys_of(at, both.indices), keys_of(both.indices, at)
    # Of each edge between two nodes: 1 or 2.
    directions = sum(contains(view.indptr, view.indices, keys).astype(int) for keys in (here, back))
    pieces = by_rows(_count_triangles, both.indptr, *both_rows, directions)
    ways = np.concatenate(pieces).tolist()
    total = np.bincount(at, directions, len(G)).astype(np.int64).tolist()
    mutual = np.bincount(at, directions == 2, len(G)).astype(np.int64).tolist()
    counted = zip(ways, total, mutual, strict=True)
    return [0 if t == 0 else t / ((d * (d - 1) - 2 * m) * 2) for t, d, m in counted]


def _squares(G: ConvertedGraph) -> list[float]:
    view = simple(G.snapshot)
    rows = to_host(view.indptr), to_host(view.indices)
    pieces = by_rows(_count_squares, rows[0], *rows)
    found, possible = (np.concatenate(column).tolist() for column in zip(*pieces, strict=True))
    return [s / p if p > 0 else 0 for s, p in zip(found, possible, strict=True)]


def _at(G: ConvertedGraph, values: list[Any], nodes: Any) -> Any:
    """The value of one node, or a dictionary of several, or of all."""
    if nodes in G:
        return values[G.number[nodes]]
    if nodes is None:
        return G.by_label(values)
    return {node: values[G.number[node]] for node in G.chosen(nodes)}


@compiled
def _count_squares(first: int, last: int, indptr: Array, indices: Array) -> tuple[Array, Array]:
    """int64[last - first] each: the squares at each node, and as many as there could be, as Zhang
    et al. count them ("Clustering coefficient and community structure of bipartite networks",
    Physica A 387, 2008): for each pair of neighbours, the other nodes that either has."""
    found = np.zeros(last - first, np.int64)
    possible = np.zeros(last - first, np.int64)
    wedges = np.zeros(len(indptr) - 1, np.int64)  # that end at each node; 0 between the nodes
    for v in range(first, last):
        degree = indptr[v + 1] - indptr[v]
        ends = 0
        for i in range(indptr[v], indptr[v + 1]):
            u = np.int64(indices[i])
            ends += indptr[u + 1] - indptr[u]
            for j in range(indptr[u], indptr[u + 1]):
                wedges[indices[j]] += 1
        wedges[v] = 0
        closed = 0
        for i in range(indptr[v], indptr[v + 1]):
            closed += wedges[indices[i]]
        count = 0
        for i in range(indptr[v], indptr[v + 1]):
            u = np.int64(indices[i])
            for j in range(indptr[u], indptr[u + 1]):
                c = wedges[indices[j]]
                count += c * (c - 1) // 2
                wedges[indices[j]] = 0
        found[v - first] = count
        possible[v - first] = ends * (degree - 1) - degree * (degree - 1) - closed - count
    return found, possible


@compiled
def _count_triangles(
    first: int, last: int, indptr: Array, indices: Array, directed: Array
) -> Array:
    """int64[last - first]: the triangles at each node, each as often as its edges' `directed`
    multiply to, and both ways round."""
    found = np.zeros(last - first, np.int64)
    to = np.zeros(len(indptr) - 1, np.int64)  # of the edge to each neighbour; 0 between the nodes
    for v in range(first, last):
        for i in range(indptr[v], indptr[v + 1]):
            to[indices[i]] = directed[i]
        count = 0
        for i in range(indptr[v], indptr[v + 1]):
            u = np.int64(indices[i])
            for j in range(indptr[u], indptr[u + 1]):
                count += directed[i] * directed[j] * to[indices[j]]
        for i in range(indptr[v], indptr[v + 1]):
            to[indices[i]] = 0
        found[v - first] = count
    return found
