"""What the tracker keeps from one update to the next: lists, memory, and the edges of a batch that
share a triangle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from algorithms import Tracker
from algorithms.views.simple import simple
from tests.algorithms.test_tracker import costs, order_holds
from tests.support.oracles import assert_same


def same_core_numbers(tracker: Tracker, graph: lpma.Graph) -> None:
    assert_same(tracker.core_numbers, algorithms.core_numbers(graph.snapshot()))
    order_holds(tracker)


def test_lists_move_when_they_grow_and_are_packed_anew() -> None:
    """Vertices of one core number gain neighbours batch by batch, until the space is used up."""
    rng = np.random.default_rng(3)
    graph = lpma.Graph(device="cpu", directed=False)
    graph.insert(np.arange(200), (np.arange(200) + 1) % 200)
    tracker = Tracker(graph, "core")
    figure: Any = tracker._figures["core"]
    before = figure._lists.entries
    packed = 0
    with costs("update"):
        for _ in range(30):
            graph.insert(rng.integers(0, 200, 60), rng.integers(0, 200, 60))
            assert tracker.update()["core"].how == "updated"
            packed += figure._lists.entries is not before
            before = figure._lists.entries
            same_core_numbers(tracker, graph)
        assert 1 < packed < 30
        graph.remove_vertices(np.arange(150, 200))  # the last rows go
        tracker.update()
        same_core_numbers(tracker, graph)
        graph.insert(rng.integers(0, 400, 3000), rng.integers(0, 400, 3000))
        tracker.update()
        same_core_numbers(tracker, graph)


def test_rows_take_turns_in_two_memories() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(np.arange(1000), np.arange(1000) + 1)
    tracker = Tracker(graph, "triangles")
    memories = []
    for i in range(6):
        graph.insert(i, i + 2)
        tracker.update()
        rows = tracker._rows
        assert rows is not None
        assert rows.memory is not None
        assert np.shares_memory(rows.indices, rows.memory[1])
        memories.append(rows.memory)
        tracker.update()  # nothing changes, and nothing may be taken over
        graph.add_vertices(5)
        tracker.update()
        assert tracker._rows is not None
        assert_same(tracker._rows.indices, simple(graph.snapshot()).indices)
    assert memories[0] is memories[2] is memories[4] is not memories[1]
    assert memories[1] is memories[3] is memories[5]


@pytest.mark.parametrize("rim", [3, 40, 400])
def test_edges_of_a_batch_that_share_a_triangle_count_it_once(device: str, rim: int) -> None:
    """A wheel: a short row against the hub's is looked up, or searched for where it is long. Around
    it go one, two or all three edges of its triangles."""
    spokes = np.arange(1, rim + 1)
    beside = spokes % rim + 1
    graph = lpma.Graph(device=device, directed=False)
    tracker = Tracker(graph, "triangles")
    hub = np.zeros(rim, np.int64)
    with costs("update"):
        graph.insert(np.concatenate((hub, spokes)), np.concatenate((spokes, beside)))
        tracker.update()
        whole = rim + (rim == 3)  # the rim itself is one
        assert tracker.triangle_count == whole
        for src, dst in (
            ([0], [1]),
            ([1], [2]),
            ([0, 1], [1, 2]),
            ([0, 0], [1, 2]),
            ([0, 0, 1], [1, 2, 2]),
            (hub, spokes),
        ):
            graph.delete(src, dst)
            tracker.update()
            assert tracker.triangle_count == algorithms.triangle_count(graph.snapshot())
            graph.insert(src, dst)
            assert tracker.update()["triangles"].how == "updated"
            assert tracker.triangle_count == whole


def test_a_batch_is_touched_the_other_way_too(device: str) -> None:
    """Deleted edges that are there in the other direction stay, in one batch and over several."""
    graph = lpma.Graph(device=device)
    graph.insert([0, 1, 1, 2, 5], [1, 0, 2, 0, 6])
    tracker = Tracker(graph, ["core", "triangles"])
    graph.delete([0, 5], [1, 6])
    record = tracker.update()
    assert (record.deleted, tracker.triangle_count) == (1, 1)
    graph.insert(0, 1)
    graph.delete(1, 0)
    graph.delete(0, 1)
    graph.insert(5, 6)
    graph.delete(5, 6)
    record = tracker.update()
    assert (record.inserted, record.deleted, tracker.triangle_count) == (0, 1, 0)
    same_core_numbers(tracker, graph)


def test_lists_are_packed_anew_in_a_batch_that_takes_most_of_one_away() -> None:
    """Room is made by the degrees after the batch, so the list must have lost its entries first.
    Else it would run into the lists after it, which here hold none of its entries."""
    graph = lpma.Graph(device="cpu", directed=False)
    u, v = np.triu_indices(60, 1)
    clique = np.append(0, np.arange(1000, 1059))
    graph.insert(clique[u], clique[v])
    cycle = np.arange(1, 200)
    graph.insert(cycle, np.roll(cycle, 1))
    tracker = Tracker(graph, "core")
    figure: Any = tracker._figures["core"]
    before = figure._lists.entries
    graph.delete(np.zeros(50, np.int64), clique[1:51])
    new = np.random.default_rng(0).integers(3000, 3200, (2, 8000))
    graph.insert(*new)
    with costs("update"):
        assert tracker.update()["core"].how == "updated"
    assert figure._lists.entries is not before
    same_core_numbers(tracker, graph)


@pytest.mark.parametrize("directed", [True, False])
def test_an_edge_that_comes_and_goes_by_itself_counts_as_it_is_last(
    device: str, directed: bool
) -> None:
    """The history has updates applied one at a time in one entry, several of one edge."""
    graph = lpma.Graph(device=device, directed=directed)
    graph.insert([0, 1, 2, 3, 9], [1, 2, 0, 4, 8])
    tracker = Tracker(graph, ["core", "triangles", "components"])
    for changes in ((1, -1), (1, -1, 1), (-1, 1, -1), (1, -1, 1, -1)):
        was_there = graph.has_edge(3, 5)
        for change in changes:
            if change > 0:
                graph.insert(3, 5)
            else:
                graph.delete(3, 5)
        record = tracker.update()
        assert record.inserted is not None
        assert record.deleted is not None
        assert record.inserted - record.deleted == graph.has_edge(3, 5) - was_there
        assert record.inserted + record.deleted <= 1
        same_core_numbers(tracker, graph)


@pytest.mark.parametrize("seed", [1, 2])
def test_hubs_lose_their_neighbors_while_others_grow(seed: int) -> None:
    """Rows shrink and grow in one batch, and the largest vertices come and go: whatever is kept for
    a row must fit it before, in between and after."""
    rng = np.random.default_rng(seed)
    graph = lpma.Graph(device="cpu", directed=bool(seed % 2))
    n = 30 << seed
    graph.insert(*rng.integers(0, n, (2, 8 * n)))
    tracker = Tracker(graph, ["core", "triangles", "components"])
    with costs("update"):
        for step in range(25):
            src, dst = (n * rng.random((2, 2 * n)) ** (1 + step % 3)).astype(np.int64)
            graph.insert(src, n - 1 - dst)
            rows = simple(graph.snapshot())
            hub = int(np.diff(rows.indptr).argmax())
            row = rows.indices[rows.indptr[hub] : rows.indptr[hub + 1]].astype(np.int64)
            graph.delete(np.full(len(row), hub), row)
            graph.delete(row, np.full(len(row), hub))
            if step % 5 == 0:
                graph.remove_vertices(np.arange(n - 1 - step % 3, n))
            graph.delete(*rng.integers(0, n, (2, n)))
            assert tracker.update()["core"].how == "updated"
            same_core_numbers(tracker, graph)
            s = graph.snapshot()
            assert tracker.triangle_count == algorithms.triangle_count(s)
            assert_same(tracker.components, algorithms.connected_components(s))
