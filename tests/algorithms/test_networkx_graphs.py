"""The NetworkX backend on graphs of every class, on subclasses and views, and on graphs that
change: its answer is NetworkX's, as of the call, or it says that it leaves it to NetworkX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any
from unittest import mock

import networkx as nx
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from algorithms.networkx import backend, convert, links
from algorithms.networkx import converted as conversion
from algorithms.networkx.info import SERVED
from tests.algorithms.test_networkx_results import (
    CALLS,
    ELSEWHERE,
    UNORDERED,
    alone,
    assert_alike,
    contents,
    is_served,
    levels,
    outcome,
)
from tests.support.networkx_graphs import Drawn, change, graphs, parents

BY_WEIGHT = {name for name, served in SERVED.items() if served.by_weight}
DIRECTED = {name for name, served in SERVED.items() if served.directed}

pytestmark = pytest.mark.filterwarnings(
    r"ignore:\s*bfs_predecessors is deprecated:DeprecationWarning",
    "ignore:invalid value encountered:RuntimeWarning",  # hubs of a graph without edges
)
# What each iterator is asked for; the others are asked as in test_networkx_results.py.
Call = Callable[[Callable[..., Any], Any], Any]


def from_first(function: Callable[..., Any], G: Any) -> Any:
    return function(G, next(iter(G), "absent"))


def backwards(function: Callable[..., Any], G: Any) -> Any:
    return function(G, next(iter(G), "absent"), reverse=True)


def from_some(function: Callable[..., Any], G: Any) -> Any:
    return function(G, list(G)[:2])


def of_pairs(function: Callable[..., Any], G: Any) -> Any:
    nodes = list(G)
    return function(G, [(u, v) for u in nodes for v in nodes if u != v])


LAZY: dict[str, tuple[Call, ...]] = {
    "bfs_edges": (from_first, backwards), "bfs_predecessors": (from_first,),
    "bfs_successors": (from_first,), "bfs_layers": (from_first, from_some),
    "connected_components": (alone,), "weakly_connected_components": (alone,),
    "strongly_connected_components": (alone,), "isolates": (alone,),
    "all_pairs_shortest_path": (alone,), "all_pairs_shortest_path_length": (alone,),
    "all_pairs_dijkstra_path_length": (alone,), "shortest_path_length": (alone,),
    **dict.fromkeys(
        ("jaccard_coefficient", "adamic_adar_index", "resource_allocation_index",
         "preferential_attachment", "common_neighbor_centrality"), (alone, of_pairs),
    ),
}  # fmt: skip
CORES = {"k_core", "k_shell", "k_crust"}
IN_ANY_ORDER = {"strongly_connected_components", "all_pairs_dijkstra_path_length"}


def lengths_by_weight(function: Callable[..., Any], G: Any) -> Any:
    """From some nodes, to some nodes."""
    ends = [*list(G)[:3], "absent"]
    if function.__name__.startswith("all_pairs"):
        return dict(function(G))
    if function.__name__.startswith("single_source"):
        return [outcome(partial(function, G, u)) for u in ends]
    return [outcome(partial(function, G, u, v)) for u in ends for v in ends]


def call_of(name: str) -> Call:
    return lengths_by_weight if name in BY_WEIGHT else CALLS.get(name, alone)


def assert_networkxs(name: str, ours: Any, theirs: Any) -> None:
    """Lengths by weight are floats also where NetworkX's are integers."""
    if name not in BY_WEIGHT or isinstance(theirs, Exception):
        assert_alike(ours, theirs, name)
    elif isinstance(theirs, list):
        for mine, other in zip(ours, theirs, strict=True):
            assert_networkxs(name, mine, other)
    else:
        assert ours == theirs, name


def answer(call: Callable[[], Any]) -> tuple[Any, str]:
    """What a call returns or raises, and why it is left to NetworkX, if it is."""
    try:
        return outcome(call), ""
    except NotImplementedError as error:
        return None, str(error)


