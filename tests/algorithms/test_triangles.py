"""Triangles in all, by vertex and by edge, against NetworkX, igraph, sparse products and what is
known of real graphs; the ranked view."""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor
from math import comb
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from hypothesis import given

import lpma
from algorithms import Support, edge_support, triangle_count, triangles, truss_numbers
from algorithms.triangles.ranked import ranked
from algorithms.views.simple import simple
from ingest.datasets import generators
from lpma.arrays import to_host
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, inputs
from tests.support.oracles import assert_same
from tests.support.peers import (
    networkx_graph,
    simple_edges,
    support_networkx,
    triangles_igraph,
    triangles_networkx,
)
from tests.support.strategies import edge_lists

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
def test_triangles_of_vertices_and_edges(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    of_vertex = nx.triangles(networkx_graph(n, src, dst))
    expected = Support(*support_networkx(n, src, dst))
    for form in inputs(device, n, src, dst):
        assert_same(triangles(form), np.array([of_vertex[u] for u in range(n)], np.int64))
        assert_same(edge_support(form), expected)


@given(graph=edge_lists())
def test_ranked_view(device: str, graph: tuple[int, Array, Array]) -> None:
    """Ranks fall with the degree; each edge is in the row of its end of larger rank, and every
    vertex knows where it stands."""
    n, src, dst = graph
    for form in inputs(device, n, src, dst)[:3]:
        view = ranked(form)
        order, indptr, indices = (to_host(a) for a in (view.order, view.indptr, view.indices))
        degree = np.diff(to_host(view.view.indptr))
        assert order.tolist() == sorted(range(n), key=lambda u: (-degree[u], u))
        rows = np.repeat(np.arange(n), np.diff(indptr))
        assert (indices < rows).all()
        pairs = list(zip(rows.tolist(), indices.tolist(), strict=True))
        assert pairs == sorted(pairs)
        ends = zip(order[rows].tolist(), order[indices].tolist(), strict=True)
        assert {(min(u, v), max(u, v)) for u, v in ends} == simple_edges(src, dst)
        slots, lengths = to_host(view.in_slot), to_host(view.in_length)
        held = np.repeat(np.arange(n), np.diff(to_host(view.in_indptr)))
        assert sorted(slots.tolist()) == list(range(len(indices)))
        assert (indices[slots] == held).all()
        assert (slots - lengths == indptr[rows[slots]]).all()


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


@pytest.mark.parametrize("n, edges", [(1 << 13, 1 << 17), (300_000, 900_000)])
def test_larger_graphs(device: str, n: int, edges: int) -> None:
    """Hubs, of which a device makes bitmaps, and many short rows, of which it makes none: against
    the product of the matrix with itself."""
    make = generators.rmat(13, edges, seed=3) if n == 1 << 13 else generators.uniform(n, edges)
    src, dst = (ends.astype(np.int64) for ends in make)
    g = lpma.Graph(device=device, weight_dtype=None, times=False, directed=False)
    g.insert(src, dst)
    snapshot = g.snapshot()
    view = simple(snapshot)
    indptr, indices = to_host(view.indptr), to_host(view.indices)
    shape = (len(indptr) - 1,) * 2
    matrix = sparse.csr_matrix((np.ones(len(indices), np.int32), indices, indptr), shape=shape)
    upper = sparse.triu(matrix, format="csr")
    product = (matrix @ matrix).multiply(upper) + upper  # 1 too much, so that zeros are kept
    product.sort_indices()
    rows = np.repeat(np.arange(shape[0], dtype=np.uint32), np.diff(product.indptr))
    columns = product.indices.astype(np.uint32)
    assert_same(edge_support(snapshot), Support(rows, columns, product.data.astype(np.int32) - 1))
    of_vertex = np.bincount(rows, product.data - 1, shape[0])
    of_vertex += np.bincount(columns, product.data - 1, shape[0])
    assert_same(triangles(snapshot), (of_vertex // 2).astype(np.int64))
    assert triangle_count(snapshot) == int(product.data.sum() - len(rows)) // 3


@pytest.mark.gpu
@pytest.mark.parametrize("marked", [32, 256])
def test_folded_bitmaps(cupy: Any, monkeypatch: pytest.MonkeyPatch, marked: int) -> None:
    """Bitmaps of so few ranks that most rows are folded, and their entries share bits."""
    clique, other = np.triu_indices(200, 1), generators.rmat(11, 100_000, seed=4)
    src, dst = (np.append(a, b) for a, b in zip(clique, other, strict=True))
    found = []
    for device in ("cpu", "cuda"):
        g = lpma.Graph(device=device, weight_dtype=None, times=False, directed=False)
        g.insert(src, dst)
        found.append(g.snapshot())
    cuda: Any = importlib.import_module("algorithms.triangles.cuda")
    run, launched = cuda.launch.run_together, []

    def marking_fewer(file: str, name: str, *args: Any, **options: Any) -> None:
        if file == cuda.LIST:
            launched.append(name)
            options["options"] = (f"-DMARKED_RANKS={marked}",)
        run(file, name, *args, **options)

    monkeypatch.setattr(cuda.launch, "run_together", marking_fewer)
    assert_same(edge_support(found[1]), edge_support(found[0]))
    assert triangle_count(found[1]) == triangle_count(found[0])
    assert_same(truss_numbers(found[1], "incidence"), truss_numbers(found[0]))
    assert launched


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


@pytest.mark.parametrize("name, known", [
    ("wiki-Vote", 608_389), ("email-Enron", 727_044), ("facebook-combined", 1_612_010),
    ("CollegeMsg", 14_319), ("ca-HepTh", 28_339), ("cit-HepPh", 1_276_868),
    ("soc-sign-bitcoinotc", 33_493), ("p2p-Gnutella31", 2_024), ("road-NY", 6_529),
    ("sx-mathoverflow", 1_403_919), ("ego-twitter", 13_082_506), ("uk-2007-05-100k", 59_926_808),
    ("dblp-2010", 1_676_652), ("email-Eu-core-temporal", 105_461),
])  # fmt: skip
def test_known_counts(device: str, name: str, known: int) -> None:
    columns = real_graph(name)
    g = lpma.Graph(device=device, weight_dtype=None, times=False, directed=name != "email-Enron")
    g.insert(columns["src"], columns["dst"])
    snapshot = g.snapshot()
    assert triangle_count(snapshot) == known
    assert int(triangles(snapshot).sum()) == 3 * known
    assert int(edge_support(snapshot).support.sum(dtype=np.int64)) == 3 * known


@pytest.mark.nightly
@pytest.mark.gpu
def test_the_devices_agree_on_rmat_20(cupy: Any) -> None:
    src, dst = generators.rmat(20, 18_000_000, seed=1)
    g = lpma.Graph(device="cuda", weight_dtype=None, times=False, directed=False)
    g.insert(src, dst)
    snapshot = g.snapshot()
    assert triangle_count(snapshot) == triangle_count(
        (to_host(snapshot.indptr), to_host(snapshot.indices))
    )
    assert int(edge_support(snapshot).support.sum(dtype=np.int64)) == 3 * triangle_count(snapshot)
