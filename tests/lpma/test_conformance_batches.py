"""Every backend against the numbered lines of lpma/backend/protocol.py: what a batch comes to. See
test_conformance.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lpma.arrays import to_host
from lpma.backend.protocol import AnyBackend
from lpma.backend.values import BOTH, FORWARD, REVERSE, Committed, SlotArrays
from lpma.batch.columns import Kind
from lpma.errors import BatchError
from lpma.pma.counters import DELETE_ABSENT, EXPIRED, REASONS, Stats, unchanged_of
from lpma.pma.layout import NO_LEVEL, Size
from lpma.store.lpma import LPMA
from lpma.store.pending import PendingBatch
from tests.support.oracles import ModelGraph, assert_same
from tests.support.parts import levels_in_parts
from tests.support.seam import (
    MERGES,
    PLANNERS,
    SIZE,
    Make,
    Stream,
    appends,
    apply,
    edges_of,
    filled,
    loaded,
    model_slots,
    needs_plans,
    prepare,
    shape,
    slots,
    slow,
    stage,
    store_of,
    streams,
    updates,
)
from tests.support.slow_backend import SlowBackend

NEVER = 1 << 40  # no level has as many slots

# One batch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [FORWARD, REVERSE, BOTH])
def test_the_keys_of_rows(make: Make, direction: int) -> None:
    """W1"""
    kinds = [Kind.SET, Kind.INSERT, Kind.ADD_VERTEX, Kind.DEGREE, Kind.INSERT, Kind.DELETE]
    columns = updates(kinds, [1, 2, 3, 4, 6, 6], [5, 2, 0, 0, 7, 7])
    store = store_of(make())
    staged, backend = stage(store, columns), store.backend
    implied = np.array([2 << 32 | 2], np.uint64), np.array([5], np.uint32)
    ahead, back, marker = 1 << 32 | 5, 5 << 32 | 1, 3 << 32 | (2**32 - 1)
    expected = {FORWARD: [ahead, marker], REVERSE: [back], BOTH: [ahead, marker, back]}[direction]
    for more in (None, implied):
        rows = backend.key_rows(staged, columns, direction, more)
        located = backend.locate(store.segments, staged, rows, "top-down")
        loop = [] if more else [2 << 32 | 2]
        assert located.tally.delta == len(expected) + len(loop)
        backend.rollback(located)
    rows = backend.key_rows(staged, columns, direction, implied)
    store.commit(store.prepare(staged, rows), 6)
    assert list(slots(store)) == sorted(expected)


@pytest.mark.parametrize("weight", ["float32", "float64", None])
@pytest.mark.parametrize("size", [3, 40, 1500])
def test_edges_that_expire(make: Make, weight: str | None, size: int) -> None:
    """W1, W2, W8, W10: an EXPIRE row lets its edge go by the time that it has at that place."""
    rng, store = np.random.default_rng(size), store_of(make(), weight=weight)
    state: dict[int, int] = {}
    for number in range(12 if size < 1000 else 2):
        kind = rng.choice([Kind.INSERT, Kind.SET, Kind.EXPIRE, Kind.DELETE], size)
        if number % 3 == 2:
            kind[:] = Kind.EXPIRE
        key, time = rng.integers(0, size // 3 + 1, size), rng.integers(0, 50, size)
        key[: size // 4] = 1  # a long run
        absent = expired = 0
        for k, v, t in zip(kind.tolist(), key.tolist(), time.tolist(), strict=True):
            if k in (Kind.INSERT, Kind.SET):
                state[v] = t
            elif k == Kind.DELETE:
                absent += state.pop(v, None) is None
            elif state.get(v, t) < t:
                del state[v]
                expired += 1
        columns = updates(kind, np.zeros(size), key, time=time)
        columns.edges_only = True
        before = store.unchanged.copy()
        if number % 2:
            store.apply(columns, time, FORWARD)
        else:
            apply(store, columns)
        found = slots(store)
        assert list(found) == sorted(state)
        assert [found[v][1] for v in sorted(state)] == [state[v] for v in sorted(state)]
        counted = (store.unchanged - before).reshape(2, REASONS).sum(0)
        assert (counted[DELETE_ABSENT], counted[EXPIRED]) == (absent, expired)
        assert counted.sum() == absent + expired


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
            updates(Kind.INSERT, [4, 2**32 - 1], [5, 6])
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
    """W4: whatever else was planned before, figures and moves are those of the last; as the slow
    backend has them."""
    ours, theirs = store_of(make()), store_of(slow())
    needs_plans(ours.backend)
    for columns in stream.columns():
        after: list[list[Any]] = []
        for store in (ours, theirs):
            staged, backend = stage(store, columns), store.backend
            rows = backend.key_rows(staged, columns, FORWARD)
            located = backend.locate(store.segments, staged, rows, order[0])
            total = store.num_slots + located.tally.delta
            size = store.sizing.size_for(total, store.segments.size)
            if not located.tally.touched:
                backend.rollback(located)
                continue
            if size > store.segments.size:
                backend.rollback(located)
                segments = store.expanded(size)
                backend.place_on(segments, located)
            else:
                segments = store.segments
            plans = [backend.plan(strategy, segments, located) for strategy in order]
            after.append([(plans[-1].held_above_leaves, plans[-1].redundant, plans[-1].num_rounds)])
            backend.reserve(segments, located, plans[-1], 0)
            store.segments = segments
            backend.commit(segments, located, plans[-1], store.stats, -1)
            store.end_batch(staged)
            after[-1].append(shape(backend, segments))
        assume(not after or len(after) == 2)
        if after:
            assert_same(after[0], after[1])


@given(stream=streams(), strategy=st.sampled_from(PLANNERS), merges=st.sampled_from(MERGES),
       parted=st.booleans(), load=st.sampled_from([1, 4]))  # fmt: skip
def test_every_backend_leaves_the_same_store(
    make: Make, stream: Stream, strategy: str, merges: str, parted: bool, load: int
) -> None:
    """W4, W7, W8, W9, W11, S4, S5, S7: segment by segment, fence by fence, window by window, what
    the slow backend leaves; also where small batches have a way of their own (B1)."""
    backend, other = make(), SlowBackend()
    backend.costs = other.costs = replace(backend.costs, load=min(backend.costs.load, load))
    ours = store_of(backend, strategy, merges)
    theirs = store_of(cast(AnyBackend, other), strategy, merges)
    with levels_in_parts(1 if parted and backend.parted_from(SIZE) < NO_LEVEL else NEVER):
        _compare(ours, theirs, stream)


def _compare(ours: LPMA, theirs: LPMA, stream: Stream) -> None:
    backend = ours.backend
    for number, columns in enumerate(stream.columns()):
        direct = columns.edges_only and number % 2
        changes: list[Any] = []
        for store in (ours, theirs):
            if direct:
                assert columns.time is not None
                done = store.apply(columns, columns.time, FORWARD)
                assert not isinstance(done, PendingBatch)  # the store is too small beside the batch
                changes.append(done)
            else:
                changes.append(apply(store, columns).changes)
        assert_same(shape(backend, ours.segments), shape(theirs.backend, theirs.segments))
        backend.wait()
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
    kinds = [Kind.ADD_VERTEX, Kind.INSERT, Kind.DELETE, Kind.DELETE, Kind.INSERT]
    columns = updates(kinds, [7, 0, 0, 0, 0], [0, 5, 10, 11, 20])
    committed = apply(store, columns)
    assert committed.changes is not None
    store.backend.wait()
    assert isinstance(committed.changes, tuple)
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
        rows = backend.key_rows(staged, columns, FORWARD)
        located = backend.locate(store.segments, staged, rows, "top-down")
        size = store.sizing.size_for(store.num_slots + located.tally.delta, Size(0))
        segments = store.segments
        if expanded:
            needs_plans(backend)
            backend.rollback(located)
            segments = backend.expand(segments, Size(segments.m + 1))
            backend.place_on(segments, located)
            backend.plan("bottom-up", segments, located)
        fresh = backend.rebuild(segments, located, size)
        committed = backend.commit(fresh, located, None, store.stats, 1000)
        after = sorted({*range(10, 610, 10), *keys})
        twice = sorted({*range(10, 610, 10)} & {*keys})
        built, *_ = loaded(store, after)
        expected, got = shape(backend, built), shape(backend, fresh)
        assert_same([got[:3], got[-2:]], [expected[:3], expected[-2:]])
        store.segments = fresh
        assert [key for key, (weight, _) in slots(store).items() if weight == 2] == twice
        assert isinstance(committed.changes, tuple)
        backend.wait()
        assert sorted(to_host(committed.changes[0]).tolist()) == sorted({*keys} - {*twice})


# Small batches --------------------------------------------------------------------------------


@given(
    stream=streams(markers=False), strategy=st.sampled_from(PLANNERS),
    direction=st.sampled_from([FORWARD, REVERSE, BOTH]),
)  # fmt: skip
def test_small_batches_have_no_other_end(
    make: Make, stream: Stream, strategy: str, direction: int
) -> None:
    """B1: applied at once, all is as by the long way; refused, nothing has happened."""
    one, other = store_of(make(), strategy), store_of(make(), strategy)
    for columns in stream.columns():
        backend, stats = one.backend, Stats()
        before = shape(backend, one.segments)
        for most_cost in (-1.0, 0.0, np.inf):
            assert columns.time is not None
            how = one.weight_dtype, direction, strategy, most_cost, stats
            done = one.backend.apply_at_once(one.segments, columns, columns.time, *how)
            if isinstance(done, Committed):
                break
            assert_same(shape(backend, one.segments), before)
            assert not backend.written
            assert stats.as_dict() == Stats().as_dict()
        committed = apply(other, columns, direction)
        if isinstance(done, Committed):
            backend.wait()
            assert_same(done.changes, committed.changes)
            done.changes = committed.changes = None
            assert done == committed
            backend.written = False
        else:
            apply(one, columns, direction)
        assert_same(shape(backend, one.segments), shape(backend, other.segments))


# Provisional backends -------------------------------------------------------------------------


@given(stream=streams(), strategy=st.sampled_from(PLANNERS), moved=st.integers(0, 3))
def test_a_successor_goes_on_to_the_same_end(
    make: Make, stream: Stream, strategy: str, moved: int
) -> None:
    """B2: a store that is moved after some batches is the one that was not moved."""
    ours = theirs = store_of(make(), strategy)
    backend = ours.backend
    if not backend.is_provisional:
        assert backend.successor() is None
        return
    for number, columns in enumerate(stream.columns()):
        if number == moved:
            successor = backend.successor()
            assert successor is not None
            theirs = store_of(successor, strategy)
            given = SlotArrays(*ours.backend.slots(ours.segments))
            theirs.load(theirs.build(given), ours.num_markers, ours.num_loops)
            theirs.written = False
        committed = [apply(store, columns) for store in {id(s): s for s in (ours, theirs)}.values()]
        assert len({tuple(done.unchanged) for done in committed}) == 1
        assert_same(slots(theirs), slots(ours))
