"""Every backend against the numbered lines of lpma/backend/protocol.py and reading.py.

The same bodies run on the CPU's backend, on the GPU's, and on the two of plain_backend.py: one that
does the least that is asked, one that takes the liberties that are granted. A test's docstring
cites the lines that it holds a backend to, and a test sees to it that each line is cited. Backends
that break a line (the mutants at the end) must fail the test that cites it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lpma
from lpma.arrays import to_host
from lpma.backend import Host, open_backend, protocol, reading
from lpma.backend.numba.backend import NumbaBackend
from lpma.backend.protocol import AnyBackend, Backend, Place, SmallBatches
from lpma.backend.values import BOTH, FORWARD, REVERSE, Array, Committed, Segments
from lpma.batch import Columns, Kind
from lpma.density import bounds
from lpma.errors import BatchError
from lpma.opera import Stores, apply_in_parallel
from lpma.stats import Stats
from lpma.store import LPMA
from lpma.unchanged import unchanged_of
from tests.conftest import missing
from tests.support.layout_oracles import columns_by_rank
from tests.support.oracles import ModelGraph, assert_same
from tests.support.plain_backend import CountsAhead, PlainBackend, PlainPlan, PlainSegments
from tests.support.strategies import QUERIES, Burst, Clock

if TYPE_CHECKING:
    from lpma.backend.cuda.backend import CudaBackend
    from lpma.backend.cuda.batches import StagedBatch as CudaBatch
    from lpma.backend.cuda.located import DevicePlan
    from lpma.backend.cuda.located import KeyRows as CudaRows
    from lpma.backend.cuda.located import Located as CudaLocated
    from lpma.backend.cuda.segments import Segments as CudaSegments
    from lpma.backend.numba.located import KeyRows, Located, StagedBatch
    from lpma.backend.numba.rebalance import WindowPlan
    from lpma.backend.numba.segments import Segments as CpuSegments
    from tests.support.plain_backend import PlainBatch, PlainLocated, PlainRows

    def of_the_cpu(
        backend: NumbaBackend,
    ) -> Backend[CpuSegments, StagedBatch, KeyRows, Located, WindowPlan]:
        return backend  # mypy holds the methods' types to the protocols

    def of_the_gpu(
        backend: CudaBackend,
    ) -> Backend[CudaSegments, CudaBatch, CudaRows, CudaLocated, DevicePlan]:
        return backend

    def of_the_tests(
        backend: PlainBackend,
    ) -> Backend[PlainSegments, PlainBatch, PlainRows, PlainLocated, PlainPlan]:
        return backend


Make = Callable[[], AnyBackend]
MERGES = ("auto", "never")
PLANNERS = ("bottom-up", "top-down")
SIZE = 4  # slots a segment


def plain() -> AnyBackend:
    return cast(AnyBackend, PlainBackend())


def counting_ahead() -> AnyBackend:
    return cast(AnyBackend, CountsAhead())


@pytest.fixture(
    scope="module",
    params=["cpu", "plain", "counts ahead", pytest.param("cuda", marks=pytest.mark.gpu)],
)
def make(request: pytest.FixtureRequest) -> Any:
    """Makes a backend, its device being the current one."""
    place: Place = Host()
    backend = {"plain": plain, "counts ahead": counting_ahead}.get(request.param)
    if backend is None:
        try:
            _, place, backend = open_backend(request.param)
        except lpma.DeviceError as error:
            missing("gpu", str(error))
    with place:
        yield backend


# What tests see of a store -------------------------------------------------------------------


def store_of(
    backend: AnyBackend,
    strategy: str = "bottom-up",
    merges: str = "never",
    weight: str | None = "float32",
    size: int = SIZE,
) -> LPMA:
    dtype = None if weight is None else np.dtype(weight)
    return LPMA(backend, size, dtype, True, strategy, merges, Clock())


def shape(backend: AnyBackend, segments: Segments) -> list[Any]:
    """All that a store publishes: the slots of each segment, the counts, the fences."""
    backend.wait()
    held = [columns_by_rank(segments, name) for name in ("keys", "weights", "times")
            if getattr(segments, name) is not None]  # fmt: skip
    # The head's fence is never read.
    trees = [to_host(segments.counts).astype(np.int64), to_host(segments.fences)[1:].copy()]
    return [segments.m, segments.num_slots, *held, *trees]


def slots(store: LPMA) -> dict[int, tuple[float, int]]:
    """{key: (weight, time)}, in the order in which they are given."""
    keys, weights, times = map(to_host, store.backend.slots(store.segments))
    weights = np.zeros(len(keys)) if weights is None else weights
    return dict(zip(keys.tolist(), zip(weights.tolist(), times.tolist(), strict=True), strict=True))


def model_slots(model: ModelGraph, direction: int = FORWARD) -> dict[int, tuple[float, int]]:
    """The slots that a store of a directed graph has to hold."""
    keys = {}
    for (u, v), (weight, time) in model.state.items():
        keys[v << 32 | u if direction == REVERSE else u << 32 | v] = (
            weight if model.weight_dtype is not None else 0.0, time,
        )  # fmt: skip
    return dict(sorted(keys.items()))


def stage(store: LPMA, columns: Columns) -> Any:
    weights = store.segments.weights
    dtype = None if weights is None else weights[0].dtype
    assert columns.time is not None
    return store.backend.stage(columns, columns.time, dtype)


def prepare(store: LPMA, columns: Columns, direction: int = FORWARD, **how: Any) -> tuple[Any, Any]:
    """(staged, prepared)"""
    staged = stage(store, columns)
    rows = store.backend.key_rows(staged, columns, 0, len(columns), direction)
    return staged, store.prepare(staged, rows, **how)


def apply(store: LPMA, columns: Columns, direction: int = FORWARD) -> Committed:
    """One batch, by the way of prepare and commit."""
    staged, prepared = prepare(store, columns, direction)
    committed = store.commit(prepared, len(columns))
    store.end_batch(staged)
    store.backend.written = store.written = False
    return committed


def updates(kinds: Any, src: Any, dst: Any, weight: Any = 1.0, time: Any = 1) -> Columns:
    n = len(src)
    columns = (np.full(n, x) if np.isscalar(x) else np.asarray(x) for x in (kinds, weight, time))
    kind, weights, times = columns
    return Columns.validated(
        kind.astype(np.uint8), np.asarray(src), np.asarray(dst), weights.astype(np.float32), times
    )


def appends(*keys: int) -> Columns:
    """Edges out of vertex 0, whose keys are their targets."""
    return updates(Kind.APPEND, np.zeros(len(keys), int), keys)


def deletions(*keys: int) -> Columns:
    return updates(Kind.DELETE, np.zeros(len(keys), int), keys)


@dataclass(frozen=True)
class Stream:
    """Batches from one seed: edges alone, and vertices added where `markers`."""

    seed: int
    batches: int
    largest: int
    span: int
    deletes: float
    markers: bool

    def columns(self) -> list[Columns]:
        rng = np.random.default_rng(self.seed)
        made = []
        for _ in range(self.batches):
            burst = Burst(int(rng.integers(1 << 30)), int(rng.integers(1, self.largest)), self.span,
                          self.deletes, hub=bool(rng.integers(2))).columns()  # fmt: skip
            kind = np.where(burst.kind == Kind.REMOVE_VERTEX, Kind.DELETE, burst.kind)
            if not self.markers:
                kind = np.where(kind == Kind.ADD_VERTEX, Kind.APPEND, kind)
            rows = burst.src, burst.dst, burst.weight, burst.time
            made.append(Columns.validated(kind.astype(np.uint8), *rows))
        return made


def streams(markers: bool = True, batches: int = 4) -> st.SearchStrategy[Stream]:
    return st.builds(
        Stream, seed=st.integers(0, 2**32), batches=st.integers(1, batches),
        largest=st.sampled_from([3, 30, 80]), span=st.sampled_from([3, 8, 20]),
        deletes=st.sampled_from([0.0, 0.3, 0.9]), markers=st.just(markers),
    )  # fmt: skip


def filled(make: Make, *options: Any, n: int = 60, **named: Any) -> LPMA:
    """A store of edges (0, 10), (0, 20) …"""
    store = store_of(make(), *options, **named)
    store.load(*loaded(store, np.arange(10, 10 * n + 10, 10)))
    store.written = False
    return store


def loaded(store: LPMA, keys: Any) -> tuple[Segments, Array]:
    keys = np.asarray(keys, np.uint64)
    weights = np.ones(len(keys), np.float32)
    return store.build(keys, weights, np.zeros(len(keys), np.int64)), keys


# Planning, rolling back, failing --------------------------------------------------------------


@given(stream=streams(), strategy=st.sampled_from(PLANNERS), merges=st.sampled_from(MERGES))
def test_planning_publishes_nothing(make: Make, stream: Stream, strategy: str, merges: str) -> None:
    """A1, W5: what is published is as it was while a batch is prepared, but for the counts where
    `written` says so; rolled back, they are too, and the same batch may come again."""
    store, model = store_of(make(), strategy, merges), ModelGraph()
    for columns in stream.columns():
        published, before = store.segments, shape(store.backend, store.segments)
        staged, prepared = prepare(store, columns)
        assert store.segments is published
        assert not store.written
        if not store.backend.written:
            assert_same(shape(store.backend, published), before)
        assert_same(to_host(published.fences)[1:], before[-1])
        assert published.num_slots == before[1]
        store.rollback(prepared)
        store.end_batch(staged)
        assert not store.backend.written
        assert_same(shape(store.backend, published), before)
        model.apply(columns)
        apply(store, columns)
        assert edges_of(store) == model_slots(model)


def edges_of(store: LPMA) -> dict[int, tuple[float, int]]:
    return {key: value for key, value in slots(store).items() if key & (2**32 - 1) != 2**32 - 1}


@pytest.mark.parametrize("method", ["plan", "reserve", "rebuild", "expand"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_fails_before_the_first_write_changes_nothing(
    make: Make, method: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2, W5: memory runs out in a method, or after what it did; the host rolls back."""
    batches = {"expand": range(1, 400, 3), "rebuild": range(1, 600, 2)}
    columns = appends(*batches.get(method, [11, 12, 13, 14, 15, 16]))
    store = filled(make, "top-down", "auto" if method == "rebuild" else "never")
    before, done = shape(store.backend, store.segments), getattr(store.backend, method)

    def failing(*arguments: Any) -> Any:
        if when == "after":
            done(*arguments)
        raise MemoryError("for a test")

    with monkeypatch.context() as patch:
        patch.setattr(store.backend, method, failing)
        with pytest.raises(MemoryError, match="for a test"):
            prepare(store, columns)
    assert not store.backend.written
    assert not store.written
    assert_same(shape(store.backend, store.segments), before)
    apply(store, columns)
    expected = set(range(10, 610, 10)) | set(columns.dst.tolist())
    assert list(slots(store)) == sorted(expected)


