"""Bicliques counted, against brute force, closed forms, sparse products and known counts of real
graphs."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import count_all_bicliques, count_bicliques, list_bicliques
from algorithms.biclique import counting, gbc, pivot, wedges
from algorithms.biclique.bipartite import bipartite
from algorithms.biclique.counting import METHODS
from algorithms.biclique.gbc import estimate
from algorithms.biclique.gbc.anchor import choose_anchor
from ingest.datasets import generators
from tests.conftest import real_graph
from tests.support.bicliques import (
    Edges,
    bipartite_edges,
    by_brute_force,
    complete,
    snapshot,
)

Array = npt.NDArray[Any]


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


@pytest.mark.parametrize("p, q", [(0, 1), (1, -1), (1.5, 2), (True, 2), ("2", 2)])
def test_sizes_are_whole_and_positive(p: Any, q: Any) -> None:
    square = snapshot("cpu", 4, {(0, 2), (0, 3), (1, 2), (1, 3)})
    for function in (count_bicliques, count_all_bicliques, list_bicliques):
        with pytest.raises(lpma.BatchError):
            function(square, p, q)


def test_methods_say_what_they_are_for() -> None:
    square = snapshot("cpu", 4, {(0, 2), (0, 3), (1, 2), (1, 3)})
    for method in ("closed", "wedges"):
        with pytest.raises(lpma.BatchError, match=method):
            count_bicliques(square, 3, 3, method=method)
    with pytest.raises(lpma.BatchError, match="choose one of auto, closed"):
        count_bicliques(square, 3, 3, method="best")
    bad: tuple[Any, ...] = (-1, 2.5, "2", True)
    for limit in bad:
        with pytest.raises(lpma.BatchError, match="limit: an integer from 0 on"):
            list_bicliques(square, 2, 2, limit=limit)
    assert len(list(list_bicliques(square, 2, 2, limit=10**40))) == 1


def test_memory_limits_are_bytes(device: str) -> None:
    """A wrong memory limit is refused first, before anything is said about the graph."""
    s = complete(device, 20, 20)
    bad: tuple[Any, ...] = ("1G", -5, 0, 1e9, True)
    for limit in bad:
        for size in ((1, 1), (3, 3), (9, 9)):
            with pytest.raises(lpma.BatchError, match="memory_limit: an integer from 1 on"):
                count_bicliques("no graph", *size, memory_limit=limit)
        with pytest.raises(lpma.BatchError, match="memory_limit: an integer from 1 on"):
            count_bicliques(s, 3, 3, left=20, method="gbc", memory_limit=limit)
    expected = comb(20, 3) ** 2
    good: tuple[Any, ...] = (10**40, 1 << 30, np.int64(1 << 30))
    for limit in good:
        assert count_bicliques(s, 3, 3, left=20, memory_limit=limit) == expected
    with pytest.raises(lpma.BatchError, match=r"memory_limit=1,000: one root .* needs [\d,]+"):
        count_bicliques(s, 3, 3, left=20, memory_limit=1000)


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


def test_all_methods_that_the_rule_takes_agree(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_work_of_enumerating_is_estimated(device: str) -> None:
    """Exactly, where the graph is complete; to a factor, where subsets can be counted; so that a
    graph in part complete is not enumerated."""
    n, k = 40, 6
    search = choose_anchor(bipartite(complete(device, n, n), n), k, k)
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
    g = lpma.Graph(device=device, weight_dtype=None, times=False)
    g.insert(*pairs)
    s = g.snapshot()
    matrix = sparse.csr_matrix((np.ones(pairs.shape[1], np.int64), (pairs[0], pairs[1] - a)))
    sides = bipartite(s, a)
    if a < 40_000:
        found = by_product(matrix, 1)
        counted = wedges.pairs(sides, 1)
        assert {c: int(counted[c]) for c in np.flatnonzero(counted).tolist()} == found
        assert count_bicliques(s, 2, 4, a) == gbc.total(counted, 4)
    if b < 40_000:
        found = by_product(matrix.T, 2)
        counted = wedges.pairs(sides.swapped(), 2)
        assert {c: int(counted[c]) for c in np.flatnonzero(counted).tolist()} == found
        assert count_bicliques(s, 2, 2, a) == gbc.total(counted, 2)
    if m == 20_000:
        assert count_bicliques(s, 3, 4, a) == count_bicliques(s, 3, 4, a, method="pivot")


@pytest.mark.parametrize("name, known", [
    ("bip-southern-women", 341), ("bip-jodie-wikipedia", 122_399), ("bip-gowalla", 86_788_119),
])  # fmt: skip
def test_known_butterflies(device: str, name: str, known: int) -> None:
    columns = real_graph(name)
    a = int(columns["src"].max()) + 1
    g = lpma.Graph(device=device, weight_dtype=None, times=False)
    g.insert(columns["src"], columns["dst"].astype(np.int64) + a)
    s = g.snapshot()
    assert count_bicliques(s, 2, 2, left=a) == known
    sides = bipartite(s, a)
    assert gbc.total(wedges.pairs(sides, 2), 2) == known
    assert gbc.total(wedges.pairs(sides.swapped(), 2), 2) == known


WIKI_VOTE = {
    (2, 2): 36_023_154, (2, 3): 915_935_511, (3, 2): 239_110_596, (3, 3): 1_719_957_371,
    (3, 4): 24_905_035_425, (4, 3): 4_106_066_412, (2, 6): 103_289_484_437_904,
    (4, 8): 408_601_385_858_157,
}  # fmt: skip


def voters_and_candidates(device: str) -> tuple[lpma.Snapshot, int]:
    """Voters are on the left and candidates on the right. A vertex that is both is there twice."""
    columns = real_graph("wiki-Vote")
    n = 7115
    g = lpma.Graph(device=device, weight_dtype=None, times=False)
    g.insert(columns["src"], columns["dst"].astype(np.int64) + n)
    return g.snapshot(), n


def test_known_bicliques(device: str) -> None:
    s, n = voters_and_candidates(device)
    sides = bipartite(s, n)
    assert (sides.num_left, sides.num_right, sides.num_edges) == (6110, 2381, 103_689)
    counts = count_all_bicliques(s, 3, 6, left=n)
    assert all(counts[size] == known for size, known in WIKI_VOTE.items() if size in counts)
    assert count_bicliques(s, 3, 2, left=n) == WIKI_VOTE[3, 2]


@pytest.mark.nightly
def test_more_known_bicliques(device: str) -> None:
    s, n = voters_and_candidates(device)
    for (p, q), known in WIKI_VOTE.items():
        assert count_bicliques(s, p, q, left=n) == known
        assert count_bicliques(s, q, p, left=np.arange(s.num_rows) >= n) == known


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
