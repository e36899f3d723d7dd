"""One operation at a time: against the dictionary model, and beside batches of one row.

What goes the short way (lpma/one.py) must leave behind what a batch does; and it must be taken,
which the counts of `Ways` show.
"""

from __future__ import annotations

import itertools
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Batch, BatchError, BrokenStore, Edges, Kind, one, opera, query
from lpma.arrays import on_device, to_host
from tests.support.cut_batches import Cut, assert_broken, moments
from tests.support.layout_oracles import columns_by_rank
from tests.support.oracles import ModelGraph, agree, assert_same, host
from tests.support.seam import plain, store_of, stores_of
from tests.support.strategies import STRATEGIES, Config, configs, ids, times

INSERT, DELETE, ADD, REMOVE = range(4)


@dataclass(frozen=True)
class Operation:
    """One call of a graph or of its model."""

    kind: int
    u: int
    v: int
    weight: float
    time: int

    def do(self, graph: Any) -> None:
        if self.kind == INSERT:
            graph.insert(self.u, self.v, self.weight, self.time)
        elif self.kind == DELETE:
            graph.delete(self.u, self.v, self.time)
        elif self.kind == ADD:
            graph.add_vertices(self.u, self.time)
        else:
            graph.remove_vertices(self.u, self.time)


WEIGHTS = (1.0, 0.25, 3.0, 0.0, -0.25, -1.0, -7.0, 1e-50, 2.0**24, 1e30, -1e30, 0.1)


def operations() -> st.SearchStrategy[Operation]:
    kinds = st.sampled_from([INSERT] * 8 + [DELETE] * 3 + [ADD] * 2 + [REMOVE])
    return st.builds(Operation, kinds, ids(), ids(), st.sampled_from(WEIGHTS), times())


