"""Clustering coefficients against NetworkX, to the last bit, and against trying all pairs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

import lpma
from algorithms import average_clustering, clustering_coefficients, transitivity
from algorithms.clustering import clustering_and_transitivity
from lpma.arrays import on_device, to_host
from tests.algorithms.test_components import snapshots
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, clustered, inputs
from tests.support.oracles import assert_same
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


def simple_graph(n: int, src: Array, dst: Array) -> Any:
    graph = nx.Graph((u, v) for u, v in zip(src.tolist(), dst.tolist(), strict=True) if u != v)
    graph.add_nodes_from(range(n))
    return graph


def by_pairs(graph: Any) -> tuple[Array, int, int]:
    """The coefficients; and in all, how many pairs of neighbours are joined, and how many are."""
    found, all_joined, all_pairs = np.zeros(len(graph)), 0, 0
    for v in graph:
        pairs = list(combinations(graph[v], 2))
        joined = sum(graph.has_edge(a, b) for a, b in pairs)
        found[v] = joined / len(pairs) if pairs else 0
        all_joined, all_pairs = all_joined + joined, all_pairs + len(pairs)
    return found, all_joined, all_pairs


@given(graph=edge_lists())
def test_in_every_form(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    model = simple_graph(n, src, dst)
    coefficients, joined, pairs = by_pairs(model)
    by_networkx = nx.clustering(model)
    for form in inputs(device, n, src, dst):
        found = clustering_coefficients(form)
        assert_same(found, coefficients)
        assert dict(enumerate(to_host(found).tolist())) == by_networkx
        assert transitivity(form) == (joined / pairs if pairs else 0) == nx.transitivity(model)
        mean = nx.average_clustering(model) if n else 0
        assert average_clustering(form) == pytest.approx(mean, rel=1e-12)
        assert isinstance(average_clustering(form), float)
        assert isinstance(transitivity(form), float)


def test_networkx(device: str) -> None:
    n, src, dst = clustered(9)
    model = simple_graph(n, src, dst)
    by_networkx = nx.clustering(model)
    for s in snapshots(device, src, dst):
        found = clustering_coefficients(s)
        assert on_device(found) == (device == "cuda")
        assert_same(found, np.array([float(by_networkx[v]) for v in range(n)]))
        assert transitivity(s) == nx.transitivity(model)
        together, share = clustering_and_transitivity(s)
        assert_same(together, to_host(found))
        assert share == transitivity(s)
        assert average_clustering(s) == pytest.approx(nx.average_clustering(model), rel=1e-12)


def test_the_mean_is_of_vertices(device: str) -> None:
    """Not of rows."""
    g = lpma.Graph(device=device)
    g.insert([1, 2, 3, 5], [2, 3, 1, 1])
    g.add_vertices(9)
    g.remove_vertices(5)
    s = g.snapshot()
    assert to_host(clustering_coefficients(s)).tolist() == [0, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert average_clustering(s) == 3 / 4
    assert average_clustering(lpma.Graph(device=device).snapshot()) == 0


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    for function in (clustering_coefficients, average_clustering, transitivity):
        with pytest.raises(lpma.BatchError):
            function(BAD_GRAPHS[name])


@pytest.mark.parametrize("name", ["wiki-Vote", "ca-HepTh"])
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    s = snapshots(device, columns["src"], columns["dst"])[0]
    model = simple_graph(s.num_rows, columns["src"], columns["dst"])
    by_networkx = nx.clustering(model)
    expected = np.array([float(by_networkx[v]) for v in range(s.num_rows)])
    assert_same(clustering_coefficients(s), expected)
    together, share = clustering_and_transitivity(s)
    assert_same(together, expected)
    assert share == transitivity(s) == nx.transitivity(model)
