"""Tracked ranks after every batch, against starting over with a tolerance that leaves no error."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import Tracker, pagerank
from algorithms.tracker import Update
from algorithms.tracker.pagerank import DAMPING, TOL
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from lpma.cpu import pieces
from tests.algorithms.test_pagerank_fringe import fringe, hubs_and_what_hangs_on_them
from tests.conftest import real_graph

Array = npt.NDArray[Any]

BOUND = TOL * DAMPING / (1 - DAMPING)


def exact(g: lpma.Graph) -> Array:
    """By power iteration, of the simple undirected graph, in another store."""
    s = g.snapshot()
    src, dst = (to_host(row) for row in s.to_edge_index())
    n, apart = s.num_rows, src != dst
    simple = lpma.Graph(directed=False, device="cpu")
    simple.insert(src[apart], dst[apart])
    simple.add_vertices(np.flatnonzero(to_host(s.present)))
    ranks = np.zeros(n)
    found = pagerank(simple.snapshot(), DAMPING, 1e-11, 1000)
    ranks[: len(found)] = found
    return ranks


def check(tracker: Tracker, g: lpma.Graph, record: Update | None = None) -> None:
    ranks = tracker.ranks
    assert ranks.dtype == np.float64
    assert on_device(ranks) == (g.device != "cpu")
    assert float(abs(to_host(ranks) - exact(g)).sum()) <= BOUND
    if len(ranks):
        assert float(ranks.sum()) == pytest.approx(float(len(exact(g).nonzero()[0]) > 0))


EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)


@given(directed=st.booleans(), few=st.sampled_from([pieces.FEW, 0]), data=st.data())
def test_small_graphs(device: str, directed: bool, few: int, data: st.DataObject) -> None:
    """Edges, loops and vertices that come and go, down to none and beyond the first ids."""
    g = lpma.Graph(directed, device=device)
    with patch.object(pieces, "FEW", few):
        tracker = Tracker(g, "pagerank")
        for _ in range(data.draw(st.integers(1, 5))):
            for change in (g.insert, g.delete):
                edges = data.draw(EDGES)
                if edges:
                    change(*map(list, zip(*edges, strict=True)))
            g.add_vertices(data.draw(st.lists(st.integers(0, 40), max_size=2)))
            g.remove_vertices(data.draw(st.lists(st.integers(0, 40), max_size=3)))
            before = tracker.ranks
            kept = to_host(before).copy()
            tracker.update()
            check(tracker, g)
            assert np.array_equal(to_host(before), kept)


def grown(device: str, directed: bool) -> tuple[lpma.Graph, Array, Array]:
    """Enough edges for threads, and hubs; ids from 0 to 2^14 and a little more."""
    src, dst = generators.rmat(14, 300_000, seed=5)
    src = np.concatenate((src, np.arange(1 << 14)))
    dst = np.concatenate((dst, np.full(1 << 14, 9)))
    g = lpma.Graph(directed, device=device)
    g.insert(src, dst)
    return g, src, dst


@pytest.mark.parametrize("directed", [True, False])
def test_batches(device: str, directed: bool) -> None:
    g, src, dst = grown(device, directed)
    tracker = Tracker(g, ["pagerank"])
    check(tracker, g)
    rng = np.random.default_rng(6)
    for count in (1, 10, 100, 3_000):
        g.insert(*generators.rmat(14, count, seed=count))
        gone = rng.integers(0, len(src), count)
        g.delete(src[gone], dst[gone])
        g.insert(np.arange(5) + (1 << 14) + count, np.arange(5))  # ids that are new
        assert tracker.update()["pagerank"].how == "updated"
        check(tracker, g)
    g.remove_vertices([9])  # the hub
    tracker.update()
    check(tracker, g)
    assert tracker.update()["pagerank"].how == "unchanged"
    g.insert(np.arange(1, 60_000), np.zeros(59_999, np.int64))  # more ids than there was room for
    tracker.update()
    check(tracker, g)


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [True, False])
def test_batches_with_passes_over_the_fringe(cupy: Any, directed: bool) -> None:
    with fringe() as seen:
        test_batches("cuda", directed)
    assert seen[0] > 0


@pytest.mark.gpu
@given(seed=st.integers(0, 10**6))
def test_small_graphs_with_passes_over_the_fringe(cupy: Any, seed: int) -> None:
    """Rows that lose all their edges, get their first, or were not there, in the fringe or not."""
    rng = np.random.default_rng(seed)
    n, src, dst = hubs_and_what_hangs_on_them(rng)
    g = lpma.Graph(False, device="cuda")
    g.insert(np.append(src, 0), np.append(dst, 0))
    with fringe():
        tracker = Tracker(g, "pagerank")
        for _ in range(3):
            g.insert(*rng.integers(0, n + 20, (2, int(rng.integers(1, 60)))))
            count = int(rng.integers(0, 60)) if len(src) else 0
            gone = rng.integers(0, max(len(src), 1), count)
            if count:
                g.delete(src[gone], dst[gone])
            if rng.random() < 0.3:
                g.remove_vertices(rng.integers(0, n, 2))
            tracker.update()
            check(tracker, g)


def test_many_batches(device: str) -> None:
    """What is carried from batch to batch stays right, and on a device the list of changes is taken
    into the rows when it has grown."""
    g, src, dst = grown(device, False)
    tracker = Tracker(g, "pagerank")
    rng = np.random.default_rng(7)
    how = []
    for number in range(40):
        g.insert(*rng.integers(0, 1 << 14, (2, 800)))
        gone = rng.integers(0, len(src), 500)
        g.delete(src[gone], dst[gone])
        how.append(tracker.update()["pagerank"].how)
        if number % 8 == 7:
            check(tracker, g)
    assert how.count("updated") > 30
    assert ("recomputed" in how) == (device != "cpu")


def test_a_real_graph(device: str) -> None:
    columns = real_graph("email-Enron")
    src, dst = columns["src"], columns["dst"]
    g = lpma.Graph(device=device)
    g.insert(src[:-900], dst[:-900])
    tracker = Tracker(g, "pagerank")
    for first in range(len(src) - 900, len(src), 300):
        g.insert(src[first : first + 300], dst[first : first + 300])
        tracker.update()
        check(tracker, g)
