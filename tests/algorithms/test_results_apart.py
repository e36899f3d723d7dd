"""Who writes to a result changes no later one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from tests.support.spoiling import plain, spoil


def graph(device: str, bipartite: bool = False, directed: bool = True) -> lpma.Graph:
    g = lpma.Graph(directed, device=device)
    src, dst = np.random.default_rng(8).integers(0, 30, (2, 160))
    g.insert(src, dst + 40 if bipartite else dst, src + 1.0, time=1)
    g.add_vertices([90], time=1)
    return g


RESULTS: dict[str, Callable[[Any], Any]] = {
    "bfs": lambda s: algorithms.bfs(s, 3),
    "clustering": algorithms.clustering_coefficients,
    "common": lambda s: algorithms.common_neighbors(s, [3, 4], [5, 6]),
    "components": algorithms.connected_components,
    "core": algorithms.core_numbers,
    "diversity": lambda s: algorithms.diversity(s, "component", 1),
    "jaccard": lambda s: algorithms.jaccard(s, [3, 4], [5, 6]),
    "k-core": lambda s: algorithms.k_core(s, 2),
    "0-core": lambda s: algorithms.k_core(s, 0),
    "k-truss": lambda s: algorithms.k_truss(s, 3),
    "2-truss": lambda s: algorithms.k_truss(s, 2),
    "paths": lambda s: algorithms.shortest_paths(s, 3),
    "ranks": algorithms.pagerank,
    "weighted": lambda s: algorithms.pagerank(s, weighted=True),
    "similar": lambda s: algorithms.similar(s, 3, 4),
    "strong": algorithms.strongly_connected_components,
    "support": algorithms.edge_support,
    "top": lambda s: algorithms.top_diversity(s, "component", 1, 4),
    "tree": lambda s: algorithms.shortest_path_tree(s, 3),
    "triangles": algorithms.triangles,
    "truss": algorithms.truss_numbers,
}


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_shares_nothing_with_the_next(device: str, name: str, directed: bool) -> None:
    compute = RESULTS[name]
    g, other = graph(device, directed=directed), graph(device, directed=directed)
    s = g.snapshot()
    right = plain(compute(other.snapshot()))
    for _ in range(3):
        result = compute(s)
        np.testing.assert_equal(plain(result), right)
        spoil(result)
    for each in RESULTS.values():
        np.testing.assert_equal(plain(each(s)), plain(each(other.snapshot())))
    for one in (g, other):  # whose snapshots follow the ones before
        one.insert([1, 5], [5, 60], time=2)
    np.testing.assert_equal(plain(compute(g.snapshot())), plain(compute(other.snapshot())))


FIGURES = {"core": "core_numbers", "components": "components", "pagerank": "ranks"}


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_of_a_tracker_shares_nothing_with_the_next(device: str, figure: str) -> None:
    g = graph(device)
    spoiled, untouched = algorithms.Tracker(g, FIGURES), algorithms.Tracker(g, FIGURES)
    for src, dst in ((1, 5), (5, 60), (60, 2)):
        value = getattr(spoiled, FIGURES[figure])
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[:] = 1
        spoil(value)
        g.insert(src, dst, time=2)
        for tracker in (spoiled, untouched):
            tracker.update()
        for name in FIGURES.values():
            assert plain(getattr(spoiled, name)) == plain(getattr(untouched, name))


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("name", ["bfs", "components", "core", "ranks", "top"])
def test_a_result_over_shards_shares_nothing_with_the_next(name: str, shards: int) -> None:
    taken = graph("cpu").snapshot()
    s, other = (
        algorithms.ShardedSnapshot.of(algorithms.sharded.split(taken, shards)) for _ in range(2)
    )
    for ask in (RESULTS[name], lambda s: s.present, lambda s: s.degrees(), lambda s: s.gather()):
        spoil(ask(s))
        np.testing.assert_equal(plain(ask(s)), plain(ask(other)))
    assert s.num_vertices == other.num_vertices
    assert plain(taken) == plain(graph("cpu").snapshot())
