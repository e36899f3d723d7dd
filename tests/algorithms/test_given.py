"""Graphs that are neither a Snapshot nor what they seem: what algorithms are given is checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sparse

import algorithms
import lpma
from lpma.cpu.jit import _Tell
from tests.support.graph_forms import BAD_GRAPHS

ALGORITHMS: dict[str, Callable[[Any], object]] = {
    "bfs": lambda s: algorithms.bfs(s, 0),
    "bicliques": lambda s: algorithms.count_bicliques(s, 1, 1),
    "clustering": algorithms.clustering_coefficients,
    "components": algorithms.connected_components,
    "core": algorithms.core_numbers,
    "diversity": lambda s: algorithms.diversity(s, "component", 1),
    "jaccard": lambda s: algorithms.jaccard(s, [0], [1]),
    "k-core": lambda s: algorithms.k_core(s, 1),
    "k-truss": lambda s: algorithms.k_truss(s, 3),
    "pagerank": algorithms.pagerank,
    "paths": lambda s: algorithms.shortest_paths(s, 0),
    "similar": lambda s: algorithms.similar(s, 0, 1),
    "strong": algorithms.strongly_connected_components,
    "tree": lambda s: algorithms.shortest_path_tree(s, 0),
    "triangles": algorithms.triangles,
    "truss": algorithms.truss_numbers,
    "weighted": lambda s: algorithms.pagerank(s, weighted=True),
}
WEIGHTED = ("paths", "tree", "weighted")


@pytest.mark.parametrize("graph", BAD_GRAPHS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_refuses_what_is_no_graph(name: str, graph: str) -> None:
    with pytest.raises(lpma.BatchError):
        ALGORITHMS[name](BAD_GRAPHS[graph])


@pytest.mark.parametrize(
    "graph, message",
    [
        ("falling", "indptr: falls after row 1"),
        ("target too large", "indices: entry 0 is 1; rows go from 0 to 0"),
        ("negative target", "indices: entry 0 is -1; rows go from 0 to 0"),
        ("end too early", "indptr: goes from 0 to 1; it must go from 0 to len(indices), 2"),
        ("columns first", "convert it with .tocsr() first"),
        ("not square", "a graph's is square"),
    ],
)
def test_the_message_says_what_is_wrong_and_where(graph: str, message: str) -> None:
    with pytest.raises(lpma.BatchError, match=re.escape(message)):
        algorithms.bfs(BAD_GRAPHS[graph], 0)


def test_a_graph_of_networkx_is_told_how_to_become_one() -> None:
    networkx = pytest.importorskip("networkx")
    with pytest.raises(lpma.BatchError, match=r"lpma\.from_networkx"):
        algorithms.triangle_count(networkx.complete_graph(3))


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("data", [np.ones(2), np.ones(4), np.ones((3, 1)), np.float64(1)])
def test_a_matrix_has_one_number_for_each_entry(name: str, data: Any) -> None:
    matrix = sparse.csr_matrix(np.eye(3))
    matrix.data = data
    with pytest.raises(lpma.BatchError, match="numbers for 3 indices"):
        ALGORITHMS[name](matrix)


def frozen(array: Any, path: Path) -> Any:
    """As np.load(mmap_mode="r") gives it: memory that cannot be written to."""
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"bicliques"}))
def test_read_only_arrays_are_read_by_the_same_kernels(name: str, tmp_path: Path) -> None:
    """No kernel is compiled for them, and none writes to them: that would end the process."""
    indptr, indices = np.array([0, 2, 3, 4, 4]), np.array([1, 2, 2, 0], np.uint32)
    data = np.array([1.0, 2.0, 1.0, 3.0])
    graphs: list[Any] = [(indptr, indices)]
    if name in WEIGHTED:
        graphs = [sparse.csr_matrix((data, indices.astype(np.int32), indptr), shape=(4, 4))]
        graphs[0].indptr = indptr
    right = ALGORITHMS[name](graphs[0])
    kept = [frozen(array, tmp_path / f"{i}.npy") for i, array in enumerate((indptr, indices, data))]
    again: Any = tuple(kept[:2])
    if name in WEIGHTED:
        again = graphs[0].copy()
        again.indptr, again.data = kept[0], kept[2]
    with patch.object(_Tell, "on_start", side_effect=AssertionError("compiled")):
        found = ALGORITHMS[name](again)
    assert_same(found, right)


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - set(WEIGHTED)))
def test_unsorted_rows_with_repeats_are_read_as_they_mean(name: str) -> None:
    rng = np.random.default_rng(2)
    n, m = 12, 60
    src, dst = np.sort(rng.integers(0, n // 2, m)), rng.integers(n // 2, n, m)
    indptr = np.searchsorted(src, np.arange(n + 1))
    in_order = np.lexsort((dst, src))
    right, found = (ALGORITHMS[name]((indptr, dst[o])) for o in (in_order, np.arange(m)))
    assert_same(found, right)


def assert_same(found: Any, right: Any) -> None:
    """Results of any kind: numbers, arrays, tuples of arrays, lists of these, snapshots."""
    if isinstance(right, lpma.Snapshot):
        found, right = found.to_edge_index(), right.to_edge_index()
    if isinstance(right, list | tuple):
        for one, other in zip(found, right, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_allclose(found, right)
