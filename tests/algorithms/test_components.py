"""Connected components against NetworkX and SciPy."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from hypothesis import given

import lpma
from algorithms import connected_components
from ingest.datasets import generators
from lpma.arrays import on_device
from lpma.cpu import pieces
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, inputs
from tests.support.oracles import assert_same
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


def smallest_members(labels: Array) -> Array:
    """Labels of any kind as the smallest vertex of each component."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first[inverse].astype(np.int32)


def components_networkx(
    n: int, src: Array, dst: Array, vertices: Iterable[int] | None = None
) -> Array:
    """Of the graph of n rows; `vertices`: which of them are in it, all where None."""
    graph = nx.MultiGraph(list(zip(src.tolist(), dst.tolist(), strict=True)))
    graph.add_nodes_from(range(n) if vertices is None else vertices)
    labels = np.full(n, -1, np.int32)
    for members in nx.connected_components(graph):
        labels[list(members)] = min(members)
    return labels


def components_scipy(n: int, src: Array, dst: Array) -> Array:
    """Of the graph of the edges: a row that no edge has is no vertex."""
    matrix = sparse.csr_matrix((np.ones(len(src)), (src, dst)), shape=(n, n))
    labels = smallest_members(sparse.csgraph.connected_components(matrix, directed=False)[1])
    labels[np.setdiff1d(np.arange(n), np.concatenate((src, dst)))] = -1
    return labels


@given(graph=edge_lists())
def test_components(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    expected = components_networkx(n, src, dst)
    for few in (pieces.FEW, 0):  # by one thread in one call, or as in a large graph
        with patch.object(pieces, "FEW", few), large_from(device, few):
            for form in inputs(device, n, src, dst):
                assert_same(connected_components(form), expected)


def large_from(device: str, entries: int) -> AbstractContextManager[Any]:
    """A context in which graphs of so many entries, at least one, are large on a CUDA device."""
    if device == "cpu":
        return nullcontext()
    own = importlib.import_module("algorithms.components.cuda")
    return patch.object(own, "LARGE", max(1, entries))


def snapshots(device: str, src: Array, dst: Array) -> list[lpma.Snapshot]:
    """The edges as directed ones and as undirected ones."""
    taken = []
    for directed in (True, False):
        g = lpma.Graph(device=device, weight_dtype=None, times=False, directed=directed)
        g.insert(src, dst)
        taken.append(g.snapshot())
    return taken


@pytest.mark.parametrize("n, m", [(1000, 50_000), (60_000, 50_000), (200_000, 90_000)])
def test_graphs_for_several_threads(device: str, n: int, m: int) -> None:
    """From one giant component to a dust of small ones."""
    src, dst = np.random.default_rng(n).integers(0, n, (2, m))
    for s in snapshots(device, src, dst):
        labels = connected_components(s)
        assert on_device(labels) == (device == "cuda")
        assert_same(labels, components_scipy(s.num_rows, src, dst))


@pytest.mark.parametrize("shape", ["path", "star", "pairs", "clique", "loops"])
def test_shapes(device: str, shape: str) -> None:
    n = 70_000
    ids = np.random.default_rng(1).permutation(n)
    src, dst = {
        "path": (ids[:-1], ids[1:]),
        "star": (np.full(n - 1, ids[0]), ids[1:]),
        "pairs": (ids[::2], ids[1::2]),
        "clique": np.triu_indices(300, 1),
        "loops": (ids, ids),
    }[shape]
    for s in snapshots(device, src, dst):
        expected = components_scipy(s.num_rows, src, dst)
        for large in (1 << 40, 0):
            with large_from(device, large):
                assert_same(connected_components(s), expected)


def test_rmat(device: str) -> None:
    src, dst = generators.rmat(16, 400_000, seed=2)
    for s in snapshots(device, src, dst):
        for large in (1 << 40, 0):
            with large_from(device, large):
                labels = connected_components(s)
            assert_same(labels, components_scipy(s.num_rows, src, dst))


def test_concurrent_calls_agree(device: str) -> None:
    src, dst = np.random.default_rng(4).integers(0, 50_000, (2, 60_000))
    s = snapshots(device, src, dst)[0]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(connected_components, [s] * 8))
    for labels in found:
        assert_same(labels, found[0])


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        connected_components(BAD_GRAPHS[name])


@pytest.mark.parametrize("name", [
    "wiki-Vote", "email-Enron", "facebook-combined", "CollegeMsg", "ca-HepTh", "cit-HepPh",
    "dblp-2010", "ego-twitter", "email-Eu-core-temporal", "soc-sign-bitcoinotc",
    "p2p-Gnutella31", "road-NY", "sx-mathoverflow", "uk-2007-05-100k",
])  # fmt: skip
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    s = snapshots(device, columns["src"], columns["dst"])[0]
    expected = components_scipy(s.num_rows, columns["src"], columns["dst"])
    for large in (1 << 40, 0):
        with large_from(device, large):
            assert_same(connected_components(s), expected)
