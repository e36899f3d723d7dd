"""The views that algorithms read, against edges gathered in plain Python; where views are kept."""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

import lpma
from algorithms import core_numbers
from algorithms.views.directed import transpose_of
from algorithms.views.given import given_rows
from algorithms.views.simple import View, simple, unsorted
from lpma.cpu import pieces
from tests.support.graph_forms import clustered, inputs, snapshot_of
from tests.support.oracles import assert_same, host
from tests.support.peers import simple_edges
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


@given(graph=edge_lists())
def test_simple_view(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    edges = simple_edges(src, dst)
    both = sorted(edges | {(v, u) for u, v in edges})
    for form in inputs(device, n, src, dst):
        view = simple(form)
        assert view.indptr.dtype == np.int64
        assert view.indices.dtype == np.uint32
        rows = np.repeat(np.arange(n), np.diff(host(view.indptr))).tolist()
        assert list(zip(rows, view.indices.tolist(), strict=True)) == both


@given(graph=edge_lists())
def test_unsorted_rows_are_the_simple_views(graph: tuple[int, Array, Array]) -> None:
    for form in inputs("cpu", *graph):
        found, expected = unsorted(form), simple(form)
        assert_same(found.indptr, expected.indptr)
        for start, end in pairwise(expected.indptr.tolist()):
            row = sorted(found.indices[start:end].tolist())
            assert row == expected.indices[start:end].tolist()


def test_unsorted_rows_are_made_for_small_directed_snapshots() -> None:
    g = lpma.Graph(device="cpu")
    g.insert([1, 2, 2], [0, 1, 0])
    s = g.snapshot()
    with patch.object(pieces, "FEW", 6):  # both ways there are as many entries
        assert unsorted(s) is simple(s)
    s = g.snapshot()
    rows = unsorted(s)
    assert rows is unsorted(s)
    assert rows.indices.tolist() == [1, 2, 0, 2, 0, 1]
    assert unsorted(s) is rows is not simple(s)
    assert unsorted(s) is simple(s)  # which is there now


@pytest.mark.parametrize("directed", [True, False])
def test_views_are_the_cpus(device: str, directed: bool) -> None:
    n, src, dst = clustered(13)
    here = snapshot_of("cpu", n, src, dst, directed)
    there = snapshot_of(device, n, src, dst, directed)
    edges = np.unique(np.sort(np.column_stack((src, dst))[src != dst], axis=1), axis=0)
    assert len(simple(here).indices) == 2 * len(edges)
    assert type(simple(there).indptr) is type(there._indptr)
    assert_same(simple(there), simple(here))


@pytest.mark.gpu
@pytest.mark.parametrize("n, m", [(1, 1), (3, 2047), (3, 2048), (50, 1024), (90, 9000),
                                  (3000, 4000), (40_000, 60_000), (500_000, 2050)])  # fmt: skip
def test_rows_cut_into_tiles(cupy: Any, n: int, m: int) -> None:
    """Rows longer than a tile, tiles of few or no rows, and the same edge on both sides of a cut;
    the rows given may be unsorted and hold repeats."""
    rng = np.random.default_rng(m)
    src = np.sort(rng.integers(0, n, m))
    dst = np.where(rng.random(m) < 0.5, rng.integers(0, n, m), rng.integers(0, 1 + n // 30, m))
    there = cupy.asarray(np.searchsorted(src, np.arange(n + 1))), cupy.asarray(dst)
    both = np.concatenate((src << 32 | dst, dst << 32 | src))
    keys = np.unique(both[both >> 32 != both & 0xFFFFFFFF])
    expected = np.searchsorted(keys >> 32, np.arange(n + 1)), (keys & 0xFFFFFFFF).astype(np.uint32)
    for form in (there, snapshot_of("cuda", n, src, dst)):
        view = simple(form)
        assert_same((view.indptr, view.indices), (expected[0].astype(np.int64), expected[1]))


@pytest.mark.parametrize("n, m", [(1, 1), (1, 9000), (2, 0), (3, 6144), (256, 6143), (257, 20_000),
                                  (70_000, 50_000), (70_000, 400_000), (1 << 24, 100_000),
                                  ((1 << 24) + 1, 3)])  # fmt: skip
def test_the_transpose(device: str, n: int, m: int) -> None:
    """Ids of one to four bytes; hubs; repeats and unsorted rows as given."""
    rng = np.random.default_rng(m)
    src = np.sort(rng.integers(0, n, m))
    dst = np.where(rng.random(m) < 0.8, rng.integers(0, n, m), n - 1)
    xp = importlib.import_module("cupy" if device == "cuda" else "numpy")
    view = transpose_of(View(*given_rows((
        xp.asarray(np.searchsorted(src, np.arange(n + 1))), xp.asarray(dst)
    ))))  # fmt: skip
    order = np.argsort(dst, kind="stable")
    expected = np.searchsorted(dst[order], np.arange(n + 1)), src[order].astype(np.uint32)
    assert_same((view.indptr, view.indices), expected)


def test_views_are_cached_on_a_snapshot(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2, 3, 3], [2, 3, 1, 3])
    first, second = g.snapshot(), g.snapshot()
    assert simple(first) is simple(first)
    assert simple(first) is not simple(second)
    indptr, indices = first.indptr.copy(), first.indices.copy()
    core_numbers(first)
    assert_same((first.indptr, first.indices), (host(indptr), host(indices)))


def test_an_undirected_snapshot_without_loops_is_its_own_view(device: str) -> None:
    snapshot = snapshot_of(device, 4, np.array([0, 1]), np.array([1, 2]), directed=False)
    assert simple(snapshot).indices is snapshot._indices


def test_a_compact_snapshot_has_its_own_numbering(device: str) -> None:
    g = lpma.Graph(device=device)
    triangle = np.array([0, 2**31, 2**32 - 2])
    g.insert(triangle, np.roll(triangle, 1))
    g.insert(5, 0)
    g.add_vertices(7)
    snapshot = g.snapshot(compact=True)
    assert snapshot.ids is not None
    assert snapshot.ids.tolist() == [0, 5, 7, 2**31, 2**32 - 2]
    assert core_numbers(snapshot).tolist() == [2, 1, 0, 2, 2]
