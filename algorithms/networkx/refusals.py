"""Which calls are left to NetworkX: those that this backend cannot serve, and those that it would
slow down.

Converting a graph takes as long as a few passes over its dictionaries. NetworkX is faster on a
graph of a thousand edges, and for a function that needs only one pass or a part of the graph: these
are served only for graphs that have been converted before.
"""

from __future__ import annotations

from functools import cache
from inspect import signature
from itertools import chain, islice
from typing import Any

from lpma.arguments.scalars import is_integer, is_real

from .convert import is_plain
from .converted import ConvertedGraph, cached, is_since
from .info import SERVED

SMALL = 1 << 12  # nodes and entries of rows below which nothing is worth a conversion


def why_not(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why this function cannot take these arguments; None if it can. NetworkX then runs its own,
    which also raises the errors for bad arguments."""
    given = _arguments(function, args, kwargs)
    if given is None:
        return "the arguments are not NetworkX's"
    graph, served = given["G"], SERVED[name]
    if graph.is_directed() and served.undirected:
        return f"lpma's {served.undirected} are of undirected graphs"
    if not graph.is_directed() and served.directed:
        return f"{name} is of directed graphs"
    if graph.is_multigraph() and (served.simple or served.by_weight):
        return f"{name} is of graphs without parallel edges"
    if not is_since(*served.since):
        return f"lpma's {name} is that of NetworkX {'.'.join(map(str, served.since))}"
    for argument in served.without:
        if given.get(argument) is not None:
            return f"lpma's {name} has no {argument}"
    if served.by_weight and callable(given.get("weight")):
        return f"lpma's {name} takes an attribute as weight, no function"
    if name == "has_path" and (given["source"] is None or given["target"] is None):
        return "lpma's has_path is from one node to one"
    if name == "pagerank":
        return _why_no_ranks(given)
    return _why_not_by(name, given)


METHODS = ("dijkstra", "bellman-ford")


def _why_not_by(name: str, given: dict[str, Any]) -> str | None:
    """Why the given method, if any, is not served."""
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
    """`algorithms.pagerank` checks its arguments; NetworkX's does not."""
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
    """Why NetworkX will be faster; None if this backend will. REQUIRES: `why_not` is None."""
    given = _arguments(function, args, kwargs)
    graph: Any = (given or {}).get("G")
    if isinstance(graph, ConvertedGraph) or any(True for _ in cached(graph)):
        return None
    if SERVED[name].quick:
        return f"{name} takes NetworkX less time than converting the graph"
    if given is not None and given.get(SERVED[name].partial) is not None:
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


_signature = cache(signature)


def _arguments(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments given, by name; None if the function has no such arguments."""
    try:
        return _signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return None
