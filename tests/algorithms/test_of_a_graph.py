"""Algorithms take a Graph for its snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import algorithms
import lpma
from tests.support.oracles import assert_same

# What each function gets beside the graph.
BESIDE: dict[str, tuple[Any, ...]] = {
    "average_clustering": (), "bfs": (1,), "clustering_coefficients": (),
    "common_neighbors": ([1], [3]), "connected_components": (), "core_numbers": (),
    "count_all_bicliques": (2, 2), "count_bicliques": (2, 2), "diversity": ("component", 2),
    "edge_support": (), "jaccard": ([1], [3]), "k_core": (1,), "k_truss": (2,),
    "list_bicliques": (2, 2), "pagerank": (), "shortest_path_tree": (1,), "shortest_paths": (1,),
    "similar": (1, 2), "strongly_connected_components": (), "top_diversity": ("component", 2, 1),
    "transitivity": (), "triangle_count": (), "triangles": (), "truss_numbers": (),
}  # fmt: skip


def graph() -> lpma.Graph:
    return lpma.from_edges([1, 2, 3, 4, 4], [2, 3, 4, 1, 5], directed=False, device="cpu")


@pytest.mark.parametrize("name", BESIDE)
def test_a_graph_is_its_snapshot(name: str) -> None:
    function: Callable[..., Any] = getattr(algorithms, name)
    given = BESIDE[name]
    found, expected = function(graph(), *given), function(graph().snapshot(), *given)
    if name == "list_bicliques":
        found, expected = list(found), list(expected)
    if isinstance(expected, lpma.Snapshot):
        found, expected = found.edges()[:2], expected.edges()[:2]
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif hasattr(expected, "dtype"):
        assert_same(found, expected)
    else:
        assert repr(found) == repr(expected)


def test_each_is_tried() -> None:
    assert set(BESIDE) == {name for name in algorithms.__all__ if name[0].islower()}
