"""Triangle counts against NetworkX, igraph and what is known of real graphs; the oriented view."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import real_graph
from hypothesis import given
from oracles import simple_edges, triangles_igraph, triangles_networkx
from strategies import edge_lists
from test_algorithms_core import BAD_GRAPHS, inputs

import lpma
from algorithms import triangle_count
from algorithms._views import oriented, simple

Array = npt.NDArray[Any]


@given(graph=edge_lists())
def test_triangle_count(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    expected = triangles_networkx(n, src, dst)
    assert triangles_igraph(n, src, dst) == expected
    for form in inputs(device, n, src, dst):
        count = triangle_count(form)
        assert type(count) is int
        assert count == expected


@given(graph=edge_lists())
def test_oriented_view(graph: tuple[int, Array, Array]) -> None:
    """Each edge once, from the lower to the higher end by (degree, id), rows sorted."""
    n, src, dst = graph
    order = np.argsort(src, kind="stable")
    form = (np.searchsorted(src[order], np.arange(n + 1)), dst[order])
    degree = np.diff(simple(form).indptr)
    view = oriented(form)
    rows = np.repeat(np.arange(n), np.diff(view.indptr)).tolist()
    pairs = list(zip(rows, view.indices.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert {(min(u, v), max(u, v)) for u, v in pairs} == simple_edges(src, dst)
    assert len(pairs) == len(simple_edges(src, dst))
    assert all((degree[u], u) < (degree[v], v) for u, v in pairs)


@pytest.mark.parametrize("n", [3, 300, 600])
def test_cliques(n: int) -> None:
    """The larger ones are large enough for several threads."""
    src, dst = np.triu_indices(n, 1)
    indptr = np.searchsorted(src, np.arange(n + 1))
    assert triangle_count((indptr, dst)) == comb(n, 3)


def test_stars_and_paths_have_none() -> None:
    n = 50_000
    star = (np.minimum(np.arange(n + 1), 1) * (n - 1), np.arange(1, n))
    assert triangle_count(star) == 0
    path = (np.minimum(np.arange(n + 1), n - 1), np.arange(1, n))
    assert triangle_count(path) == 0


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        triangle_count(BAD_GRAPHS[name])


def test_concurrent_calls_agree(device: str) -> None:
    rng = np.random.default_rng(4)
    g = lpma.Graph(device=device)
    g.insert(*rng.integers(0, 2000, (2, 60_000)))
    snapshot = g.snapshot()
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(triangle_count, [snapshot] * 8 + [g.snapshot()] * 4))
    assert len(set(counts)) == 1
    indptr, indices = snapshot.indptr, snapshot.indices
    assert counts[0] == triangle_count((indptr, indices)) > 0


@pytest.mark.parametrize("name, triangles", [
    ("wiki-Vote", 608_389), ("email-Enron", 727_044), ("facebook-combined", 1_612_010),
    ("CollegeMsg", 14_319), ("ca-HepTh", 28_339), ("cit-HepPh", 1_276_868),
    ("soc-sign-bitcoinotc", 33_493), ("p2p-Gnutella31", 2_024), ("road-NY", 6_529),
    ("sx-mathoverflow", 1_403_919), ("ego-twitter", 13_082_506), ("uk-2007-05-100k", 59_926_808),
])  # fmt: skip
def test_known_counts(device: str, name: str, triangles: int) -> None:
    columns = real_graph(name)
    g = lpma.Graph(device=device, weight=None, times=False, directed=name != "email-Enron")
    g.insert(columns["src"], columns["dst"])
    assert triangle_count(g.snapshot()) == triangles
