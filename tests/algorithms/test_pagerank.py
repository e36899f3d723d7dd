"""PageRank against NetworkX and SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
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
from algorithms import NotConverged, pagerank
from algorithms.pagerank import cpu
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from lpma.cpu import pieces
from tests.algorithms.test_components import snapshots
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS
from tests.support.strategies import Config, edge_lists

Array = npt.NDArray[Any]

EXACT: dict[str, Any] = {"tol": 1e-12, "max_iter": 1000}


def ranks_networkx(graph: Any, n: int, weight: str | None, damping: float = 0.85) -> Array:
    ranks = nx.pagerank(graph, alpha=damping, weight=weight, **EXACT)
    return np.array([ranks.get(v, 0) for v in range(n)])


def ranks_scipy(s: lpma.Snapshot) -> Array:
    """The definition's formula, again and again, with SciPy's product."""
    matrix = s.to_scipy().astype(float)
    matrix.data[:] = 1
    d = 0.85
    leaving = np.asarray(matrix.sum(axis=1)).ravel()
    present = (leaving > 0) | (np.asarray(matrix.sum(axis=0)).ravel() > 0)
    n = int(present.sum())
    ranks = present / n
    for _ in range(200):
        shares = np.divide(ranks, leaving, out=np.zeros(len(ranks)), where=leaving > 0)
        evenly = present * (1 - d + d * ranks[leaving == 0].sum()) / n
        ranks = evenly + d * (matrix.T @ shares)
    return ranks


def graphs(device: str, n: int, src: Array, dst: Array, weight: Array) -> Iterator[tuple[Any, Any]]:
    """The graph in each form that pagerank takes, beside NetworkX's."""
    triples = list(zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True))
    for config in (Config(), Config(directed=False), Config(weight_dtype="float64")):
        g = config.graph(device)
        g.insert(src, dst, weight, 0)
        g.add_vertices(np.arange(n), 0)
        expected: Any = nx.DiGraph() if config.directed else nx.Graph()
        expected.add_nodes_from(range(n))
        for u, v, w in triples:  # a repeated edge adds its weight
            before = expected.get_edge_data(u, v, {"weight": 0})["weight"]
            expected.add_edge(u, v, weight=before + w)
        yield g.snapshot(), expected
    if n:
        several = nx.MultiDiGraph()
        several.add_nodes_from(range(n))
        several.add_weighted_edges_from(triples)
        order = np.argsort(src, kind="stable")
        indptr = np.searchsorted(src[order], np.arange(n + 1))
        matrix = sparse.csr_matrix((weight[order], dst[order], indptr), shape=(n, n))
        yield matrix, several


@given(graph=edge_lists(), data=st.data())
def test_pagerank(device: str, graph: tuple[int, Array, Array], data: st.DataObject) -> None:
    n, src, dst = graph
    seed = data.draw(st.integers(0, 1000))
    weight = np.random.default_rng(seed).integers(1, 9, len(src)) / 4
    damping = data.draw(st.sampled_from([0.0, 0.5, 0.85]))
    few = data.draw(st.sampled_from([pieces.FEW, 0]))  # all rounds in one call; one call a round
    kept = data.draw(st.sampled_from([cpu.CACHED, 0]))  # shares in order; by out-degree
    for form, expected in graphs(device, n, src, dst, weight):
        for name in (None, "weight"):
            with patch.object(pieces, "FEW", few), patch.object(cpu, "CACHED", kept):
                ranks = pagerank(form, damping, 1e-11, 1000, weighted=name is not None)
            assert ranks.dtype == np.float64
            assert on_device(ranks) == (device == "cuda" and isinstance(form, lpma.Snapshot))
            wanted = ranks_networkx(expected, n, name, damping)
            np.testing.assert_allclose(to_host(ranks), wanted, rtol=1e-9, atol=1e-10)


