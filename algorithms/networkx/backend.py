"""What NetworkX calls: its functions under its names, and the four that every backend has.

NetworkX loads this module when a function is first to run by this backend. If a function cannot do
what it is asked for, `can_run` says so, or the function raises NotImplementedError; NetworkX then
runs its own, if its configuration allows that.

    >>> import networkx as nx
    >>> nx.core_number(nx.cycle_graph(4), backend="lpma")
    {0: 2, 1: 2, 2: 2, 3: 2}
"""

from __future__ import annotations

import sys
from typing import Any

from .clusters import average_clustering, clustering, square_clustering, transitivity, triangles
from .components import (
    connected_components,
    is_connected,
    is_strongly_connected,
    is_weakly_connected,
    node_connected_component,
    number_connected_components,
    number_strongly_connected_components,
    number_weakly_connected_components,
    strongly_connected_components,
    weakly_connected_components,
)
from .converted import convert_from_nx, convert_to_nx
from .cores import core_number, k_core, k_corona, k_crust, k_shell, k_truss
from .degrees import (
    degree_centrality,
    in_degree_centrality,
    isolates,
    number_of_isolates,
    out_degree_centrality,
    overall_reciprocity,
    reciprocity,
)
from .lengths import (
    all_pairs_shortest_path_length,
    ancestors,
    average_shortest_path_length,
    closeness_centrality,
    descendants,
    descendants_at_distance,
    eccentricity,
    has_path,
    shortest_path_length,
    single_source_shortest_path_length,
    single_target_shortest_path_length,
)
from .links import (
    adamic_adar_index,
    common_neighbor_centrality,
    jaccard_coefficient,
    preferential_attachment,
    resource_allocation_index,
)
from .ranks import hits, pagerank
from .refusals import why_better_not, why_not
from .traversal import (
    all_pairs_shortest_path,
    bfs_edges,
    bfs_layers,
    bfs_predecessors,
    bfs_successors,
    bfs_tree,
    single_source_shortest_path,
    single_target_shortest_path,
)
from .weighted_lengths import (
    all_pairs_dijkstra_path_length,
    bellman_ford_path_length,
    dijkstra_path_length,
    single_source_bellman_ford_path_length,
    single_source_dijkstra_path_length,
)

__all__ = [
    "adamic_adar_index",
    "all_pairs_dijkstra_path_length",
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "ancestors",
    "average_clustering",
    "average_shortest_path_length",
    "bellman_ford_path_length",
    "bfs_edges",
    "bfs_layers",
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "can_run",
    "closeness_centrality",
    "clustering",
    "common_neighbor_centrality",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "core_number",
    "degree_centrality",
    "descendants",
    "descendants_at_distance",
    "dijkstra_path_length",
    "eccentricity",
    "has_path",
    "hits",
    "in_degree_centrality",
    "is_connected",
    "is_strongly_connected",
    "is_weakly_connected",
    "isolates",
    "jaccard_coefficient",
    "k_core",
    "k_corona",
    "k_crust",
    "k_shell",
    "k_truss",
    "node_connected_component",
    "number_connected_components",
    "number_of_isolates",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "out_degree_centrality",
    "overall_reciprocity",
    "pagerank",
    "preferential_attachment",
    "reciprocity",
    "resource_allocation_index",
    "shortest_path_length",
    "should_run",
    "single_source_bellman_ford_path_length",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path",
    "single_source_shortest_path_length",
    "single_target_shortest_path",
    "single_target_shortest_path_length",
    "square_clustering",
    "strongly_connected_components",
    "transitivity",
    "triangles",
    "weakly_connected_components",
]


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """True if a function can take these arguments; else a sentence that says why not."""
    return why_not(name, getattr(sys.modules[__name__], name), args, kwargs) or True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """True if a function is likely to be done before NetworkX's own; else why not. Asked only if
    NetworkX chooses the backend, by `nx.config.backend_priority`."""
    return why_better_not(name, getattr(sys.modules[__name__], name), args, kwargs) or True
