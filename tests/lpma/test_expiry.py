"""Expiry against a dictionary with times, and the front against the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from lpma import Batch, Columns, Graph, Kind
from lpma.arrays import to_host
from lpma.batch.columns import last_update
from lpma.engine import expiry as expiry_module
from lpma.engine.expiry import together
from lpma.errors import BatchError
from lpma.pma.keys import ends_of
from tests.lpma.conftest import every_backend
from tests.support.oracles import ModelGraph, agree, assert_same, host
from tests.support.strategies import Config, batches, configs

FIRST, LAST = -(2**63), 2**63 - 1
KINDS = [Kind.INSERT] * 6 + [Kind.SET] * 2 + [Kind.DELETE] * 2 + [Kind.EXPIRE]


def check_front(graph: Graph) -> None:
    """Invariants 1 and 2 of expiry.py, and those of the store."""
    graph.check()
    front = graph._stores.expiry
    if front.horizon is None:
        assert front.nbytes == 0
        return
    held = together([front._front, *front._late]).on_host()
    in_order = to_host(front._front.time)
    assert (in_order[1:] >= in_order[:-1]).all()
    assert front._held <= front._most
    assert (in_order[:: expiry_module.EVERY] == front._known).all()
    assert front.nbytes == 16 * len(held.src)
    entries = {}
    for u, v, t in zip(*(column.tolist() for column in held), strict=True):
        entries[u, v, t] = True
        if not graph.directed:
            entries[v, u, t] = True
    out = graph._stores.out
    keys, _, stored = map(to_host, out.backend.slots(out.segments))
    u, v = ends_of(keys)
    for edge in zip(u.tolist(), v.tolist(), stored.tolist(), strict=True):
        assert edge[1] == 2**32 - 1 or edge[2] >= front.horizon or edge in entries


def in_step(graph: Graph, model: ModelGraph, stream: list[Columns]) -> None:
    for batch in stream:
        since, counted = model.version, graph.stats().operations
        assert_same(graph.apply(batch), model.apply(batch))
        # An expiry is one, however many edges it lets go, and whichever way.
        assert graph.stats().operations == counted + last_update(batch.kind) + 1
        agree(graph, model)
        assert_same(graph.changes(since), model.changes(since))
        assert (graph.expired, graph.unchanged) == (model.expired, model.unchanged)
        check_front(graph)


@every_backend
@given(st.data(), configs(times=True))
def test_drawn_streams(device: str, data: st.DataObject, config: Config) -> None:
    stream = data.draw(st.lists(batches(config.queries, expires=True), max_size=6))
    in_step(config.graph(device), config.model(), stream)


def windows(config: Config, seed: int, rounds: int, size: int, span: int, late: int) -> Any:
    """A stream in time, each batch with expiries among its rows: (columns) of each batch."""
    rng = np.random.default_rng(seed)
    kinds = np.array([*KINDS, *config.queries[:3]])
    for now in range(0, 10 * rounds, 10):
        kind = rng.choice(kinds, size)
        kind[rng.random(size) < 0.3] = Kind.INSERT
        time = now + rng.integers(-late, 10, size)
        time[kind == Kind.EXPIRE] -= 50
        weight = rng.integers(-8, 25, size).astype(np.float32) / 4
        yield Batch.from_columns(
            kind, rng.integers(0, span, size), rng.integers(1, span, size) % 200, weight, time
        )


@every_backend
@settings(max_examples=12)
@given(
    configs(times=True), st.integers(0, 2**32), st.sampled_from([3, 40, 150]),
    st.sampled_from([4, 30]), st.sampled_from([0, 5, 60]), st.sampled_from([1, 2, 5, 64]),
)  # fmt: skip
def test_windows(
    device: str, config: Config, seed: int, size: int, span: int, late: int, every: int
) -> None:
    stream = list(windows(config, seed, 12, size, span, late))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expiry_module, "SMALL", 4)
        patch.setattr(expiry_module, "LATE", 2)
        patch.setattr(expiry_module, "EVERY", every)
        in_step(config.graph(device), config.model(), stream)


def sliding(n: int, rounds: int, seed: int = 0) -> tuple[Any, Any]:
    """src and dst of a stream of n edges a round, all of them different."""
    keys = np.random.default_rng(seed).permutation(n * (rounds + 4))
    return (keys // 300).astype(np.uint32), (keys % 300).astype(np.uint32)


@every_backend
@pytest.mark.parametrize("directed", [True, False])
def test_a_hot_edge(device: str, directed: bool) -> None:
    """Runs of hundreds of operations on one edge, with expiries at their end and within."""
    for weights in (np.ones(400), np.linspace(0.1, 1, 400), np.resize([1.5, -1.0], 400)):
        for places in ([400], [0], [200], [100, 300, 400]):
            config = Config(directed=directed, predecessors=directed)
            graph, model = config.graph(device), config.model()
            for start in (0, 50):
                time, kind = start + np.arange(400) % 97, np.full(400, Kind.INSERT)
                kind[start::37] = Kind.SET
                columns = [kind, np.full(400, 7), np.full(400, 3)]
                columns += [weights.astype(np.float32), time]
                put = (int(Kind.EXPIRE), 0, 0, 0, start + 60)
                pairs = zip(columns, put, strict=True)
                rows = [np.insert(column, places, value) for column, value in pairs]
                in_step(graph, model, [Batch.from_columns(*rows)])


def test_edges_out_of_order(device: str) -> None:
    """An edge has the time of its last append, even if an earlier one had a later time."""
    g = Graph(device=device)
    g.insert([1, 1], [2, 3], time=[50, 50])
    g.expire(10)
    g.insert(1, 2, time=20)
    g.insert([1], [3], time=[30])
    g.expire(25)
    assert host(g.neighbors(1)).tolist() == [3]
    g.expire(LAST)
    assert g.num_edges == 0
    assert g.time == 30


@given(st.data())
def test_limits_of_time(device: str, data: st.DataObject) -> None:
    time = st.sampled_from([FIRST, FIRST + 1, -1, 0, LAST - 1, LAST])
    g, model = Graph(device=device), ModelGraph()
    for _ in range(data.draw(st.integers(1, 5))):
        times = data.draw(st.lists(time, min_size=1, max_size=6))
        g.insert(np.arange(len(times)), 9, time=times)
        model.insert(np.arange(len(times)), 9, time=times)
        before = data.draw(time)
        g.expire(before)
        model.expire(before)
        agree(g, model)
        check_front(g)


@pytest.mark.parametrize("single", [True, False])
def test_updates_after_the_front_is_made(device: str, single: bool) -> None:
    """Appends, deletions and appends again of edges that have entries, one at a time or not."""
    rng = np.random.default_rng(5)
    g, model = Graph(device=device), ModelGraph()
    for graph in (g, model):
        graph.insert(np.arange(100) % 10, np.arange(100), time=np.arange(100))
        graph.expire(10)
    for now in range(20, 90, 5):
        for _ in range(20):
            u, v, t = (int(x) for x in rng.integers(0, [10, 100, 110]))
            src, dst = (u, v) if single else ([u], [v])
            for graph in (g, model):
                if t % 5:
                    graph.insert(src, dst, time=t)
                else:
                    graph.delete(src, dst, time=t)
        check_front(g)
        g.expire(now)
        model.expire(now)
        agree(g, model)


def test_a_graph_that_never_expires_has_no_front(device: str) -> None:
    g = Graph(device=device)
    before = g._stores.expiry
    g.insert(np.arange(1000), 5, time=np.arange(1000))
    g.insert(1, 2, time=-5)
    assert before.nbytes == 0
    assert before.horizon is None
    assert g._stores.expiry is before


def test_passes_over_the_store_are_few(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed over is in proportion to what expires, and the front to the store."""
    monkeypatch.setattr(expiry_module, "SMALL", 64)
    monkeypatch.setattr(expiry_module, "LATE", 64)
    n, rounds = 200, 60
    src, dst = sliding(n, rounds)
    g = Graph(device=device)
    window, passes = 20 * n, 0
    g.insert(src[:window], dst[:window], time=np.arange(window))
    older = g._stores.out.backend.older

    def counted(*args: Any) -> Any:
        nonlocal passes
        passes += 1
        return older(*args)

    for lo in range(window, n * rounds, n):
        if passes == 0:  # the NumPy backend may have had a successor
            older = g._stores.out.backend.older
            monkeypatch.setattr(g._stores.out.backend, "older", counted)
        g.insert(src[lo : lo + n], dst[lo : lo + n], time=np.arange(lo, lo + n))
        g.expire(lo + n - window)
        assert g.num_edges == window
        assert g._stores.expiry.nbytes <= 16 * window // 2
    check_front(g)
    assert 1 <= passes <= (n * rounds - window) / (window * expiry_module.SHARE * 0.6) + 2


