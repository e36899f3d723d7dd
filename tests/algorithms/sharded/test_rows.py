"""Rows packed and put together: the compiled loops, and the array operations of a device, which
NumPy runs as well."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
from algorithms.bfs.cpu import top_down
from algorithms.sharded import ShardedSnapshot, rows, split
from algorithms.sharded.bfs import expanded_by_places
from algorithms.views.simple import View
from lpma.snapshot.row_versions import scattered
from tests.algorithms.sharded.test_programs import assert_equal, listed
from tests.support.graph_forms import clustered, snapshot_of
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]
Rows = list[list[int]]

graphs = st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=8)


def csr(of: Rows) -> tuple[Array, Array]:
    return np.cumsum([0, *map(len, of)]), np.array([v for row in of for v in row], np.uint32)


def as_lists(indptr: Array, column: Array) -> Rows:
    return [column[a:b].tolist() for a, b in pairwise(indptr)]


@given(of=graphs, data=st.data())
def test_packed(of: Rows, data: st.DataObject) -> None:
    indptr, indices = csr(of)
    taken = data.draw(st.lists(st.integers(0, len(of) - 1), max_size=10))
    which = np.array(taken, np.uint32)
    lengths, entries, doubles = rows.packed(indptr, which, [indices, indices * 0.5])
    assert lengths.tolist() == [len(of[row]) for row in taken]
    assert entries.tolist() == [v for row in taken for v in of[row]]
    assert_equal(doubles, entries * 0.5)
    for found, expected in zip(
        rows.by_places(indptr, which, [indices, indices * 0.5]), (entries, doubles), strict=True
    ):
        assert_equal(found, expected)


@given(senders=st.lists(graphs, max_size=3), device=st.booleans())
def test_joined(senders: list[Rows], device: bool) -> None:
    n = max(map(len, senders), default=0)
    parts = []
    for of in senders:
        indptr, indices = csr(of)
        which = np.flatnonzero(np.diff(indptr)).astype(np.uint32)
        parts.append((which, *rows.packed(indptr, which, [indices])))
    with pytest.MonkeyPatch.context() as patch:
        if device:
            patch.setattr(rows, "_put", rows.put_by_places)
        found = rows.joined(n, np.empty(0), parts, 1)
    expected = [[v for of in senders if row < len(of) for v in of[row]] for row in range(n)]
    assert as_lists(*found) == expected
    assert found[1].dtype == np.uint32


@given(graph=edge_lists(), data=st.data())
def test_a_level_by_places(graph: tuple[int, Array, Array], data: st.DataObject) -> None:
    n, src, dst = graph
    if n == 0:
        return
    s = snapshot_of("cpu", n, src, dst)
    view = View(s.indptr, s.indices)
    frontier = data.draw(st.sets(st.integers(0, n - 1), min_size=1))
    hops = np.where(np.isin(np.arange(n), list(frontier)), 3, -1).astype(np.int32)
    start, other = np.array(sorted(frontier), np.uint32), hops.copy()
    expected = np.unique(top_down(scattered(view.indptr, view.indices), hops, start, 4))
    assert_equal(expanded_by_places(view, other, start, 4), expected)
    assert_equal(other, hops)


@pytest.mark.gpu
def test_parts_on_all_devices(cupy: Any) -> None:
    n, src, dst = clustered(scale=11)
    count = cupy.cuda.runtime.getDeviceCount()
    for directed in (False, True):
        one = snapshot_of("cpu", n, src, dst, directed)
        s = ShardedSnapshot.of(split(one, max(3, count), devices=range(count)))
        for name in ("connected_components", "core_numbers", "triangle_count"):
            assert_equal(getattr(algorithms, name)(s), getattr(algorithms, name)(one))
        assert_equal(algorithms.bfs(s, 77), algorithms.bfs(one, 77))
        ranks, expected_ranks = (
            algorithms.pagerank(of, tol=1e-13, max_iter=300) for of in (s, one)
        )
        np.testing.assert_allclose(ranks, expected_ranks, rtol=1e-7)
        for model in ("component", "core", "truss"):
            assert_equal(algorithms.diversity(s, model, 2), algorithms.diversity(one, model, 2))
        found, expected = (algorithms.top_diversity(of, "core", 2, 5) for of in (s, one))
        assert listed(found) == listed(expected)
        assert_equal(s.gather().indices, one.indices)
