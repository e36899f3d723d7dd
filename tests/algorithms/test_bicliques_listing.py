"""Bicliques listed, against brute force."""

from __future__ import annotations

from itertools import islice
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from algorithms import list_bicliques
from algorithms.biclique import listing
from algorithms.biclique.bipartite import bipartite
from tests.support.bicliques import (
    Edges,
    bipartite_edges,
    complete,
    listed,
    snapshot,
)
from tests.support.oracles import host

Array = npt.NDArray[Any]


@given(graph=bipartite_edges(), p=st.integers(1, 4), q=st.integers(1, 4), limit=st.integers(0, 9))
def test_lists(device: str, graph: tuple[int, int, Edges], p: int, q: int, limit: int) -> None:
    a, b, edges = graph
    s = snapshot(device, a + b, edges)
    expected = listed(a, edges, p, q)
    assert list(list_bicliques(s, p, q, left=a)) == expected
    assert list(list_bicliques(s, p, q, left=a, limit=limit)) == expected[:limit]


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
    """The candidates and common neighbours that are left are those that peeling one vertex at a
    time leaves."""
    a, b, edges = graph
    sides = bipartite(snapshot("cpu", a + b, edges), a)
    lefts, rights = host(sides.left_ids).tolist(), host(sides.right_ids).tolist()
    us = sorted(data.draw(st.sets(st.sampled_from(lefts)))) if lefts else []
    vs = sorted(data.draw(st.sets(st.sampled_from(rights)))) if rights else []
    found = listing.narrowed(
        sides, np.searchsorted(lefts, us), np.searchsorted(rights, vs), p, q
    )  # fmt: skip
    core = nx.Graph([(u, v) for u, v in edges if u in us and v in vs])
    while few := [x for x in core if core.degree(x) < (q if x < a else p)]:
        core.remove_node(few[0])
    named = [[ids[i] for i in numbers] for ids, numbers in zip((lefts, rights), found, strict=True)]
    assert named == [sorted(x for x in core if x < a), sorted(x for x in core if x >= a)]
