"""Opera: mixed batches. Every query sees exactly the operations before it (Definition 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Batch, Columns, Edges, Kind, Neighbors
from lpma.batch.columns import edge_rows, weighted_rows
from tests.lpma.conftest import every_backend
from tests.support.oracles import agree, assert_same
from tests.support.strategies import Burst, Config, batches, bursts, columns_of, configs


def compare(device: str, config: Config, stream: list[Columns]) -> None:
    """Apply a stream; answers and end state are the model's."""
    graph, model = config.graph(device), config.model()
    for columns in stream:
        expected = model.apply(columns)
        answers = graph.apply(columns)
        assert_same(answers, expected)
        assert_same(answers.on_host(), expected, "on the host")
    agree(graph, model, dense_below=1000)


@every_backend
@given(data=st.data(), config=configs())
def test_drawn_streams(device: str, data: st.DataObject, config: Config) -> None:
    expires = config.times
    one = batches(config.queries, max_size=40, expires=expires)
    drawn = st.lists(one, min_size=1, max_size=4)
    compare(device, config, data.draw(drawn))


@every_backend
@given(config=configs(), stream=st.lists(bursts(), min_size=1, max_size=4))
def test_bursts(device: str, config: Config, stream: list[Burst]) -> None:
    compare(device, config, [burst.columns(config.queries) for burst in stream])


@pytest.mark.gpu
@pytest.mark.parametrize("bad", ["kind", "vertex", "asked", "weight", "hops"])
def test_bad_rows_of_a_mixed_batch_change_nothing(cupy: Any, bad: str) -> None:
    """They are found on the device, after queries were answered."""
    g = lpma.Graph(device="cuda")
    g.insert([1, 2], [2, 3], time=1)
    rows: Any = lpma.pinned_batch(6)
    rows.kind[:] = [Kind.INSERT, Kind.EDGE, Kind.INSERT, Kind.SUCCESSORS, Kind.INSERT, Kind.HOPS]
    rows.src[:], rows.dst[:] = [1, 1, 1, 1, 1, 1], [2, 2, 4, 0, 5, 2]
    rows.weight[:], rows.time[:] = 1.0, np.arange(6)
    if bad != "hops":
        rows.kind[5] = Kind.DEGREE
    at, column, value = {
        "kind": (1, rows.kind, 12), "vertex": (2, rows.dst, 2**32 - 1),
        "asked": (3, rows.src, 2**32 - 1), "weight": (4, rows.weight, np.nan),
        "hops": (5, rows.dst, 0),
    }[bad]  # fmt: skip
    good = column[at]
    column[at] = value
    version = g.version
    with pytest.raises(lpma.BatchError):
        g.apply(rows)
    assert (g.version, g.num_edges, g.neighbors(1).tolist()) == (version, 2, [2])
    column[at] = good
    answers: Any = g.apply(rows)
    assert answers[0].weights.tolist() == [2.0]
    assert (g.num_edges, g.neighbors(1).tolist()) == (4, [2, 4, 5])


@every_backend
@pytest.mark.parametrize("directed", [True, False])
def test_a_query_after_every_update(device: str, directed: bool) -> None:
    """One key and a query for it in turn: one long run."""
    config = Config(directed=directed, predecessors=True, segment_size=2)
    n = 300
    rng = np.random.default_rng(3)
    kind = np.empty(2 * n, np.int64)
    kind[::2] = rng.choice([Kind.INSERT, Kind.INSERT, Kind.SET, Kind.DELETE], n)
    kind[1::2] = rng.choice(config.queries, n)
    src, dst = np.full(2 * n, 4), np.full(2 * n, 9)
    src[kind == Kind.PREDECESSORS] = 9
    columns = columns_of(kind, src, dst, rng.integers(-12, 20, 2 * n), np.arange(2 * n))
    before = columns_of(
        np.full(40, Kind.INSERT), np.full(40, 4), np.arange(40), np.full(40, 4), np.arange(40)
    )
    compare(device, config, [before, columns, columns])


