"""Personalised PageRank and first ranks, against NetworkX and the definition's formula."""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import NotConverged, ShardedSnapshot, pagerank
from algorithms.networkx import backend
from algorithms.pagerank import cpu
from algorithms.sharded import split
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from lpma.cpu import pieces
from tests.algorithms.test_components import snapshots
from tests.algorithms.test_pagerank import EXACT, graphs
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


def near(s: Any, values: Array) -> Any:
    """Where the graph lies."""
    if not on_device(s.indptr):
        return values
    import cupy

    return cupy.asarray(values)


def of_formula(s: lpma.Snapshot, teleport: Array, d: float = 0.85) -> Array:
    """Every row of s being a vertex, ranks by the definition, with SciPy's product."""
    matrix = s.to_scipy().astype(float)
    matrix.data[:] = 1
    leaving = np.asarray(matrix.sum(axis=1)).ravel()
    ranks = teleport
    for _ in range(200):
        shares = np.divide(ranks, leaving, out=np.zeros(len(ranks)), where=leaving > 0)
        ranks = (1 - d + d * ranks[leaving == 0].sum()) * teleport + d * (matrix.T @ shares)
    return ranks


@given(graph=edge_lists(), data=st.data())
def test_personalised(device: str, graph: tuple[int, Array, Array], data: st.DataObject) -> None:
    n, src, dst = graph
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    weight = rng.integers(1, 9, len(src)) / 4
    numbers = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
    numbers[:1] += 0.1
    start = rng.random(n) + 0.01
    few = data.draw(st.sampled_from([pieces.FEW, 0]))
    kept = data.draw(st.sampled_from([cpu.CACHED, 0]))
    if n == 0:
        return
    jumps = dict(enumerate(numbers.tolist()))
    kind = data.draw(st.integers(0, 2))
    for form, expected in graphs(device, n, src, dst, weight):
        for name in (None, "weight"):
            given: Any = (jumps, near(form, numbers), numbers.tolist())[kind]
            with patch.object(pieces, "FEW", few), patch.object(cpu, "CACHED", kept):
                ranks = pagerank(
                    form, 0.85, 1e-11, 1000, name is not None, given, near(form, start)
                )
            wanted = nx.pagerank(expected, personalization=jumps, weight=name, **EXACT)
            found = dict(enumerate(to_host(ranks).tolist()))
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("directed", [True, False])
def test_of_many_vertices(device: str, directed: bool) -> None:
    """With hubs and enough edges for several threads; around three vertices."""
    src, dst = generators.rmat(15, 500_000, seed=2)
    src = np.concatenate((src, np.arange(1 << 15)))
    dst = np.concatenate((dst, np.full(1 << 15, 7)))
    s = snapshots(device, src, dst)[0 if directed else 1]
    teleport = np.zeros(s.num_rows)
    teleport[[3, 50, 700]] = [0.25, 0.25, 0.5]
    wanted = of_formula(s, teleport)
    found = to_host(pagerank(s, tol=1e-12, max_iter=300, personalization={3: 1, 50: 1, 700: 2}))
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-11)
    assert found.sum() == pytest.approx(1)


