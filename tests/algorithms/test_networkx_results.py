"""What the NetworkX backend returns is what NetworkX returns: the values, their types, the order of
keys where NetworkX's has a meaning, and the errors. On random graphs of all kinds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from itertools import product
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms import strong_components
from algorithms.networkx import backend
from algorithms.networkx.converted import is_since
from algorithms.networkx.info import SERVED
from lpma.arrays import on_device

BY_WEIGHT = {name for name, served in SERVED.items() if served.by_weight}

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
LABELS: tuple[Callable[[int], Any], ...] = (
    lambda i: i,
    lambda i: 7 - i,  # integers out of order
    lambda i: 10**12 - i,  # too large for a table
    lambda i: i - 3,  # negative
    lambda i: (f"v{i}", (i, "pair"), i / 2, None if i > 6 else frozenset([i]))[i % 4],
)
Call = Callable[[Callable[..., Any], Any], Any]  # of a function and a graph


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    """A graph of any kind, with loops, parallel edges, isolated nodes and odd labels, or none."""
    n = draw(st.integers(0, 8))
    label = draw(st.sampled_from(LABELS))
    names = [label(i) for i in range(n)]
    if draw(st.booleans()):
        names = names[::-1]
    graph = draw(st.sampled_from(KINDS))()
    graph.add_nodes_from(name for name in names if name is not None)
    names = list(graph)
    if names:
        node = st.sampled_from(names)
        graph.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=20)))
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        if number % 3:
            data["weight"] = number % 5 / 4
    return graph


def alone(function: Callable[..., Any], G: Any) -> Any:
    return function(G)


def at_nodes(function: Callable[..., Any], G: Any) -> Any:
    """Of all nodes, of some, of each, and of what is no node."""
    some = [*list(G)[1:4], "absent"]
    single = [function(G, node) for node in list(G)[:3]]
    return function(G), function(G, some), function(G, []), single


def at_sources(function: Callable[..., Any], G: Any) -> Any:
    return [function(G, node) for node in list(G)]


def within(function: Callable[..., Any], G: Any) -> Any:
    """From each source, as far as it goes and less far."""
    limits = (None, -1, 0, 1, 1.5, 2, math.inf)
    return [function(G, node, cutoff=limit) for node in list(G)[:4] for limit in limits]


def along(function: Callable[..., Any], G: Any) -> Any:
    """Breadth first from each source, forwards, backwards and not far."""
    reverse = function.__name__ in ("bfs_edges", "bfs_tree")
    options: list[dict[str, Any]] = [{}, {"depth_limit": 1}, {"depth_limit": 0}]
    options += [{"reverse": True}, {"reverse": True, "depth_limit": 2}] if reverse else []
    return [contents(function(G, node, **o)) for node in list(G)[:4] for o in options]


def layers(function: Callable[..., Any], G: Any) -> Any:
    nodes = list(G)
    chosen = [*nodes[:2], nodes[:3], []]
    return [[list(layer) for layer in function(G, sources)] for sources in chosen]


def pairs(function: Callable[..., Any], G: Any) -> Any:
    """Each pair of nodes."""
    return [outcome(partial(function, G, u, v)) for u in list(G)[:5] for v in G]


def links(function: Callable[..., Any], G: Any) -> Any:
    """Some pairs, and all that are not joined, of which NetworkX leaves the order open."""
    chosen = [(u, v) for u in list(G)[:4] for v in G if u != v]
    return list(function(G, chosen)), {(u, v): score for u, v, score in function(G)}


def cores(function: Callable[..., Any], G: Any) -> Any:
    numbers = nx.core_number(getattr(G, "origin", G))
    given = [function(G, k, numbers) for k in (0, 1, 2)]
    return given, [outcome(partial(function, G, k)) for k in (0, 1, 2, 5)]


def levels(function: Callable[..., Any], G: Any) -> Any:
    return [function(G, k) for k in (0, 2, 3, 4)]


def distances(function: Callable[..., Any], G: Any) -> Any:
    return [function(G, node, distance) for node in list(G)[:3] for distance in (-1, 0, 1, 2, 9)]


def lengths(function: Callable[..., Any], G: Any) -> Any:
    nodes = list(G)[:3]
    everything = dict(function(G))
    ends = [[function(G, source=v), function(G, target=v)] for v in nodes]
    return everything, ends, pairs(function, G)


def ranks(function: Callable[..., Any], G: Any) -> Any:
    options = {"tol": 1e-14, "max_iter": 500}  # undirected ranks come in other steps than its own
    vectors = {"personalization": dict.fromkeys(list(G)[:2], 2)}
    return [
        function(G, weight=None, **options),
        function(G, 0.5, **options),
        outcome(lambda: function(G, max_iter=1, tol=1e-12)),
        outcome(lambda: function(G, personalization=dict.fromkeys(G, 0))),
        outcome(lambda: function(G, **vectors, **options)),
        outcome(lambda: function(G, **vectors, dangling=dict.fromkeys(G, 1), **options)),
        outcome(lambda: function(G, nstart=dict.fromkeys(list(G)[:1], 1), **options)),
    ]


def hubs(function: Callable[..., Any], G: Any) -> Any:
    """By power iteration, from all nodes, one, too few, and none."""
    backwards = list(G)[::-1]
    starts = [{v: 1 + i for i, v in enumerate(backwards)}, {v: v == backwards[0] for v in G}]
    starts += [dict.fromkeys(backwards[1:], 1), dict.fromkeys(G, 0)]
    options: list[dict[str, Any]] = [{}, {"normalized": False}, {"max_iter": 3}, {"max_iter": 0}]
    options += [{"tol": 0.1}, *({"nstart": start} for start in starts)]
    return [outcome(partial(function, G, **o)) for o in options]


CALLS: dict[str, Call] = {
    "k_core": cores, "k_shell": cores, "k_crust": cores, "k_corona": levels, "k_truss": levels,
    "triangles": at_nodes, "clustering": at_nodes, "square_clustering": at_nodes,
    "average_clustering": lambda f, G: [f(G), f(G, count_zeros=False)],
    "reciprocity": lambda f, G: [f(G), f(G, list(G)), pairs(lambda G, u, v: f(G, u), G)],
    "node_connected_component": at_sources, "pagerank": ranks, "hits": hubs,
    "bfs_edges": along, "bfs_tree": along, "bfs_predecessors": along, "bfs_successors": along,
    "bfs_layers": layers, "descendants_at_distance": distances,
    "descendants": at_sources, "ancestors": at_sources, "has_path": pairs,
    "single_source_shortest_path": within, "single_target_shortest_path": within,
    "single_source_shortest_path_length": within, "single_target_shortest_path_length": within,
    "shortest_path_length": lengths, "eccentricity": lambda f, G: [f(G), at_sources(f, G)],
    "closeness_centrality": lambda f, G: [f(G), f(G, wf_improved=False), at_sources(f, G)],
    "jaccard_coefficient": links, "adamic_adar_index": links, "resource_allocation_index": links,
    "preferential_attachment": links,
    "common_neighbor_centrality": lambda f, G: [
        links(f, G), list(f(G, [(u, v) for u in G for v in G if u != v], alpha=1))
    ],
    "strongly_connected_components": lambda f, G: {frozenset(part) for part in f(G)},
}  # fmt: skip
# Nearest nodes come first, as in NetworkX, but not always in its order.
UNORDERED = {name for name in SERVED if name.endswith("path_length")}
# Lengths by weight are floats, where NetworkX's may be integers. By singular vectors, as all hits
# were before NetworkX 3.7, there may be several answers: test_networkx_versions.py.
ELSEWHERE = BY_WEIGHT if is_since(3, 7) else {"hits", *BY_WEIGHT}

pytestmark = pytest.mark.filterwarnings(
    r"ignore:\s*bfs_predecessors is deprecated:DeprecationWarning",
    "ignore:invalid value encountered:RuntimeWarning",  # hubs of a graph without edges
)


def contents(value: Any) -> Any:
    """Everything in an answer, iterators exhausted."""
    if isinstance(value, nx.Graph):
        return value
    if isinstance(value, Iterator):
        return [contents(v) for v in value]
    if isinstance(value, tuple | list):
        return type(value)(contents(v) for v in value)
    return value


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the exception that it raises."""
    try:
        return contents(call())
    except (nx.NetworkXException, ValueError, ZeroDivisionError, KeyError, AttributeError) as error:
        return error


