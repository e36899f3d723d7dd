"""PageRank with passes over the fringe, which large undirected graphs of hubs have on a device,
against the solution of the definition's equations. Small graphs are made to have them, too."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import NotConverged, pagerank
from ingest.datasets import generators
from lpma.arrays import to_host
from tests.algorithms.test_components import snapshots
from tests.conftest import real_graph

Array = npt.NDArray[Any]

pytestmark = pytest.mark.gpu


@contextmanager
def fringe() -> Iterator[list[int]]:
    """Passes over the fringe of a graph of any size, if it has one. Gives a list, to which each
    layout adds how many rows are before the fringe; 0: it has none."""
    from algorithms.pagerank import layout_cuda

    seen: list[int] = []
    inner = layout_cuda._inner

    def spied(*given: Any) -> int:
        seen.append(inner(*given))
        return seen[-1]

    with patch.multiple(layout_cuda, FEW=-1, FRINGE_SHARE=1.0, _inner=spied):
        yield seen


def hubs_and_what_hangs_on_them(rng: np.random.Generator) -> tuple[int, Array, Array]:
    """Up to some hundred vertices: hubs, leaves, chains, pairs and triangles apart, loops, and
    vertices without edges, all under random ids. Some graphs have no hubs, and some no fringe."""
    hubs, others = int(rng.integers(0, 70)), int(rng.integers(1, 300))
    n = hubs + others
    edges = [rng.integers(0, max(hubs, 1), (2, int(rng.integers(0, 12 * hubs + 1))))]
    at = hubs
    while at < n:
        kind, size = rng.integers(0, 5), int(rng.integers(1, 6))
        chain = np.arange(at, min(at + size, n))
        edges.append(np.stack((chain[:-1], chain[1:])))
        if kind < 3 and hubs:  # hangs on a hub, or between two
            ends = chain[[0] if kind else [0, -1]]
            edges.append(np.stack((rng.integers(0, hubs, len(ends)), ends)))
        elif kind == 3:  # a cycle, or a loop
            edges.append(np.stack((chain[-1:], chain[:1])))
        at += size
    src, dst = rng.permutation(n)[np.concatenate(edges, axis=1)]
    return n, src, dst


def solved(s: lpma.Snapshot, weighted: bool, damping: float, teleport: Array) -> Array:
    """The definition's equations, solved in double. Every row of s is a vertex."""
    matrix = s.to_scipy().toarray().astype(float)
    if not weighted:
        matrix = (matrix != 0).astype(float)
    leaving = matrix.sum(axis=1, keepdims=True)
    step = np.where(leaving > 0, matrix / np.where(leaving > 0, leaving, 1), teleport)
    return np.linalg.solve(np.eye(len(step)) - damping * step.T, (1 - damping) * teleport)


@given(
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
    damping=st.sampled_from([0.0, 0.5, 0.85, 0.99]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-12]),
    jumps=st.sampled_from(["evenly", "personalised", "to one vertex"]),
    starts=st.booleans(),
)
def test_ranks_are_within_the_bound(
    cupy: Any, seed: int, weighted: bool, damping: float, tol: float, jumps: str, starts: bool
) -> None:
    rng = np.random.default_rng(seed)
    n, src, dst = hubs_and_what_hangs_on_them(rng)
    g = lpma.Graph(directed=False, device="cuda", weight_dtype="float64")
    if len(src):
        g.insert(src, dst, rng.choice([1, 3, 0.25, 100], len(src)))
    g.add_vertices(np.arange(n))
    s = g.snapshot()
    teleport = np.full(n, 1 / n)
    if jumps == "personalised":
        teleport = rng.random(n) * (rng.random(n) < 0.5) + np.eye(n)[rng.integers(n)]
    elif jumps == "to one vertex":
        teleport = np.eye(n)[rng.integers(n)]
    teleport /= teleport.sum()
    given = {} if jumps == "evenly" else {"personalization": teleport}
    if starts:
        given["start"] = rng.random(n) + 0.01
    with fringe(), warnings.catch_warnings():
        warnings.simplefilter("error")
        ranks = to_host(pagerank(s, damping, tol, 5000, weighted, **given))
    wrong = float(abs(ranks - solved(s, weighted, damping, teleport)).sum())
    assert wrong <= tol * damping / (1 - damping) + 1e-11
    assert float(ranks.sum()) == pytest.approx(1, abs=1e-12)


def test_the_drawn_graphs_have_a_fringe(cupy: Any) -> None:
    """Most of them; and none has one that begins behind its last row."""
    with fringe() as seen:
        for seed in range(40):
            n, src, dst = hubs_and_what_hangs_on_them(np.random.default_rng(seed))
            g = lpma.Graph(directed=False, device="cuda")
            g.insert(np.append(src, 0), np.append(dst, 0))
            g.add_vertices(np.arange(n))
            pagerank(g.snapshot())
            assert seen[-1] < n
    assert np.count_nonzero(seen) > 10


def test_tolerances_on_either_side_of_float_shares(cupy: Any) -> None:
    """So many rows that shares may be float, while passes go on."""
    src, dst = generators.rmat(18, 600_000, seed=3)
    host, device = (snapshots(where, src, dst)[1] for where in ("cpu", "cuda"))
    exact = pagerank(host, tol=1e-14, max_iter=1000)
    for tol in (0.5, 1e-2, 1e-4, 1e-6, 1e-8, 1e-13):
        with fringe() as seen:
            found = to_host(pagerank(device._with(), tol=tol, max_iter=1000))
        assert seen[0] > 0
        assert float(abs(found - exact).sum()) <= tol * 0.85 / 0.15 + 1e-13
        assert float(found.sum()) == pytest.approx(1, abs=1e-13)


def test_they_save_rounds(cupy: Any) -> None:
    """In an undirected graph of hubs more than half."""
    s = snapshots("cuda", *generators.rmat(13, 100_000, seed=4))[1]
    with pytest.warns(NotConverged):
        pagerank(s._with(), max_iter=14)
    with fringe(), warnings.catch_warnings():
        warnings.simplefilter("error")
        pagerank(s._with(), max_iter=9)


def test_rounds_that_are_asked_for_have_none(cupy: Any) -> None:
    """With tol = 0 the ranks are those after so many rounds of the definition; with max_iter = 0
    the first."""
    s = snapshots("cuda", *generators.rmat(13, 100_000, seed=4))[1]
    plain = to_host(pagerank(s, tol=0, max_iter=4))
    with fringe(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(to_host(pagerank(s._with(), tol=0, max_iter=4)), plain)
        first = to_host(pagerank(s._with(), max_iter=0))
    assert len(set(first[first > 0])) == 1


def test_ranks_are_the_same_in_every_run(cupy: Any) -> None:
    s = snapshots("cuda", *generators.rmat(13, 100_000, seed=4))[1]
    with fringe():
        first = to_host(pagerank(s._with()))
        for _ in range(3):
            assert np.array_equal(to_host(pagerank(s._with())), first)


@pytest.mark.parametrize("name", ["email-Enron", "CollegeMsg", "uk-2007-05-100k"])
def test_real_graphs(cupy: Any, name: str) -> None:
    """Also such where passes gain nothing."""
    columns = real_graph(name)
    host, device = (snapshots(d, columns["src"], columns["dst"])[1] for d in ("cpu", "cuda"))
    exact = pagerank(host, tol=1e-13, max_iter=1000)
    with fringe():
        found = to_host(pagerank(device, tol=1e-9, max_iter=1000))
    assert float(abs(found - exact).sum()) <= 1e-9 * 0.85 / 0.15
