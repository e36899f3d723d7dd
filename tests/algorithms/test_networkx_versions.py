"""What NetworkX's versions do differently, the backend does as the installed one: HITS by its
methods, a deprecation, and what is refused with an old one."""

from __future__ import annotations

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from algorithms.networkx import backend
from algorithms.networkx.converted import is_since
from algorithms.networkx.info import SERVED
from tests.algorithms.test_networkx_results import assert_alike, graphs, outcome

SINCE_3_5 = {name for name, served in SERVED.items() if served.since}

BY_SVD: dict[str, Any] = {"method": "svd"} if is_since(3, 7) else {}


@pytest.mark.parametrize(
    "version, is_newer",
    [("3.6.1", False), ("3.7", True), ("3.7rc0.dev0", True), ("3.10", True), ("4.0", True)],
)
def test_a_version_and_later_ones(
    version: str, is_newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nx, "__version__", version)
    assert is_since(3, 7) is is_newer


@given(graph=graphs())
def test_hits_by_singular_vectors_are_networkxs(graph: Any) -> None:
    """Where the first singular value is alone, so that there is one answer."""
    n = len(graph)
    if n < 2:
        return
    matrix = nx.to_numpy_array(graph, weight="weight")
    values = np.linalg.svd(matrix, compute_uv=False)
    if values[0] - values[1] < 0.1:
        return
    weighted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    options: dict[str, Any] = {"nstart": dict.fromkeys(graph, 1 / n), "max_iter": 1000, **BY_SVD}
    ours, theirs = backend.hits(weighted, **options), nx.hits(graph, **options)
    for mine, other in zip(ours, theirs, strict=True):
        assert list(mine) == list(graph)
        assert mine == pytest.approx(other, abs=1e-6)
    assert backend.hits(backend.convert_from_nx(nx.Graph()), **BY_SVD) == ({}, {})


@pytest.mark.parametrize("options", [{}, BY_SVD])
def test_hits_without_a_method_are_networkxs(options: dict[str, Any]) -> None:
    """Not normalized, they show by which method: the largest is 1, or the sum of squares."""
    graph = nx.star_graph(4)
    graph.add_edge(1, 2)
    converted = backend.convert_from_nx(graph)
    options = {"normalized": False, "nstart": dict.fromkeys(graph, 0.2), **options}
    ours, theirs = backend.hits(converted, **options), nx.hits(graph, **options)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, abs=1e-6)
    options["max_iter"] = 0
    for function, G in ((nx.hits, graph), (backend.hits, converted)):
        with pytest.raises(nx.PowerIterationFailedConvergence, match="within 0 iterations"):
            function(G, **options)


@pytest.mark.parametrize("edges", [[], [(0, 1, 0), (1, 2, 0.0)]])
def test_hubs_that_are_all_0_are_warned_of(edges: list[tuple[int, int, float]]) -> None:
    """As in NetworkX, since it has the method; there in each of a hundred rounds."""
    graph = nx.empty_graph(3)
    graph.add_weighted_edges_from(edges)
    weighted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    calls = [(backend.hits, weighted)] + [(nx.hits, graph)] * is_since(3, 7)
    for function, G in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(nx.PowerIterationFailedConvergence, match="100 iterations"):
                function(G, method="power_iteration")
        said = {(each.category, str(each.message)) for each in caught}
        assert said == {(RuntimeWarning, "invalid value encountered in divide")}


def test_a_method_is_for_a_networkx_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.path_graph(3)
    for version, methods in (("3.6.1", []), ("3.7", ["power_iteration", "svd"])):
        monkeypatch.setattr(nx, "__version__", version)
        assert backend.can_run("hits", (graph,), {}) is True
        for method in ("power_iteration", "svd", None):
            taken = backend.can_run("hits", (graph,), {"method": method}) is True
            assert taken is (method in methods)


@pytest.mark.parametrize("name", sorted(SINCE_3_5))
def test_what_was_another_before_is_left_to_networkx(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (nx.path_graph(3), 0)
    assert (backend.can_run(name, arguments, {}) is True) is is_since(3, 5)
    monkeypatch.setattr(nx, "__version__", "3.4.2")
    assert "3.5" in str(backend.can_run(name, arguments, {}))


def test_a_deprecation_is_said_as_networkx_says_it() -> None:
    """When the first edge is asked for, and to whoever asks."""
    graph = nx.path_graph(3)
    said = []
    for function, G in (
        (nx.bfs_predecessors, graph),
        (backend.bfs_predecessors, backend.convert_from_nx(graph)),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            edges = function(G, 0)
            assert not caught
            assert list(edges) == [(1, 0), (2, 1)]
        said.append([(each.category, str(each.message), each.filename) for each in caught])
    ours, theirs = said
    assert ours == theirs
    assert bool(theirs) is is_since(3, 7)


def test_the_null_graphs_eccentricity() -> None:
    null = nx.Graph()
    ours = outcome(lambda: backend.eccentricity(backend.convert_from_nx(null)))
    assert_alike(ours, outcome(lambda: nx.eccentricity(null)), "eccentricity")