def test_from_ranks_that_are_right_already(device: str) -> None:
    """One round shows it. From those before a batch, ranks are as near as the bound says."""
    src, dst = generators.rmat(12, 60_000, seed=3)
    g = lpma.Graph(device=device)
    g.insert(src, dst)
    before = pagerank(g.snapshot(), tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pagerank(g.snapshot(), tol=1e-8, max_iter=1, start=before)
    rng = np.random.default_rng(4)
    g.insert(*rng.integers(0, g.snapshot().num_rows, (2, 300)))
    s = g.snapshot()
    exact = to_host(pagerank(s, tol=1e-13, max_iter=500))
    for tol in (1e-4, 1e-6):
        ranks = to_host(pagerank(s, tol=tol, start=before))
        assert float(abs(ranks - exact).sum()) <= tol * 0.85 / 0.15
    with pytest.warns(NotConverged):
        ranks = pagerank(s, max_iter=0, start=before)
    np.testing.assert_allclose(to_host(ranks), to_host(before), rtol=1e-12)


def test_rows_that_are_not_vertices_do_not_count(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 4], [2, 2])
    s = g.snapshot()
    assert to_host(pagerank(s, damping=0, personalization=[1, 9, 1, 9, 2])).tolist() == [
        0.25, 0, 0.25, 0, 0.5,
    ]  # fmt: skip
    np.testing.assert_allclose(
        to_host(pagerank(s, 0.85, 1e-12, start=[0, 5, 0, 5, 1])), to_host(pagerank(s, tol=1e-12))
    )
    with pytest.raises(lpma.BatchError, match="personalization: a vertex that is there"):
        pagerank(s, personalization={1: 1})
    with pytest.raises(lpma.BatchError, match="start: it is 0 at all"):
        pagerank(s, start=[0, 1, 0, 1, 0])


def test_vertices_by_name() -> None:
    g = lpma.Graph(device="cpu", names=True)
    g.insert(["a", "a", "b"], ["b", "c", "a"])
    ranks = pagerank(g.snapshot(), personalization={"c": 1.0}, **EXACT)
    expected = nx.pagerank(
        nx.DiGraph([("a", "b"), ("a", "c"), ("b", "a")]), personalization={"c": 1}, **EXACT
    )
    assert ranks == pytest.approx([expected[name] for name in "abc"], abs=1e-9)


@pytest.mark.parametrize("most", [5e-324, 1e-305, 1.7e308])
def test_numbers_of_any_size(device: str, most: float) -> None:
    s = snapshots(device, np.array([0, 1, 2]), np.array([1, 2, 1]))[0]
    for numbers in ([1.0, 0, 0], [1.0, 0, 1.0]):
        wanted = to_host(pagerank(s, personalization=numbers))
        ranks = to_host(pagerank(s, personalization=np.array(numbers) * most))
        np.testing.assert_allclose(ranks, wanted, rtol=1e-12)
        assert abs(ranks.sum() - 1) < 1e-9


@pytest.mark.parametrize("wrong", [
    [1, 2], [0, 0, 0], [1, -1, 1], [1, np.nan, 1], [1, np.inf, 1], ["a", "b", "c"], [[1, 1, 1]],
    [[1], [1, 2]], {0: "a"}, {7: 1.0}, {0: 0.0}, 5, [1j, 1, 1],
])  # fmt: skip
def test_numbers_that_are_none_are_refused(device: str, wrong: Any) -> None:
    s = snapshots(device, np.array([0, 1]), np.array([1, 2]))[0]
    for name in ("personalization", "start"):
        given: dict[str, Any] = {name: wrong}
        with pytest.raises(lpma.BatchError, match=name):
            pagerank(s, **given)


def test_over_shards_they_are_refused() -> None:
    s = snapshots("cpu", np.array([0, 1]), np.array([1, 2]))[0]
    spread = ShardedSnapshot.of(split(s, 2))
    for name in ("personalization", "start"):
        given: dict[str, Any] = {name: [1, 1, 1]}
        with pytest.raises(lpma.BatchError, match="gather"):
            pagerank(spread, **given)


@pytest.mark.parametrize("given", [
    {"personalization": {0: 1, 3: 2}}, {"nstart": {2: 1}}, {"dangling": {1: 1}},
    {"personalization": {0: 1}, "nstart": {1: 3, 2: 1}, "dangling": {4: 1, 5: 1}},
])  # fmt: skip
def test_in_networkx(device: str, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPMA_DEVICE", device)
    graph = nx.gnp_random_graph(60, 0.03, seed=3, directed=True)
    assert any(degree == 0 for _, degree in graph.out_degree)
    converted = backend.convert_from_nx(graph)
    ours = backend.pagerank(converted, **given, **EXACT)
    assert ours == pytest.approx(nx.pagerank(graph, **given, **EXACT), rel=1e-7, abs=1e-11)
