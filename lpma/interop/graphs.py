"""Graphs from those of NetworkX and igraph: directed as they are, isolated vertices included.

A graph whose vertices are called 0 … n - 1 keeps these as ids. Any other gets names: labels that
are integers or text stay what they are, and others are refused.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..arguments.scalars import is_integer, key, shown
from ..arrays import Array
from ..errors import BatchError
from ..graph import Graph
from .edges import make_graph, refuse_lost_weights
from .readings import disagreement

_NETWORKX_ADVICE = "networkx.relabel_nodes(G, str) or convert_node_labels_to_integers(G)"
_IGRAPH_ADVICE = 'give G.vs["name"] text, or del G.vs["name"], and vertices go by their numbers'


def from_networkx(
    G: Any,
    weight: str | None = "weight",
    time: str | None = None,
    *,
    weight_dtype: str | None = "auto",
    **options: Any,
) -> Graph:
    """A graph with the nodes and edges of a NetworkX graph, directed if that one is. Parallel edges
    of a multigraph add up.

    G             networkx.Graph, DiGraph, MultiGraph or MultiDiGraph. Nodes 0 … n - 1 keep their
                  numbers as ids; any others must be integers or text, and become names (see
                  `lpma.Graph`)
    weight        the edge attribute with the weights; 1 for an edge without it. None: 1 for all
    time          the edge attribute with the times, as for `Graph.insert`; None: now
    weight_dtype  as for `from_edges`
    options       of `lpma.Graph`, but for `directed`

    A view or a subclass is read by `G.edges`: where an undirected view of a directed graph has an
    edge from both sides, the attributes of that which comes first count.

    Raises BatchError, also for weights of 0 or less, which a graph cannot take, and for a graph
    that is not the same in every way of reading it, as where `G[u]` is not `G.edges`.

    >>> import networkx
    >>> G = networkx.Graph()
    >>> G.add_edge("alice", "bob", weight=0.5)
    >>> lpma.from_networkx(G, device="cpu").edge("bob", "alice").weight
    0.5
    """
    if isinstance(G, type) or not hasattr(G, "is_directed") or not hasattr(G, "adjacency"):
        raise BatchError(f"G: a {type(G).__name__} is not a NetworkX graph")
    weight, time = key(weight, "weight"), key(time, "time")
    if problem := disagreement(G):
        raise BatchError(f"G: this {type(G).__name__} has no one reading: {problem}")
    labels = list(G)
    named = not _are_rows(labels)
    src, dst, weights, times = [], [], [], []
    for u, v, attributes in G.edges(data=True):
        src.append(u)
        dst.append(v)
        if weight is not None:
            weights.append(attributes.get(weight))
        if time is not None:
            if time not in attributes:
                raise BatchError(
                    f"the edge from {u!r} to {v!r} has no {shown(time)}: time={shown(time)}"
                )
            times.append(attributes[time])
    if named and options.get("names") is not False:
        _refuse_nameless(labels, "node", _NETWORKX_ADVICE)
    isolated = _isolated(G, labels, src, dst)
    values = None if all(w is None for w in weights) else _numbers(weights, src, dst)
    given = src, dst, values, times if time is not None else None, isolated
    return _made(named, bool(G.is_directed()), weight_dtype, options, *given)


def from_igraph(
    G: Any,
    weight: str | None = "weight",
    time: str | None = None,
    *,
    weight_dtype: str | None = "auto",
    **options: Any,
) -> Graph:
    """A graph with the vertices and edges of an igraph graph, directed if that one is. Its vertices
    keep their numbers as ids or, if they have the attribute "name", go by these names, integers or
    text. Parallel edges add up.

    G             igraph.Graph
    weight        the edge attribute with the weights; 1 for all without it, or with None
    time          the edge attribute with the times, as for `Graph.insert`; None: now
    weight_dtype  as for `from_edges`
    options       of `lpma.Graph`, but for `directed`

    Raises BatchError, also for weights of 0 or less, which a graph cannot take.

    >>> import igraph
    >>> G = igraph.Graph.TupleList([("alice", "bob"), ("bob", "carol")], directed=True)
    >>> lpma.from_igraph(G, device="cpu").successors("bob").ids.tolist()
    ['carol']
    """
    if not hasattr(G, "get_edgelist") or not hasattr(G, "vs"):
        raise BatchError(f"G: a {type(G).__name__} is no graph of igraph")
    weight, time = key(weight, "weight"), key(time, "time")
    named = "name" in G.vs.attributes()
    labels: list[Any] = G.vs["name"] if named else list(range(G.vcount()))
    if named and options.get("names") is not False:
        _refuse_nameless(labels, "vertex", _IGRAPH_ADVICE)
    if len(set(labels)) < len(labels):
        raise BatchError(
            'from_igraph: two vertices have the same "name": del G.vs["name"], or change it'
        )
    if time is not None and time not in G.es.attributes():
        raise BatchError(
            f"time={shown(time)}: no such edge attribute; there are {G.es.attributes()}"
        )
    pairs = np.array(G.get_edgelist(), np.int64).reshape(-1, 2)
    src: Any = pairs[:, 0]
    dst: Any = pairs[:, 1]
    values = _numbers(G.es[weight], src, dst) if weight in G.es.attributes() else None
    isolated = [labels[v] for v, degree in enumerate(G.degree()) if not degree]
    if named:
        src, dst = [labels[u] for u in src.tolist()], [labels[v] for v in dst.tolist()]
    given = src, dst, values, None if time is None else G.es[time], isolated
    return _made(named, bool(G.is_directed()), weight_dtype, options, *given)


def _isolated(G: Any, labels: list[Any], src: list[Any], dst: list[Any]) -> list[Any]:
    """The nodes that no edge touches. Raises BatchError if the edges are not those of the nodes: a
    filter of edges may let each pass from one end and not from the other."""
    touched = Counter(src) + Counter(dst)
    if not touched.keys() <= set(labels):
        raise BatchError("from_networkx: an edge leads to what is no node of the graph")
    if touched != {v: degree for v, degree in G.degree if degree}:
        raise BatchError(
            f"from_networkx: G.edges has {len(src)} edges, and G.degree counts others, as where a "
            "filter lets an edge pass from one end only: give nx.Graph(G) for what either end sees"
        )
    return [v for v in labels if v not in touched]


def _are_rows(labels: list[Any]) -> bool:
    """Whether these different labels are the integers 0 … n - 1."""
    if not all(map(is_integer, labels)):
        return False
    return not labels or (min(labels) == 0 and max(labels) == len(labels) - 1)


def _refuse_nameless(labels: list[Any], what: str, advice: str) -> None:
    """Raise BatchError if one of the labels is neither an integer nor text."""
    for number, label in enumerate(labels):
        if not is_integer(label) and not isinstance(label, str):
            raise BatchError(
                f"{what} {number} has the label {label!r:.40}, a {type(label).__name__}, and "
                f"vertices go by integers or text: {advice}"
            )


def _numbers(weights: list[Any], src: Any, dst: Any) -> Array:
    """The weights, 1 where there is none. Raises BatchError."""
    try:
        values = np.array([1 if w is None else w for w in weights])
    except ValueError:
        values = np.array(["?"])
    if values.size and (values.ndim != 1 or values.dtype.kind not in "biuf"):
        raise BatchError(
            "weight: not all of the edges' weights are numbers: weight=None ignores them"
        )
    values = values.astype(np.float32) if values.dtype.kind == "b" else values
    refuse_lost_weights(values, src, dst, "weight=None ignores weights")
    return values


def _made(
    named: bool, directed: bool, weight_dtype: str | None, options: dict[str, Any],
    src: Any, dst: Any, weights: Array | None, times: Any, isolated: list[Any],
) -> Graph:  # fmt: skip
    """The graph, with names if its vertices are `named`. Raises BatchError."""
    if named and options.get("names") is not False:
        options = {"names": True, **options}
    held = np.dtype(np.float32) if weights is None else weights.dtype
    graph = make_graph(False, held, weight_dtype, options, directed=directed)
    graph.insert(src, dst, 1.0 if weights is None else weights, times)
    if isolated:
        graph.add_vertices(isolated)
    return graph