def test_rows_by_lengths_are_the_same_rows() -> None:
    """The longest beyond what a key of 16 bits counts."""
    n = 70_000
    src = np.concatenate((np.arange(n), np.arange(9), [3, 5]))
    dst = np.concatenate((np.full(n, 8), np.arange(9) + 1, [1, 1]))
    s = snapshots("cpu", src, dst)[0]
    small = pagerank(s, **EXACT)
    with patch.object(pieces, "FEW", 0):
        np.testing.assert_allclose(pagerank(s, **EXACT), small, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(small, ranks_scipy(s), rtol=1e-7)


def test_the_default_tolerance_is_networkxs_or_better(device: str) -> None:
    src, dst = generators.rmat(10, 8_000, seed=1)
    for s in snapshots(device, src, dst):
        wanted = ranks_networkx(s.to_networkx(), s.num_rows, None)
        ranks = to_host(pagerank(s))
        assert float(abs(ranks - wanted).sum()) < 6e-6
        assert float(ranks.sum()) == pytest.approx(1, abs=1e-13)  # however shares were rounded


@pytest.mark.gpu
def test_tolerances_on_either_side_of_float_shares(cupy: Any) -> None:
    """Coarse ones, which float shares meet, and fine ones, which only double ones do."""
    src, dst = generators.rmat(18, 600_000, seed=3)  # so many rows that shares may be float
    for host, device in zip(snapshots("cpu", src, dst), snapshots("cuda", src, dst), strict=True):
        exact = pagerank(host, tol=1e-14, max_iter=1000)
        for tol in (0.5, 1e-2, 1e-4, 1e-6, 1e-8, 1e-13):
            found = to_host(pagerank(device, tol=tol, max_iter=1000))
            assert float(abs(found - exact).sum()) <= tol * 0.85 / 0.15 + 1e-13
            assert float(found.sum()) == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("directed", [True, False])
def test_rmat(device: str, directed: bool) -> None:
    """Enough edges for several threads, and hubs that a whole block pulls."""
    src, dst = generators.rmat(15, 500_000, seed=2)
    hub = np.full(20_000, 7)
    src = np.concatenate((src, np.arange(20_000)))
    dst = np.concatenate((dst, hub))
    s = snapshots(device, src, dst)[0 if directed else 1]
    wanted = ranks_scipy(s)
    ranks = to_host(pagerank(s, tol=1e-11, max_iter=300))
    np.testing.assert_allclose(ranks, wanted, rtol=1e-7)
    assert ranks.sum() == pytest.approx(1)


def test_a_weighted_hub(device: str) -> None:
    rng = np.random.default_rng(3)
    n = 30_000
    src = np.concatenate((np.arange(1, n), np.zeros(n - 1, np.int64)))
    dst = np.concatenate((np.zeros(n - 1, np.int64), np.arange(1, n)))
    weight = rng.integers(1, 100, len(src)) / 4
    g = lpma.Graph(device=device, weight_dtype="float64")
    g.insert(src, dst, weight)
    ranks = to_host(pagerank(g.snapshot(), tol=1e-12, max_iter=500, weighted=True))
    share = weight[n - 1 :] / weight[n - 1 :].sum()
    center = 1 / (1 + 0.85) * (0.15 / n + 0.85)  # c = 0.15/n + 0.85 (1 - c), and 0.15/n elsewhere
    assert ranks[0] == pytest.approx(center, rel=1e-9)
    np.testing.assert_allclose(ranks[1:], 0.15 / n + 0.85 * center * share, rtol=1e-9)


def test_ranks_are_the_same_in_every_run(device: str) -> None:
    src, dst = generators.rmat(13, 100_000, seed=4)
    s = snapshots(device, src, dst)[0]
    first = to_host(pagerank(s))
    for _ in range(3):
        assert np.array_equal(to_host(pagerank(s)), first)


def test_too_few_rounds_warn(device: str) -> None:
    s = snapshots(device, np.array([0, 1, 2]), np.array([1, 2, 1]))[0]
    with pytest.warns(NotConverged, match="after 3 rounds"):
        pagerank(s, max_iter=3)
    with pytest.warns(NotConverged):
        ranks = pagerank(s, max_iter=0)
    assert to_host(ranks).tolist() == [1 / 3] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fixed = pagerank(s, tol=0, max_iter=5)  # as many rounds as asked for
        pagerank(s, tol=1e-3, max_iter=100)
    with pytest.warns(NotConverged):
        assert np.array_equal(to_host(fixed), to_host(pagerank(s, tol=1e-30, max_iter=5)))


def test_sweeps_solve_the_loops_of_a_small_graph() -> None:
    """With power iteration, what is missing at a vertex that has nothing else falls by 0.85 a
    round, so that 20 rounds leave 0.04 of it."""
    loops = np.arange(1000)
    src = np.concatenate((loops, loops[:500]))
    dst = np.concatenate((loops, np.zeros(500, np.int64)))
    s = snapshots("cpu", src, dst)[0]
    wanted = ranks_networkx(s.to_networkx(), s.num_rows, None)
    for tol in (1e-3, 1e-6, 1e-9):
        ranks = pagerank(s, tol=tol, max_iter=20)
        assert float(abs(ranks - wanted).sum()) < tol * 0.85 / 0.15
        assert ranks.sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("damping", [0.0, 0.999999, 1.0])
def test_a_vertex_that_keeps_its_rank(device: str, damping: float) -> None:
    """Its loop gives all of it back: with damping 1 it keeps what comes, forever."""
    g = lpma.Graph(device=device)
    g.insert([0, 1, 2], [0, 0, 1])
    ranks = to_host(pagerank(g.snapshot(), damping, tol=1e-12))
    last = (1 - damping) / 3
    before = last * (1 + damping)
    np.testing.assert_allclose(ranks, [1 - before - last, before, last], atol=1e-9)


def test_an_undirected_graph_takes_fewer_rounds(device: str) -> None:
    """A grid, in which ranks even out slowly: Chebyshev's steps need half of the rounds."""
    across = np.arange(100 * 100).reshape(100, 100)
    src = np.concatenate((across[:, 1:].ravel(), across[1:].ravel(), [0] * 50))
    dst = np.concatenate((across[:, :-1].ravel(), across[:-1].ravel(), np.arange(10_000, 10_050)))
    directed, undirected = snapshots(device, np.concatenate((src, dst)), np.concatenate((dst, src)))
    with pytest.warns(NotConverged), patch.object(pieces, "FEW", 0):  # a small one takes sweeps
        pagerank(directed, max_iter=30)
    wanted = to_host(pagerank(directed, tol=1e-13, max_iter=500))
    for few in (pieces.FEW, 0):
        for tol in (1e-3, 1e-6, 1e-9, 1e-13):
            with patch.object(pieces, "FEW", few):
                ranks = to_host(pagerank(undirected, tol=tol, max_iter=30 if tol >= 1e-6 else 60))
            assert float(abs(ranks - wanted).sum()) < tol * 0.85 / 0.15 + 1e-13
            assert ranks.sum() == pytest.approx(1, abs=1e-13)


def test_everything_dangling(device: str) -> None:
    g = lpma.Graph(device=device)
    g.add_vertices([0, 4])
    assert to_host(pagerank(g.snapshot())).tolist() == [0.5, 0, 0, 0, 0.5]
    g.add_vertices(range(5))
    assert to_host(pagerank(g.snapshot())).tolist() == [0.2] * 5
    assert len(pagerank(lpma.Graph(device=device).snapshot())) == 0


@pytest.mark.parametrize("arguments", [
    {"damping": -0.1}, {"damping": 1.1}, {"damping": float("nan")}, {"tol": -1},
    {"tol": float("nan")}, {"max_iter": -1}, {"max_iter": 2.5}, {"max_iter": True},
])  # fmt: skip
def test_arguments_out_of_range_are_refused(device: str, arguments: dict[str, Any]) -> None:
    s = snapshots(device, np.array([0]), np.array([1]))[0]
    with pytest.raises(lpma.BatchError, match=next(iter(arguments))):
        pagerank(s, **arguments)


def test_weights_that_are_none_are_refused(device: str) -> None:
    s = snapshots(device, np.array([0]), np.array([1]))[0]
    forms: list[Any] = [s, (np.array([0, 1, 1]), np.array([1]))]
    for bad in (-2.0, np.nan, np.inf, 1j):
        forms.append(sparse.csr_matrix(([1, bad], ([0, 1], [1, 0])), shape=(2, 2)))
    for form in forms:
        with pytest.raises(lpma.BatchError, match="weight"):
            pagerank(form, weighted=True)
        assert abs(to_host(pagerank(form)).sum() - 1) < 1e-9


def test_an_edge_of_weight_0_is_not_followed(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 0, 1, 1], [1, 2, 0, 0], [1, 1, 1, -1])
    s = g.snapshot()
    assert (s.num_edges, to_host(s.weights).tolist()) == (3, [1, 1, 0])
    graph = nx.DiGraph([(0, 1), (0, 2)])
    np.testing.assert_allclose(
        to_host(pagerank(s, tol=1e-12, weighted=True)), ranks_networkx(graph, 3, None)
    )
    graph.add_edge(1, 0)
    np.testing.assert_allclose(
        to_host(pagerank(s, tol=1e-11, max_iter=500)), ranks_networkx(graph, 3, None)
    )


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-40, 1e28])
def test_weights_of_any_size(device: str, size: float) -> None:
    src, dst, weight = np.array([0, 0, 1, 2, 2, 3]), np.array([1, 2, 0, 0, 3, 2]), np.arange(2.0, 8)
    for directed in (True, False):
        plain, mixed = (
            lpma.Graph(directed, weight_dtype="float64", device=device) for _ in range(2)
        )
        plain.insert(src, dst, weight)
        sized = np.where(src == 2, size, 1.0) if directed else size  # a vertex whose edges all are
        mixed.insert(src, dst, weight * sized)
        wanted = to_host(pagerank(plain.snapshot(), weighted=True))
        ranks = to_host(pagerank(mixed.snapshot(), weighted=True))
        np.testing.assert_allclose(ranks, wanted, rtol=1e-6)