@pytest.mark.parametrize("config", [
    Config(segment_size=2, strategy="bottom-up", global_merge="never"),
    Config(segment_size=8, strategy="top-down", global_merge="never", weight_dtype=None),
    Config(predecessors=True), Config(directed=False, times=False, global_merge="never"),
])  # fmt: skip
def test_large_batches(device: str, config: Config) -> None:
    """Large enough for several threads at every step: rows by the ten thousand, runs of one key
    longer than a thread's share, a hub, removals; most queries are for edges, which the
    model answers fast."""
    rng = np.random.default_rng(7)
    stream = []
    for span, n in ((500, 40_000), (40, 10_000), (500, 20_000)):
        kind = rng.choice([Kind.INSERT] * 32 + [Kind.SET, Kind.DELETE] * 8 + [Kind.EDGE], n)
        kind[rng.integers(0, n, 15)] = rng.choice(config.queries, 15)
        kind[rng.integers(0, n, 6)] = Kind.REMOVE_VERTEX
        src, dst = rng.integers(0, span, n), rng.integers(0, span, n)
        src[rng.random(n) < 0.2] = span // 2
        one_key = rng.random(n) < 0.15
        src[one_key], dst[one_key] = 5, 6
        stream.append(columns_of(kind, src, dst, rng.integers(-12, 25, n), np.arange(n)))
    compare(device, config, stream)


@pytest.mark.parametrize("directed", [True, False])
def test_a_large_batch_of_ids_far_apart(device: str, directed: bool) -> None:
    """Keys whose bits and a place's are more than a word has are sorted another way."""
    rng, n = np.random.default_rng(8), 40_000
    config = Config(directed=directed, weight_dtype="float64", times=False)
    known = rng.integers(0, 2**32 - 1, 300)
    kind = rng.choice([Kind.INSERT] * 6 + [Kind.SET, Kind.DELETE] * 3 + [Kind.EDGE], n)
    asked = [Kind.SUCCESSORS, Kind.DEGREE, Kind.VERTEX]
    kind[rng.integers(0, n, 30)] = rng.choice(asked, 30)
    src, dst = rng.choice(known, (2, n))
    columns = columns_of(kind, src, dst, rng.integers(-12, 25, n), np.arange(n))
    compare(device, config, [columns.rows(0, 900), columns])


@pytest.mark.parametrize("predecessors", [True, False])
def test_vertices_that_come_and_go_between_queries(device: str, predecessors: bool) -> None:
    """Rows of which an in-store has none; and in-edges that are told without one."""
    config, batch = Config(predecessors=predecessors), Batch()
    for turn in range(4):
        for v in (3, 4, 5):
            batch.vertex(v)
            batch.degree(v)
        (batch.remove_vertex if turn % 2 else batch.add_vertex)(3, time=turn)
    edges = Batch()
    for turn in range(6):
        edges.insert(turn % 3, 4, (-1) ** turn, time=turn)
        edges.vertex(4)
        edges.expire(turn)
        edges.vertex(4)
        edges.remove_vertex(1, time=turn)
        edges.vertex(4)
    compare(device, config, [batch.columns(), edges.columns(), edges.columns(), batch.columns()])


def test_hubs_and_hops_inside_a_batch(device: str) -> None:
    """Removals of a hub between queries that walk through it."""
    for directed in (True, False):
        config = Config(directed=directed, predecessors=True, segment_size=4, weight_dtype=None)
        batch = Batch()
        for v in range(60):
            batch.insert(30, v, time=v)
            batch.insert(v, (v + 1) % 60, time=v)
        for turn in range(3):
            for k in (1, 2, 3, 7):
                batch.hops(turn, k)
            for query in (batch.successors, batch.predecessors, batch.degree, batch.vertex):
                query(30)
            batch.remove_vertex(30, time=100 + turn)
            batch.vertex(30)
            batch.hops(29, 3)
            batch.insert(30, 5, time=200)
            batch.insert(5, 30, time=201)
            batch.add_vertex(30, time=202)
        compare(device, config, [batch.columns(), batch.columns()])