@given(stream=streams(markers=False), strategy=st.sampled_from(PLANNERS))
def test_committing_allocates_nothing(make: Make, stream: Stream, strategy: str) -> None:
    """A2, W6: what `commit` and `shrink` need is there once the batch is prepared."""
    store = store_of(make(), strategy)
    for columns in stream.columns():
        _, prepared = prepare(store, columns)
        held = store.backend.buffer_bytes
        store.commit(prepared, len(columns))
        assert store.backend.buffer_bytes == held


# Whole stores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["float32", "float64", None])
def test_an_empty_store(make: Make, weight: str | None) -> None:
    """S1, R10"""
    store = store_of(make(), weight=weight)
    segments = store.segments
    assert (segments.m, segments.num_slots, segments.segment_size) == (0, 0, SIZE)
    assert not segments.has_versions
    assert len(segments.keys) == 1
    if weight is None:
        assert segments.weights is None
    else:
        assert segments.weights is not None
        assert segments.weights[0].dtype == weight
    assert segments.times is not None
    assert slots(store) == {}
    assert store.backend.largest_vertex(segments) == -1


@pytest.mark.parametrize("n", [0, 1, 3, 57, 58, 200])
def test_a_store_of_whole_columns_is_spread_evenly(make: Make, n: int) -> None:
    """S2, S3"""
    store = filled(make, n=n)
    m = store.segments.m
    assert n <= bounds(m, SIZE)[0][m]
    keys = np.arange(10, 10 * n + 10, 10).astype(np.uint64)
    held = [to_host(k) for k in columns_by_rank(store.segments)]
    cut = [keys[k * n >> m : (k + 1) * n >> m] for k in range(1 << m)]
    assert_same(held, cut)
    assert list(slots(store)) == keys.tolist()