def is_nearest_first(lengths: dict[Any, int]) -> bool:
    return list(lengths.values()) == sorted(lengths.values())


def assert_alike(ours: Any, theirs: Any, name: str) -> None:
    """Equal in type and value, floats nearly, keys in one order where that is known."""
    assert type(ours) is type(theirs), (name, ours, theirs)
    if isinstance(theirs, Exception):
        assert str(ours) == str(theirs) or not isinstance(theirs, nx.NetworkXException), name
    elif isinstance(theirs, nx.Graph):
        assert nx.utils.graphs_equal(ours, theirs), name
        assert list(ours) == list(theirs) or name.startswith("k_"), name
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), name
        if name in UNORDERED:
            assert all(type(v) is dict for v in ours.values()) or is_nearest_first(ours), name
        else:
            assert list(ours) == list(theirs), name
        for key, value in theirs.items():
            assert_alike(ours[key], value, name)
    elif isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), (name, ours, theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_alike(mine, other, name)
    else:
        nan = isinstance(theirs, float)
        wanted = pytest.approx(theirs, rel=1e-9, abs=1e-12, nan_ok=True) if nan else theirs
        assert ours == wanted, name


def is_served(name: str, graph: Any) -> bool:
    """Whether the backend takes this graph, with anything for the other arguments it must have."""
    parameters = signature(getattr(backend, name)).parameters.values()
    needed = [graph, *(0 for p in parameters if p.default is p.empty)][:-1]
    return backend.can_run(name, tuple(needed), {}) is True


@pytest.mark.parametrize("name", sorted(SERVED.keys() - ELSEWHERE))
@given(graph=graphs())
def test_results_are_networkxs(name: str, graph: Any) -> None:
    call = CALLS.get(name, alone)
    theirs = outcome(lambda: call(getattr(nx, name), graph))
    if isinstance(theirs, nx.NetworkXNotImplemented):
        return  # raised by what NetworkX wraps around a function, before it asks a backend
    converted = backend.convert_from_nx(graph)
    if is_served(name, graph):
        ours = outcome(lambda: call(getattr(backend, name), converted))
        assert_alike(ours, theirs, name)


@given(graph=graphs())
def test_a_strong_component_comes_after_those_it_leads_to(graph: Any) -> None:
    found = list(backend.strongly_connected_components(backend.convert_from_nx(graph)))
    place = {node: i for i, part in enumerate(found) for node in part}
    assert place.keys() == set(graph)
    assert all(place[v] <= place[u] for u, v in graph.edges())


@pytest.mark.parametrize("name", sorted(BY_WEIGHT))
@given(graph=graphs())
def test_lengths_by_weight_are_networkxs(name: str, graph: Any) -> None:
    """To the last bit, since both add from the source on; nearest first."""
    theirs, ours = getattr(nx, name), getattr(backend, name)
    if graph.is_multigraph():
        return
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    nodes, options = [*list(graph)[:3], "absent"], [{"weight": w} for w in ("weight", None, "no")]
    cuts: list[dict[str, Any]] = [{}]
    if "cutoff" in signature(ours).parameters:
        cuts += [{"cutoff": c} for c in (-1, 0, 0.5, 1)]
    if name.startswith("all_pairs"):
        ends: list[tuple[Any, ...]] = [()]
    elif name.startswith("single_source"):
        ends = [(u,) for u in nodes]
    else:
        ends = [(u, v) for u in nodes for v in nodes]
    for given_ends, weight, cut in product(ends, options, cuts):
        wanted = outcome(partial(theirs, graph, *given_ends, **weight, **cut))
        found = outcome(partial(ours, converted, *given_ends, **weight, **cut))
        if isinstance(wanted, Exception):
            assert (type(found), str(found)) == (type(wanted), str(wanted))
        elif name.startswith("all_pairs"):
            assert found == wanted
            assert all(is_nearest_first(lengths) for _, lengths in found)
        else:
            assert found == wanted
            assert not isinstance(found, dict) or is_nearest_first(found)


@pytest.mark.parametrize("weights", [(2**53, 2), (2**53 + 1, 0), (2**52, 2**52), (1e308, 1e308)])
@pytest.mark.parametrize("name", sorted(BY_WEIGHT))
def test_lengths_that_floats_do_not_hold_are_left_to_networkx(
    name: str, weights: tuple[float, float]
) -> None:
    """At once, also where NetworkX returns an iterator: later it could not take over."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, weights[0]), (1, 2, weights[1])])
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    with pytest.raises(NotImplementedError, match="too large to be exact"):
        getattr(backend, name)(converted, *_ends(name))


@pytest.mark.parametrize("name", sorted(BY_WEIGHT))
def test_the_largest_lengths_that_floats_hold(name: str) -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 2**52 - 1), (1, 2, 2**52 - 1)])
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    wanted = contents(getattr(nx, name)(graph, *_ends(name)))
    assert contents(getattr(backend, name)(converted, *_ends(name))) == wanted


def _ends(name: str) -> tuple[int, ...]:
    return () if name.startswith("all_pairs") else (0,) if name.startswith("single") else (0, 2)


@given(graph=graphs())
def test_the_corona_of_the_largest_core_is_networkxs(graph: Any) -> None:
    """Also by numbers that name what is no node."""
    if not is_served("k_corona", graph) or nx.number_of_selfloops(graph):
        return
    converted = backend.convert_from_nx(graph)
    numbers = nx.core_number(graph)
    for k, given_numbers in product((None, 1, 2), (None, {**numbers, "absent": 2})):
        ours = outcome(partial(backend.k_corona, converted, k, given_numbers))
        theirs = outcome(partial(nx.k_corona, graph, k, given_numbers))
        assert_alike(ours, theirs, "k_corona")


@pytest.mark.parametrize("values", [{}, {0: 0}, {0: 1, 1: -1}])
def test_vectors_without_a_sum_are_left_to_networkx(values: Any) -> None:
    """Where NetworkX divides by 0, not where it raises an error of its own."""
    converted = backend.convert_from_nx(nx.path_graph(3))
    with pytest.raises(NotImplementedError, match="add up to 0"):
        backend.pagerank(converted, nstart=values)
    with pytest.raises(ZeroDivisionError):
        backend.pagerank(converted, personalization=values)


@given(graph=graphs())
def test_weights_are_read_by_name(graph: Any) -> None:
    """Of a graph that was converted for another attribute, or for none, or for all."""
    options: dict[str, Any] = {"tol": 1e-14, "max_iter": 500}
    for attributes in (None, {"weight": 1}, {"other": 1}):
        converted = backend.convert_from_nx(graph, edge_attrs=attributes, preserve_edge_attrs=True)
        for weight in ("weight", None, "other"):
            ours = backend.pagerank(converted, weight=weight, **options)
            theirs = nx.pagerank(graph, weight=weight, **options)
            assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("directed", [False, True])
def test_on_a_device(device: str, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs on a device, and what takes a device's graph to the host."""
    monkeypatch.setenv("LPMA_DEVICE", device)
    graph = nx.gnp_random_graph(60, 0.15, seed=3, directed=directed)
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = 1 + number % 3
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    assert on_device(converted.snapshot.indptr) == (device != "cpu")
    if device != "cpu":  # the host gets no rows but those of the graph of the components
        monkeypatch.setattr("algorithms.similarity.cpu.of_pairs", None)
        search = strong_components.cpu.components
        monkeypatch.setattr(
            "algorithms.strong_components.cpu.components",
            lambda indptr, indices: search(indptr, indices) if len(indptr) < 50 else None,
        )
    for name in sorted(SERVED.keys() - ELSEWHERE):
        call = CALLS.get(name, alone)
        theirs = outcome(partial(call, getattr(nx, name), graph))
        refused = isinstance(theirs, nx.NetworkXNotImplemented)
        if not refused and is_served(name, graph):
            assert_alike(outcome(partial(call, getattr(backend, name), converted)), theirs, name)
    ours, theirs = backend.hits(converted), nx.hits(graph)
    assert ours[0] == pytest.approx(theirs[0], abs=1e-6)
