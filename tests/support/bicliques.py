"""Bipartite graphs for tests of bicliques, and counts by brute force."""

from __future__ import annotations

import itertools
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

import lpma
from algorithms import Biclique
from algorithms.biclique.bipartite import Bipartite
from lpma.arrays import to_host

Array = npt.NDArray[Any]


Edges = set[tuple[int, int]]


@st.composite
def bipartite_edges(draw: st.DrawFn) -> tuple[int, int, Edges]:
    """(a, b, edges) with left vertices 0 … a - 1 and right ones a … a + b - 1: sparse and dense
    ones, isolated vertices, stars and bicliques."""
    a, b = draw(st.integers(0, 8)), draw(st.integers(0, 8))
    if a == 0 or b == 0:
        return a, b, set()
    left, right = st.integers(0, a - 1), st.integers(a, a + b - 1)
    edges = draw(st.sets(st.tuples(left, right), max_size=a * b))
    if draw(st.booleans()):
        us, vs = draw(st.sets(left, max_size=6)), draw(st.sets(right, max_size=6))
        edges |= {(u, v) for u in us for v in vs}
    return a, b, edges


def snapshot(device: str, n: int, edges: Any, directed: bool = False) -> lpma.Snapshot:
    """A directed graph gets every second edge reversed, and some in both directions."""
    g = lpma.Graph(device=device, weight_dtype=None, times=False, directed=directed)
    pairs = np.array(sorted(edges), np.int64).reshape(-1, 2)
    if directed:
        pairs[::2] = pairs[::2, ::-1]
        pairs = np.concatenate((pairs, pairs[::3, ::-1]))
    g.insert(pairs[:, 0], pairs[:, 1])
    if n:
        g.add_vertices(n - 1)
    return g.snapshot()


def complete(device: str, a: int, b: int) -> lpma.Snapshot:
    return snapshot(device, a + b, {(u, a + v) for u in range(a) for v in range(b)})


def neighbours(a: int, edges: Edges) -> list[set[int]]:
    rows: list[set[int]] = [set() for _ in range(a)]
    for u, v in edges:
        rows[u].add(v)
    return rows


def by_brute_force(a: int, edges: Edges, p: int, q: int) -> int:
    rows = neighbours(a, edges)
    return sum(comb(len(set.intersection(*chosen)), q) for chosen in combinations(rows, p))


def listed(a: int, edges: Edges, p: int, q: int) -> list[Biclique]:
    rows = neighbours(a, edges)
    return [
        Biclique(us, vs)
        for us in combinations(range(a), p)
        for vs in combinations(sorted(set.intersection(*(rows[u] for u in us))), q)
    ]


def bipartite_of(device: str, a: int, b: int, left: Any, right: Any) -> Bipartite:
    """The simple graph of these edges, isolated vertices kept."""
    edges = sorted(set(zip(left, right, strict=True)))
    forth = _rows(a, edges)
    back = _rows(b, sorted((v, u) for u, v in edges))
    ids = (np.arange(a, dtype=np.uint32), np.arange(b, dtype=np.uint32))
    return on(device, Bipartite(*forth, *back, *ids))


def _rows(n: int, edges: list[tuple[int, int]]) -> tuple[Array, Array]:
    ends = np.array(edges, np.int64).reshape(-1, 2)
    return np.searchsorted(ends[:, 0], np.arange(n + 1)), ends[:, 1].astype(np.uint32)


def on(device: str, b: Bipartite) -> Bipartite:
    if device == "cpu":
        return b
    cupy = pytest.importorskip("cupy")
    arrays = (b.left_indptr, b.left_indices, b.right_indptr, b.right_indices)
    return Bipartite(*map(cupy.asarray, (*arrays, b.left_ids, b.right_ids)))


def brute(b: Bipartite, p: int, q: int) -> int:
    """Every p-subset of the left, and the neighbours that all of it has."""
    indptr, indices = to_host(b.left_indptr), to_host(b.left_indices)
    rows = [set(indices[x:y].tolist()) for x, y in itertools.pairwise(indptr.tolist())]
    return sum(
        comb(len(set.intersection(*chosen)), q) for chosen in itertools.combinations(rows, p)
    )


@st.composite
def edges(draw: st.DrawFn, most: int = 11) -> tuple[int, int, list[int], list[int]]:
    """Sizes of the sides, and edges with repeats: none, few, or nearly all."""
    a, b = draw(st.integers(1, most)), draw(st.integers(1, most))
    edge = st.tuples(st.integers(0, a - 1), st.integers(0, b - 1))
    chosen = draw(st.lists(edge, max_size=2 * a * b))
    if draw(st.booleans()):
        chosen = sorted(set(itertools.product(range(a), range(b))) - set(chosen[: a * b // 4]))
    return a, b, [u for u, _ in chosen], [v for _, v in chosen]


def random_graph(device: str, a: int, b: int, m: int, seed: int) -> Bipartite:
    """Some vertices have many edges, most few."""
    rng = np.random.default_rng(seed)
    left, right = (n * rng.random(m) ** 2 for n in (a, b))
    return bipartite_of(device, a, b, left.astype(int).tolist(), right.astype(int).tolist())


def lists_of(g: Bipartite) -> list[list[int]]:
    indptr, back = to_host(g.right_indptr).tolist(), to_host(g.right_indices).tolist()
    return [back[x:y] for x, y in itertools.pairwise(indptr)]


def left_lists(b: Bipartite) -> list[list[int]]:
    """The rows of the left side."""
    indptr, indices = to_host(b.left_indptr).tolist(), to_host(b.left_indices).tolist()
    return [indices[x:y] for x, y in itertools.pairwise(indptr)]
