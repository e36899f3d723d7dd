"""Shortest paths against SciPy, NetworkX and Bellman and Ford's rounds, to the last bit."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import bfs, shortest_path_tree, shortest_paths
from algorithms.shortest_paths import cpu
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, clustered
from tests.support.oracles import assert_same
from tests.support.strategies import Config, edge_lists

Array = npt.NDArray[Any]
Edges = tuple[Array, Array, Array]


def by_rounds(n: int, edges: Edges, source: int) -> Array:
    """Relax every edge until nothing changes."""
    found = np.full(n, np.inf)
    found[source] = 0
    while True:
        before = found.copy()
        for u, v, w in zip(*(column.tolist() for column in edges), strict=True):
            found[v] = min(found[v], found[u] + w)
        if np.array_equal(found, before):
            return found


def before_by_trial(edges: Edges, source: int, distance: Array) -> Array:
    """Level by level along the edges that shortest paths take: the smallest end of each."""
    before, level = np.full(len(distance), -1, np.int32), {source: 0}
    for step in range(1, len(distance)):
        for u, v, w in sorted(zip(*(column.tolist() for column in edges), strict=True)):
            taken = level.get(u) == step - 1 and distance[u] + w == distance[v] < np.inf
            if taken and v not in level:
                before[v], level[v] = u, step
    return before


def edges_of(s: Any) -> Edges:
    """Sources, targets and weights of a snapshot or matrix, as they are stored."""
    indptr, indices = to_host(s.indptr), to_host(s.indices)
    weights = to_host(s.weights if isinstance(s, lpma.Snapshot) else s.data)
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices, weights.astype(float)


def with_weights(s: lpma.Snapshot, times: float, plus: float) -> lpma.Snapshot:
    """With other weights than a store would have."""
    assert s.weights is not None
    return replace(s, weights=s.weights * times + plus)


def weighted_forms(device: str, n: int, src: Array, dst: Array, weight: Array) -> list[Any]:
    """The graph with its weights in every form that is taken; weights of repeats add up, but in
    the matrices, where they stay apart."""
    forms: list[Any] = []
    for config in (Config(), Config(directed=False), Config(weight_dtype="float64")):
        g = config.graph(device)
        g.insert(src, dst, weight, 0)
        g.add_vertices(np.arange(n), 0)
        forms.append(g.snapshot())
    order = np.argsort(src, kind="stable")
    indptr = np.searchsorted(src[order], np.arange(n + 1))
    for kind in (np.float32, np.float64, np.int64):
        values = (weight * (4 if kind is np.int64 else 1)).astype(kind)[order]
        forms.append(sparse.csr_array((values, dst[order], indptr), shape=(n, n)))
    if device == "cuda":
        cupyx = importlib.import_module("cupyx.scipy.sparse")
        forms += [cupyx.csr_matrix(sparse.csr_matrix(matrix)) for matrix in forms[3:5]]
    return forms


def deltas(device: str) -> Iterator[AbstractContextManager[object]]:
    """On a device: with piles that are split often, now and then, or never."""
    if device == "cpu":
        yield nullcontext()
        return
    cuda = importlib.import_module("algorithms.shortest_paths.cuda")
    for delta in (0.0, 0.01, cuda.DELTA, np.inf):
        yield patch.object(cuda, "DELTA", delta)


def on_host(s: lpma.Snapshot) -> tuple[Array, Array, Array]:
    return to_host(s.indptr), to_host(s.indices), to_host(s.weights)


def matrix_of(s: lpma.Snapshot) -> Any:
    return sparse.csr_array(on_host(s)[::-1], shape=(s.num_rows, s.num_rows))


def check_tree(s: lpma.Snapshot, source: int, expected: Array) -> None:
    """Distances to the last bit, and on a device the predecessors of the CPU."""
    tree = shortest_path_tree(s, source)
    assert_same(shortest_paths(s, source), expected)
    assert_same(tree.distance, expected)
    before, distance = to_host(tree.predecessor), to_host(tree.distance)
    matrix = matrix_of(s)
    reached = np.flatnonzero(before >= 0)
    hops = matrix[before[reached], reached]
    assert np.array_equal(distance[before[reached]] + hops, distance[reached])
    assert len(reached) == np.isfinite(distance).sum() - 1
    assert_same(before, cpu.predecessors(*on_host(s), source, expected))


@given(graph=edge_lists(), data=st.data())
def test_in_every_form(device: str, graph: tuple[int, Array, Array], data: st.DataObject) -> None:
    """With edges of no weight, of equal ones, and such that sums are rounded."""
    n, src, dst = graph
    if n == 0:
        return
    weight = st.sampled_from([0.0, 0.0, 0.25, 1.0, 1.0, 2.0, 2.0**-30, 2.0**30, 0.1])
    given_weights = data.draw(st.lists(weight, min_size=len(src), max_size=len(src)))
    weights = np.array(given_weights, np.float64)
    source = data.draw(st.integers(0, n - 1))
    for form in weighted_forms(device, n, src, dst, weights):
        edges = edges_of(form)
        expected = by_rounds(n, edges, source)
        found = shortest_paths(form, source)
        assert on_device(found) == on_device(form.indptr)
        assert_same(found, expected)
        before = before_by_trial(edges, source, expected)
        for delta in deltas(device if on_device(form.indptr) else "cpu"):
            with delta:
                tree = shortest_path_tree(form, source)
            assert_same(tree.distance, expected)
            assert_same(tree.predecessor, before)


@pytest.mark.parametrize("kind", ["uniform", "whole", "heavy-tailed", "equal"])
def test_scipy_to_the_last_bit(device: str, kind: str) -> None:
    src, dst = generators.rmat(13, 60_000, seed=5)
    rng = np.random.default_rng(3)
    weight = {
        "uniform": rng.random(len(src)),
        "whole": rng.integers(0, 5, len(src)).astype(float),
        "heavy-tailed": rng.pareto(0.5, len(src)),
        "equal": np.ones(len(src)),
    }[kind]
    g = lpma.Graph(device=device)
    g.insert(src, dst, weight)
    s = g.snapshot()
    matrix = matrix_of(s)
    for source in (int(src[0]), int(src[1]), int(dst[0])):
        expected = sparse.csgraph.dijkstra(matrix, True, source)
        for delta in deltas(device):
            with delta:
                check_tree(s, source, expected)


@pytest.mark.parametrize("weight", ["float32", "float64"])
def test_hubs_and_edges_of_no_weight(device: str, weight: str) -> None:
    """Rows of many pieces, many paths of one length, and circles of no length."""
    n, src, dst = clustered()
    g = lpma.Graph(device=device, directed=False, weight_dtype=weight)
    g.insert(src, dst, np.random.default_rng(4).integers(0, 3, len(src)) * 0.1)
    g.add_vertices([n + 3])
    s = g.snapshot()
    matrix = matrix_of(s)
    for source in (77, int(src[0]), n + 3):
        expected = sparse.csgraph.dijkstra(matrix, True, source)
        for delta in deltas(device):
            with delta:
                check_tree(s, source, expected)


def test_equal_weights_are_bfs(device: str) -> None:
    src, dst = generators.rmat(12, 30_000, seed=6)
    g = lpma.Graph(device=device, directed=False)
    g.insert(src, dst, np.ones(len(src)))
    s = g.snapshot()
    s = with_weights(s, 0, 2)  # repeated insertions have added up
    hops = to_host(bfs(s, int(src[0])))
    expected = np.where(hops < 0, np.inf, 2.0 * hops)
    assert_same(shortest_paths(s, int(src[0])), expected)


def test_of_equal_paths_one_by_the_smallest_vertex(device: str) -> None:
    """Though it is found later: 9 is found before 3. And by the fewest edges: 5 is found last."""
    g = lpma.Graph(device=device)
    g.insert([0, 0, 1, 2, 9, 3, 0, 5], [1, 2, 9, 3, 4, 4, 5, 6], [1, 1, 1, 1, 1, 1, 4, 1])
    g.insert([4], [6], 2.0)
    tree = shortest_path_tree(g.snapshot(), 0)
    assert to_host(tree.predecessor).tolist() == [-1, 0, 0, 2, 3, 0, 5, -1, -1, 1]


def test_networkx_with_names(device: str) -> None:
    graph = nx.les_miserables_graph().to_directed()
    s = lpma.from_networkx(graph, weight="weight", device=device).snapshot()
    assert s.names is not None
    distance = s.frame("arrow", distance=shortest_paths(s, "Javert")).to_pylist()
    assert {row["vertex"]: row["distance"] for row in distance} == dict(
        nx.single_source_dijkstra_path_length(graph, "Javert")
    )
    with pytest.raises(lpma.BatchError, match="source: there is no vertex 'Nobody'"):
        shortest_paths(s, "Nobody")


def test_a_long_path_in_any_order(device: str) -> None:
    """The heap holds one vertex, or nearly all."""
    n = 50_000
    ids = np.random.default_rng(7).permutation(n)
    weight = np.random.default_rng(8).random(n - 1)
    g = lpma.Graph(device=device, weight_dtype="float64", times=False)
    g.insert(ids[:-1], ids[1:], weight)
    found = to_host(shortest_paths(g.snapshot(), int(ids[0])))
    assert np.array_equal(found[ids], np.concatenate(([0], np.cumsum(weight))))
    star = lpma.Graph(device=device, weight_dtype="float64", times=False)
    star.insert(np.zeros(n - 1, int), np.arange(1, n), weight)
    assert np.array_equal(to_host(shortest_paths(star.snapshot(), 0))[1:], weight)


def test_rows_that_are_no_vertices(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 2], [2, 3], [1.5, 2.0])
    g.remove_vertices(3)
    g.add_vertices(5)
    s = g.snapshot()
    assert to_host(shortest_paths(s, 0)).tolist() == [0, np.inf, 1.5, np.inf, np.inf, np.inf]
    assert to_host(shortest_paths(s, 5)).tolist() == [np.inf] * 5 + [0]
    for absent in (1, 3, -1, 6, 1.0, True, "0", None, [0]):
        with pytest.raises(lpma.BatchError, match="source: a vertex that is there, from 0 to 5"):
            shortest_paths(s, absent)  # type: ignore[arg-type]
    empty = lpma.Graph(device=device).snapshot()
    with pytest.raises(lpma.BatchError, match="source: no vertex is there"):
        shortest_paths(empty, 0)


def test_a_sum_beyond_float64_is_infinity(device: str) -> None:
    ends = (np.array([0, 1, 2]), np.array([1, 2, 3]))
    matrix = sparse.csr_array(([1.5e308, 1.5e308, 1.0], ends), shape=(4, 4))
    distance, before = shortest_path_tree(matrix, 0)
    assert distance.tolist() == [0, 1.5e308, np.inf, np.inf]
    assert before.tolist() == [-1, 0, -1, -1]


@pytest.mark.parametrize("weight", [-0.5, float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_lengths(device: str, weight: float) -> None:
    """Anywhere in the graph: on a path or not. A zero may be negative."""
    matrix = sparse.csr_array(np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 7.0], [0, 0, 1, 0]]))
    matrix.data[1] = weight
    with pytest.raises(lpma.BatchError, match=f"the edge 2 → 3 weighs {weight}: "):
        shortest_paths(matrix, 0)
    matrix.data[1] = -0.0
    assert shortest_paths(matrix, 2).tolist() == [np.inf, np.inf, 0, 0]


def test_the_edge_that_is_refused_goes_by_its_names(device: str) -> None:
    """A store has no such weights; a snapshot made by hand may."""
    g = lpma.Graph(device=device, names=True)
    g.insert(["ann", "bob"], ["bob", 7], [1.0, 2.0])
    s = with_weights(g.snapshot(), 1, -2)
    with pytest.raises(lpma.BatchError, match=r"the edge 'ann' → 'bob' weighs -1\.0"):
        shortest_path_tree(s, "ann")
    ids = lpma.Graph(device=device)
    ids.insert([10, 20], [20, 40], [3.0, 2.0])
    compact = with_weights(ids.snapshot(compact=True), 1, -3)
    with pytest.raises(lpma.BatchError, match=r"the edge 20 → 40 weighs -1\.0"):
        shortest_paths(compact, 0)


def test_what_has_no_weights_is_refused(device: str) -> None:
    g = lpma.Graph(device=device, weight_dtype=None)
    g.insert(0, 1)
    for graph in (g.snapshot(), (np.array([0, 1, 1]), np.array([1]))):
        with pytest.raises(lpma.BatchError, match="no weights: give one that has; `bfs` counts"):
            shortest_paths(graph, 0)
    with pytest.raises(lpma.BatchError, match="real numbers, not complex128"):
        shortest_paths(sparse.csr_array(np.eye(2, dtype=complex)), 0)


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        shortest_paths(BAD_GRAPHS[name], 0)


def test_concurrent_calls_agree(device: str) -> None:
    src, dst = generators.rmat(11, 20_000, seed=9)
    g = lpma.Graph(device=device)
    g.insert(src, dst, np.random.default_rng(1).random(len(src)))
    s = g.snapshot()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: shortest_paths(s, int(src[0])), range(8)))
    for distances in found:
        assert_same(distances, to_host(found[0]))


@pytest.mark.parametrize("name", ["road-NY", "wiki-Vote", "uk-2007-05-100k"])
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    g = lpma.Graph(device=device, directed=False)
    g.insert(columns["src"], columns["dst"], np.random.default_rng(1).random(len(columns["src"])))
    s = g.snapshot()
    source = int(columns["src"][0])
    matrix = matrix_of(s)
    check_tree(s, source, sparse.csgraph.dijkstra(matrix, True, source))
