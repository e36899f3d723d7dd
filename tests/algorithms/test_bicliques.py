"""Bicliques against brute force, closed forms, sparse products and what is known of real graphs;
both sides of a bipartite graph, and its cores."""

from __future__ import annotations

import threading
from itertools import combinations, islice
from math import comb
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import Biclique, count_all_bicliques, count_bicliques, list_bicliques
from algorithms.biclique import counting, gbc, listing, pivot, progress, wedges
from algorithms.biclique.bipartite import Bipartite, bipartite, trimmed
from algorithms.biclique.counting import METHODS
from algorithms.biclique.gbc import estimate, search_cpu
from algorithms.biclique.gbc.anchor import choose_anchor
from ingest.datasets import generators
from tests.conftest import real_graph
from tests.support.oracles import host

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
    g = lpma.Graph(device=device, weight=None, times=False, directed=directed)
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


def able(p: int, q: int) -> list[str]:
    """The methods that count such bicliques."""
    return [m for m in METHODS if {"closed": 1, "wedges": 2}.get(m, p) in (p, q)]


sizes = st.integers(1, 5)


@given(graph=bipartite_edges(), p=sizes, q=sizes, directed=st.booleans())
def test_counts(device: str, graph: tuple[int, int, Edges], p: int, q: int, directed: bool) -> None:
    a, b, edges = graph
    s = snapshot(device, a + b, edges, directed)
    expected = by_brute_force(a, edges, p, q)
    for method in ["auto", *able(p, q)]:
        count = count_bicliques(s, p, q, left=a, method=method)
        assert type(count) is int
        assert (method, count) == (method, expected)
    is_right = np.arange(a + b) >= a
    assert count_bicliques(s, q, p, left=is_right) == expected
    matrix = sparse.csr_matrix(
        (np.ones(len(edges)), tuple(zip(*sorted(edges), strict=True)) or ([], [])),
        shape=(a + b, a + b),
    )
    assert count_bicliques(matrix, p, q, left=~is_right) == expected
    assert count_bicliques((matrix.indptr, matrix.indices), p, q, left=a) == expected


@given(graph=bipartite_edges(), p=sizes, q=sizes)
def test_counts_of_all_sizes(device: str, graph: tuple[int, int, Edges], p: int, q: int) -> None:
    a, b, edges = graph
    s = snapshot(device, a + b, edges)
    assert count_all_bicliques(s, p + 2, q + 2, left=a) == {
        (i, j): by_brute_force(a, edges, i, j) for i in range(1, p + 3) for j in range(1, q + 3)
    }


@given(graph=bipartite_edges(), p=st.integers(1, 4), q=st.integers(1, 4), limit=st.integers(0, 9))
def test_lists(device: str, graph: tuple[int, int, Edges], p: int, q: int, limit: int) -> None:
    a, b, edges = graph
    s = snapshot(device, a + b, edges)
    expected = listed(a, edges, p, q)
    assert list(list_bicliques(s, p, q, left=a)) == expected
    assert list(list_bicliques(s, p, q, left=a, limit=limit)) == expected[:limit]


# Sides ------------------------------------------------------------------------------------------


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
    """Whatever the ids: in each component the smallest vertex is left."""
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
    """As many rounds as half of it is long."""
    n = 4001
    s = snapshot(device, n, {(u, u + 1) for u in range(n - 1)})
    assert trimmed(bipartite(s), 2, 2).num_edges == 0
    assert trimmed(bipartite(s), 1, 2).num_edges == n - 3  # its ends are left, and go
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


@pytest.mark.parametrize("p, q", [(0, 1), (1, -1), (1.5, 2), (True, 2), ("2", 2)])
def test_sizes_are_whole_and_positive(p: Any, q: Any) -> None:
    square = snapshot("cpu", 4, {(0, 2), (0, 3), (1, 2), (1, 3)})
    for function in (count_bicliques, count_all_bicliques, list_bicliques):
        with pytest.raises(ValueError):
            function(square, p, q)