def test_expanding_moves_nothing(make: Make) -> None:
    """S4"""
    store = filled(make)
    before = shape(store.backend, store.segments)
    larger = store.backend.expand(store.segments)
    assert_same(shape(store.backend, store.segments), before)
    after = shape(store.backend, larger)
    assert after[:2] == [before[0] + 1, before[1]]
    for held, now in zip(before[2:-2], after[2:-2], strict=True):
        assert_same(now[::2], held)
        assert not any(map(len, now[1::2]))
    counts, fences = after[-2:]
    assert np.array_equal(counts[1 << larger.m :: 2], before[-2][1 << store.segments.m :])
    # A batch of keys everywhere is located among the old segments alone.
    store.segments = larger
    apply(store, appends(*range(1, 610, 10)))
    assert list(slots(store)) == sorted([*range(1, 610, 10), *range(10, 610, 10)])
    assert (np.diff(in_key_order(fences, larger.m).astype(np.float64)) >= 0).all()


def in_key_order(fences: Array, m: int) -> Array:
    heap = [(2**m + rank) >> ((rank & -rank).bit_length()) for rank in range(1, 1 << m)]
    return fences[np.array(heap) - 1]


@given(seed=st.integers(0, 2**32), left=st.integers(1, 17), strategy=st.sampled_from(PLANNERS))
def test_shrinking(make: Make, seed: int, left: int, strategy: str) -> None:
    """S5: as the plain backend does it, window by window."""
    ours, theirs = filled(make, strategy), filled(plain, strategy)
    gone = np.random.default_rng(seed).permutation(np.arange(10, 610, 10))[left:].tolist()
    for store in (ours, theirs):
        apply(store, deletions(*gone))
    assert ours.stats.shrinks == theirs.stats.shrinks > 0
    assert_same(shape(ours.backend, ours.segments), shape(theirs.backend, theirs.segments))


