"""NetworkX's cores and trusses: of the original graph, with its attributes.

A core is cut from the original by `subgraph`, a truss by removing edges, so that both have what
NetworkX's own have. Core and truss numbers are kept with the converted graph.
"""

from __future__ import annotations

from typing import Any

import algorithms
from lpma.arrays import to_host

from .converted import ConvertedGraph, networkx

Numbers = dict[Any, int] | None


def core_number(G: ConvertedGraph) -> dict[Any, int]:
    """The core number of each node."""
    G.refuse_loops()
    return G.by_label(G.values("cores", lambda: algorithms.core_numbers(G.snapshot)))


def k_core(G: ConvertedGraph, k: int | None = None, core_number: Numbers = None) -> Any:
    """The subgraph of the nodes with core number k or more. k: by default the largest core
    number."""
    numbers = _given_or_own(G, core_number)
    least = max(numbers.values()) if k is None else k
    return _part(G, [node for node, core in numbers.items() if core >= least])


def k_shell(G: ConvertedGraph, k: int | None = None, core_number: Numbers = None) -> Any:
    """The subgraph of the nodes with core number k. k: by default the largest core number."""
    numbers = _given_or_own(G, core_number)
    wanted = max(numbers.values()) if k is None else k
    return _part(G, [node for node, core in numbers.items() if core == wanted])


def k_crust(G: ConvertedGraph, k: int | None = None, core_number: Numbers = None) -> Any:
    """The subgraph of the nodes with core number k or less. k: by default one less than the largest
    core number."""
    numbers = _given_or_own(G, core_number)
    most = max(numbers.values()) - 1 if k is None else k
    return _part(G, [node for node, core in numbers.items() if core <= most])


def k_corona(G: ConvertedGraph, k: int, core_number: Numbers = None) -> Any:
    """The subgraph of the nodes with core number k that have k neighbours in the k-core."""
    numbers = _given_or_own(G, core_number)

    def is_in(node: Any) -> bool:
        return numbers[node] == k and k == sum(numbers[v] >= k for v in G.origin[node])

    return _part(G, [node for node in numbers if is_in(node)])


def k_truss(G: ConvertedGraph, k: int) -> Any:
    """The subgraph that remains when edges in fewer than k − 2 triangles are removed until there
    are none, and then the nodes without edges."""
    G.refuse_loops()
    src, dst, truss = G.kept("trusses", lambda: _truss_numbers(G))
    gone = truss < k
    ends = ([G.labels[v] for v in end[gone].tolist()] for end in (src, dst))
    remaining = G.origin.copy()
    remaining.remove_edges_from(zip(*ends, strict=True))
    remaining.remove_nodes_from(list(networkx().isolates(remaining)))
    return remaining


def _truss_numbers(G: ConvertedGraph) -> tuple[Any, ...]:
    return tuple(to_host(column) for column in algorithms.truss_numbers(G.snapshot))


def _given_or_own(G: ConvertedGraph, given: Numbers) -> dict[Any, int]:
    return core_number(G) if given is None else given


def _part(G: ConvertedGraph, nodes: list[Any]) -> Any:
    return G.origin.subgraph(nodes).copy()
