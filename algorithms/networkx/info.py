"""What the backend tells NetworkX of itself, when NetworkX is imported: see `get_info`.

This module imports nothing: importing NetworkX must stay as quick as it is without lpma.
"""

from __future__ import annotations

from typing import Any

_SIMPLE = "Of a simple undirected graph."
_HOST = "On the host, also if graphs are on a device."
_UNWEIGHTED = "Without weights."
_BY_WEIGHT = f"{_HOST} Weights that are not negative, without parallel edges. Lengths are floats."
_IN_ORDER = f"{_HOST} In NetworkX's order; `sort_neighbors` is left to NetworkX."

# Each function that is served, and what is to be known of it.
SERVED = {
    "core_number": _SIMPLE,
    "k_core": _SIMPLE,
    "k_shell": _SIMPLE,
    "k_crust": _SIMPLE,
    "k_corona": _SIMPLE,
    "k_truss": _SIMPLE,
    "triangles": "",
    "clustering": f"{_UNWEIGHTED} Of a directed graph on the host.",
    "average_clustering": f"{_UNWEIGHTED} Of a directed graph on the host.",
    "transitivity": "Of an undirected graph.",
    "square_clustering": f"Of an undirected graph. {_HOST}",
    "connected_components": "",
    "number_connected_components": "",
    "is_connected": "",
    "node_connected_component": "",
    "weakly_connected_components": "",
    "number_weakly_connected_components": "",
    "is_weakly_connected": "",
    "strongly_connected_components": "Each component after those it leads to.",
    "number_strongly_connected_components": "",
    "is_strongly_connected": "",
    "degree_centrality": "",
    "in_degree_centrality": "",
    "out_degree_centrality": "",
    "isolates": "",
    "number_of_isolates": "",
    "reciprocity": f"By SciPy. {_HOST}",
    "overall_reciprocity": f"By SciPy. {_HOST}",
    "pagerank": "Weights that are finite and not negative.",
    "hits": f"By SciPy. {_HOST} Weights that are finite and not negative.",
    "bfs_edges": _IN_ORDER,
    "bfs_tree": _IN_ORDER,
    "bfs_predecessors": _IN_ORDER,
    "bfs_successors": _IN_ORDER,
    "bfs_layers": f"{_HOST} In NetworkX's order.",
    "descendants_at_distance": "",
    "descendants": "",
    "ancestors": "",
    "single_source_shortest_path": f"{_HOST} The same paths as NetworkX's.",
    "single_target_shortest_path": f"{_HOST} The same paths as NetworkX's.",
    "all_pairs_shortest_path": f"{_HOST} The same paths as NetworkX's.",
    "single_source_shortest_path_length": "Nearest nodes first.",
    "single_target_shortest_path_length": "Nearest nodes first.",
    "all_pairs_shortest_path_length": "Nearest nodes first.",
    "shortest_path_length": f"{_UNWEIGHTED} Nearest nodes first.",
    "single_source_dijkstra_path_length": _BY_WEIGHT,
    "all_pairs_dijkstra_path_length": _BY_WEIGHT,
    "dijkstra_path_length": _BY_WEIGHT,
    "single_source_bellman_ford_path_length": _BY_WEIGHT,
    "bellman_ford_path_length": _BY_WEIGHT,
    "average_shortest_path_length": _UNWEIGHTED,
    "eccentricity": _UNWEIGHTED,
    "closeness_centrality": "Without distances.",
    "has_path": "",
    "jaccard_coefficient": "",
    "adamic_adar_index": "",
    "resource_allocation_index": "",
    "preferential_attachment": "",
    "common_neighbor_centrality": "",
}


def get_info() -> dict[str, Any]:
    """NetworkX's `backend_info`: `nx.utils.backends.backend_info["lpma"]`.

    >>> from algorithms.networkx.info import get_info
    >>> "core_number" in get_info()["functions"]
    True
    """
    return {
        "backend_name": "lpma",
        "project": "lpma",
        "package": "lpma-graph",
        "short_summary": "Compiled for the CPU, and on NVIDIA GPUs: LPMA_DEVICE=cpu, cuda or auto.",
        "functions": {name: {"additional_docs": note} for name, note in SERVED.items()},
    }