def test_versions_share_the_store(make: Make) -> None:
    """S6"""
    store = filled(make)
    before = shape(store.backend, store.segments)
    marked = store.backend.with_versions(store.segments)
    assert marked.has_versions
    assert not store.segments.has_versions
    assert_same(shape(store.backend, marked), before)
    again = store.backend.without_versions(marked)
    assert not again.has_versions
    assert_same(shape(store.backend, again), before)


# One batch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [FORWARD, REVERSE, BOTH])
def test_the_keys_of_rows(make: Make, direction: int) -> None:
    """W1"""
    kinds = [Kind.APPEND, Kind.APPEND, Kind.ADD_VERTEX, Kind.DEGREE, Kind.APPEND, Kind.DELETE]
    columns = updates(kinds, [1, 2, 3, 4, 6, 6], [5, 2, 0, 0, 7, 7])
    store = store_of(make())
    staged, backend = stage(store, columns), store.backend
    implied = np.array([2 << 32 | 2], np.uint64), np.array([5], np.uint32)
    ahead, back, marker = 1 << 32 | 5, 5 << 32 | 1, 3 << 32 | (2**32 - 1)
    expected = {FORWARD: [ahead, marker], REVERSE: [back], BOTH: [ahead, marker, back]}[direction]
    for more in (None, implied):
        rows = backend.key_rows(staged, columns, 0, 6, direction, more)
        located = backend.locate(store.segments, staged, rows, False, "top-down")
        loop = [] if more else [2 << 32 | 2]
        assert located.tally.delta == len(expected) + len(loop)
        backend.rollback(located)
    rows = backend.key_rows(staged, columns, 0, 6, direction, implied)
    store.commit(store.prepare(staged, rows), 6)
    assert list(slots(store)) == sorted(expected)
    # Part of the rows: no more than those.
    store = store_of(make())
    staged = stage(store, columns)
    rows = store.backend.key_rows(staged, columns, 1, 2, direction)
    store.commit(store.prepare(staged, rows), 1)
    assert list(slots(store)) == [2 << 32 | 2]


@given(stream=streams(), weight=st.sampled_from(["float32", "float64", None]))
def test_batches_come_to_what_operations_come_to(make: Make, stream: Stream, weight: str) -> None:
    """W2, W8, W10, R13: against the model, which goes operation by operation."""
    store, model = store_of(make(), "top-down", "auto", weight), ModelGraph(weight=weight)
    for columns in stream.columns():
        before, held = store.num_slots, store.num_markers
        committed = apply(store, columns)
        model.apply(columns)
        after = slots(store)
        assert edges_of(store) == model_slots(model)
        assert list(after) == sorted(after)
        markers = {key >> 32 for key in after if key & (2**32 - 1) == 2**32 - 1}
        assert markers == model.markers
        assert committed.tally.delta == store.num_slots - before == len(after) - before
        assert committed.tally.markers == len(markers) - held == store.num_markers - held
        assert store.num_loops == sum(u == v for u, v in model.state)
        assert store.largest in (None, store.backend.largest_vertex(store.segments))
    assert unchanged_of(store.unchanged, directed=True) == model.unchanged


def test_bad_rows_are_refused_while_they_are_located(make: Make) -> None:
    """W3"""
    store = filled(make, "top-down")
    if not store.backend.validates:
        with pytest.raises(BatchError):
            updates(Kind.APPEND, [4, 2**32 - 1], [5, 6])
        return
    before = shape(store.backend, store.segments)
    columns = appends(4, 5)
    columns.checked = False
    columns.src[1] = 2**32 - 1
    with pytest.raises(BatchError, match="vertex ids"):
        prepare(store, columns)
    assert not store.backend.written
    assert_same(shape(store.backend, store.segments), before)
    apply(store, appends(4, 5))
    assert list(slots(store))[:2] == [4, 5]


