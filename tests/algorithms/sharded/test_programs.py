"""Programs over shards: against NetworkX, and against the functions of one device."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
from algorithms import ShardedSnapshot
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import to_host
from tests.support.graph_forms import clustered
from tests.support.sharding import Case, cases

Array = npt.NDArray[Any]

MODELS = ("component", "core", "truss")


def vertices_of(case: Case) -> list[int]:
    return sorted({*case.src.tolist(), *case.dst.tolist(), *case.added.tolist()})


def networkx_of(case: Case) -> Any:
    """The case as NetworkX has it: a simple graph, but for loops."""
    graph: Any = nx.DiGraph() if case.directed else nx.Graph()
    graph.add_nodes_from(vertices_of(case))
    graph.add_edges_from(zip(case.src.tolist(), case.dst.tolist(), strict=True))
    return graph


def undirected(case: Case) -> Any:
    """Without directions and loops."""
    graph = nx.Graph(networkx_of(case))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


def over_rows(n: int, values: dict[int, Any], default: Any, dtype: Any) -> Array:
    found = np.full(n, default, dtype)
    for vertex, value in values.items():
        found[vertex] = value
    return found


def assert_equal(found: Any, expected: Any) -> None:
    found, expected = np.asarray(to_host(found)), np.asarray(to_host(expected))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@given(case=cases())
def test_components(device: str, case: Case) -> None:
    s = case.sharded(device)
    labels = {v: min(of) for of in nx.connected_components(undirected(case)) for v in of}
    expected = over_rows(s.num_rows, labels, -1, np.int32)
    assert_equal(algorithms.connected_components(s), expected)
    assert_equal(algorithms.connected_components(case.one(device)), expected)


@given(case=cases())
def test_core_numbers(device: str, case: Case) -> None:
    s = case.sharded(device)
    expected = over_rows(s.num_rows, nx.core_number(undirected(case)), 0, np.int32)
    assert_equal(algorithms.core_numbers(s), expected)
    assert_equal(algorithms.core_numbers(case.one(device)), expected)


@given(case=cases(), data=st.data())
def test_bfs(device: str, case: Case, data: st.DataObject) -> None:
    s = case.sharded(device)
    if not vertices_of(case):
        return
    source = data.draw(st.sampled_from(vertices_of(case)))
    hops = nx.single_source_shortest_path_length(networkx_of(case), source)
    assert_equal(algorithms.bfs(s, source), over_rows(s.num_rows, hops, -1, np.int32))


@given(case=cases(max_vertices=12), data=st.data())
def test_hops(device: str, case: Case, data: st.DataObject) -> None:
    s, graph = case.sharded(device), networkx_of(case)
    asked = data.draw(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), max_size=4))
    found = s.hops([source for source, _ in asked], [steps for _, steps in asked])
    for (source, steps), rows in zip(asked, found, strict=True):
        level, expected = {source}, set()
        for _ in range(steps):
            level = {v for u in level if u in graph for v in graph[u]}
            expected |= level
        assert rows.tolist() == sorted(expected)


@given(case=cases())
def test_triangle_count(device: str, case: Case) -> None:
    expected = sum(nx.triangles(undirected(case)).values()) // 3
    assert algorithms.triangle_count(case.sharded(device)) == expected
    assert algorithms.triangle_count(case.one(device)) == expected


@given(case=cases(), weighted=st.booleans())
def test_pagerank(device: str, case: Case, weighted: bool) -> None:
    s, one = case.sharded(device), case.one(device)
    found = algorithms.pagerank(s, weighted=weighted, tol=1e-12, max_iter=1000)
    expected = to_host(algorithms.pagerank(one, weighted=weighted, tol=1e-12, max_iter=1000))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    if not weighted and vertices_of(case):
        ranks = nx.pagerank(networkx_of(case), tol=1e-13, max_iter=1000)
        np.testing.assert_allclose(found, over_rows(len(found), ranks, 0, float), atol=1e-8)


@given(case=cases(), limit=st.integers(0, 5))
def test_pagerank_takes_as_many_rounds_as_on_one_device(case: Case, limit: int) -> None:
    def ranks(s: Any) -> tuple[Array, list[Any]]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            return algorithms.pagerank(s, tol=0.05, max_iter=limit), [one.category for one in told]

    case = replace(case, directed=True)  # else one device takes Chebyshev's steps
    found, expected = ranks(case.sharded()), ranks(case.one())
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-13)
    assert found[1] == expected[1]


@given(case=cases(max_vertices=16), model=st.sampled_from(MODELS), k=st.integers(1, 4))
def test_diversity(device: str, case: Case, model: str, k: int) -> None:
    s, one = case.sharded(device), case.one(device)
    assert_equal(algorithms.diversity(s, model, k), algorithms.diversity(one, model, k))
    best = algorithms.top_diversity(s, model, k, 4, method="extract")
    assert listed(best) == listed(algorithms.top_diversity(one, model, k, 4))


@given(case=cases(max_vertices=12), k=st.integers(1, 3))
def test_diversity_by_definition(case: Case, k: int) -> None:
    graph, s = undirected(case), case.sharded()
    scores = {
        v: sum(len(c) >= k for c in nx.connected_components(graph.subgraph(graph[v])))
        for v in graph
    }
    expected = over_rows(s.num_rows, scores, 0, np.int32)
    assert_equal(algorithms.diversity(s, "component", k), expected)


def listed(best: Any) -> list[Any]:
    return [(one.vertex, one.score, [c.tolist() for c in one.contexts]) for one in best]


@given(case=cases())
def test_degrees_presence_and_the_whole(device: str, case: Case) -> None:
    s, one = case.sharded(device), case.one(device)
    assert (s.num_rows, s.num_edges, s.directed) == (one.num_rows, one.num_edges, case.directed)
    assert_equal(s.degrees(), np.diff(to_host(one.indptr)))
    assert_equal(s.present, one.present)
    whole = s.gather()
    for name in ("indptr", "indices", "weights", "times", "present"):
        assert_equal(getattr(whole, name), getattr(one, name))
    assert whole.added is not None
    assert (np.diff(whole.added.astype(np.int64)) > 0).all()
    assert (whole.num_edges, whole.time, whole.directed) == (one.num_edges, s.time, one.directed)


@pytest.fixture(scope="module", params=[False, True], ids=["undirected", "directed"])
def large(request: pytest.FixtureRequest) -> tuple[Snapshot, ShardedSnapshot]:
    """With rows in pieces for threads, hubs, and levels far apart."""
    n, src, dst = clustered(scale=11)
    case = Case(n, src, dst, np.array([n + 5]), 3, request.param, False)
    return case.one(), case.sharded()


@pytest.mark.parametrize("name", ["connected_components", "core_numbers", "triangle_count"])
def test_large(large: tuple[Snapshot, ShardedSnapshot], name: str) -> None:
    one, s = large
    for _ in range(2):  # the second time with the views that were kept
        assert_equal(getattr(algorithms, name)(s), getattr(algorithms, name)(one))


def test_large_ranks_hops_and_diversity(large: tuple[Snapshot, ShardedSnapshot]) -> None:
    one, s = large
    assert_equal(algorithms.bfs(s, 77), algorithms.bfs(one, 77))
    for weighted in (False, True):
        found, expected = (algorithms.pagerank(of, tol=1e-13, max_iter=500, weighted=weighted)
                           for of in (s, one))  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert_equal(algorithms.diversity(s, "component", 2), algorithms.diversity(one, "component", 2))
    first, second = (algorithms.top_diversity(of, "core", 2, 5) for of in large[::-1])
    assert listed(first) == listed(second)


@pytest.mark.parametrize("order", ["rising", "mixed"])
def test_a_path_over_all_shards_takes_few_supersteps(order: str) -> None:
    """Labels passed along its edges would take one for each."""
    n = 5000
    path = np.random.default_rng(1).permutation(n) if order == "mixed" else np.arange(n)
    case = Case(n, path[:-1], path[1:], np.empty(0, np.int64), 4, False, False)
    s = case.sharded()
    assert not algorithms.connected_components(s).any()
    assert s.workers.steps < 150  # type: ignore[attr-defined]


def test_rmat_is_the_same_on_any_number_of_shards() -> None:
    src, dst = generators.rmat(9, 4000, seed=1)
    for shards in (1, 2, 5):
        case = Case(
            512, src.astype(np.int64), dst.astype(np.int64), np.arange(3), shards, True, True
        )
        s, one = case.sharded(), case.one()
        assert_equal(algorithms.core_numbers(s), algorithms.core_numbers(one))
        assert algorithms.triangle_count(s) == algorithms.triangle_count(one)