def test_the_front_is_bounded(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late appends beyond the bound drop the front; the next expiry is right all the same."""
    monkeypatch.setattr(expiry_module, "SMALL", 50)
    g = Graph(device=device)
    g.insert(np.arange(40), 1, time=np.arange(40) + 100)
    g.expire(0)
    front = g._stores.expiry
    for late in range(20):
        g.insert(np.arange(10) + 10 * late, 2, time=np.arange(10))
        assert front.nbytes <= 16 * max(50, front._most)
    assert front.horizon is None
    g.expire(5)
    assert g.num_edges == 40 + 100
    check_front(g)


@settings(max_examples=10)
@given(configs(times=True), st.integers(0, 2**32), st.sampled_from([0.2, 0.5, 0.9, 1.0]))
def test_much_at_once(device: str, config: Config, seed: int, share: float) -> None:
    """What a batch of expiries alone lets go, whichever way it goes; and what comes after it."""
    rng = np.random.default_rng(seed)
    graph, model = config.graph(device), config.model()
    n = 300
    src, dst, weight = rng.integers(0, 40, n), rng.integers(0, 40, n), np.ones(n)
    time = rng.permutation(n)
    kinds = rng.choice([Kind.INSERT] * 20 + [Kind.ADD_VERTEX], n)
    before = int(share * n)
    in_step(graph, model, [Batch.from_columns(kinds, src, dst, weight, time)])
    merges = graph.stats().global_merges
    expiry = Batch.from_columns(Kind.EXPIRE, [0, 0], [0, 0], time=[before - 5, before])
    in_step(graph, model, [expiry])
    swept = graph.stats().global_merges > merges
    assert swept or share < 0.5 or config.global_merge == "never"
    newer = Batch.from_columns(kinds, src, dst, weight, time + 100)
    in_step(graph, model, [newer, expiry])
    later = Batch.from_columns(Kind.EXPIRE, [0], [0], time=[before + 100])
    in_step(graph, model, [later, later])


def test_a_sweep_without_memory_changes_nothing(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    g, model = Graph(device=device, predecessors=True), ModelGraph(predecessors=True)
    for graph in (g, model):
        graph.insert(np.arange(100), 1, time=np.arange(100))

    def fail(*args: Any) -> Any:
        raise MemoryError("as asked")

    with monkeypatch.context() as patch:
        into = g._stores.into
        assert into is not None
        patch.setattr(into.backend, "build", fail)
        with pytest.raises(lpma.OutOfMemory):
            g.expire(90)
    agree(g, model)
    g.expire(90)
    assert g.num_edges == 10
    check_front(g)


def test_all_of_one_time(device: str) -> None:
    g = Graph(device=device)
    g.insert(np.arange(5000), 1, time=7)
    for before, left in ((7, 5000), (7, 5000), (8, 0), (8, 0)):
        g.expire(before)
        assert g.num_edges == left
        check_front(g)


def test_save_and_load(device: str, tmp_path: Path) -> None:
    g = Graph(device=device)
    g.insert(np.arange(100), 1, time=np.arange(100))
    g.expire(10)
    g.save(tmp_path / "g")
    for other in (Graph.load(tmp_path / "g", device), g.copy(), g):
        assert other is g or other._stores.expiry.nbytes == 0
        other.expire(30)
        assert (other.num_edges, other.version) == (70, 3)
        check_front(other)
    filled = Graph(device=device)
    filled.insert(1, 2, time=500)
    filled.expire(3)
    filled._lock.write(filled._stores.fill, g.image().slots)
    check_front(filled)
    filled.expire(40)
    assert filled.num_edges == 60


@pytest.mark.parametrize("mixed", [False, True])
def test_a_batch_that_fails_changes_nothing(
    device: str, monkeypatch: pytest.MonkeyPatch, mixed: bool
) -> None:
    g, model = Graph(device=device), ModelGraph()
    for graph in (g, model):
        graph.insert(np.arange(100), 1, time=np.arange(100))
        graph.expire(10)
    batch = Batch()
    batch.insert(500, 3, time=3)
    if mixed:
        batch.degree(1)
    batch.expire(50)

    def fail(*args: Any) -> Any:
        raise MemoryError("as asked")

    with monkeypatch.context() as patch:
        for name in ("sort_beside",) if mixed else ("locate", "apply_at_once"):
            patch.setattr(g._stores.out.backend, name, fail, raising=False)
        with pytest.raises(lpma.OutOfMemory):
            g.apply(batch)
    agree(g, model)
    check_front(g)
    assert_same(g.apply(batch), model.apply(batch))
    agree(g, model)


def test_names(device: str) -> None:
    g = Graph(device=device, names=True)
    g.insert(["a", "b"], ["b", "c"], time=[1, 2])
    g.expire(2)
    assert not g.has_edge("a", "b")
    assert g.has_edge("b", "c")
    batch = Batch()
    batch.insert("x", "y", time=1)
    before = batch.degree("x")
    batch.expire(9)
    after = batch.degree("x")
    answers = g.apply(batch)
    assert [int(host(answers[number])[0]) for number in (before, after)] == [1, 0]
    assert g.num_edges == 0
    assert g.names is not None
    assert len(g.names) == 5
    with pytest.raises(BatchError, match="expire"):
        g.apply(Batch.from_columns(Kind.EXPIRE, ["a"], ["b"], names=True))


def test_what_is_refused(device: str) -> None:
    g = Graph(device=device, times=False)
    g.insert(1, 2)
    for call in (
        lambda: g.expire(5),
        lambda: Batch().expire(None),
        lambda: Graph(device=device).expire(None),
        lambda: Graph(device=device).expire([1]),
        lambda: Graph(device=device).expire(1.5),
        lambda: Batch.from_columns(Kind.EXPIRE, [0], [0]),
        lambda: Batch.from_columns([Kind.INSERT, Kind.EXPIRE], [0, 0], [0, 0]),
    ):
        with pytest.raises(BatchError):
            call()
    assert (g.num_edges, g.version) == (1, 1)


def test_times_without_an_own(device: str) -> None:
    """Rows without a time beside an expiry are stamped now; a batch without times may be late."""
    g = Graph(device=device)
    batch = Batch()
    batch.insert(1, 2)
    batch.expire(np.datetime64("2001-01-01"))
    g.apply(batch)
    assert g.num_edges == 1
    g.insert([3], [4], time=LAST)
    g.expire(LAST)  # the horizon is past any moment to come
    g.insert([5, 6], [7, 8])
    check_front(g)
    g.expire(LAST)
    assert g.num_edges == 1


@pytest.mark.gpu
@pytest.mark.parametrize("refused", [True, False])
def test_columns_on_a_device_stay_there(refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")
    g, model = Graph(device="cuda"), ModelGraph()
    expanded = g._stores.expiry.expanded

    def watched(columns: Columns, *rest: Any) -> Columns:
        ready = expanded(columns, *rest)
        for column in (columns.src, columns.time, ready.src, ready.dst, ready.time):
            assert isinstance(column, cupy.ndarray)
        return ready

    monkeypatch.setattr(g._stores.expiry, "expanded", watched)
    n, (sources, targets) = 1000, sliding(1000, 12)
    for lo in range(0, 12 * n, n):
        src = np.append(sources[lo : lo + n], np.uint32(0))
        dst = np.append(targets[lo : lo + n], np.uint32(0))
        time = np.append(np.arange(lo, lo + n), lo - 3 * n)
        kind = np.append(np.zeros(n, np.uint8), np.uint8(Kind.EXPIRE))
        columns = Batch.from_columns(
            kind, cupy.asarray(src), cupy.asarray(dst), None, cupy.asarray(time)
        )
        assert columns.on_device
        if lo > 2 * n and refused:
            columns.src[0] = 2**32 - 1  # refused when it is located; the front is made anew
            with pytest.raises(BatchError):
                g.apply(columns)
            columns.src[0] = src[0]
        g.apply(columns)
        model.apply(Batch.from_columns(kind, src, dst, None, time))
        agree(g, model)
        check_front(g)


def test_nothing_beside_a_late_horizon(device: str) -> None:
    """A batch without rows has a time too, which may lie before the horizon."""
    late = 2**61
    g = Graph(device=device)
    g.insert([1, 2], [2, 3], time=[late, late + 10])
    g.expire(late + 5)
    for nothing in (g.add_vertices, g.remove_vertices):
        nothing([])
    g.insert([], [])
    g.delete([], [])
    g.apply(Batch())
    assert g.num_edges == 1
    check_front(g)