@given(stream=streams(markers=False), order=st.lists(st.sampled_from(PLANNERS), min_size=1,
                                                      max_size=4))  # fmt: skip
def test_a_plan_is_of_the_strategy_that_was_asked_for(
    make: Make, stream: Stream, order: list[str]
) -> None:
    """W4: whatever else was planned before, figures and moves are those of the last; as the plain
    backend has them."""
    ours, theirs = store_of(make()), store_of(plain())
    for columns in stream.columns():
        after: list[list[Any]] = []
        for store in (ours, theirs):
            staged, backend = stage(store, columns), store.backend
            rows = backend.key_rows(staged, columns, 0, len(columns), FORWARD)
            located = backend.locate(store.segments, staged, rows, False, order[0])
            total = store.num_slots + located.tally.delta
            m = store.sizing.levels_for(total, store.segments.m)
            if not located.tally.touched:
                backend.rollback(located)
                continue
            if m > store.segments.m:
                backend.rollback(located)
                segments = store.expanded(m)
                backend.place_on(segments, located)
            else:
                segments = store.segments
            plans = [backend.plan(strategy, segments, located) for strategy in order]
            after.append([(plans[-1].held_above_leaves, plans[-1].redundant, plans[-1].num_rounds)])
            backend.reserve(segments, located, plans[-1], 0)
            store.segments = segments
            backend.commit(segments, located, plans[-1], store.stats, -1)
            after[-1].append(shape(backend, segments))
        assume(not after or len(after) == 2)
        if after:
            assert_same(after[0], after[1])


@given(stream=streams(), strategy=st.sampled_from(PLANNERS), merges=st.sampled_from(MERGES))
def test_every_backend_leaves_the_same_store(
    make: Make, stream: Stream, strategy: str, merges: str
) -> None:
    """W4, W7, W8, W9, W11, S4, S5: segment by segment, fence by fence, window by window, what the
    plain backend leaves; also where small batches have a way of their own (B1)."""
    backend, other = make(), PlainBackend()
    other.costs = backend.costs
    ours = store_of(backend, strategy, merges)
    theirs = store_of(cast(AnyBackend, other), strategy, merges)
    for number, columns in enumerate(stream.columns()):
        direct = columns.edges_only and number % 2
        changes = [
            store.apply(columns, stage(store, columns), FORWARD)
            if direct
            else apply(store, columns).changes
            for store in (ours, theirs)
        ]
        assert_same(shape(backend, ours.segments), shape(theirs.backend, theirs.segments))
        assert_same([to_host(c) for c in changes[0] or ()], list(changes[1] or ()))
        counted, expected = ours.stats.as_dict(), theirs.stats.as_dict()
        loose = {"seconds"}
        if expected["redundant_rebalances"]:
            loose |= {"slots_by_layer", "bytes_moved"}  # W9 leaves a choice
        for name in counted.keys() - loose:
            assert counted[name] == expected[name], name
        assert ours.unchanged.tolist() == theirs.unchanged.tolist()


def test_changes_name_markers_too(make: Make) -> None:
    """W11"""
    store = filled(make)
    kinds = [Kind.ADD_VERTEX, Kind.APPEND, Kind.DELETE, Kind.DELETE, Kind.APPEND]
    columns = updates(kinds, [7, 0, 0, 0, 0], [0, 5, 10, 11, 20])
    committed = apply(store, columns)
    assert committed.changes is not None
    keys, inserted = map(to_host, committed.changes)
    assert keys.tolist() == [5, 10, 7 << 32 | (2**32 - 1)]
    assert inserted.tolist() == [True, False, True]
    assert committed.tally.num_changes == 3
    for most, known in ((2, False), (3, True), (-1, False)):
        store = filled(make)
        _, prepared = prepare(store, columns)
        assert (store.commit(prepared, 5, most_changes=most).changes is not None) == known


