"""NetworkX's degree centralities, isolated nodes and reciprocity: sums over rows.

As in NetworkX, parallel edges count, and a loop counts twice, as an edge out and an edge in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays import Array
from .converted import ConvertedGraph, networkx


def degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    return _centrality(G, degrees(G))


def in_degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    return _centrality(G, _in_degrees(G))


def out_degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    return _centrality(G, _out_degrees(G))


def isolates(G: ConvertedGraph) -> Iterator[Any]:
    return iter(G.named(np.flatnonzero(degrees(G) == 0)))


def number_of_isolates(G: ConvertedGraph) -> int:
    return int(np.count_nonzero(degrees(G) == 0))


def overall_reciprocity(G: ConvertedGraph) -> float:
    """Loops are not counted as their own reverse."""
    m = len(G.structure.rows.indices)
    if m == 0:
        raise networkx().NetworkXError("Not defined for empty graphs")
    return int(_returned(G).sum() - G.loops.sum()) / m


def reciprocity(G: ConvertedGraph, nodes: Any = None) -> Any:
    """None at an isolated node, which alone is an error. Without `nodes`, that of the graph."""
    if nodes is None:
        return overall_reciprocity(G)
    returned, total = _returned(G), _out_degrees(G) + _in_degrees(G)

    def of(node: Any) -> float | None:
        v = G.number[node]
        return None if total[v] == 0 else float(2 * returned[v] / total[v])

    if nodes not in G:
        return {node: of(node) for node in G.chosen(nodes)}
    found = of(nodes)
    if found is None:
        raise networkx().NetworkXError("Not defined for isolated nodes.")
    return found


def degrees(G: ConvertedGraph) -> Array:
    """float64[n]: the degree of each row, exact as NetworkX's `G.degree`."""
    if G.is_directed():
        return _out_degrees(G) + _in_degrees(G)
    return _out_degrees(G) + G.loops


def _out_degrees(G: ConvertedGraph) -> Array:
    view, parallel = G.structure.rows, G.structure.parallel
    if parallel is None:
        return np.diff(view.indptr).astype(np.float64)
    return np.diff(np.concatenate(([0.0], np.cumsum(parallel)))[view.indptr])


def _in_degrees(G: ConvertedGraph) -> Array:
    structure = G.structure
    found = np.bincount(structure.rows.indices, structure.parallel, len(G))
    return found.astype(np.float64)


def _centrality(G: ConvertedGraph, found: Array) -> dict[Any, float]:
    if len(G) <= 1:
        return dict.fromkeys(G.labels, 1)
    return G.by_label((found * (1.0 / (len(G) - 1.0))).tolist())


def _returned(G: ConvertedGraph) -> Array:
    """int64[n]: the targets of each row that have an edge back."""
    from scipy.sparse import csr_array

    view = G.structure.sorted_rows
    entries = (np.ones(len(view.indices), np.int8), view.indices.view(np.int32), view.indptr)
    matrix = csr_array(entries, shape=(len(G), len(G)))
    both = matrix.multiply(matrix.T.tocsr()).tocsr()
    return np.diff(both.indptr).astype(np.int64)
