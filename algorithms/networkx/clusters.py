"""NetworkX's triangles and clustering coefficients.

A coefficient is 0, an integer, where there is no triangle, as in NetworkX. Triangles and degrees
are those of the simple undirected graph. The triangles of a directed graph, which count by their
directions, and squares are found by wedges_cpu.py, on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import algorithms
from lpma.arrays import to_host
from lpma.cpu.pieces import by_rows

from ..arrays import Array
from ..views.simple import View, simple, symmetric
from . import wedges_cpu
from .converted import ConvertedGraph, networkx

Coefficients = dict[Any, float]


def triangles(G: ConvertedGraph, nodes: Any = None) -> dict[Any, int] | int:
    """The number of triangles at each node, or at each of `nodes`, or at one node."""
    if nodes is not None and G.is_multigraph():
        raise networkx().NetworkXNotImplemented("not implemented for multigraph type")
    counts = _triangles(G)
    if nodes in G:
        return counts[G.number[nodes]]
    return _at(G, counts, nodes)


def clustering(G: ConvertedGraph, nodes: Any = None, weight: None = None) -> Coefficients | float:
    """The share of the pairs of neighbours of each node that are neighbours."""
    found = G.kept("clustering", lambda: _directed(G) if G.is_directed() else _undirected(G))
    return found[G.number[nodes]] if nodes in G else _at(G, found, nodes)


def average_clustering(
    G: ConvertedGraph, nodes: Any = None, weight: None = None, count_zeros: bool = True
) -> float:
    """The mean of the coefficients: of all nodes, or of `nodes`, or of those above 0."""
    found: Any = clustering(G, nodes)
    coefficients = list(found.values())  # of one node there is no mean: NetworkX's AttributeError
    if not count_zeros:
        coefficients = [c for c in coefficients if abs(c) > 0]
    return sum(coefficients) / len(coefficients)


def transitivity(G: ConvertedGraph) -> float:
    """Three times the number of triangles, over the number of pairs of edges that meet."""
    return algorithms.transitivity(G.snapshot) or 0


def square_clustering(G: ConvertedGraph, nodes: Any = None) -> Coefficients | float:
    """The share of the squares at each node, among those that could be."""
    found = G.kept("square clustering", lambda: _squares(G))
    return found[G.number[nodes]] if nodes in G else _at(G, found, nodes)


def _triangles(G: ConvertedGraph) -> list[int]:
    return G.values("triangles", lambda: algorithms.triangles(G.snapshot))


def _undirected(G: ConvertedGraph) -> list[float]:
    found = to_host(algorithms.clustering_coefficients(G.snapshot)).tolist()
    return [coefficient or 0 for coefficient in found]


def _directed(G: ConvertedGraph) -> list[float]:
    """A triangle counts for each way in which its edges, either way, make one."""
    view = G.structure.sorted_rows
    both = symmetric(view)
    directions = np.concatenate(
        by_rows(wedges_cpu.directions, both.indptr, both.indptr, both.indices, *_rows(view))
    )
    pieces = by_rows(wedges_cpu.triangles, both.indptr, *_rows(both), directions)
    ways = np.concatenate(pieces).tolist()
    at = np.repeat(np.arange(len(G)), np.diff(both.indptr))
    total = np.bincount(at, directions, len(G)).astype(np.int64).tolist()
    mutual = np.bincount(at, directions == 2, len(G)).astype(np.int64).tolist()
    counted = zip(ways, total, mutual, strict=True)
    return [0 if t == 0 else t / ((d * (d - 1) - 2 * m) * 2) for t, d, m in counted]


def _squares(G: ConvertedGraph) -> list[float]:
    view = _host_view(G)
    pieces = by_rows(wedges_cpu.squares, view.indptr, *_rows(view))
    found, possible = (np.concatenate(column).tolist() for column in zip(*pieces, strict=True))
    return [s / p if p > 0 else 0 for s, p in zip(found, possible, strict=True)]


def _host_view(G: ConvertedGraph) -> View:
    view = simple(G.snapshot)
    return View(to_host(view.indptr), to_host(view.indices))


def _rows(view: View) -> tuple[Array, Array]:
    return view.indptr, view.indices


def _at(G: ConvertedGraph, values: list[Any], nodes: Any) -> dict[Any, Any]:
    if nodes is None:
        return G.by_label(values)
    return {node: values[G.number[node]] for node in G.chosen(nodes)}