def many(seed: int, n: int, span: int, deletes: float) -> list[Operation]:
    """Operations from a seed, with few loops and few vertices by themselves."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n) < deletes, DELETE, INSERT)
    kind[rng.random(n) < 0.03] = ADD
    u, v = rng.integers(0, span, (2, n))
    weight, time = rng.integers(-4, 25, n) / 4, rng.integers(0, 50, n)
    rows = (kind, u, v, weight, time)
    return [Operation(*row) for row in zip(*(column.tolist() for column in rows), strict=True)]


class Ways:
    """How many updates went the short way, and how many that of a batch."""

    def __init__(self) -> None:
        self.short = self.batches = 0


@contextmanager
def counted() -> Iterator[Ways]:
    ways, by_itself, apply = Ways(), one.One._by_itself, opera.apply

    def short(self: one.One, *given: Any) -> bool:
        done = by_itself(self, *given)
        ways.short += done
        return done

    def batch(*given: Any) -> opera.Outcome:
        ways.batches += 1
        return apply(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one.One, "_by_itself", short)
        patch.setattr(one, "apply", batch)
        yield ways


def same_answers(g: lpma.Graph, model: ModelGraph, u: int, v: int) -> None:
    edges, near = model.edges(u, v), model.successors(u)
    there = bool(edges.found[0])
    assert g.has_edge(u, v) is there
    edge = g.edge(u, v)
    if there:
        assert edge is not None
        expected = [None if c is None else c[0].item() for c in (edges.weight, edges.time)]
        assert list(edge) == expected
        assert [type(x) for x in edge] == [type(x) for x in expected]
    else:
        assert edge is None
    found = g.neighbors(u)
    assert isinstance(found, np.ndarray)
    assert_same(found, near.ids)
    assert found.flags.owndata
    assert_same(g.degree(u), model.degree(u))


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


def pair(device: str, config: Config) -> tuple[lpma.Graph, lpma.Graph]:
    """Two empty graphs; the second does everything by batches. Their clocks stand still, so that
    the hybrid strategy decides alike."""
    made = [lpma.Graph(device=device, clock=lambda: 0.0, **asdict(config)) for _ in range(2)]
    made[1]._stores.out.single = None
    return made[0], made[1]


def contents(g: lpma.Graph) -> list[Any]:
    """All that an operation may leave behind but seconds."""
    stores, found = g._stores, []
    for store, _ in stores.all:
        segments = store.segments
        store.backend.wait()
        held = [columns_by_rank(segments, name) for name in ("keys", "weights", "times")
                if getattr(segments, name) is not None]  # fmt: skip
        found += [segments.m, segments.num_slots, held, host(segments.counts)]
        found += [host(segments.fences)[1:], store.num_markers, store.num_loops, store.largest]
        hybrid = store.hybrid
        found += [hybrid.pi, hybrid.settled, hybrid._last, repr(hybrid._times)]
    found += [stores.version, stores.time, g.unchanged, g.stats().as_dict(), g.num_edges]
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
    stores = stores_of(store_of(plain()), store_of(plain()) if both else None)
    assert stores.out.single is None
    single, model = one.One(stores), ModelGraph(predecessors=both)
    for operation in many(3, 80, 6, 0.3):
        u, v, time = operation.u, operation.v, operation.time
        target = 2**32 - 1 if operation.kind == ADD else v
        single.update(operation.kind, u, target, operation.weight, time)
        stores.settle()
        operation.do(model)
        edges = model.edges(u, v)
        assert single.has_edge(u, v) == edges.found[0]
        edge = single.edge(u, v)
        if edge is not None:
            assert edges.weight is not None
            assert edges.time is not None
            assert edge == (edges.weight[0], edges.time[0])
        assert_same(single.neighbors(u), model.successors(u).ids)
        assert_same(single.degree(u), model.degree(u))
    assert (stores.version, stores.num_edges) == (model.version, model.num_edges)


def short_way(g: lpma.Graph) -> None:
    if g._stores.out.single is None:
        pytest.skip("this backend has none")


# The short way is taken -----------------------------------------------------------------------

SHAPES = (
    Config(), Config(predecessors=True), Config(directed=False), Config(weight=None, times=False),
    Config(directed=False, weight="float64"), Config(strategy="top-down", segment_size=8),
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
        monkeypatch.setattr(query, name, None)
    assert g.has_edge(1, 2)
    assert g.edge(2, 1) == lpma.Edge(0.5, 7)
    assert g.neighbors(1).tolist() == [2, 3]
    assert g.degree(1).tolist() == [2]


@given(config=configs(), seed=st.integers(0, 2**32), opera=st.booleans())
def test_batches_of_one_query(device: str, config: Config, seed: int, opera: bool) -> None:
    g, model = config.graph(device), config.model()
    for operation in many(seed, 40, 6, 0.2):
        operation.do(g)
        operation.do(model)
    for kind in config.queries:
        for u, v in [(1, 2), (2, 3), (5, 5), (7, 9), (2**32 - 2, 1)]:
            asked = Batch.from_columns([kind], [u], [1 + v % 3 if kind == Kind.HOPS else v])
            answers, (expected,) = g.apply(asked, opera), model.apply(asked)
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
    monkeypatch.setattr(query, "edges", None)
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
        assert_same(g.degree(9), np.array([n]))
    assert g.neighbors(8).tolist() == []


# What callers may get wrong -------------------------------------------------------------------

BAD: list[Any] = [
    True, -1, 2**32 - 1, 2**32, 2**63, 2**64, -(2**70), 1.5, "1", None, np.True_, {1}, ...,
    np.float32(2.5), np.datetime64("2020-01-01"), 1j, b"1", [[1]],
]  # fmt: skip


def complaint(call: Callable[[], Any]) -> str:
    with pytest.raises(BatchError) as raised:
        call()
    return str(raised.value)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_vertex_is_refused_as_in_an_array(device: str, bad: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(20), range(1, 21), time=1)
    expected = complaint(lambda: g.successors(bad))
    assert complaint(lambda: g.neighbors(bad)) == expected
    assert complaint(lambda: g.has_edge(bad, 1)) == expected
    assert complaint(lambda: g.edge(bad, 1)) == expected
    assert complaint(lambda: g.degree(bad)) == expected
    assert complaint(lambda: g.edge(1, bad)) == expected.replace("u:", "v:", 1)
    for update in (
        lambda: g.insert(bad, 1), lambda: g.insert(1, bad), lambda: g.delete(bad, 1),
        lambda: g.add_vertices(bad),
    ):  # fmt: skip
        complaint(update)
    assert (g.version, g.num_edges) == (1, 20)


@pytest.mark.parametrize("value", [[1], [], np.array([1]), np.arange(3)], ids=repr)
def test_an_array_is_not_one_vertex(device: str, value: Any) -> None:
    g = lpma.Graph(device=device)
    for call in (
        lambda: g.neighbors(value), lambda: g.has_edge(value, 1), lambda: g.edge(1, value),
    ):  # fmt: skip
        assert "one vertex is asked for" in complaint(call)


@pytest.mark.parametrize("kind", [np.int8, np.uint32, np.uint64, np.int64, np.array])
def test_numbers_of_numpy_are_numbers(device: str, kind: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(kind(1), kind(2), kind(3), kind(4))
    assert g.has_edge(kind(1), kind(2))
    assert g.edge(kind(1), kind(2)) == lpma.Edge(3.0, 4)
    assert g.neighbors(kind(1)).tolist() == g.successors(1).ids.tolist() == [2]


@pytest.mark.parametrize(
    "weight", [float("nan"), float("inf"), -float("inf"), 1.1e30, True, "1", 10**40, 2**64, None]
)
def test_a_bad_weight_is_refused(device: str, weight: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(20), range(1, 21), time=1)
    if weight is None:  # the weight that is assumed
        g.insert(1, 9, weight)
        assert g.edge(1, 9).weight == 1.0  # type: ignore[union-attr]
        return
    complaint(lambda: g.insert(1, 9, weight))
    assert not g.has_edge(1, 9)
    assert g.version == 1


@pytest.mark.parametrize("time", [True, 1.5, "1", 2**63, -(2**63) - 1, 10**30])
def test_a_bad_time_is_refused(device: str, time: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(20), range(1, 21), time=1)
    for call in (
        lambda: g.insert(1, 9, 1.0, time), lambda: g.delete(1, 2, time),
        lambda: g.add_vertices(9, time),
    ):  # fmt: skip
        complaint(call)
    assert (g.version, g.num_edges, g.time) == (1, 20, 1)


@pytest.mark.parametrize("weight", [2**53 + 1, 2**63 - 1, -(2**62), 3, 2**63 + 5, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_are_rounded_once(device: str, weight: Any, dtype: str) -> None:
    short, long = pair(device, Config(weight=dtype))
    for g in (short, long):
        g.insert(range(20), range(1, 21), time=1)
        g.insert(1, 9, 1, time=2)
        g.insert(1, 9, weight, time=2)
    assert short.edge(1, 9) == long.edge(1, 9)


# Locks, signals, cuts -------------------------------------------------------------------------


def filled(device: str, clock: Callable[[], float] = lambda: 0.0) -> lpma.Graph:
    """A graph with room in its leaves."""
    g = lpma.Graph(device=device, clock=clock, predecessors=True)
    g.insert(range(40), range(1, 41), time=1)
    return g


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("kind", [INSERT, DELETE, ADD])
def test_cut_off_at_any_line(
    kind: int, error: type[BaseException], device: str, tmp_path: Path
) -> None:
    """It is applied, or not, or the graph says that it is broken; and the lock is let go."""
    operation = Operation(kind, 5, 6 if kind == DELETE else 9, 1.0, 2)
    old, new = ModelGraph(predecessors=True), ModelGraph(predecessors=True)
    for model in (old, new):
        model.insert(range(40), range(1, 41), time=1)
    operation.do(new)
    g = filled(device)
    with Cut(0, error) as count:
        operation.do(g)
    agree(g, new)
    ended = {"before": 0, "after": 0, "broken": 0}
    for n in moments(count.events, random.randrange(1 << 30)):
        g = filled(device)
        # A MemoryError may be one that the graph can do without.
        with Cut(n, error) as cut, suppress(error, lpma.LpmaError):
            operation.do(g)
        assert not g._guard.is_held(), cut.at
        try:
            version = g.version
            agree(g, old if version == old.version else new)
            ended["before" if version == old.version else "after"] += 1
        except BrokenStore:
            assert_broken(g, tmp_path)
            with pytest.raises(BrokenStore):
                g.has_edge(1, 2)
            ended["broken"] += 1
    assert ended["before"] > 0, ended
    assert ended["broken"] > 0, ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait(number: int, device: str) -> None:
    ring: list[Any] = []

    def clock() -> float:
        if ring:
            signal.raise_signal(number)
        return 0.0

    g = filled(device, clock)
    came: list[int] = []
    before = signal.signal(number, lambda *_: came.append(g.version))
    try:
        ring.append(True)
        with counted() as ways:
            g.insert(5, 9, time=2)
        ring.clear()
    finally:
        signal.signal(number, before)
    assert ways.short == (g._stores.out.single is not None)
    assert came
    assert set(came) == {2}
    g.check()


@pytest.mark.parametrize("look", [1, 2])
def test_a_clock_that_raises(look: int, device: str, tmp_path: Path) -> None:
    """At its first look nothing is done; at its last one the edge is there, but not noted."""
    looks: Iterator[int] = iter(())

    def clock() -> float:
        if next(looks, 0) == look:
            raise ZeroDivisionError
        return 0.0

    g = filled(device, clock)
    short_way(g)
    looks = itertools.count(1)
    with pytest.raises(ZeroDivisionError if look == 1 else BrokenStore):
        g.insert(5, 9, time=2)
    looks = iter(())
    if look == 1:
        assert (g.version, g.has_edge(5, 9)) == (1, False)
        g.check()
    else:
        assert_broken(g, tmp_path)


def test_a_clock_that_uses_its_graph_is_told(device: str) -> None:
    ask: list[lpma.Graph] = []
    g = filled(device, lambda: float(bool(ask and ask[0].has_edge(1, 2))))
    ask.append(g)
    with pytest.raises(lpma.ConcurrentWrite, match="within a call"):
        g.insert(5, 9)
    ask.clear()
    assert g.version == 1


def test_writers_are_refused_or_whole(device: str) -> None:
    """Threads that all write one edge at a time, beside those that read."""
    g = filled(device)
    done = threading.Event()

    def write(thread: int) -> int:
        applied = 0
        for i in range(300):
            try:
                g.insert(100 + thread, i, time=1)
                applied += 1
            except lpma.ConcurrentWrite:
                continue
        return applied

    def read() -> None:
        while not done.is_set():
            degree = int(g.degree(100)[0])
            assert len(g.neighbors(100)) >= degree
            assert g.has_edge(0, 1)

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        applied = [writer.result() for writer in [pool.submit(write, i) for i in range(4)]]
        done.set()
        for reader in readers:
            reader.result()
    assert sum(applied) > 0
    assert (g.version, g.num_edges) == (1 + sum(applied), 40 + sum(applied))
    assert [int(g.degree(100 + i)[0]) for i in range(4)] == applied
    g.check()


def test_a_long_history_of_single_edges(device: str) -> None:
    """More of them than are packed together, with batches between."""
    short, long = pair(device, Config(segment_size=8))
    for g in (short, long):
        for i in range(1300):
            g.insert(i % 40, i // 40, time=1)
            if i % 500 == 7:
                g.delete([1, 2], [0, 0], time=1)
    for since in (0, 1, 7, 511, 512, 513, 700, short.version - 1, short.version):
        assert_same(short.changes(since), long.changes(since))
