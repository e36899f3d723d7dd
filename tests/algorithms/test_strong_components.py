"""Strongly connected components against NetworkX, SciPy and the definition."""

from __future__ import annotations

import importlib
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from hypothesis import given

import lpma
from algorithms import connected_components, strongly_connected_components
from algorithms.strong_components import components, in_order
from algorithms.views.directed import rows, transposed
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from tests.algorithms.test_components import smallest_members, snapshots
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, inputs
from tests.support.oracles import assert_same
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


def by_definition(n: int, src: Array, dst: Array) -> Array:
    """From every vertex all that it leads to; together are those that lead to each other."""
    reach = np.eye(n, dtype=np.bool_)
    reach[src, dst] = True
    for v in range(n):
        reach |= np.outer(reach[:, v], reach[v])
    return (reach & reach.T).argmax(axis=1).astype(np.int32)


def by_scipy(n: int, src: Array, dst: Array) -> Array:
    """Of the graph of the edges: a row that no edge has is no vertex."""
    matrix = sparse.csr_array((np.ones(len(src)), (src, dst)), shape=(n, n))
    found = sparse.csgraph.connected_components(matrix, connection="strong")[1]
    labels = smallest_members(found)
    labels[np.setdiff1d(np.arange(n), np.concatenate((src, dst)))] = -1
    return labels


@given(graph=edge_lists())
def test_in_every_form(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    expected = by_definition(n, src, dst) if n else np.empty(0, np.int32)
    for form in inputs(device, n, src, dst):
        found = strongly_connected_components(form)
        if isinstance(form, lpma.Snapshot) and not form.directed:
            assert_same(found, to_host(connected_components(form)))
        else:
            assert_same(found, expected)


@given(graph=edge_lists())
def test_components_are_numbered_after_those_they_lead_to(
    device: str, graph: tuple[int, Array, Array]
) -> None:
    n, src, dst = graph
    digraph = nx.DiGraph(list(zip(src.tolist(), dst.tolist(), strict=True)))
    digraph.add_nodes_from(range(n))
    s = inputs(device, n, src, dst)[0]
    for found, count in (components(s), in_order(rows(s), strongly_connected_components(s))):
        assert not on_device(found)
        assert sorted(set(found.tolist())) == list(range(count))
        assert bool((found[dst] <= found[src]).all())
        assert count == nx.number_strongly_connected_components(digraph)


@pytest.mark.parametrize("n, m", [(1000, 50_000), (60_000, 90_000), (200_000, 90_000)])
def test_random_graphs(device: str, n: int, m: int) -> None:
    """From one giant component to a dust of single vertices."""
    src, dst = np.random.default_rng(n).integers(0, n, (2, m))
    s = snapshots(device, src, dst)[0]
    labels = strongly_connected_components(s)
    assert on_device(labels) == (device == "cuda")
    assert_same(labels, by_scipy(s.num_rows, src, dst))


@pytest.mark.parametrize("shape", ["path", "path back", "cycle", "cycles in a chain", "loops"])
def test_deep_searches(device: str, shape: str) -> None:
    """As deep as there are vertices, in any order of the ids."""
    n = 200_000
    ids = np.random.default_rng(1).permutation(n)
    src, dst = {
        "path": (np.arange(n - 1), np.arange(1, n)),
        "path back": (np.arange(1, n), np.arange(n - 1)),
        "cycle": (ids, np.roll(ids, 1)),
        "cycles in a chain": (
            np.concatenate((ids[:-1], ids[3::4])),
            np.concatenate((ids[1:], ids[::4])),
        ),
        "loops": (ids, ids),
    }[shape]
    s = snapshots(device, src, dst)[0]
    assert_same(strongly_connected_components(s), by_scipy(n, src, dst))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape, most",
    [("cycle", 200), ("path", 40), ("path apart", 40), ("cycle apart", 40), ("cycle apart", 450)],
)
def test_a_device_gives_up_after_its_steps(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, shape: str, most: int
) -> None:
    """Wherever they run out: in a search from the pivot, while trimming, while a colour spreads or
    is collected. Then the host takes over."""
    cuda = importlib.import_module("algorithms.strong_components.cuda")
    ids = np.random.default_rng(1).permutation(300)
    ends = (ids, np.roll(ids, 1)) if shape.startswith("cycle") else (ids[1:], ids[:-1])
    if shape.endswith("apart"):  # the pivot is in a clique
        clique = np.array([(u, v) for u in range(300, 305) for v in range(300, 305) if u != v]).T
        ends = (np.concatenate((ends[0], clique[0])), np.concatenate((ends[1], clique[1])))
    s = snapshots("cuda", *ends)[0]
    expected = by_scipy(s.num_rows, *ends)
    _, steps = cuda.within(rows(s), transposed(s), most)
    assert most < steps <= most + 2
    labels, steps = cuda.within(rows(s), transposed(s), 2000)
    assert steps == 0
    assert_same(labels, expected)
    monkeypatch.setattr(cuda, "steps", lambda view: most)
    assert_same(strongly_connected_components(s), expected)


@pytest.mark.gpu
def test_a_device_searches_nothing_where_no_vertex_has_edges_both_ways(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = importlib.import_module("algorithms.strong_components.cuda")
    monkeypatch.setattr(cuda.bfs, "search", None)
    s = snapshots("cuda", np.repeat(np.arange(20), 30), 20 + np.tile(np.arange(30), 20))[0]
    assert_same(strongly_connected_components(s), np.arange(50, dtype=np.int32))


def test_rmat(device: str) -> None:
    src, dst = generators.rmat(16, 400_000, seed=2)
    s = snapshots(device, src, dst)[0]
    assert_same(strongly_connected_components(s), by_scipy(s.num_rows, src, dst))


def test_rows_that_are_no_vertices(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2, 4], [2, 1, 5])
    g.add_vertices(7)
    g.remove_vertices(4)
    s = g.snapshot()
    assert_same(strongly_connected_components(s), np.array([-1, 1, 1, -1, -1, -1, -1, 7], np.int32))
    compact = g.snapshot(compact=True)
    assert to_host(strongly_connected_components(compact)).tolist() == [0, 0, 2]


def test_named_vertices(device: str) -> None:
    s = lpma.from_edges(["ann", "bob", "cem"], ["bob", "ann", "ann"], device=device).snapshot()
    labels = strongly_connected_components(s)
    assert s.names is not None
    assert s.names.of(labels).tolist() == s.names.of([0, 0, 2]).tolist()


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        strongly_connected_components(BAD_GRAPHS[name])


@pytest.mark.parametrize("name", ["wiki-Vote", "cit-HepPh", "p2p-Gnutella31", "uk-2007-05-100k"])
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    s = snapshots(device, columns["src"], columns["dst"])[0]
    expected = by_scipy(s.num_rows, columns["src"], columns["dst"])
    assert_same(strongly_connected_components(s), expected)