def test_methods_say_what_they_are_for() -> None:
    square = snapshot("cpu", 4, {(0, 2), (0, 3), (1, 2), (1, 3)})
    for method in ("closed", "wedges"):
        with pytest.raises(ValueError, match=method):
            count_bicliques(square, 3, 3, method=method)
    with pytest.raises(ValueError, match="choose one of auto, closed"):
        count_bicliques(square, 3, 3, method="best")
    bad: tuple[Any, ...] = (-1, 2.5, "2", True)
    for limit in bad:
        with pytest.raises(ValueError, match=r"limit=.*: give a whole number from 0 on"):
            list_bicliques(square, 2, 2, limit=limit)
    assert len(list(list_bicliques(square, 2, 2, limit=10**40))) == 1


def test_memory_limits_are_bytes(device: str) -> None:
    """Whatever is no number of bytes is refused first: of a graph that is none, nothing is said."""
    s = complete(device, 20, 20)
    bad: tuple[Any, ...] = ("1G", -5, 0, 1e9, True)
    for limit in bad:
        for size in ((1, 1), (3, 3), (9, 9)):
            with pytest.raises(ValueError, match=r"memory_limit=.*: give bytes, a whole number"):
                count_bicliques("no graph", *size, memory_limit=limit)
        with pytest.raises(ValueError, match="give bytes"):
            gbc.count(bipartite(s, 20), 3, 3, memory_limit=limit)
    expected = comb(20, 3) ** 2
    good: tuple[Any, ...] = (10**40, 1 << 30, np.int64(1 << 30))
    for limit in good:
        assert count_bicliques(s, 3, 3, left=20, memory_limit=limit) == expected
    with pytest.raises(ValueError, match=r"memory_limit=1,000: one root .* needs [\d,]+ bytes"):
        count_bicliques(s, 3, 3, left=20, memory_limit=1000)


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


# Large counts, large graphs -----------------------------------------------------------------------


@pytest.mark.parametrize("a, b, p, q, above", [
    (70, 70, 2, 40, 64), (40, 40, 20, 20, 64), (120, 3, 60, 2, 64), (3, 200, 3, 100, 127),
    (160, 150, 70, 60, 127), (200, 220, 100, 100, 300), (500, 2, 200, 2, 300),
])  # fmt: skip
def test_counts_above_any_machine_word(
    device: str, a: int, b: int, p: int, q: int, above: int
) -> None:
    expected = comb(a, p) * comb(b, q)
    assert expected > 2**above
    s = complete(device, a, b)
    assert count_bicliques(s, p, q, left=a) == expected
    assert count_bicliques(s, q, p, left=np.arange(a + b) >= a) == expected
    assert count_bicliques(s, p, q, left=a, method="pivot") == expected


