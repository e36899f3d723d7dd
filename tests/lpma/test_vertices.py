"""Vertices as operations: markers, removal with all incident edges, membership."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Kind
from lpma.engine import stores
from tests.lpma.conftest import every_backend
from tests.support.changes import change
from tests.support.oracles import ModelGraph, agree, assert_same, host
from tests.support.strategies import IDS, LIMITS, Config, columns_of, configs, ids


@pytest.mark.parametrize("config", [
    Config(), Config(predecessors=True), Config(directed=False),
    Config(weight_dtype=None, times=False), Config(directed=False, weight_dtype="float64",
        segment_size=2),
])  # fmt: skip
def test_markers_are_no_edges(device: str, config: Config) -> None:
    g, model = config.graph(device), config.model()
    for graph in (g, model):
        graph.add_vertices([5, 0, 5, 2**32 - 2], 1)
    agree(g, model)
    assert (g.num_edges, g.num_rows) == (0, 2**32 - 1)
    assert g.has_vertices([0, 1, 5, 2**32 - 2]).tolist() == [True, False, True, True]
    assert_same(g.degree(LIMITS), np.zeros(3, np.int64))
    assert_same(g.successors(LIMITS), model.successors(LIMITS))
    assert_same(g.hops([5, 0], 3), model.hops([5, 0], 3))
    for graph in (g, model):
        graph.remove_vertices(2**32 - 2, 2)
        graph.remove_vertices(7, 2)
    agree(g, model)
    assert g.num_rows == 6


def test_a_marker_outlives_the_edges(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([3, 4], [4, 3], time=1)
    g.add_vertices(3, time=2)
    g.delete([3, 4], [4, 3], time=3)
    assert g.has_vertices([3, 4]).tolist() == [True, False]
    assert g.num_rows == 4
    snapshot = g.snapshot()
    assert (snapshot.num_rows, snapshot.num_edges) == (4, 0)
    g.remove_vertices(3, time=4)
    assert (g.num_rows, g.num_edges) == (0, 0)


@pytest.mark.parametrize("predecessors", [True, False])
def test_membership_by_in_edges(device: str, predecessors: bool) -> None:
    g = lpma.Graph(device=device, predecessors=predecessors, segment_size=2)
    g.insert(np.arange(50), np.arange(50) + 100, time=1)
    assert g.has_vertices(np.arange(200)).tolist() == [v % 100 < 50 for v in range(200)]
    assert g.has_vertices([149, 7, 150, 149]).tolist() == [True, True, False, True]


@given(config=configs(), rows=st.lists(st.tuples(
    st.sampled_from([Kind.INSERT, Kind.INSERT, Kind.ADD_VERTEX, Kind.REMOVE_VERTEX, Kind.VERTEX]),
    ids(), ids()), max_size=60), cut=st.integers(0, 60))  # fmt: skip
def test_removals_in_the_middle(
    device: str, config: Config, rows: list[tuple[int, int, int]], cut: int
) -> None:
    """Edges before, inside and after the batch in which their ends are removed, by turns."""
    g, model = config.graph(device), config.model()
    everyone = np.array([(u, v) for u in IDS for v in IDS], np.int64)
    for graph in (g, model):
        graph.insert(everyone[::3, 0], everyone[::3, 1], 1.0, 0)
    for part in (rows[:cut], rows[cut:]):
        kind, src, dst = np.array(part, np.int64).reshape(-1, 3).T
        columns = columns_of(kind, src, dst, np.full(len(part), 4), np.arange(len(part)))
        assert_same(g.apply(columns), model.apply(columns))
        agree(g, model, dense_below=1000)


def test_removing_everyone(device: str) -> None:
    for directed in (True, False):
        config = Config(directed=directed, segment_size=2, global_merge="never")
        g, model = config.graph(device), config.model()
        rng = np.random.default_rng(5)
        src, dst = rng.integers(0, 100, (2, 3000))
        for graph in (g, model):
            graph.insert(src, dst, 1.0, 1)
            graph.add_vertices(np.arange(150), 2)
        agree(g, model)
        for graph in (g, model):
            graph.remove_vertices(np.arange(0, 150, 2), 3)
        agree(g, model)
        for graph in (g, model):
            graph.remove_vertices(np.arange(150), 4)
        agree(g, model)
        assert (g.num_rows, g.levels) == (0, 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "delete", "add", "remove", "ask", "ask"]),
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=4),
    ),
    max_size=30,
)


@every_backend
@given(steps=STEPS, directed=st.booleans(), max_keys=st.sampled_from([4, 1 << 19]))
def test_rows_and_markers_follow_the_history(
    device: str, steps: Any, directed: bool, max_keys: int
) -> None:
    """The number of rows, and the vertices added by themselves, however much has changed since they
    were last asked for, whether the history knows it or not."""
    g, model = lpma.Graph(device=device, directed=directed, segment_size=2), ModelGraph(directed)
    g._stores.history._max_keys = max_keys
    with patch.object(stores, "FEW", 0):
        for step in steps:
            if step[0] == "ask":
                assert g.num_rows == model.num_rows
                snapshot = g.snapshot()
                assert host(snapshot.added).tolist() == sorted(model.markers)
                assert snapshot.num_rows == g.num_rows
                g.check()
                continue
            for graph in (g, model):
                change(graph, step)
