"""One operation at a time: against the dictionary model, and beside batches of one row.

What goes the short way (lpma/engine/single.py) must leave behind what a batch does; and it must be
taken, which the counts of `Ways` show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Batch, Edges, Kind
from lpma.arrays import on_device, to_host
from lpma.engine import queries, single
from tests.support.layout_oracles import columns_by_rank
from tests.support.oracles import ModelGraph, agree, assert_same, host
from tests.support.seam import on_numpy, store_of, stores_of
from tests.support.single_operations import (
    ADD,
    DELETE,
    INSERT,
    Operation,
    counted,
    does_singles,
    many,
    operations,
    pair,
    short_way,
)
from tests.support.strategies import STRATEGIES, Config, configs, ids


def same_answers(g: lpma.Graph, model: ModelGraph, u: int, v: int) -> None:
    edges, near = model.edges(u, v), model.successors(u)
    there = bool(edges.found[0])
    assert g.has_edge(u, v) is there
    edge = g.edge(u, v)
    if there:
        assert edge is not None
        expected = [None if c is None else c[0].item() for c in (edges.weights, edges.times)]
        assert list(edge) == expected
        assert [type(x) for x in edge] == [type(x) for x in expected]
    else:
        assert edge is None
    found = g.neighbors(u)
    assert isinstance(found, np.ndarray)
    assert_same(found, near.ids)
    assert found.flags.owndata
    assert g.degree(u) == model.degree(u)[0]


@given(config=configs(), stream=st.lists(st.tuples(operations(), ids(), ids()), max_size=40))
def test_drawn_operations(
    device: str, config: Config, stream: list[tuple[Operation, int, int]]
) -> None:
    """O1, O2, O3, O4"""
    g, model = config.graph(device), config.model()
    for operation, u, v in stream:
        operation.do(g)
        operation.do(model)
        assert g.version == model.version
        assert (g.num_edges, g.num_rows, g.time) == (model.num_edges, model.num_rows, model.time)
        same_answers(g, model, operation.u, operation.v)
        same_answers(g, model, u, v)
    agree(g, model, dense_below=100)
    assert g.unchanged == model.unchanged
    for since in range(g.version + 1):
        assert_same(g.changes(since), model.changes(since), f"since {since}")


@given(
    config=configs(), seed=st.integers(0, 2**32), span=st.sampled_from([3, 12, 40]),
    deletes=st.sampled_from([0.05, 0.4, 0.7]),
)  # fmt: skip
def test_hundreds_of_operations(
    device: str, config: Config, seed: int, span: int, deletes: float
) -> None:
    """Segments fill, windows are rebalanced, levels come and go."""
    g, model = config.graph(device), config.model()
    for i, operation in enumerate(many(seed, 300, span, deletes)):
        operation.do(g)
        operation.do(model)
        if i % 60 == 0:
            g.check()
            same_answers(g, model, operation.u, operation.v)
    agree(g, model)
    assert g.unchanged == model.unchanged
    assert_same(g.changes(g.version - 40), model.changes(g.version - 40))
    for u in range(span):
        same_answers(g, model, u, (u + 1) % span)


# Beside batches of one row --------------------------------------------------------------------


def contents(g: lpma.Graph) -> list[Any]:
    """All that an operation may leave behind but seconds."""
    found: list[Any] = [g.num_edges]  # asked first: the stores take in what is under way
    stores = g._stores
    for store, _ in stores.all:
        segments = store.segments
        store.backend.wait()
        held = [columns_by_rank(segments, name) for name in ("keys", "weights", "times")
                if getattr(segments, name) is not None]  # fmt: skip
        found += [segments.m, segments.num_slots, held, host(segments.counts)]
        found += [host(segments.fences)[1:], store.num_markers, store.num_loops, store.largest]
        hybrid = store.hybrid
        found += [hybrid.pi, hybrid.settled, hybrid._last, repr(hybrid._times)]
    found += [stores.version, stores.time, g.unchanged, g.stats().as_dict()]
    return found


def named(g: lpma.Graph, since: int) -> list[Any]:
    touched = g.touched(since)
    assert touched is not None
    return [to_host(touched.keys), to_host(touched.there)]


@given(
    config=configs(), seed=st.integers(0, 2**32), span=st.sampled_from([4, 12, 30]),
    deletes=st.sampled_from([0.05, 0.4, 0.6]),
)  # fmt: skip
def test_in_step_with_batches(
    device: str, config: Config, seed: int, span: int, deletes: float
) -> None:
    """O4: state, counters and history are the same after each operation."""
    short, long = pair(device, config)
    for operation in many(seed, 150, span, deletes):
        operation.do(short)
        operation.do(long)
        assert_same(contents(short), contents(long), str(operation))
    for since in range(0, short.version, 10):
        assert_same(short.changes(since), long.changes(since))
        assert_same(named(short, since), named(long, since))


@given(config=configs(), stream=st.lists(operations(), max_size=30))
def test_drawn_operations_in_step(device: str, config: Config, stream: list[Operation]) -> None:
    short, long = pair(device, config)
    for operation in stream:
        operation.do(short)
        operation.do(long)
        assert_same(contents(short), contents(long), str(operation))


@pytest.mark.parametrize("both", [False, True])
def test_a_backend_that_does_not_offer_it(both: bool) -> None:
    stores = stores_of(store_of(on_numpy()), store_of(on_numpy()) if both else None)
    assert not does_singles(stores)
    one, model = single.SingleOperations(stores), ModelGraph(predecessors=both)
    for operation in many(3, 80, 6, 0.3):
        u, v, time = operation.u, operation.v, operation.time
        target = 2**32 - 1 if operation.kind == ADD else v
        one.update(operation.kind, u, target, operation.weight, time)
        stores.settle()
        operation.do(model)
        edges = model.edges(u, v)
        assert one.has_edge(u, v) == edges.found[0]
        edge = one.edge(u, v)
        if edge is not None:
            assert edges.weights is not None
            assert edges.times is not None
            assert edge == (edges.weights[0], edges.times[0])
        assert_same(one.neighbors(u), model.successors(u).ids)
        assert single.degree_of(stores.out, u) == model.degree(u)[0]
    assert (stores.version, stores.num_edges) == (model.version, model.num_edges)


# The short way is taken -----------------------------------------------------------------------

SHAPES = (
    Config(), Config(predecessors=True), Config(directed=False), Config(weight_dtype=None,
        times=False),
    Config(directed=False, weight_dtype="float64"), Config(strategy="top-down", segment_size=8),
)  # fmt: skip


@pytest.mark.parametrize("config", SHAPES)
def test_what_fits_its_leaf_is_no_batch(device: str, config: Config) -> None:
    g, model = config.graph(device), config.model()
    short_way(g)
    start = np.arange(40)
    for graph in (g, model):
        graph.insert(start, (7 * start + 3) % 40, 1.0, 1)
    stream = [
        Operation(INSERT, 1, 2, 0.5, 2), Operation(INSERT, 1, 2, 0.5, 3),
        Operation(INSERT, 5, 5, 1.0, 3), Operation(INSERT, 2, 1, -0.5, 3),
        Operation(DELETE, 1, 2, 1.0, 4), Operation(DELETE, 1, 2, 1.0, 5),
        Operation(ADD, 77, 0, 1.0, 6), Operation(ADD, 77, 0, 1.0, 7),
        Operation(INSERT, 0, 3, -9.0, 8), Operation(DELETE, 5, 5, 1.0, 9),
    ]  # fmt: skip
    with counted() as ways:
        for operation in stream:
            operation.do(g)
            operation.do(model)
    assert (ways.short, ways.batches) == (len(stream), 0)
    agree(g, model)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_most_updates_of_a_stream_are_no_batches(device: str, strategy: str) -> None:
    g = lpma.Graph(device=device, strategy=strategy, global_merge="never")
    short_way(g)
    with counted() as ways:
        for operation in many(5, 2000, 200, 0.2):
            operation.do(g)
    assert ways.short + ways.batches == 2000
    assert ways.short > 1600
    g.check()


def test_queries_make_no_arrays(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    g = lpma.Graph(device=device)
    short_way(g)
    g.insert([1, 1, 2], [2, 3, 1], 0.5, 7)
    for name in ("edges", "neighbors", "degrees"):
        monkeypatch.setattr(queries, name, None)
    assert g.has_edge(1, 2)
    assert g.edge(2, 1) == lpma.Edge(0.5, 7)
    assert g.neighbors(1).tolist() == [2, 3]
    assert g.degree(1) == 2


@given(config=configs(), seed=st.integers(0, 2**32))
def test_batches_of_one_query(device: str, config: Config, seed: int) -> None:
    g, model = config.graph(device), config.model()
    for operation in many(seed, 40, 6, 0.2):
        operation.do(g)
        operation.do(model)
    for kind in config.queries:
        for u, v in [(1, 2), (2, 3), (5, 5), (7, 9), (2**32 - 2, 1)]:
            asked = Batch.from_columns([kind], [u], [1 + v % 3 if kind == Kind.HOPS else v])
            answers, (expected,) = g.apply(asked), model.apply(asked)
            assert (len(answers), g.version, g.time) == (1, model.version, model.time)
            assert_same(answers[0], expected)
            assert_same(answers.on_host()[-1], expected)
            assert type(answers.on_host()[0]) is type(expected)
            with pytest.raises(IndexError):
                answers[1]
    agree(g, model)


def test_a_query_alone_is_not_staged(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is how a pipeline at rest answers."""
    g = lpma.Graph(device=device)
    short_way(g)
    g.insert([1, 1, 2], [2, 3, 1], 0.5, 7)
    monkeypatch.setattr(type(g._stores.out.backend), "stage", None)
    monkeypatch.setattr(queries, "edges", None)
    edge = g.apply(Batch.from_columns([Kind.EDGE], [1], [3])).on_host()[0]
    assert_same(edge, Edges(np.array([True]), np.array([0.5], np.float32), np.array([7])))
    degree = g.apply(Batch.from_columns([Kind.DEGREE], [1], [0]))[0]
    assert_same(degree, np.array([2]))
    assert on_device(degree) == (device != "cpu")


def test_a_hub(device: str) -> None:
    """More neighbours than are copied at the first try, over many segments."""
    g = lpma.Graph(device=device, segment_size=4)
    for n in (255, 256, 257, 5000):
        g.insert(np.full(n, 9), np.arange(n))
        g.add_vertices(9)
        assert_same(g.neighbors(9), np.arange(n, dtype=np.uint32))
        assert g.degree(9) == n
    assert g.neighbors(8).tolist() == []
