"""The two sides of a bipartite graph, and its cores, against NetworkX and brute force."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import count_bicliques
from algorithms.biclique.bipartite import Bipartite, bipartite, trimmed
from tests.support.bicliques import (
    Edges,
    bipartite_edges,
    complete,
    snapshot,
)
from tests.support.oracles import host

Array = npt.NDArray[Any]


def edges_of(b: Bipartite) -> tuple[Edges, ...]:
    """The edges by the left rows and by the right ones, as vertices, left first."""
    left_ids, right_ids = host(b.left_ids), host(b.right_ids)
    left = np.repeat(np.arange(b.num_left), np.diff(host(b.left_indptr)))
    right = np.repeat(np.arange(b.num_right), np.diff(host(b.right_indptr)))
    ends = (left_ids[left], right_ids[host(b.left_indices)])
    back = (left_ids[host(b.right_indices)], right_ids[right])
    return tuple(set(zip(x.tolist(), y.tolist(), strict=True)) for x, y in (ends, back))


def rows_rise(indptr: Array, indices: Array) -> bool:
    indptr, indices = host(indptr), host(indices)
    return all((np.diff(row.astype(int)) > 0).all() for row in np.split(indices, indptr[1:-1]))


@given(graph=bipartite_edges(), seed=st.integers(0, 99))
def test_sides_are_found(device: str, graph: tuple[int, int, Edges], seed: int) -> None:
    """For any ids, the smallest vertex of each component is on the left."""
    a, b, edges = graph
    ids = np.random.default_rng(seed).permutation(a + b).tolist()
    renamed = {(ids[u], ids[v]) for u, v in edges}
    oracle = nx.Graph(sorted(renamed))
    left: set[int] = set()
    for component in nx.connected_components(oracle):
        sides = nx.bipartite.sets(oracle.subgraph(component))
        left |= next(side for side in sides if min(component) in side)
    found = bipartite(snapshot(device, a + b, renamed))
    assert set(host(found.left_ids).tolist()) == left
    expected = {(u, v) if u in left else (v, u) for u, v in renamed}
    assert edges_of(found) == (expected, expected)
    for array, dtype in zip(vars(found).values(), ("q", "I", "q", "I", "I", "I"), strict=True):
        assert array.dtype.char in (dtype, {"q": "l"}.get(dtype, dtype))
    assert rows_rise(found.left_indptr, found.left_indices)
    assert rows_rise(found.right_indptr, found.right_indices)
    for ids_of in (found.left_ids, found.right_ids):
        assert (np.diff(host(ids_of).astype(int)) > 0).all()


@given(graph=bipartite_edges(), p=st.integers(1, 4), q=st.integers(1, 4))
def test_cores(device: str, graph: tuple[int, int, Edges], p: int, q: int) -> None:
    a, b, edges = graph
    kept = set(edges)
    while True:
        degree = np.bincount([end for edge in kept for end in edge], minlength=a + b)
        fewer = {(u, v) for u, v in kept if degree[u] >= q and degree[v] >= p}
        if fewer == kept:
            break
        kept = fewer
    core = trimmed(bipartite(snapshot(device, a + b, edges), a), p, q)
    assert edges_of(core) == (kept, kept)
    assert set(host(core.left_ids).tolist()) == {u for u, _ in kept}
    assert set(host(core.right_ids).tolist()) == {v for _, v in kept}


def test_a_path_is_peeled_from_its_ends(device: str) -> None:
    """That takes as many rounds as half its length."""
    n = 4001
    s = snapshot(device, n, {(u, u + 1) for u in range(n - 1)})
    assert trimmed(bipartite(s), 2, 2).num_edges == 0
    assert trimmed(bipartite(s), 1, 2).num_edges == n - 3  # its ends are on the left, and go
    assert count_bicliques(s, 1, 2) == n // 2 - 1


def test_what_is_not_bipartite_is_refused(device: str) -> None:
    triangle = snapshot(device, 9, {(4, 5), (5, 6), (4, 6), (0, 8)})
    with pytest.raises(lpma.BatchError, match="odd cycle"):
        count_bicliques(triangle, 2, 2)
    with pytest.raises(lpma.BatchError, match="edge of 4 and 5 lies within"):
        count_bicliques(triangle, 2, 2, left=3)
    for directed in (False, True):
        loop = lpma.Graph(device=device, directed=directed)
        loop.insert([0, 3, 1], [5, 3, 5])
        for left in (None, 2, np.arange(6) < 3):
            with pytest.raises(lpma.BatchError, match="vertex 3 has a loop"):
                count_bicliques(loop.snapshot(), 2, 2, left=left)
    square = snapshot(device, 4, {(0, 2), (0, 3), (1, 2), (1, 3)})
    assert count_bicliques(square, 2, 2, left=np.array([True, True, False, False])) == 1
    bad: tuple[Any, ...] = (-1, np.ones(3, bool), np.ones(4, int), "left", True)
    for given_left in bad:
        with pytest.raises(lpma.BatchError, match="left"):
            count_bicliques(square, 2, 2, left=given_left)


def test_a_snapshot_keeps_the_sides_of_one_number(device: str) -> None:
    s = snapshot(device, 9, {(0, 8), (1, 8), (2, 8)})
    for left in (3, 5, 8, 10**40, 3):
        if left < 9:
            assert count_bicliques(s, 2, 1, left=left) == 3
            assert host(bipartite(s, left).left_ids).tolist() == [0, 1, 2]
            assert bipartite(s, left) is bipartite(s, left)
        else:
            with pytest.raises(lpma.BatchError, match="lies within a side"):
                bipartite(s, left)
    assert len([name for name in s.views if "below" in name]) == 1


def test_a_graph_on_the_device_stays_there(device: str) -> None:
    sides = bipartite(complete(device, 3, 4), 3)
    assert sides.on_device == (device == "cuda")
    assert sides.on_host().on_device is False
