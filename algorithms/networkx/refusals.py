"""Which calls are left to NetworkX: those this backend cannot serve, and those it would only slow
down.

Converting a graph takes as long as a few passes over its dictionaries. NetworkX is done sooner with
a graph of a thousand edges, and with a function that needs only one pass, or only a part of the
graph: such calls come here when the graph was converted before.
"""

from __future__ import annotations

from inspect import Signature, signature
from itertools import chain, islice
from typing import Any

from lpma.arguments.scalars import is_integer, is_real

from .convert import is_plain
from .converted import ConvertedGraph, cached, is_since

SMALL = 1 << 12  # nodes and entries of rows below which nothing is worth a conversion

# Functions that NetworkX does in less time than a conversion takes.
QUICK = frozenset({
    "degree_centrality", "in_degree_centrality", "out_degree_centrality", "isolates",
    "number_of_isolates", "has_path", "descendants_at_distance", "bfs_edges", "bfs_successors",
    "bfs_predecessors", "bfs_layers", "single_source_shortest_path_length",
    "single_target_shortest_path_length", "node_connected_component", "preferential_attachment",
})  # fmt: skip
# Those that do so if they are asked about some nodes or pairs only: by their argument.
PARTIAL = {
    "triangles": "nodes", "clustering": "nodes", "average_clustering": "nodes",
    "square_clustering": "nodes", "reciprocity": "nodes", "jaccard_coefficient": "ebunch",
    "adamic_adar_index": "ebunch", "resource_allocation_index": "ebunch",
    "shortest_path_length": "target", "eccentricity": "v", "closeness_centrality": "u",
}  # fmt: skip

UNDIRECTED = {
    "core_number": "cores", "k_core": "cores", "k_shell": "cores", "k_crust": "cores",
    "k_corona": "cores", "transitivity": "transitivity", "square_clustering": "squares",
}  # fmt: skip
DIRECTED = {"reciprocity", "overall_reciprocity"}
BY_WEIGHT = {
    "single_source_dijkstra_path_length", "all_pairs_dijkstra_path_length", "dijkstra_path_length",
    "single_source_bellman_ford_path_length", "bellman_ford_path_length",
}  # fmt: skip
SIMPLE = {
    "clustering", "average_clustering", "transitivity", "k_core", "k_shell", "k_crust", "k_corona",
    *DIRECTED, *BY_WEIGHT,
}  # fmt: skip
# Those that NetworkX changed in 3.5: loops made squares before, lengths came as an iterator, and
# the first layer in the order of the sources.
SINCE_3_5 = {"square_clustering", "single_target_shortest_path_length", "bfs_layers"}
UNWEIGHTED = {
    "clustering": "weight", "average_clustering": "weight", "shortest_path_length": "weight",
    "average_shortest_path_length": "weight", "eccentricity": "weight",
    "closeness_centrality": "distance",
}  # fmt: skip
# The one value that is served of an argument.
ONLY = {
    "bfs_edges": ("sort_neighbors", None), "bfs_tree": ("sort_neighbors", None),
    "bfs_predecessors": ("sort_neighbors", None), "bfs_successors": ("sort_neighbors", None),
    "eccentricity": ("sp", None), "closeness_centrality": ("sp", None),
}  # fmt: skip


def why_not(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why this function cannot take these arguments; None if it can. NetworkX then uses its own,
    which also raises the errors for bad arguments."""
    given = _arguments(function, args, kwargs)
    if given is None:
        return "the arguments are not NetworkX's"
    graph = given["G"]
    if graph.is_directed() and name in UNDIRECTED:
        return f"lpma's {UNDIRECTED[name]} are of undirected graphs"
    if not graph.is_directed() and name in DIRECTED:
        return f"{name} is of directed graphs"
    if graph.is_multigraph() and name in SIMPLE:
        return f"{name} is of graphs without parallel edges"
    if name in SINCE_3_5 and not is_since(3, 5):
        return f"lpma's {name} is that of NetworkX 3.5"
    if (weight := UNWEIGHTED.get(name)) and given.get(weight) is not None:
        return f"lpma's {name} has no {weight}"
    if name in BY_WEIGHT and callable(given.get("weight")):
        return f"lpma's {name} takes an attribute as weight, no function"
    argument, value = ONLY.get(name, ("", None))
    if given.get(argument) is not value:
        return f"lpma's {name} has no {argument}"
    if name == "has_path" and (given["source"] is None or given["target"] is None):
        return "lpma's has_path is from one node to one"
    if name == "pagerank":
        return _why_no_ranks(given)
    return _why_not_by(name, given)


METHODS = ("dijkstra", "bellman-ford")


def _why_not_by(name: str, given: dict[str, Any]) -> str | None:
    """Why not by the method that is given, if one is."""
    if "method" not in given:
        return None
    method = given["method"]
    if name == "average_shortest_path_length":
        if method is None or _is_among(("unweighted",), method):
            return None
        return "lpma's average_shortest_path_length is by breadth-first search"
    known = METHODS if name == "shortest_path_length" else _hits_methods()
    return None if _is_among(known, method) else "a method that is not NetworkX's"


def _hits_methods() -> tuple[str, ...]:
    """Those that NetworkX has a name for."""
    return ("power_iteration", "svd") if is_since(3, 7) else ()


def _is_among(names: tuple[str, ...], given: Any) -> bool:
    """Of anything: an array would compare with each name element by element."""
    return isinstance(given, str) and given in names


def _why_no_ranks(given: dict[str, Any]) -> str | None:
    """PageRank checks its arguments, and NetworkX's does not."""
    alpha, tol = given.get("alpha", 0.85), given.get("tol", 1e-6)
    if not is_real(alpha) or not 0 <= alpha <= 1:
        return "lpma's alpha is a probability"
    if not is_real(tol) or not tol >= 0:
        return "lpma's tol is 0 or more"
    rounds = given.get("max_iter", 100)
    if not is_integer(rounds) or not 0 <= rounds < 1 << 31:
        return "lpma's max_iter is a number of rounds"
    return None


def why_better_not(
    name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Why NetworkX will be done sooner; None if this backend will. REQUIRES: `why_not` is None."""
    given = _arguments(function, args, kwargs)
    graph: Any = (given or {}).get("G")
    if isinstance(graph, ConvertedGraph) or any(True for _ in cached(graph)):
        return None
    if name in QUICK:
        return f"{name} takes NetworkX less time than converting the graph"
    if given is not None and given.get(PARTIAL.get(name, ""), None) is not None:
        return f"{name} of a part takes NetworkX less time than converting the graph"
    if _is_small(graph):
        return "NetworkX is done with so small a graph before it would be converted"
    return None


def _is_small(graph: Any) -> bool:
    if is_plain(graph):
        return len(graph) + sum(map(len, graph._adj.values())) < SMALL
    try:  # a filter does not say how many it lets pass: they are counted as far as it matters
        entries = (1 for _, row in graph.adjacency() for _ in chain((None,), row))
        return sum(islice(entries, SMALL)) < SMALL
    except Exception:  # noqa: BLE001  of a filter or a subclass: NetworkX meets it itself, if at all
        return True


_signatures: dict[Any, Signature] = {}


def _arguments(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments given, by name; None if the function has no such arguments."""
    if function not in _signatures:
        _signatures[function] = signature(function)
    try:
        return _signatures[function].bind(*args, **kwargs).arguments
    except TypeError:
        return None