def converted(name: str, graph: Any) -> Any:
    """As NetworkX has a graph converted for a call of this function."""
    attributes = {"weight": 1} if name in ("pagerank", "hits", *BY_WEIGHT) else None
    return backend.convert_from_nx(graph, edge_attrs=attributes)


def ask(name: str, graph: Any) -> Any:
    return call_of(name)(getattr(backend, name), converted(name, graph))


@given(drawn=graphs())
def test_every_function_is_networkxs_on_every_graph(drawn: Drawn) -> None:
    """What cannot be read in one way is refused, and nothing else."""
    for name in sorted((SERVED.keys() - ELSEWHERE) | BY_WEIGHT):
        theirs = outcome(partial(call_of(name), getattr(nx, name), drawn.graph))
        if isinstance(theirs, nx.NetworkXNotImplemented) or not is_served(name, drawn.graph):
            continue
        ours, refusal = answer(partial(ask, name, drawn.graph))
        if refusal:
            assert not drawn.has_one_reading, (name, drawn.said, refusal)
            event("refused")
        else:
            assert_networkxs(name, ours, theirs)


def test_a_multigraphs_edges_may_be_filtered() -> None:
    G = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 0)])
    for view in (
        G.edge_subgraph([(0, 1, 0), (1, 2, 0)]),
        nx.restricted_view(G, [], [(2, 0, 0)]),
        nx.subgraph_view(G, filter_edge=lambda u, v, key: {u, v} != {0, 2}),
    ):
        read = backend.convert_from_nx(view)
        assert backend.triangles(read) == {0: 0, 1: 0, 2: 0}
        assert backend.degree_centrality(read) == nx.degree_centrality(view)


def both_ways() -> Any:
    """A directed graph with an edge that weighs 1 one way and 7 the other."""
    D = nx.DiGraph([(2, 0)])
    D.add_edge(0, 1, weight=1, there=True)
    D.add_edge(1, 0, weight=7, back=True)
    return D


def test_an_undirected_view_weighs_what_each_row_says() -> None:
    """Along a path, as of the row that it is followed from; of ranks, as of that which comes
    first."""
    view = both_ways().to_undirected(as_view=True)
    for name in sorted(BY_WEIGHT):
        assert_networkxs(name, ask(name, view), lengths_by_weight(getattr(nx, name), view))
    ranks = backend.pagerank(backend.convert_from_nx(view), tol=1e-14, max_iter=500)
    assert ranks == pytest.approx(nx.pagerank(view, tol=1e-14, max_iter=500), rel=1e-9)


def test_a_part_of_an_undirected_view_has_the_attributes_of_networkxs() -> None:
    view = both_ways().to_undirected(as_view=True)
    for ours, theirs in (
        (backend.k_core(backend.convert_from_nx(view), 1), nx.k_core(view, 1)),
        (backend.k_truss(backend.convert_from_nx(view), 2), nx.k_truss(view, 2)),
    ):
        assert nx.utils.graphs_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["Graph", "MultiGraph"])
def test_an_edge_seen_from_one_end_only_is_left_to_networkx(kind: str) -> None:
    G = getattr(nx, kind)([(0, 1), (1, 2)])
    view = nx.subgraph_view(G, filter_edge=lambda u, v, *key: u < v)
    with pytest.raises(NotImplementedError, match="from one end only"):
        backend.convert_from_nx(view)


def test_in_edges_that_are_not_the_out_edges_are_left_to_networkx() -> None:
    """As in a directed view of such a graph, whose rows are taken for both."""
    view = nx.subgraph_view(nx.path_graph(3), filter_edge=lambda u, v: u < v)
    with pytest.raises(NotImplementedError, match="are not those that lead from the others"):
        backend.convert_from_nx(view.to_directed(as_view=True))


