"""Breadth-first search against NetworkX, SciPy and distances known beforehand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms.bfs import bfs
from algorithms.bfs.cpu import ALONE, TRANSPOSING, search
from algorithms.views.directed import is_transposed, rows, transposed
from ingest.datasets import generators
from lpma.arrays import on_device
from lpma.snapshot.row_versions import scattered
from tests.algorithms.test_components import snapshots
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, inputs
from tests.support.oracles import assert_same, host
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


def hops_networkx(n: int, src: Array, dst: Array, source: int, directed: bool) -> Array:
    graph = (nx.DiGraph if directed else nx.Graph)(list(zip(src.tolist(), dst.tolist(),
                                                            strict=True)))  # fmt: skip
    graph.add_nodes_from(range(n))
    hops = np.full(n, -1, np.int32)
    for v, distance in nx.single_source_shortest_path_length(graph, source).items():
        hops[v] = distance
    return hops


def hops_scipy(n: int, src: Array, dst: Array, source: int, directed: bool) -> Array:
    matrix = sparse.csr_matrix((np.ones(len(src)), (src, dst)), shape=(n, n))
    distances = sparse.csgraph.dijkstra(matrix, directed, source, unweighted=True)
    return np.where(np.isinf(distances), -1, distances).astype(np.int32)


@given(graph=edge_lists(), data=st.data())
def test_bfs(device: str, graph: tuple[int, Array, Array], data: st.DataObject) -> None:
    n, src, dst = graph
    if n == 0:
        return
    source = data.draw(st.integers(0, n - 1))
    expected = {way: hops_networkx(n, src, dst, source, way) for way in (True, False)}
    for form in inputs(device, n, src, dst):
        directed = not isinstance(form, lpma.Snapshot) or form.directed
        assert_same(bfs(form, source), expected[directed])
        if device == "cuda" and isinstance(form, lpma.Snapshot):
            transposed(form)
            assert_same(bfs(form, source), expected[directed])
        if device == "cpu":
            there, back = (scattered(v.indptr, v.indices) for v in (rows(form), transposed(form)))
            # All by one thread; narrow levels; and no level is run by one thread alone.
            for alone, narrow in ((ALONE, 0), (-1, 3), (-1, -1)):
                for reverse in (None, back):
                    found, in_vain = search(there, reverse, source, narrow, alone)
                    assert_same(found, expected[directed])
                    assert reverse is None or in_vain == 0


def test_a_grid(device: str) -> None:
    """Hundreds of narrow levels."""
    height, width = 200, 300
    src, dst = generators.grid(height, width, shuffle=False)
    s = snapshots(device, src, dst)[1]
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    for row, column in ((0, 0), (117, 203)):
        expected = abs(x - column) + abs(y - row)
        assert_same(bfs(s, row * width + column), expected.ravel().astype(np.int32))


@pytest.mark.parametrize("directed", [True, False])
def test_rmat(device: str, directed: bool) -> None:
    """Wide levels, top-down and bottom-up, from a hub and from a leaf."""
    src, dst = generators.rmat(16, 600_000, seed=3)
    s = snapshots(device, src, dst)[0 if directed else 1]
    degree = np.bincount(src, minlength=s.num_rows)
    for source in (int(degree.argmax()), int(np.flatnonzero(degree == 1)[0])):
        hops = bfs(s, source)
        assert on_device(hops) == (device == "cuda")
        assert_same(hops, hops_scipy(s.num_rows, src, dst, source, directed))


def test_a_star_and_its_leaves(device: str) -> None:
    """A row far longer than a warp, a block or a piece; and searching it in vain."""
    n = 200_000
    center = n // 2
    leaves = np.delete(np.arange(n), center)
    out, both = snapshots(device, np.full(n - 1, center), leaves)
    expected = np.ones(n, np.int32)
    expected[center] = 0
    assert_same(bfs(out, center), expected)
    assert_same(bfs(both, center), expected)
    expected[:] = 2
    expected[center], expected[0] = 1, 0
    assert_same(bfs(both, 0), expected)
    expected[:] = -1
    expected[0] = 0
    assert_same(bfs(out, 0), expected)
    into = snapshots(device, leaves, np.full(n - 1, center))[0]
    expected[center] = 1
    assert_same(bfs(into, 0), expected)


def test_a_hub_out_of_reach(device: str) -> None:
    """Bottom-up, a vertex of many in-edges is looked at again and again, and never reached."""
    rng = np.random.default_rng(5)
    n = 60_000
    src, dst = rng.integers(0, n, (2, 400_000))
    others = np.arange(n, 2 * n)  # only the hub has edges from there
    src, dst = np.concatenate((src, others)), np.concatenate((dst, np.full(n, 2 * n)))
    s = snapshots(device, src, dst)[0]
    assert_same(bfs(s, 0), hops_scipy(s.num_rows, src, dst, 0, True))


def test_the_transpose_is_made_once_searches_have_cost_as_much(device: str) -> None:
    src, dst = generators.rmat(14, 200_000, seed=6)
    s = snapshots(device, src, dst)[0]
    source = int(np.bincount(src).argmax())
    expected = host(bfs(s, source))
    assert not is_transposed(s)
    # Few levels are wide, which hold a third of the edges at least.
    for _ in range(3 * TRANSPOSING):
        assert_same(bfs(s, source), expected)
    assert is_transposed(s)
    assert_same(bfs(s, source), expected)


def test_searches_that_look_at_little_do_not_pay_for_a_transpose(device: str) -> None:
    src, dst = generators.rmat(14, 200_000, seed=6)
    n = int(max(src.max(), dst.max())) + 1
    s = snapshots(device, np.append(src, n), np.append(dst, n + 1))[0]
    for _ in range(4 * TRANSPOSING):
        assert int(bfs(s, n).max()) == 1
    assert not is_transposed(s)


def test_concurrent_calls_agree(device: str) -> None:
    src, dst = generators.rmat(14, 200_000, seed=6)
    s = snapshots(device, src, dst)[0]
    source = int(src[0])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: bfs(s, source), range(8)))
    for hops in found:
        assert_same(hops, found[0])


@pytest.mark.parametrize("source", [-1, 4, 2**40, 1.0, True, None, "0"])
def test_what_is_no_vertex_is_refused(device: str, source: Any) -> None:
    s = snapshots(device, np.array([0, 1]), np.array([1, 3]))[0]
    with pytest.raises(lpma.BatchError, match="from 0 to 3"):
        bfs(s, source)
    assert_same(bfs(s, np.int64(1)), np.array([-1, 0, -1, 1], np.int32))


def test_an_empty_graph_has_no_source(device: str) -> None:
    with pytest.raises(lpma.BatchError, match="no vertex"):
        bfs(lpma.Graph(device=device).snapshot(), 0)


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        bfs(BAD_GRAPHS[name], 0)


@pytest.mark.parametrize("name", [
    "wiki-Vote", "email-Enron", "cit-HepPh", "dblp-2010", "ego-twitter", "p2p-Gnutella31",
    "road-NY", "sx-mathoverflow", "uk-2007-05-100k",
])  # fmt: skip
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    src, dst = columns["src"], columns["dst"]
    for directed, s in zip((True, False), snapshots(device, src, dst), strict=True):
        source = int(src[len(src) // 2])
        expected = hops_scipy(s.num_rows, src, dst, source, directed)
        assert_same(bfs(s, source), expected)