def test_only_queries_only_updates_and_nothing(device: str) -> None:
    config = Config(segment_size=2)
    g, model = config.graph(device), config.model()
    empty, asking, telling = Batch(), Batch(), Batch()
    for v in range(20):
        telling.insert(v, v // 2, 0.5, time=v)
        asking.edge(v, v // 2)
        asking.successors(v)
        asking.hops(v, 4)
    asked = asking.columns()
    timed = Batch.from_columns(asked.kind, asked.src, asked.dst, time=np.arange(len(asked)))
    for batch in (empty, timed, telling, timed, empty):
        answers = g.apply(batch)
        assert len(answers) == batch.num_queries
        assert_same(answers, model.apply(batch))
        agree(g, model)


def test_answers_are_numbered_like_the_queries(device: str) -> None:
    g = lpma.Graph(device=device)
    batch = Batch()
    batch.insert(1, 2, 2.5, time=3)
    q_edge = batch.edge(1, 2)
    batch.delete(1, 2, time=4)
    q_degree = batch.degree(1)
    q_vertex = batch.vertex(1)
    q_hops = batch.hops(1, 1)
    answers = g.apply(batch)
    assert len(answers) == batch.num_queries == 4
    assert [q_edge, q_degree, q_vertex, q_hops] == [0, 1, 2, 3]
    found = Edges(np.array([True]), np.array([2.5], np.float32), np.array([3]))
    assert_same(answers[q_edge], found)
    assert_same(answers[q_degree], np.array([0]))
    assert_same(answers[q_vertex], np.array([False]))
    assert_same(answers[-1], Neighbors(np.array([0, 0]), np.empty(0, np.uint32)))
    with pytest.raises(IndexError):
        answers[4]


@given(columns=batches(max_size=20))
def test_batch_objects_and_columns_agree(columns: Columns) -> None:
    """A Batch filled row by row is the columns it was filled from."""
    batch = Batch()
    assert columns.weight is not None
    assert columns.time is not None
    rows = zip(columns.kind, columns.src, columns.dst, columns.weight, columns.time, strict=True)
    for kind, u, v, w, t in rows:
        if kind == Kind.INSERT:
            batch.insert(int(u), int(v), float(w), int(t))
        elif kind == Kind.SET:
            batch.set(int(u), int(v), float(w), int(t))
        elif kind == Kind.DELETE:
            batch.delete(int(u), int(v), int(t))
        elif kind == Kind.ADD_VERTEX:
            batch.add_vertex(int(u), int(t))
        else:
            batch.remove_vertex(int(u), int(t))
    made = batch.columns()
    edges = edge_rows(columns.kind)
    assert_same(made.kind, columns.kind)
    assert_same(made.src, columns.src)
    assert_same(made.dst[edges], columns.dst[edges])
    if len(columns):
        assert_same(made.time, columns.time)
    weighted = weighted_rows(columns.kind)
    assert made.weight is not None
    assert_same(made.weight[weighted], columns.weight[weighted].astype(np.float64))


def test_an_append_around_empty_segments(device: str) -> None:
    """Spreading fewer edges than there are segments leaves empty ones."""
    rng = np.random.default_rng(14)
    for _ in range(60):
        g = lpma.Graph(strategy="bottom-up", segment_size=2, global_merge="never", device=device)
        keys = np.arange(0, 1000, 10)
        g.insert(keys, np.full(100, 7))
        g.delete(keys[50:], np.full(50, 7))
        new = rng.permutation(np.setdiff1d(np.arange(490), keys))[:8]
        for u in new.tolist():
            g.insert(u, 7)
        u = int(rng.choice(np.concatenate([keys[:50], new])))
        batch = lpma.Batch()
        batch.degree(0)
        batch.insert(u, 7)
        g.apply(batch)
        g.check()
        weight = g.edges(u, 7).weights
        assert weight is not None
        assert weight.tolist() == [2.0]
        assert g.num_edges == 58