@pytest.mark.parametrize("expanded", [False, True])
def test_a_rebuilt_store_is_a_built_one(make: Make, expanded: bool) -> None:
    """W7: from the segments that it is given, those of before or those expanded for the batch."""
    for keys in (range(1, 600, 2), range(1, 2), range(10, 610, 10)):
        store = filled(make)
        columns, backend = appends(*keys), store.backend
        staged = stage(store, columns)
        rows = backend.key_rows(staged, columns, 0, len(columns), FORWARD)
        located = backend.locate(store.segments, staged, rows, False, "top-down")
        m = store.sizing.levels_for(store.num_slots + located.tally.delta, 0)
        segments = store.segments
        if expanded:
            backend.rollback(located)
            segments = backend.expand(segments)
            backend.place_on(segments, located)
            backend.plan("bottom-up", segments, located)
        fresh = backend.rebuild(segments, located, m)
        committed = backend.commit(fresh, located, None, store.stats, 1000)
        after = sorted({*range(10, 610, 10), *keys})
        twice = sorted({*range(10, 610, 10)} & {*keys})
        built, _ = loaded(store, after)
        expected, got = shape(backend, built), shape(backend, fresh)
        assert_same([got[:3], got[-2:]], [expected[:3], expected[-2:]])
        store.segments = fresh
        assert [key for key, (weight, _) in slots(store).items() if weight == 2] == twice
        assert committed.changes is not None
        assert sorted(to_host(committed.changes[0]).tolist()) == sorted({*keys} - {*twice})


# Small batches --------------------------------------------------------------------------------


@given(stream=streams(markers=False), strategy=st.sampled_from(PLANNERS), reverse=st.booleans())
def test_small_batches_have_no_other_end(
    make: Make, stream: Stream, strategy: str, reverse: bool
) -> None:
    """B1: applied at once, all is as by the long way; refused, nothing has happened."""
    direction = REVERSE if reverse else FORWARD
    one, other = store_of(make(), strategy), store_of(make(), strategy)
    if not isinstance(one.backend, SmallBatches):
        assert one._small is None
        return
    for columns in stream.columns():
        backend, stats = one.backend, Stats()
        before = shape(backend, one.segments)
        for most_cost in (-1.0, 0.0, np.inf):
            done = one.backend.apply_small(
                one.segments, stage(one, columns), columns, direction, strategy, most_cost, stats
            )
            if isinstance(done, Committed):
                break
            assert_same(shape(backend, one.segments), before)
            assert not backend.written
            assert stats.as_dict() == Stats().as_dict()
        committed = apply(other, columns, direction)
        if isinstance(done, Committed):
            assert_same(done[:2], committed[:2])
            assert_same(done.changes, committed.changes)
            assert done[3:] == committed[3:]
            backend.written = False
        else:
            apply(one, columns, direction)
        assert_same(shape(backend, one.segments), shape(backend, other.segments))


# Mixed batches and queries --------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """The stores of a graph, and the model of it."""

    stores: Stores
    model: ModelGraph

    def apply(self, columns: Columns) -> list[Any]:
        """Apply a batch to both, and compare the answers. Returns what changed."""
        stores = self.stores
        outcome = apply_in_parallel(stores, columns, stage(stores.out, columns))
        expected = self.model.apply(columns)
        assert_same([outcome.answers.on_host()[i] for i in range(len(outcome.answers))], expected)
        for store, direction in stores.all:
            assert edges_of(store) == model_slots(self.model, direction)
            assert not store.segments.has_versions
        stores.settle()
        return outcome.changes


def graph_of(make: Make, strategy: str, both: bool) -> Graph:
    stores = Stores(store_of(make(), strategy), store_of(make(), strategy) if both else None, True)
    return Graph(stores, ModelGraph(predecessors=both))


@given(
    seed=st.integers(0, 2**32), size=st.sampled_from([5, 40]), span=st.sampled_from([3, 9]),
    deletes=st.sampled_from([0.1, 0.6]), strategy=st.sampled_from(PLANNERS), both=st.booleans(),
)  # fmt: skip
def test_a_mixed_batch(
    make: Make, seed: int, size: int, span: int, deletes: float, strategy: str, both: bool
) -> None:
    """R1, R2, W2, W12, W13: a query sees what came before it; in the end all is as if operations
    had come one by one, and what changed is what changed."""
    graph = graph_of(make, strategy, both)
    queries = QUERIES if both else tuple(kind for kind in QUERIES if kind != Kind.PREDECESSORS)
    for number in range(3):
        columns = Burst(seed + number, size, span, deletes, hub=False).columns(queries)
        before = list(slots(graph.stores.out))
        changes = graph.apply(columns)
        there = set(before)
        for changed in changes:
            assert changed is not None
            for key, inserted in zip(*(to_host(c).tolist() for c in changed), strict=True):
                assert (key in there) != inserted
                (there.add if inserted else there.discard)(key)
        assert sorted(there) == list(slots(graph.stores.out))
    assert unchanged_of(graph.stores.out.unchanged, directed=True) == graph.model.unchanged


