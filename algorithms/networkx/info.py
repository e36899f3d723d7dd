"""What the backend serves: the table that drives its functions (backend.py), what NetworkX shows of
them, and which calls are left to NetworkX (refusals.py).

This module imports next to nothing: importing NetworkX must stay as quick as it is without lpma.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Served(NamedTuple):
    """A function that is served."""

    module: str  # of this folder, which has it under NetworkX's name
    note: str = ""  # for NetworkX's documentation
    undirected: str = ""  # what it finds, if only of undirected graphs
    directed: bool = False  # whether it takes only directed graphs
    simple: bool = False  # whether it takes only graphs without parallel edges
    by_weight: bool = False  # likewise, and whether its weight must be an attribute, not a function
    since: tuple[int, ...] = ()  # the first NetworkX whose results it has
    without: tuple[str, ...] = ()  # arguments that are not served unless None
    quick: bool = False  # whether NetworkX takes less time than a conversion,
    partial: str = ""  # or does so if this argument selects some nodes or pairs


_SIMPLE = "Of a simple undirected graph."
_HOST = "On the host, also if graphs are on a device."
_UNWEIGHTED = "Without weights."
_BY_WEIGHT = f"{_HOST} Weights that are not negative, without parallel edges. Lengths are floats."
_CLUSTERS = f"{_UNWEIGHTED} Of a directed graph on the host."
_IN_ORDER = f"{_HOST} In NetworkX's order; `sort_neighbors` is left to NetworkX."

# In 3.5 NetworkX changed three: loops made squares before, lengths came as an iterator, and the
# first layer in the order of the sources.
SERVED = {
    "core_number": Served("cores", _SIMPLE, undirected="cores"),
    "k_core": Served("cores", _SIMPLE, undirected="cores", simple=True),
    "k_shell": Served("cores", _SIMPLE, undirected="cores", simple=True),
    "k_crust": Served("cores", _SIMPLE, undirected="cores", simple=True),
    "k_corona": Served("cores", _SIMPLE, undirected="cores", simple=True),
    "k_truss": Served("cores", _SIMPLE),
    "triangles": Served("clusters", partial="nodes"),
    "clustering": Served("clusters", _CLUSTERS, simple=True, without=("weight",), partial="nodes"),
    "average_clustering": Served(
        "clusters", _CLUSTERS, simple=True, without=("weight",), partial="nodes"
    ),
    "transitivity": Served(
        "clusters", "Of an undirected graph.", undirected="transitivity", simple=True
    ),
    "square_clustering": Served(
        "clusters",
        f"Of an undirected graph. {_HOST}",
        undirected="squares",
        since=(3, 5),
        partial="nodes",
    ),
    "connected_components": Served("components"),
    "number_connected_components": Served("components"),
    "is_connected": Served("components"),
    "node_connected_component": Served("components", quick=True),
    "weakly_connected_components": Served("components"),
    "number_weakly_connected_components": Served("components"),
    "is_weakly_connected": Served("components"),
    "strongly_connected_components": Served(
        "components", "Each component after those it leads to."
    ),
    "number_strongly_connected_components": Served("components"),
    "is_strongly_connected": Served("components"),
    "degree_centrality": Served("degrees", quick=True),
    "in_degree_centrality": Served("degrees", quick=True),
    "out_degree_centrality": Served("degrees", quick=True),
    "isolates": Served("degrees", quick=True),
    "number_of_isolates": Served("degrees", quick=True),
    "reciprocity": Served(
        "degrees", f"By SciPy. {_HOST}", directed=True, simple=True, partial="nodes"
    ),
    "overall_reciprocity": Served("degrees", f"By SciPy. {_HOST}", directed=True, simple=True),
    "pagerank": Served("ranks", "Weights that are finite and not negative."),
    "hits": Served("ranks", f"By SciPy. {_HOST} Weights that are finite and not negative."),
    "bfs_edges": Served("traversal", _IN_ORDER, without=("sort_neighbors",), quick=True),
    "bfs_tree": Served("traversal", _IN_ORDER, without=("sort_neighbors",)),
    "bfs_predecessors": Served("traversal", _IN_ORDER, without=("sort_neighbors",), quick=True),
    "bfs_successors": Served("traversal", _IN_ORDER, without=("sort_neighbors",), quick=True),
    "bfs_layers": Served("traversal", f"{_HOST} In NetworkX's order.", since=(3, 5), quick=True),
    "descendants_at_distance": Served("lengths", quick=True),
    "descendants": Served("lengths"),
    "ancestors": Served("lengths"),
    "single_source_shortest_path": Served("traversal", f"{_HOST} The same paths as NetworkX's."),
    "single_target_shortest_path": Served("traversal", f"{_HOST} The same paths as NetworkX's."),
    "all_pairs_shortest_path": Served("traversal", f"{_HOST} The same paths as NetworkX's."),
    "single_source_shortest_path_length": Served("lengths", "Nearest nodes first.", quick=True),
    "single_target_shortest_path_length": Served(
        "lengths", "Nearest nodes first.", since=(3, 5), quick=True
    ),
    "all_pairs_shortest_path_length": Served("lengths", "Nearest nodes first."),
    "shortest_path_length": Served(
        "lengths", f"{_UNWEIGHTED} Nearest nodes first.", without=("weight",), partial="target"
    ),
    "single_source_dijkstra_path_length": Served("lengths", _BY_WEIGHT, by_weight=True),
    "all_pairs_dijkstra_path_length": Served("lengths", _BY_WEIGHT, by_weight=True),
    "dijkstra_path_length": Served("lengths", _BY_WEIGHT, by_weight=True),
    "single_source_bellman_ford_path_length": Served("lengths", _BY_WEIGHT, by_weight=True),
    "bellman_ford_path_length": Served("lengths", _BY_WEIGHT, by_weight=True),
    "average_shortest_path_length": Served("lengths", _UNWEIGHTED, without=("weight",)),
    "eccentricity": Served("lengths", _UNWEIGHTED, without=("weight", "sp"), partial="v"),
    "closeness_centrality": Served(
        "lengths", "Without distances.", without=("distance", "sp"), partial="u"
    ),
    "has_path": Served("lengths", quick=True),
    "jaccard_coefficient": Served("links", partial="ebunch"),
    "adamic_adar_index": Served("links", partial="ebunch"),
    "resource_allocation_index": Served("links", partial="ebunch"),
    "preferential_attachment": Served("links", quick=True),
    "common_neighbor_centrality": Served("links"),
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
        "functions": {name: {"additional_docs": s.note} for name, s in SERVED.items()},
    }