def test_a_filter_that_fails_is_left_to_networkx() -> None:
    """Which may never come to the edge that it fails for."""
    view = nx.subgraph_view(nx.path_graph(3), filter_edge=lambda u, v: 1 / (u + v - 3) != 0)
    with pytest.raises(NotImplementedError, match="ZeroDivisionError"):
        backend.convert_from_nx(view)
    assert "small" in str(backend.should_run("core_number", (view,), {}))


def test_a_subclass_of_two_readings_is_left_to_networkx() -> None:
    """As NetworkX's own graph of the edges that are not there."""
    from networkx.algorithms.approximation.kcomponents import _AntiGraph

    with pytest.raises(NotImplementedError, match=r"this _AntiGraph .*G\._adj\[u\] is not G\[u\]"):
        backend.convert_from_nx(_AntiGraph(nx.path_graph(4)))


@pytest.mark.parametrize("weight", [{}, {"weight": 3}])
def test_weights_are_read_once_while_they_stay(
    weight: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks and lengths have the same, and where NetworkX keeps the conversion, a weight that is
    set in place has all read again."""
    reads: list[str] = []

    def counted(graph: Any, structure: Any, name: str, *args: Any) -> Any:
        reads.append(name)
        return convert.weights_of(graph, structure, name, *args)

    monkeypatch.setattr(conversion, "weights_of", counted)
    G = nx.path_graph(3)
    G.add_edge(0, 1, **weight)
    held = backend.convert_from_nx(G, edge_attrs={"weight": 1})
    G.__networkx_cache__["backends"] = {"lpma": {(frozenset({("weight", 1)}), False): held}}
    for _ in range(3):
        backend.pagerank(held)
        backend.dijkstra_path_length(held, 0, 1)
    assert reads == ["weight"]
    G[0][1]["weight"] = 5
    assert backend.dijkstra_path_length(held, 0, 1) == 5
    assert reads == ["weight"] * 2
    G[1][2]["weight"] = -1
    with pytest.raises(NotImplementedError, match="not negative"):
        backend.pagerank(held)


# Iterators ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SERVED))
def test_every_iterator_is_tried(name: str) -> None:
    """Those that return one are known, so that a new one is read late below."""
    G = nx.cycle_graph(3, create_using=nx.Graph if name not in DIRECTED else nx.DiGraph)
    parameters = list(signature(getattr(backend, name)).parameters.values())[1:]
    needed = [0 for parameter in parameters if parameter.default is parameter.empty]
    if name == "k_corona":
        needed = [2]
    result = getattr(backend, name)(backend.convert_from_nx(G), *needed)
    assert isinstance(result, Iterator) is (name in LAZY)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", sorted(LAZY))
def test_an_iterator_outlives_its_graph(name: str, directed: bool, first: int) -> None:
    """Of which nothing is left, or everything is joined to a node that no array has room for."""
    for call in LAZY[name]:
        for end in (nx.Graph.clear, join_to_a_large_node):
            G = nx.gnp_random_graph(7, 0.4, seed=1, directed=directed)
            wanted = outcome(partial(call, getattr(nx, name), G))
            if isinstance(wanted, nx.NetworkXNotImplemented) or not is_served(name, G):
                continue
            with mock.patch.object(links, "PAIRS", 3):
                iterator = call(getattr(backend, name), converted(name, G))
                start = take(iterator, first)
                end(G)
                assert_as_of_call(name, contents(start + list(iterator)), wanted)


def join_to_a_large_node(G: Any) -> None:
    for v in list(G):
        G.add_edge(4_000_000_000, v, weight=100)


@given(drawn=graphs(), data=st.data())
def test_an_iterator_answers_as_of_its_call(drawn: Drawn, data: st.DataObject) -> None:
    """Whatever happens to the graph, or to its weights, before it is read, or while it is."""
    if not drawn.has_one_reading:
        return
    cases = [(name, call) for name, calls in LAZY.items() for call in calls]
    begun: list[tuple[str, Any, Any, Any]] = []
    first = data.draw(st.integers(0, 1))
    with mock.patch.object(links, "PAIRS", 3):
        for name, call in cases:
            wanted = outcome(partial(call, getattr(nx, name), drawn.graph))
            if isinstance(wanted, nx.NetworkXNotImplemented) or not is_served(name, drawn.graph):
                continue
            if isinstance(wanted, nx.NodeNotFound):  # at once
                with pytest.raises(nx.NodeNotFound):
                    call(getattr(backend, name), converted(name, drawn.graph))
                continue
            iterator = call(getattr(backend, name), converted(name, drawn.graph))
            begun.append((name, wanted, outcome(partial(take, iterator, first)), iterator))
        for _, _, attributes in list(drawn.parent.edges(data=True)):
            attributes["weight"] = 1000
        if not nx.is_frozen(drawn.parent):
            event(change(data.draw, drawn.parent))
        for name, wanted, start, iterator in begun:
            rest = outcome(partial(list, iterator))
            error = next((part for part in (start, rest) if isinstance(part, Exception)), None)
            assert_as_of_call(name, contents(error or start + rest), wanted)


def take(iterator: Iterator[Any], count: int) -> list[Any]:
    return list(islice(iterator, count))


def assert_as_of_call(name: str, ours: Any, theirs: Any) -> None:
    if isinstance(theirs, Exception) or name not in (*IN_ANY_ORDER, *UNORDERED):
        assert_alike(ours, theirs, name)
    elif name == "strongly_connected_components":
        assert set(map(frozenset, ours)) == set(map(frozenset, theirs))
    else:
        assert dict(ours) == dict(theirs)


def test_rows_that_are_read_late_are_held_against_the_graph() -> None:
    """A node larger than any array, found through the rows of in-edges."""
    D = nx.DiGraph([(0, 1), (1, 2)])
    edges = backend.bfs_edges(backend.convert_from_nx(D), 1, reverse=True)
    by_hand = backend.convert_from_nx(D)
    D.add_edge(4_000_000_000, 1)
    assert list(edges) == [(1, 0)]
    with pytest.raises(NotImplementedError, match="convert it again"):
        backend.bfs_edges(by_hand, 1, reverse=True)


@given(drawn=parents(), data=st.data())
def test_a_graph_converted_by_hand_answers_as_it_was_or_not(
    drawn: Drawn, data: st.DataObject
) -> None:
    if not drawn.has_one_reading:
        return
    served = sorted((SERVED.keys() - ELSEWHERE) | BY_WEIGHT)
    names = [name for name in served if is_served(name, drawn.graph)]
    # Parts by the graph's own core numbers: others would be those of the changed graph.
    calls = {n: levels if n in CORES else call_of(n) for n in names}
    theirs = {n: outcome(partial(calls[n], getattr(nx, n), drawn.graph)) for n in names}
    held = backend.convert_from_nx(drawn.graph)
    change(data.draw, drawn.graph)
    for name, wanted in theirs.items():
        if isinstance(wanted, nx.NetworkXNotImplemented):
            continue
        ours, refusal = answer(partial(calls[name], getattr(backend, name), held))
        if refusal:
            assert "convert it again" in refusal
            event("refused")
            continue
        assert_networkxs(name, ours, wanted)


@pytest.mark.parametrize("nodes", [[0, 1, 2], [0, 2, 4], ["a", "b", "c"]])
@pytest.mark.parametrize("target", [3, 9, -1, 4_000_000_000, 10**30, "x", None])
def test_an_edge_to_what_is_no_node_is_refused(nodes: list[Any], target: Any) -> None:
    """A corrupt graph, as only its own dictionaries can make it, is not followed."""
    G = nx.Graph()
    G.add_nodes_from(nodes)
    G._adj[nodes[0]] = {target: {}}
    with pytest.raises(NotImplementedError, match="what is no node"):
        backend.convert_from_nx(G)
