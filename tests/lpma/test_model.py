"""The oracle's own sanity: Definition 2 and the stream of operations, in examples done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lpma import Batch, Changes, Edges, Neighbors
from tests.support.oracles import ModelGraph, assert_same


def weight_after(*appended: float | None, weight: str | None = "float32") -> float | None:
    """The weight of one edge after these appends (None: a deletion), or None where absent."""
    model = ModelGraph(weight=weight)
    for d in appended:
        if d is None:
            model.delete(1, 2)
        else:
            model.insert(1, 2, d)
    return model.state[1, 2][0] if model.num_edges else None


@pytest.mark.parametrize(
    "appended, expected",
    [
        ((2.0,), 2.0),
        ((0.0,), None),
        ((-1.0,), None),
        ((2.0, 3.0), 5.0),
        ((2.0, -2.0), 0.0),
        ((2.0, -2.0, 0.0), 0.0),
        ((2.0, -2.25), None),
        ((2.0, -2.0, -0.25), None),
        ((2.0, -3.0, 1.0), 1.0),
        ((2.0, None), None),
        ((2.0, None, None, 4.0), 4.0),
        ((-5.0, 1.0), 1.0),
    ],
)
def test_definition_2(appended: tuple[float | None, ...], expected: float | None) -> None:
    assert weight_after(*appended) == expected


@pytest.mark.parametrize(
    "appended, expected",
    [
        ((2.0, 5.0), 1.0),
        ((0.0,), None),
        ((1.0, 0.0), 1.0),
        ((1.0, -0.25), None),
        ((-1.0, 1.0), 1.0),
    ],
)
def test_unweighted(appended: tuple[float, ...], expected: float | None) -> None:
    assert weight_after(*appended, weight=None) == expected


def test_time_is_that_of_the_last_append() -> None:
    model = ModelGraph()
    model.insert([1, 1, 1], [2, 2, 2], [1.0, 0.0, -1.0], [30, 10, 20])
    assert model.state == {(1, 2): (0.0, 20)}
    unweighted = ModelGraph(weight=None)
    unweighted.insert([1, 1], [2, 2], [1.0, 0.0], [30, 40])
    assert unweighted.state == {(1, 2): (1.0, 30)}


def test_a_query_sees_what_came_before_it() -> None:
    batch = Batch()
    assert [batch.edge(1, 2), batch.degree(1)] == [0, 1]
    batch.insert(1, 2, 1.5, time=7)
    batch.insert(2, 1, 1.0, time=8)
    batch.add_vertex(9, time=9)
    assert [batch.edge(1, 2), batch.hops(1, 2), batch.vertex(9)] == [2, 3, 4]
    batch.remove_vertex(2, time=10)
    assert [batch.successors(1), batch.vertex(2), batch.predecessors(1)] == [5, 6, 7]
    answers = ModelGraph(predecessors=True).apply(batch)
    f32, i64 = np.float32, np.int64
    nobody = Neighbors(np.array([0, 0]), np.empty(0, np.uint32), np.empty(0, f32), np.empty(0, i64))
    expected = [
        Edges(np.array([False]), np.array([0], f32), np.array([0])),
        np.array([0]),
        Edges(np.array([True]), np.array([1.5], f32), np.array([7])),
        Neighbors(np.array([0, 2]), np.array([1, 2], np.uint32)),
        np.array([True]),
        nobody,
        np.array([False]),
        nobody,
    ]
    assert_same(answers, expected)


def test_undirected() -> None:
    model = ModelGraph(directed=False, weight=None, times=False)
    model.insert([3, 1, 2], [1, 3, 2])
    assert (model.num_edges, model.num_rows) == (2, 4)
    snapshot = model.snapshot()
    assert snapshot.indptr.tolist() == [0, 0, 1, 2, 3]
    assert snapshot.indices.tolist() == [3, 2, 1]
    assert model.degree([1, 2, 3, 7]).tolist() == [1, 1, 1, 0]
    assert model.predecessors(3).ids.tolist() == [1]


def test_snapshot_and_compact() -> None:
    model = ModelGraph()
    model.add_vertices([8])
    model.insert([5, 2], [2, 5], [0.5, 1.5], [1, 2])
    dense, compact = model.snapshot(), model.snapshot(compact=True)
    assert dense.num_rows == model.num_rows == 9
    assert dense.indptr.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert dense.indices.tolist() == [5, 2]
    assert compact.ids is not None
    assert compact.ids.tolist() == [2, 5, 8]
    assert compact.indptr.tolist() == [0, 1, 2, 2]
    assert compact.indices.tolist() == [1, 0]
    assert compact.weights is not None
    assert compact.weights.tolist() == [1.5, 0.5]


def test_changes_are_net() -> None:
    model = ModelGraph()
    model.insert([1, 2], [2, 3])
    model.delete(1, 2)
    model.insert([1, 4], [2, 5])
    empty = np.empty(0, np.uint32)
    assert_same(model.changes(3), Changes(empty, empty, np.empty(0, bool)))
    expected = Changes(
        np.array([1, 4], np.uint32), np.array([2, 5], np.uint32), np.array([True, True])
    )
    assert_same(model.changes(2), expected)
    one = Changes(np.array([4], np.uint32), np.array([5], np.uint32), np.array([True]))
    assert_same(model.changes(1), one)


def test_removal_of_a_vertex_takes_its_in_edges() -> None:
    model = ModelGraph()
    model.insert([1, 2, 3, 2], [2, 2, 1, 4])
    model.add_vertices(2)
    model.remove_vertices(2)
    assert set(model.state) == {(3, 1)}
    assert model.has_vertices([1, 2, 3, 4]).tolist() == [True, False, True, False]