def test_a_mixed_batch_allocates_beforehand(make: Make) -> None:
    """W12: what it needs is there once it begins to write."""
    store = filled(make, "top-down")
    stores = Stores(store, None, True)
    batch = lpma.Batch()
    for i in range(100):
        batch.append(0, i, time=i)
        batch.degree(0)
        batch.delete(0, 10 * i, time=i)
    held = []
    commit, compact = store.backend.commit, store.backend.compact

    def noting(method: Any) -> Any:
        def noted(*arguments: Any) -> Any:
            held.append(store.backend.buffer_bytes)
            result = method(*arguments)
            held.append(store.backend.buffer_bytes)
            return result

        return noted

    for name, method in (("commit", commit), ("compact", compact)):
        setattr(store.backend, name, noting(method))
    columns = batch.columns()
    apply_in_parallel(stores, columns, stage(store, columns))
    assert len(set(held)) == 1
    assert len(held) >= 4


@given(stream=streams(), weight=st.sampled_from(["float32", None]))
def test_queries_and_exports(make: Make, stream: Stream, weight: str | None) -> None:
    """R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13, R14: against the model; and nothing is
    written."""
    store, model = store_of(make(), weight=weight), ModelGraph(weight=weight)
    for columns in stream.columns():
        apply(store, columns)
        model.apply(columns)
    backend, segments = store.backend, store.segments
    before = shape(backend, segments)
    vertices = np.arange(22, dtype=np.uint32)
    src, dst = (a.ravel().astype(np.uint32) for a in np.meshgrid(vertices, vertices))
    found, weights, times = map(to_host, backend.find_edges(segments, None, src, dst, None))
    state = [model.state.get(edge) for edge in zip(src.tolist(), dst.tolist(), strict=True)]
    assert found.tolist() == [s is not None for s in state]
    assert times.tolist() == [0 if s is None else s[1] for s in state]
    if weight is None:
        assert weights is None
    else:
        assert weights.tolist() == [0 if s is None else s[0] for s in state]
    rows = {u: sorted(v for x, v in model.state if x == u) for u in range(22)}
    degrees = to_host(backend.count_neighbors(segments, None, vertices, None))
    assert degrees.tolist() == [len(rows[u]) for u in range(22)]
    for values in (False, True):
        got = backend.neighbors(segments, None, vertices, None, values)
        indptr, ids, weights, times = map(to_host, got)
        assert np.diff(indptr).tolist() == degrees.tolist()
        assert ids.tolist() == [v for u in range(22) for v in rows[u]]
        assert (weights is not None) == (values and weight is not None)
        assert (times is not None) == values
    into = {v: sorted(u for u, x in model.state if x == v) for v in range(22)}
    repeated = np.sort(np.concatenate([vertices, vertices[:5]]))
    has = to_host(backend.has_in_edges(segments, None, repeated, None))
    assert has.tolist() == [bool(into[v]) for v in repeated.tolist()]
    targets = vertices[::2]
    which, sources = map(to_host, backend.scan_targets(segments, None, targets, None))
    pairs = sorted(zip(targets[which].tolist(), sources.tolist(), strict=True))
    assert pairs == [(v, u) for v in targets.tolist() for u in into[v]]
    ends = [v for edge in model.state for v in edge] + list(model.markers)
    assert backend.largest_vertex(segments) == max([-1, *ends])
    exported = backend.csr(segments, 22, len(model.state), bool(model.markers))
    indptr, indices, weights, times = map(to_host, exported)
    assert indptr.tolist() == np.cumsum([0, *degrees]).tolist()
    assert indices.tolist() == [v for u in range(22) for v in rows[u]]
    assert times.tolist() == [model.state[u, v][1] for u in range(22) for v in rows[u]]
    keys, weights, times = map(to_host, backend.slots(segments))
    assert to_host(backend.slots(segments, values=False)[0]).tolist() == keys.tolist()
    copied = [None if c is None else np.empty_like(c) for c in (keys, weights, times)]
    assert copied[0] is not None
    backend.copy_slots(segments, copied[0], copied[1], copied[2])
    assert_same(copied, [keys, weights, times])
    assert_same(shape(backend, segments), before)


def test_host_memory(make: Make) -> None:
    """R15"""
    memory = make().host_memory(1000)
    assert isinstance(memory, np.ndarray)
    assert memory.dtype == np.uint8
    assert memory.nbytes >= 1000
    memory[:1000] = 7


# The suite itself -----------------------------------------------------------------------------


