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

from ..views.simple import simple, symmetric
from . import wedges_cpu
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
    directions = np.concatenate(
        by_rows(wedges_cpu.directions, both.indptr, *both_rows, view.indptr, view.indices)
    )
    pieces = by_rows(wedges_cpu.triangles, both.indptr, *both_rows, directions)
    ways = np.concatenate(pieces).tolist()
    at = np.repeat(np.arange(len(G)), np.diff(both.indptr))
    total = np.bincount(at, directions, len(G)).astype(np.int64).tolist()
    mutual = np.bincount(at, directions == 2, len(G)).astype(np.int64).tolist()
    counted = zip(ways, total, mutual, strict=True)
    return [0 if t == 0 else t / ((d * (d - 1) - 2 * m) * 2) for t, d, m in counted]


def _squares(G: ConvertedGraph) -> list[float]:
    view = simple(G.snapshot)
    rows = to_host(view.indptr), to_host(view.indices)
    pieces = by_rows(wedges_cpu.squares, rows[0], *rows)
    found, possible = (np.concatenate(column).tolist() for column in zip(*pieces, strict=True))
    return [s / p if p > 0 else 0 for s, p in zip(found, possible, strict=True)]


def _at(G: ConvertedGraph, values: list[Any], nodes: Any) -> Any:
    """The value of one node, or a dictionary of several, or of all."""
    if nodes in G:
        return values[G.number[nodes]]
    if nodes is None:
        return G.by_label(values)
    return {node: values[G.number[node]] for node in G.chosen(nodes)}
