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

_CORES = Served("cores", _SIMPLE, undirected="cores")
_PATHS = Served("traversal", f"{_HOST} The same paths as NetworkX's.")
_BFS = Served("traversal", _IN_ORDER, without=("sort_neighbors",), quick=True)
_LENGTHS = Served("lengths", "Nearest nodes first.", quick=True)
_OF_NODES = Served("clusters", _CLUSTERS, simple=True, without=("weight",), partial="nodes")
_RECIPROCITY = Served("degrees", f"By SciPy. {_HOST}", directed=True, simple=True)

# In 3.5 NetworkX changed three: loops made squares before, lengths came as an iterator, and the
# first layer in the order of the sources.
_TABLE = (
    ("core_number", _CORES),
    ("k_core k_shell k_crust k_corona", _CORES._replace(simple=True)),
    ("k_truss", Served("cores", _SIMPLE)),
    ("triangles", Served("clusters", partial="nodes")),
    ("clustering average_clustering", _OF_NODES),
    ("transitivity",
     Served("clusters", "Of an undirected graph.", undirected="transitivity", simple=True)),
    ("square_clustering",
     Served("clusters", f"Of an undirected graph. {_HOST}", undirected="squares", since=(3, 5),
            partial="nodes")),
    ("connected_components number_connected_components is_connected", Served("components")),
    ("node_connected_component", Served("components", quick=True)),
    ("weakly_connected_components number_weakly_connected_components is_weakly_connected",
     Served("components")),
    ("strongly_connected_components",
     Served("components", "Each component after those it leads to.")),
    ("number_strongly_connected_components is_strongly_connected", Served("components")),
    ("degree_centrality in_degree_centrality out_degree_centrality isolates number_of_isolates",
     Served("degrees", quick=True)),
    ("reciprocity", _RECIPROCITY._replace(partial="nodes")),
    ("overall_reciprocity", _RECIPROCITY),
    ("pagerank", Served("ranks", "Weights that are finite and not negative.")),
    ("hits", Served("ranks", f"By SciPy. {_HOST} Weights that are finite and not negative.")),
    ("bfs_edges bfs_predecessors bfs_successors", _BFS),
    ("bfs_tree", _BFS._replace(quick=False)),
    ("bfs_layers", Served("traversal", f"{_HOST} In NetworkX's order.", since=(3, 5), quick=True)),
    ("single_source_shortest_path single_target_shortest_path all_pairs_shortest_path", _PATHS),
    ("descendants_at_distance has_path", Served("lengths", quick=True)),
    ("descendants ancestors", Served("lengths")),
    ("single_source_shortest_path_length", _LENGTHS),
    ("single_target_shortest_path_length", _LENGTHS._replace(since=(3, 5))),
    ("all_pairs_shortest_path_length", _LENGTHS._replace(quick=False)),
    ("shortest_path_length",
     Served("lengths", f"{_UNWEIGHTED} {_LENGTHS.note}", without=("weight",), partial="target")),
    ("single_source_dijkstra_path_length all_pairs_dijkstra_path_length dijkstra_path_length "
     "single_source_bellman_ford_path_length bellman_ford_path_length",
     Served("lengths", _BY_WEIGHT, by_weight=True)),
    ("average_shortest_path_length", Served("lengths", _UNWEIGHTED, without=("weight",))),
    ("eccentricity", Served("lengths", _UNWEIGHTED, without=("weight", "sp"), partial="v")),
    ("closeness_centrality",
     Served("lengths", "Without distances.", without=("distance", "sp"), partial="u")),
    ("jaccard_coefficient adamic_adar_index resource_allocation_index",
     Served("links", partial="ebunch")),
    ("preferential_attachment", Served("links", quick=True)),
    ("common_neighbor_centrality", Served("links")),
)  # fmt: skip
SERVED = {name: served for names, served in _TABLE for name in names.split()}


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
