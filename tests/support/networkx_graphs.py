"""Graphs of NetworkX as programs have them, for Hypothesis: its classes, subclasses with storage or
methods of their own, and views of these, one over another."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import networkx as nx
from hypothesis import strategies as st

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
LABELS: tuple[Callable[[int], Any], ...] = (
    lambda i: i,
    lambda i: 7 - i,  # integers out of order
    lambda i: 3 * i,  # with gaps
    lambda i: 10**12 - i,  # too large for a table
    lambda i: (f"v{i}", (i, "pair"), i / 2 + 0.25)[i % 3],
)


class Drawn(NamedTuple):
    graph: Any
    parent: Any  # the graph that holds the edges: the same, or what is behind the view
    has_one_reading: bool  # NetworkX's functions see one graph, in whatever way they read it
    said: str  # how it was made


class Row(dict[Any, Any]):
    """A dictionary of another type, as a program's own storage is."""


def _subclass(base: Any, **members: Any) -> Any:
    return type(f"Own{base.__name__}", (base,), members)


def _named(base: Any) -> Any:
    """With a method that NetworkX does not know."""
    return _subclass(base, title=lambda self: self.graph.get("title"))


def _stored(base: Any) -> Any:
    return _subclass(base, adjlist_outer_dict_factory=OrderedDict, adjlist_inner_dict_factory=Row)


def _thin(base: Any) -> Any:
    """All edges share one dictionary of attributes."""
    shared = {"weight": 2}
    return _subclass(base, all_edge_dict=shared, edge_attr_dict_factory=lambda self: shared)


def _logged(base: Any) -> Any:
    """Redefines what changes a graph, and nothing that reads it."""

    def add_edge(self: Any, *args: Any, **data: Any) -> Any:
        self.graph["edges added"] = self.graph.get("edges added", 0) + 1
        return base.add_edge(self, *args, **data)

    return _subclass(base, add_edge=add_edge)


def _retold(base: Any) -> Any:
    """Redefines how it is read, to the same answers."""
    return _subclass(
        base,
        __getitem__=lambda self, u: base.__getitem__(self, u),
        neighbors=lambda self, u: iter(list(base.neighbors(self, u))),
    )


def _without_first(row: Any) -> dict[Any, Any]:
    return dict(list(row.items())[1:])


def _hiding_by_item(base: Any) -> Any:
    return _subclass(base, __getitem__=lambda self, u: _without_first(self._adj[u]))


def _hiding_by_adj(base: Any) -> Any:
    adj = property(lambda self: {u: _without_first(row) for u, row in self._adj.items()})
    return _subclass(base, adj=adj)


def _hiding_by_neighbors(base: Any) -> Any:
    return _subclass(base, neighbors=lambda self, u: iter(list(self._adj[u])[1:]))


def _heavier_by_adj(base: Any) -> Any:
    """Says other weights in one way than in the others."""

    def item(self: Any, u: Any) -> dict[Any, Any]:
        return {v: {"weight": 9.0} for v in self._adj[u]}

    return _subclass(base, __getitem__=item)


def _same(base: Any) -> Any:
    return base


FAITHFUL = (_same, _same, _same, _named, _stored, _thin, _logged, _retold)
UNFAITHFUL = (_hiding_by_item, _hiding_by_adj, _hiding_by_neighbors, _heavier_by_adj)


@st.composite
def parents(draw: st.DrawFn) -> Drawn:
    """A graph of any class, with loops, parallel edges, isolated nodes, and some weights."""
    make = draw(st.sampled_from((*FAITHFUL, *UNFAITHFUL)))
    base = draw(st.sampled_from((nx.Graph, nx.Graph, *KINDS)))  # which most functions are of
    graph = base() if make in UNFAITHFUL else make(base)()
    label = draw(st.sampled_from(LABELS))
    names = [label(i) for i in range(draw(st.integers(0, 7)))]
    graph.add_nodes_from(draw(st.permutations(names)))
    if names:
        node = st.sampled_from(names)
        graph.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=16)))
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        if number % 3 and make is not _thin:
            data["weight"] = number % 5 / 4
            data[f"seen by {number}"] = True
    if make in UNFAITHFUL:  # its methods cannot fill it
        graph.__class__ = make(base)
    return Drawn(graph, graph, make not in UNFAITHFUL, f"{base.__name__} by {make.__name__}")