def test_every_line_is_cited() -> None:
    """By the docstring of a test here; and no test cites a line that is not there."""
    sources = [Path(str(module.__file__)).read_text() for module in (protocol, reading)]
    lines = {label for source in sources for label in re.findall(r"\[([A-Z]\d+)\]", source)}
    cited = {
        label
        for name, test in globals().items()
        if name.startswith("test_") and test.__doc__
        for label in re.findall(r"\b([ABRSW]\d+)\b", test.__doc__)
    }
    assert lines - cited == set()
    assert cited - lines == set()
    unlabelled = [line for source in sources for line in source.splitlines()
                  if "ENSURES:" in line and not re.search(r"\[[A-Z]\d+\]", line)]  # fmt: skip
    assert unlabelled == []


class PublishesWhilePlanning(PlainBackend):
    """Writes the counts as they will be, and does not say so."""

    def plan(self, strategy: str, segments: Any, located: Any) -> PlainPlan:
        plan = super().plan(strategy, segments, located)
        segments.counts[1] += located.tally.delta
        return plan


class NoRollback(CountsAhead):
    """Leaves the counts as they would have been."""

    def rollback(self, located: Any) -> None:
        self.written = False


class IgnoresStrategy(PlainBackend):
    def plan(self, strategy: str, segments: Any, located: Any) -> PlainPlan:
        return super().plan("top-down", segments, located)


class KeepsFirstPlan(PlainBackend):
    def plan(self, strategy: str, segments: Any, located: Any) -> PlainPlan:
        plan = super().plan(strategy, segments, located)
        return cast(PlainPlan, located.__dict__.setdefault("plan", plan))


class HeldBefore(PlainPlan):
    @property
    def held_above_leaves(self) -> int:
        windows = [(layer, j) for r in self.rounds for layer, j, _ in r if layer]
        return sum(sum(self.case.counts[j << x : (j + 1) << x]) for x, j in windows)


class TellsWhatWasHeldBefore(PlainBackend):
    def plan(self, strategy: str, segments: Any, located: Any) -> PlainPlan:
        plan = super().plan(strategy, segments, located)
        return HeldBefore(plan.case, plan.rounds)


class ForgetsMarkers(PlainBackend):
    """Its changes are of edges alone."""

    def commit(self, segments: Any, located: Any, plan: Any, stats: Any, most: int) -> Committed:
        edges = {key: there for key, there in located.inserted.items() if ~key & (2**32 - 1)}
        located.inserted = edges
        return super().commit(segments, located, plan, stats, most)


class RebuildsWithoutTheBatch(PlainBackend):
    def rebuild(self, segments: Any, located: Any, m: int) -> PlainSegments:
        return self._spread_over(segments, segments.slots, m)


class CountsTwice(PlainBackend):
    """What changes nothing is counted while locating and while moving."""

    def commit(self, segments: Any, located: Any, plan: Any, stats: Any, most: int) -> Committed:
        done = super().commit(segments, located, plan, stats, most)
        return done._replace(unchanged=[2 * count for count in done.unchanged])


class AppliesWhatItRefuses(NumbaBackend):
    """A small batch that would cost too much is applied all the same."""

    def apply_small(self, segments: Any, staged: Any, *how: Any) -> Any:
        columns, direction, strategy, _, stats = how
        done = super().apply_small(segments, staged, columns, direction, strategy, np.inf, stats)
        return None if how[3] <= 0 else done


MUTANTS: list[tuple[type, Callable[..., None]]] = [
    (PublishesWhilePlanning, test_planning_publishes_nothing),
    (NoRollback, test_planning_publishes_nothing),
    (IgnoresStrategy, test_a_plan_is_of_the_strategy_that_was_asked_for),
    (KeepsFirstPlan, test_a_plan_is_of_the_strategy_that_was_asked_for),
    (TellsWhatWasHeldBefore, test_a_plan_is_of_the_strategy_that_was_asked_for),
    (IgnoresStrategy, test_every_backend_leaves_the_same_store),
    (ForgetsMarkers, test_changes_name_markers_too),
    (RebuildsWithoutTheBatch, test_a_rebuilt_store_is_a_built_one),
    (CountsTwice, test_batches_come_to_what_operations_come_to),
    (AppliesWhatItRefuses, test_small_batches_have_no_other_end),
]


@pytest.mark.parametrize("mutant, test", MUTANTS, ids=lambda it: it.__name__)
def test_a_mutant_is_caught(mutant: type, test: Callable[..., None]) -> None:
    """A backend that breaks a line fails the test that cites it."""
    rest = [False] if test is test_a_rebuilt_store_is_a_built_one else []
    with pytest.raises((AssertionError, ExceptionGroup)):
        test(mutant, *rest)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_host_that_does_not_roll_back_is_caught(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call in LPMA.prepare, taken away."""
    with pytest.raises(AssertionError):
        test_what_fails_before_the_first_write_changes_nothing(
            cast(Make, NoRollback), "reserve", when, monkeypatch
        )
