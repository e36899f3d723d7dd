"""Bicliques counted by enumeration, against brute force, closed forms and known counts; the choice
of an anchor."""

from __future__ import annotations

import itertools
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.biclique import gbc
from algorithms.biclique.bipartite import trimmed
from algorithms.biclique.gbc.anchor import choose_anchor
from algorithms.biclique.gbc.types import Search
from benchmarks.papers import gbc as paper
from lpma.arrays import to_host
from tests.conftest import real_graph
from tests.support.bicliques import (
    bipartite_of,
    brute,
    edges,
    left_lists,
    lists_of,
    random_graph,
)

Array = npt.NDArray[Any]


# Counts -----------------------------------------------------------------------------------------


@given(graph=edges(), p=st.integers(1, 6), q=st.integers(1, 6))
def test_counts(device: str, graph: Any, p: int, q: int) -> None:
    b = bipartite_of(device, *graph)
    expected = brute(b, p, q)
    count = gbc.count(b, p, q)
    assert type(count) is int
    assert count == expected
    assert gbc.count(b.swapped(), q, p) == expected
    assert gbc.count_by(choose_anchor(b, p, q, choose=False)) == expected


@pytest.mark.parametrize("p, q", [(2, 2), (3, 3), (3, 5), (5, 3), (4, 4), (6, 4), (5, 2)])
def test_larger_graphs(device: str, p: int, q: int) -> None:
    """Bitmaps of several words, packed and unpacked levels, several threads."""
    b = random_graph(device, 150, 200, 4500, seed=p * 10 + q)
    expected = paper.count(b, p, q, paper.GBL)
    assert expected > 0
    assert gbc.count(b, p, q) == expected
    assert gbc.count_by(choose_anchor(b, p, q, choose=False)) == expected
    assert gbc.count(b.swapped(), q, p) == expected
    if p == 3:
        assert expected == brute(b, p, q)


@pytest.mark.parametrize("a, b, p, q", [
    (40, 90, 3, 40), (60, 1100, 2, 64), (4, 1100, 3, 400), (20, 30, 9, 12), (12, 1, 5, 1),
])  # fmt: skip
def test_complete_graphs(device: str, a: int, b: int, p: int, q: int) -> None:
    """Closed forms beyond 2^64, 2^127 and 2^300; more common neighbours than a block has bins."""
    left, right = np.divmod(np.arange(a * b), b)
    graph = bipartite_of(device, a, b, left.tolist(), right.tolist())
    expected = comb(a, p) * comb(b, q)
    if (a, b) == (4, 1100):
        assert expected > 2**300
    assert gbc.count_by(choose_anchor(graph, p, q, choose=False)) == expected
    assert gbc.count(graph.swapped(), q, p) == expected


def test_one_histogram_answers_for_every_q(device: str) -> None:
    b = random_graph(device, 60, 80, 1200, seed=3)
    found = gbc.histogram(Search(b, 3, 2))
    assert isinstance(found, np.ndarray)
    for q in range(2, 9):
        assert gbc.total(found, q) == brute(b, 3, q)


@pytest.mark.parametrize("p, q, count", [
    (2, 2, 36_023_154), (2, 3, 915_935_511), (3, 2, 239_110_596), (3, 3, 1_719_957_371),
    (3, 4, 24_905_035_425), (4, 3, 4_106_066_412), (2, 6, 103_289_484_437_904),
    pytest.param(4, 8, 408_601_385_858_157, marks=pytest.mark.nightly),
])  # fmt: skip
def test_wiki_vote(device: str, p: int, q: int, count: int) -> None:
    """Voter × candidate: an edge goes from the left to the right copy of a vertex."""
    columns = real_graph("wiki-Vote")
    voters, left = np.unique(columns["src"], return_inverse=True)
    candidates, right = np.unique(columns["dst"], return_inverse=True)
    sides = (len(voters), len(candidates))
    b = bipartite_of(device, *sides, left.tolist(), right.tolist())
    assert gbc.count(trimmed(b, p, q), p, q) == count


@pytest.mark.parametrize("name, butterflies", [
    ("bip-southern-women", 341), ("bip-jodie-wikipedia", 122_399),
])  # fmt: skip
def test_butterflies_of_real_graphs(device: str, name: str, butterflies: int) -> None:
    columns = real_graph(name)
    left, right = columns["src"], columns["dst"]
    b = bipartite_of(device, left.max() + 1, right.max() + 1, left.tolist(), right.tolist())
    assert gbc.count(b, 2, 2) == butterflies


# Anchors ---------------------------------------------------------------------------------------


@given(graph=edges(), least=st.integers(1, 3))
def test_ranks_rise_with_two_hop_neighbors(device: str, graph: Any, least: int) -> None:
    b = bipartite_of(device, *graph)
    chosen = choose_anchor(b, 2, least, choose=False).graph
    indptr, indices = to_host(chosen.left_indptr), to_host(chosen.left_indices)
    rows = [set(indices[x:y].tolist()) for x, y in itertools.pairwise(indptr.tolist())]
    counts = [
        sum(len(x & y) >= least for j, y in enumerate(rows) if i != j) for i, x in enumerate(rows)
    ]
    assert counts == sorted(counts)
    back = {(int(u), v) for v, row in enumerate(lists_of(chosen)) for u in row}
    assert back == {(u, v) for u, row in enumerate(rows) for v in row}
    assert sorted(map(sorted, rows)) == sorted(left_lists(b))


def test_the_cheaper_layer_is_chosen(device: str) -> None:
    """A star's leaves make many subsets, its hubs few."""
    hubs, leaves = np.divmod(np.arange(3 * 50), 50)
    b = bipartite_of(device, 3, 50, hubs.tolist(), leaves.tolist())
    for graph, p, q in ((b, 3, 3), (b.swapped(), 3, 3)):
        assert choose_anchor(graph, p, q).graph.num_left == 3