@st.composite
def graphs(draw: st.DrawFn) -> Drawn:
    """The same, or a view of one, of a view, …"""
    drawn = draw(parents())
    for _ in range(draw(st.integers(0, 3)) if drawn.has_one_reading else 0):
        view = draw(st.sampled_from(sorted(VIEWS)))
        graph, is_symmetric = VIEWS[view](draw, drawn.graph)
        faithful = drawn.has_one_reading and is_symmetric
        drawn = Drawn(graph, drawn.parent, faithful, f"{drawn.said}, {view}")
    return drawn


View = tuple[Any, bool]  # and whether an undirected edge is seen from both ends or from neither


def _some(draw: st.DrawFn, of: Any) -> list[Any]:
    held = list(of)
    return draw(st.lists(st.sampled_from(held), unique=True)) if held else []


def _edges(graph: Any) -> list[Any]:
    return list(graph.edges(keys=True)) if graph.is_multigraph() else list(graph.edges())


def _subgraph(draw: st.DrawFn, graph: Any) -> View:
    return graph.subgraph(_some(draw, graph)), True


def _edge_subgraph(draw: st.DrawFn, graph: Any) -> View:
    return graph.edge_subgraph(_some(draw, _edges(graph))), True


def _restricted(draw: st.DrawFn, graph: Any) -> View:
    return nx.restricted_view(graph, _some(draw, graph), _some(draw, _edges(graph))), True


def _filtered(draw: st.DrawFn, graph: Any) -> View:
    """By a function of the ends, in some order of the nodes, that may treat them alike or not."""
    place = {v: i for i, v in enumerate(graph)}
    modulus, alike = draw(st.integers(2, 4)), draw(st.booleans())

    def passes(u: Any, v: Any, *key: Any) -> bool:
        ends = sorted((place[u], place[v])) if alike else (place[u], place[v])
        return (2 * ends[0] + ends[1] + len(key)) % modulus > 0

    symmetric = alike or graph.is_directed()
    return nx.subgraph_view(graph, filter_edge=passes), symmetric


def _reversed(_: st.DrawFn, graph: Any) -> View:
    return (nx.reverse_view(graph) if graph.is_directed() else graph), True


VIEWS: dict[str, Callable[[st.DrawFn, Any], View]] = {
    "subgraph": _subgraph,
    "edge_subgraph": _edge_subgraph,
    "restricted_view": _restricted,
    "subgraph_view": _filtered,
    "reverse_view": _reversed,
    "to_directed": lambda _, graph: (graph.to_directed(as_view=True), True),
    "to_undirected": lambda _, graph: (graph.to_undirected(as_view=True), True),
    "copy": lambda _, graph: (graph.copy(as_view=True), True),
    "freeze": lambda _, graph: (nx.freeze(graph), True),
}


def change(draw: Callable[[Any], Any], graph: Any) -> str:
    """Change the nodes or edges of a graph by its methods, and say how."""
    nodes = list(graph)
    changes = ["an edge to a new node", "an edge to a large new node", "cleared", "other rows"]
    if nodes:
        changes += ["a node removed", "an edge between nodes", "other order"]
    how = draw(st.sampled_from(changes))
    first = nodes[0] if nodes else 0
    if how == "an edge to a new node":
        graph.add_edge("new", first)
    elif how == "an edge to a large new node":
        graph.add_edge(4_000_000_000, first)
    elif how == "cleared":
        graph.clear()
    elif how == "other rows":
        edges = [(v, u, dict(data)) for u, v, data in graph.edges(data=True)]
        graph.remove_edges_from(list(graph.edges()))
        graph.add_edges_from(edges[::-1])
    elif how == "a node removed":
        graph.remove_node(draw(st.sampled_from(nodes)))
    elif how == "an edge between nodes":
        graph.add_edge(draw(st.sampled_from(nodes)), first)
    else:
        graph.remove_node(first)
        graph.add_node(first)
    return how