def test_weights_of_all_sizes_in_both_directions(device: str) -> None:
    src, dst, weight = [0, 1, 2, 3], [1, 2, 3, 4], [1e-310, 1.0, 1e-310, 3e-310]
    g = lpma.Graph(directed=False, weight_dtype="float64", device=device)
    g.insert(src, dst, weight)
    both = lpma.Graph(weight_dtype="float64", device=device)
    both.insert(src + dst, dst + src, weight + weight)
    ranks = to_host(pagerank(g.snapshot(), tol=1e-12, max_iter=1000, weighted=True))
    wanted = to_host(pagerank(both.snapshot(), tol=1e-12, max_iter=1000, weighted=True))
    np.testing.assert_allclose(ranks, wanted, rtol=1e-9)
    assert abs(ranks.sum() - 1) < 1e-9


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        pagerank(BAD_GRAPHS[name])


def test_a_smaller_graph_between_two_larger(device: str) -> None:
    """On a device the blocks share as many ranks as there are rows, up to a limit: what a small
    graph's launch allows them must not take from what a larger one's allowed before."""

    def ring(n: int) -> None:
        v = np.arange(n)
        graph = lpma.Graph(device=device, weight_dtype=None, times=False)
        graph.insert(v, (v + 1) % n)
        np.testing.assert_allclose(to_host(pagerank(graph.snapshot())), 1 / n, rtol=1e-12)

    for n in (20_000, 8_000, 20_000):
        ring(n)


@pytest.mark.parametrize("name", ["wiki-Vote", "email-Enron", "CollegeMsg", "uk-2007-05-100k"])
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    src, dst = columns["src"], columns["dst"]
    s = snapshots(device, src, dst)[0]
    wanted = ranks_scipy(s)
    ranks = to_host(pagerank(s, tol=1e-11, max_iter=300))
    np.testing.assert_allclose(ranks, wanted, rtol=1e-7)