def test_whatever_the_rule_takes(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large sizes by enumeration and by pivots, one by one and row by row, agree."""
    src, dst = generators.rmat(12, 1_500, seed=8)
    left, right = (src % 60).tolist(), (60 + dst % 50).tolist()
    s = snapshot(device, 110, set(zip(left, right, strict=True)))
    expected = count_all_bicliques(s, 6, 7, left=60)
    assert expected[6, 7] > 0
    for most_work in (0.0, 1e12):
        monkeypatch.setattr(counting, "MOST_WORK", {device: most_work})
        for size in ((5, 5), (6, 7)):
            assert count_bicliques(s, *size, left=60) == expected[size]
    monkeypatch.setattr(pivot, "count_in_time", lambda *_: None)
    assert count_all_bicliques(s, 6, 7, left=60) == expected


def test_pivots_are_tried_where_enumerating_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a complete graph they are over at once, and nothing is enumerated; nor are they asked
    where little is to do, or waited for where edges are strewn."""
    monkeypatch.setattr(counting, "CANDIDATES_PER_S", 1.0)  # so that patience does not end first
    asked: list[str] = []
    for module, name in ((gbc, "histogram"), (pivot, "count_in_time")):
        function = getattr(module, name)

        def noting(*given: Any, name: str = name, function: Any = function) -> Any:
            asked.append(name)
            return function(*given)

        monkeypatch.setattr(module, name, noting)
    s = complete("cpu", 200, 200)
    assert count_bicliques(s, 4, 4, left=200) == comb(200, 4) ** 2
    counts = count_all_bicliques(s, 4, 5, left=200)
    assert counts == {(p, q): comb(200, p) * comb(200, q) for p, q in counts}
    assert asked == ["count_in_time"] * 2
    asked.clear()
    assert count_bicliques(complete("cpu", 30, 30), 4, 4, left=30) == comb(30, 4) ** 2
    assert asked == ["histogram"]
    monkeypatch.setattr(counting, "AT_ONCE", 0)
    monkeypatch.setattr(counting, "CANDIDATES_PER_S", 1e12)
    asked.clear()
    rng = np.random.default_rng(2)
    edges = np.argwhere(rng.random((150, 150)) < 0.3)
    strewn = snapshot("cpu", 300, {(u, 150 + v) for u, v in edges.tolist()})
    expected = count_bicliques(strewn, 3, 4, left=150, method="gbc")
    asked.clear()
    assert count_bicliques(strewn, 3, 4, left=150) == expected
    assert asked == ["count_in_time", "histogram"]
    asked.clear()
    assert count_bicliques(strewn, 3, 4, left=150, memory_limit=1 << 24) == expected
    assert asked == ["histogram"]


def test_pivots_can_be_given_up() -> None:
    """Edges at random, at which pivots are no good."""
    rng = np.random.default_rng(2)
    matrix = sparse.csr_matrix(rng.random((300, 300)) < 0.3)
    sides = bipartite(sparse.bmat([[None, matrix], [matrix.T, None]]).tocsr(), 300)
    assert pivot.count_in_time(sides, (5, 5), (9, 9), 0.05) is None


def test_the_work_of_enumerating_is_foreseen(device: str) -> None:
    """Exactly, where the graph is complete; to a factor, where subsets can be counted; so that a
    graph in part complete is not enumerated."""
    n, k = 40, 6
    search = choose_anchor(
        bipartite(complete(device, n, n), n), k, k, choose=True, priority=True, common=True
    )
    exact = sum(comb(n, size) for size in range(2, k + 1))
    assert estimate.work(search) == pytest.approx(exact, rel=0.2)
    rng = np.random.default_rng(1)
    src, dst = generators.uniform(2000, 20_000)
    dense = rng.permutation(2000)[:80].reshape(2, -1, 1)
    left = np.concatenate((src, np.repeat(dense[0], 40))).astype(np.int64)
    right = np.concatenate((dst, np.tile(dense[1].T, 40)[0])).astype(np.int64)
    s = snapshot(device, 4000, set(zip(left.tolist(), (right + 2000).tolist(), strict=True)))
    count = count_bicliques(s, 12, 14, left=2000)
    assert count >= comb(40, 12) * comb(40, 14)
    assert count == count_bicliques(s, 12, 14, left=2000, method="pivot")


def test_sizes_that_no_graph_has(device: str) -> None:
    s = complete(device, 5, 6)
    for p, q in ((10**30, 3), (3, 10**30), (6, 6), (5, 7), (10**9, 10**9)):
        assert count_bicliques(s, p, q, left=5) == 0
        assert count_bicliques(s, p, q, left=5, method="gbc") == 0
        assert list(list_bicliques(s, p, q, left=5)) == []


def test_all_sizes_of_a_complete_graph(device: str) -> None:
    counts = count_all_bicliques(complete(device, 30, 90), 40, 90)
    assert counts == {(p, q): comb(30, p) * comb(90, q) for p, q in counts}
    assert len(counts) == 40 * 90


def by_product(matrix: Any, least: int) -> dict[int, int]:
    """{c: how many pairs of rows share c columns}, from `least` on."""
    found = np.bincount(sparse.triu(matrix @ matrix.T, 1).data).tolist()
    return {c: number for c, number in enumerate(found) if number and c >= least}


@pytest.mark.parametrize("a, b, m", [
    (60_000, 500, 120_000), (30_000, 90, 60_000), (400, 300, 20_000), (9, 70_000, 99_999),
])  # fmt: skip
def test_larger_graphs(device: str, a: int, b: int, m: int) -> None:
    """Starts with few and many wedges, and sides of several windows, against sparse products."""
    src, dst = generators.rmat(16, m, seed=5)
    pairs = np.unique(np.stack((src % a, a + dst % b)), axis=1)
    g = lpma.Graph(device=device, weight=None, times=False)
    g.insert(*pairs)
    s = g.snapshot()
    matrix = sparse.csr_matrix((np.ones(pairs.shape[1], np.int64), (pairs[0], pairs[1] - a)))
    sides = bipartite(s, a)
    if a < 40_000:
        found = by_product(matrix, 1)
        assert wedges.pairs(sides, 1) == found
        assert count_bicliques(s, 2, 4, a) == wedges.from_pairs(found, 4)
    if b < 40_000:
        found = by_product(matrix.T, 2)
        assert wedges.pairs(sides.swapped(), 2) == found
        assert count_bicliques(s, 2, 2, a) == wedges.from_pairs(found, 2)
    if m == 20_000:
        assert count_bicliques(s, 3, 4, a) == count_bicliques(s, 3, 4, a, method="pivot")


@pytest.mark.parametrize("name, known", [
    ("bip-southern-women", 341), ("bip-jodie-wikipedia", 122_399), ("bip-gowalla", 86_788_119),
])  # fmt: skip
def test_known_butterflies(device: str, name: str, known: int) -> None:
    columns = real_graph(name)
    a = int(columns["src"].max()) + 1
    g = lpma.Graph(device=device, weight=None, times=False)
    g.insert(columns["src"], columns["dst"].astype(np.int64) + a)
    s = g.snapshot()
    assert count_bicliques(s, 2, 2, left=a) == known
    sides = bipartite(s, a)
    assert wedges.from_pairs(wedges.pairs(sides, 2), 2) == known
    assert wedges.from_pairs(wedges.pairs(sides.swapped(), 2), 2) == known


WIKI_VOTE = {
    (2, 2): 36_023_154, (2, 3): 915_935_511, (3, 2): 239_110_596, (3, 3): 1_719_957_371,
    (3, 4): 24_905_035_425, (4, 3): 4_106_066_412, (2, 6): 103_289_484_437_904,
    (4, 8): 408_601_385_858_157,
}  # fmt: skip


def voters_and_candidates(device: str) -> tuple[lpma.Snapshot, int]:
    """Who votes is left, who is voted for right: a vertex that does both is there twice."""
    columns = real_graph("wiki-Vote")
    n = 7115
    g = lpma.Graph(device=device, weight=None, times=False)
    g.insert(columns["src"], columns["dst"].astype(np.int64) + n)
    return g.snapshot(), n


def test_known_bicliques(device: str) -> None:
    s, n = voters_and_candidates(device)
    sides = bipartite(s, n)
    assert (sides.num_left, sides.num_right, sides.num_edges) == (6110, 2381, 103_689)
    counts = count_all_bicliques(s, 3, 6, left=n)
    assert all(counts[size] == known for size, known in WIKI_VOTE.items() if size in counts)
    assert count_bicliques(s, 3, 2, left=n) == WIKI_VOTE[3, 2]


@pytest.mark.slow
def test_more_known_bicliques(device: str) -> None:
    s, n = voters_and_candidates(device)
    for (p, q), known in WIKI_VOTE.items():
        assert count_bicliques(s, p, q, left=n) == known
        assert count_bicliques(s, q, p, left=np.arange(s.num_vertices) >= n) == known


def test_known_sizes_of_a_small_graph(device: str) -> None:
    """All sizes of the southern women, and the methods on each."""
    columns = real_graph("bip-southern-women")
    edges = set(zip(columns["src"].tolist(), (columns["dst"] + 18).tolist(), strict=True))
    s = snapshot(device, 32, edges)
    counts = count_all_bicliques(s, 6, 6, left=18)
    for (p, q), count in counts.items():
        assert count == by_brute_force(18, edges, p, q)
        for method in able(p, q):
            assert count_bicliques(s, p, q, left=18, method=method) == count


def test_listing_is_lazy() -> None:
    """The first of 10^59 bicliques come at once."""
    bicliques = list_bicliques(complete("cpu", 200, 200), 20, 20, left=200)
    first = tuple(range(20)), tuple(range(200, 220))
    assert next(bicliques) == first
    assert [one.right[-1] for one in islice(bicliques, 3)] == [220, 221, 222]


def test_many_left_vertices_are_no_recursion() -> None:
    (only,) = list_bicliques(complete("cpu", 1100, 1), 1100, 1, left=1100)
    assert only == (tuple(range(1100)), (1100,))


@given(graph=bipartite_edges(), p=st.integers(1, 3), q=st.integers(1, 3), data=st.data())
def test_listing_goes_on_in_a_core(
    graph: tuple[int, int, Edges], p: int, q: int, data: st.DataObject
) -> None:
    """Who may still be chosen, and the common neighbours, are what peeling one by one leaves."""
    a, b, edges = graph
    sides = bipartite(snapshot("cpu", a + b, edges), a)
    lefts, rights = host(sides.left_ids).tolist(), host(sides.right_ids).tolist()
    us = sorted(data.draw(st.sets(st.sampled_from(lefts)))) if lefts else []
    vs = sorted(data.draw(st.sets(st.sampled_from(rights)))) if rights else []
    found = listing._narrowed(
        sides, np.searchsorted(lefts, us), np.searchsorted(rights, vs), p, q
    )  # fmt: skip
    core = nx.Graph([(u, v) for u, v in edges if u in us and v in vs])
    while few := [x for x in core if core.degree(x) < (q if x < a else p)]:
        core.remove_node(few[0])
    named = [[ids[i] for i in numbers] for ids, numbers in zip((lefts, rights), found, strict=True)]
    assert named == [sorted(x for x in core if x < a), sorted(x for x in core if x >= a)]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """A list for what is told, which is told as often as may be."""
    monkeypatch.setattr(progress, "EVERY_S", 0.001)
    return []


def test_progress_rises_over_the_whole_count(
    device: str, told: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the method and however many the parts; the end is told by who called."""
    tellers: list[threading.Thread] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        tellers.append(threading.current_thread())

    def check(least: int) -> None:
        assert len(told) >= least
        assert told == sorted(told)
        assert {total for _, total in told} == {progress.ALL}
        assert told[-1][0] == progress.ALL
        assert tellers[-1] is threading.current_thread()
        told.clear()

    rng = np.random.default_rng(4)
    edges = np.argwhere(rng.random((150, 150)) < 0.3)
    s = snapshot(device, 300, {(u, 150 + v) for u, v in edges.tolist()})
    for size in ((1, 3), (2, 2), (2, 5), (3, 3), (100, 100)):
        count_bicliques(s, *size, left=150, progress=tell)
        check(1)
    if device == "cpu":
        parts = 0
        original = search_cpu.search

        def counting_parts(*given: Any) -> Any:
            nonlocal parts
            parts += 1
            return original(*given)

        monkeypatch.setattr(search_cpu, "search", counting_parts)
        groups = {(u + 20 * c, 800 + v + 20 * c) for c in range(40)
                  for u in range(20) for v in range(20)}  # fmt: skip
        grouped = snapshot(device, 1600, groups)
        count = count_bicliques(
            grouped, 4, 4, left=800, method="gbc", memory_limit=80_000, progress=tell
        )
        assert count == 40 * comb(20, 4) ** 2
        assert parts > 3
        check(1)
    monkeypatch.setattr(counting, "AT_ONCE", 0)  # pivots are tried, and given up at once
    monkeypatch.setattr(counting, "CANDIDATES_PER_S", 1e12)
    count_bicliques(s, 4, 4, left=150, progress=tell)
    check(2)
    monkeypatch.setattr(counting, "PATIENCE_S", 0.001)
    count_all_bicliques(s, 6, 5, left=150, progress=tell)
    check(2)


def test_what_progress_raises_ends_the_count(
    told: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is raised by the call, from the first time on, and the next call is none the worse."""
    rng = np.random.default_rng(4)
    edges = np.argwhere(rng.random((150, 150)) < 0.3)
    s = snapshot("cpu", 300, {(u, 150 + v) for u, v in edges.tolist()})

    def fail(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyError("from progress")

    for size, method in (((1, 1), "auto"), ((2, 2), "auto"), ((4, 4), "gbc"), ((5, 5), "pivot")):
        told.clear()
        with pytest.raises(KeyError, match="from progress"):
            count_bicliques(s, *size, left=150, method=method, progress=fail)
        assert len(told) == 1
    assert count_bicliques(s, 1, 1, left=150, progress=lambda *_: None) == len(edges)

    counter, stopped = np.zeros(1, np.int64), threading.Event()

    def work() -> None:
        with progress.listening(fail), progress.watched(counter, 10, stopped.set):
            assert stopped.wait(60)

    with pytest.raises(KeyError, match="from progress"):
        work()
    assert counter[0] == 10  # nobody takes more


def test_a_graph_on_the_device_stays_there(device: str) -> None:
    sides = bipartite(complete(device, 3, 4), 3)
    assert sides.on_device == (device == "cuda")
    assert sides.on_host().on_device is False
