"""What a graph of NetworkX is: one of its own classes over its own dictionaries, or something that
must be read with more care, and whether all ways of reading that say the same.

NetworkX's functions read a graph in several ways: `G[u]`, `G.neighbors(u)`, `G.adj`, `G.edges`,
`G.degree` … In its own classes and views these agree. A subclass that redefines one of them is
another graph to each function, so that no single reading is right: `disagreement` finds that out,
and who asked must not go on.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

# The attributes of a graph that lead to what they are named for, by [u] or by (u).
TO_NODES = ("nodes", "_node", "adj", "_adj")
TO_NEIGHBORS = ("adj[u]", "_adj[u]", "neighbors(u)")
TO_SUCCESSORS = (*TO_NEIGHBORS, "succ[u]", "successors(u)")
TO_PREDECESSORS = ("_pred[u]", "predecessors(u)")

# What a subclass may redefine without being read or changed in another way. How its dictionaries
# are made shows in the dictionaries.
_HARMLESS = frozenset({
    "name", "to_directed_class", "to_undirected_class", "node_dict_factory",
    "node_attr_dict_factory", "adjlist_outer_dict_factory", "adjlist_inner_dict_factory",
    "edge_key_dict_factory", "edge_attr_dict_factory", "graph_attr_dict_factory",
})  # fmt: skip
_READING = frozenset({"__getitem__", "__iter__", "__len__", "__contains__", "__getattribute__"})


def is_own_class(graph: Any) -> bool:
    """Whether this is a networkx.Graph, DiGraph, MultiGraph or MultiDiGraph, and of no subclass."""
    return type(graph) in _own_classes()


def is_own_storage(graph: Any) -> bool:
    """Whether the graph holds plain dictionaries that only its own methods change. Those of a view
    are, or are made of, those of another graph."""
    held = vars(graph)
    stores = [held.get("_node"), held.get("_adj")]
    if graph.is_directed():
        stores.append(held.get("_pred"))
    if "_graph" in held or any(type(store) is not dict for store in stores):
        return False
    return set(map(type, held["_adj"].values())) <= {dict}


def redefined(graph: Any) -> set[str]:
    """What a subclass of NetworkX's classes defines otherwise than they do."""
    own = _own_classes()
    base = next((kind for kind in type(graph).__mro__ if kind in own), None)
    if base is None:  # of another library
        return set()
    public = {name for name in dir(base) if not name.startswith("__")} - _HARMLESS | _READING
    before = type(graph).__mro__[: type(graph).__mro__.index(base)]
    return {name for kind in before for name in vars(kind) if name in public}


def disagreement(graph: Any) -> str | None:
    """Which two ways of reading this graph differ, or None. Only some subclasses are read for
    it."""
    if is_own_class(graph) or not redefined(graph):
        return None
    try:
        return next(_differences(graph), None)
    except Exception as error:  # noqa: BLE001  of the subclass: anything
        return f"reading it raises {error!r}"


def _own_classes() -> tuple[type, ...]:
    networkx = sys.modules.get("networkx")  # a graph of it cannot be there without it
    if networkx is None:
        return ()
    return networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph


def _differences(G: Any) -> Iterator[str]:
    nodes = list(G)
    for way in TO_NODES:
        if set(getattr(G, way)) != set(nodes):
            yield f"its nodes are others by G.{way}"
    if len(G) != len(nodes) or not all(node in G for node in nodes):
        yield "it does not contain its nodes"
    rows = {u: G[u] for u in nodes}
    if {u: list(row) for u, row in G.adjacency()} != {u: list(rows[u]) for u in nodes}:
        yield "its edges are others by G.adjacency()"
    for u in nodes:
        ways = TO_SUCCESSORS if G.is_directed() else TO_NEIGHBORS
        yield from _compared(G, u, "G[u]", rows[u], ways)
        if G.is_directed():
            yield from _compared(G, u, "G.pred[u]", G.pred[u], TO_PREDECESSORS)
    yield from _differences_of_edges(G, rows)


def _compared(G: Any, u: Any, name: str, row: Any, ways: tuple[str, ...]) -> Iterator[str]:
    for way in ways:
        found = getattr(G, way[:-3])
        other = found(u) if way.endswith("(u)") else found[u]
        has_data = hasattr(other, "items")
        if list(other) != list(row) or (has_data and dict(other.items()) != dict(row.items())):
            yield f"G.{way} is not {name} for u = {u!r}"


def _differences_of_edges(G: Any, rows: dict[Any, Any]) -> Iterator[str]:
    """G.edges, G.degree and, of a directed graph, G.pred beside the rows."""
    several = G.is_multigraph()
    ends = Counter(
        {(u, v): len(list(row[v])) if several else 1 for u, row in rows.items() for v in row}
    )
    degree: Counter[Any] = Counter(dict.fromkeys(rows, 0))
    for (u, v), count in ends.items():
        degree[u] += count
        degree[v] += count if G.is_directed() or u == v else 0
    if dict(G.degree) != degree:
        yield "G.degree is not that of its rows"
    if G.is_directed() and {(u, v) for v in rows for u in G.pred[v]} != ends.keys():
        yield "G.pred is not the reverse of G[u]"
    seen: Counter[Any] = Counter()
    for u, v, data in G.edges(data=True):
        seen[u, v] += 1
        seen[v, u] += 0 if G.is_directed() or u == v else 1
        if data not in list(rows[u][v].values()) if several else data != rows[u][v]:
            yield f"G.edges says of {(u, v)!r} what G[u] does not"
    if seen != ends:
        yield "G.edges are not the edges of its rows"
