"""Oracles of the algorithms: NetworkX and igraph, given a graph as its ends.

They lie apart from `oracles.py`, which processes of many tests import: igraph brings matplotlib, a
second of work.
"""

from __future__ import annotations

from typing import Any

import igraph
import networkx as nx
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Edge = tuple[int, int]


def simple_edges(src: Array, dst: Array) -> set[Edge]:
    """The distinct undirected edges without loops, smaller end first."""
    pairs = zip(src.tolist(), dst.tolist(), strict=True)
    return {(min(u, v), max(u, v)) for u, v in pairs if u != v}


def networkx_graph(n: int, src: Array, dst: Array) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(simple_edges(src, dst))
    return graph


def igraph_graph(n: int, src: Array, dst: Array) -> igraph.Graph:
    return igraph.Graph(n=n, edges=sorted(simple_edges(src, dst)))


def core_numbers_networkx(n: int, src: Array, dst: Array) -> Array:
    cores = nx.core_number(networkx_graph(n, src, dst))
    return np.array([cores[u] for u in range(n)], np.int32)


def core_numbers_igraph(n: int, src: Array, dst: Array) -> Array:
    return np.array(igraph_graph(n, src, dst).coreness(), np.int32)


def triangles_networkx(n: int, src: Array, dst: Array) -> int:
    return sum(nx.triangles(networkx_graph(n, src, dst)).values()) // 3


def triangles_igraph(n: int, src: Array, dst: Array) -> int:
    return len(igraph_graph(n, src, dst).list_triangles())


def support_networkx(n: int, src: Array, dst: Array) -> tuple[Array, Array, Array]:
    """Every edge with the number of common neighbours of its ends, sorted."""
    graph = networkx_graph(n, src, dst)
    return _edge_columns(
        {e: len(set(graph[e[0]]) & set(graph[e[1]])) for e in simple_edges(src, dst)}
    )


def truss_networkx(n: int, src: Array, dst: Array) -> tuple[Array, Array, Array]:
    """Every edge with the largest k for which NetworkX has it in the k-truss, sorted."""
    truss = dict.fromkeys(simple_edges(src, dst), 2)
    graph, k = networkx_graph(n, src, dst), 3
    while graph.number_of_edges():
        graph = nx.k_truss(graph, k)
        truss |= {(min(e), max(e)): k for e in graph.edges}
        k += 1
    return _edge_columns(truss)


def _edge_columns(values: dict[Edge, int]) -> tuple[Array, Array, Array]:
    rows = np.array([(u, v, values[u, v]) for u, v in sorted(values)], np.int64).reshape(-1, 3)
    return rows[:, 0].astype(np.uint32), rows[:, 1].astype(np.uint32), rows[:, 2].astype(np.int32)
