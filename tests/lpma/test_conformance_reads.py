"""Every backend against the numbered lines of lpma/backend/protocol.py: mixed
batches, queries, exports. See test_conformance.py."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpma.arguments.convert import NO_VERTEX
from lpma.arrays import array_module, to_host
from lpma.backend.values import FORWARD
from lpma.batch.columns import Kind
from lpma.pma.counters import unchanged_of
from lpma.pma.keys import LOW, keys_of
from lpma.time_view import Decay, TimeView, decayed
from tests.support.oracles import ModelGraph, assert_same
from tests.support.seam import (
    PLANNERS,
    Make,
    Stream,
    apply,
    by_key,
    filled,
    graph_of,
    shape,
    slots,
    stage,
    store_of,
    streams,
    updates,
)
from tests.support.strategies import QUERIES, Burst


@given(
    seed=st.integers(0, 2**32), size=st.sampled_from([5, 40]), span=st.sampled_from([3, 9]),
    deletes=st.sampled_from([0.1, 0.6]), strategy=st.sampled_from(PLANNERS), both=st.booleans(),
)  # fmt: skip
def test_a_mixed_batch(
    make: Make, seed: int, size: int, span: int, deletes: float, strategy: str, both: bool
) -> None:
    """R1, R2, W2, Q1, Q2: a query sees what came before it; in the end all is as if operations had
    come one by one, and what changed is what changed."""
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


@pytest.mark.parametrize("implies", [False, True])
def test_what_lies_beside_a_store_is_not_in_it(make: Make, implies: bool) -> None:
    """Q1, Q2: reads with a limit see rows before it, those without see what is stored; the same
    rows are then located. With deletions that rows imply, too."""
    store = filled(make, n=4)
    columns = updates([Kind.INSERT, Kind.DELETE, Kind.EDGE, Kind.INSERT], [0] * 4, [5, 10, 0, 5])
    backend, segments, staged = store.backend, store.segments, stage(store, columns)
    before = shape(backend, segments)
    implied = (np.array([20], np.uint64), np.array([2], np.uint32)) if implies else None
    rows = backend.key_rows(staged, columns, FORWARD, implied)
    backend.sort_beside(segments, staged, rows)
    assert not backend.written
    u, at = np.zeros(5, np.uint32), np.arange(5)
    expected = [[10, 20, 30, 40], [5, 10, 20, 30, 40], [5, 20, 30, 40], [5, 20, 30, 40],
                [5, 20, 30, 40]]  # fmt: skip
    if implies:
        expected[3:] = [[5, 30, 40]] * 2
    indptr, ids, weights, _ = map(to_host, backend.neighbors(segments, staged, u, at, True))
    assert [ids[lo:hi].tolist() for lo, hi in itertools.pairwise(indptr.tolist())] == expected
    assert weights[indptr[1]] == 1
    assert weights[indptr[4]] == 2
    degrees = to_host(backend.count_neighbors(segments, staged, u, at))
    assert degrees.tolist() == [len(row) for row in expected]
    v = np.full(5, 10, np.uint32)
    found, _, _ = backend.find_edges(segments, staged, u, v, at)
    assert to_host(found).tolist() == [10 in row for row in expected]
    assert to_host(backend.neighbors(segments, None, u[:1], None, False)[1]).tolist() == [
        10, 20, 30, 40
    ]  # fmt: skip
    asked = [to_host(c).tolist() for c in backend.asked(segments, staged, columns, at[2:3])]
    assert asked == [[0], [0], [2]]
    backend.wait()
    assert_same(shape(backend, segments), before)
    store.commit(store.prepare(staged, rows), 4)
    assert list(slots(store)) == expected[4]


@given(stream=streams(), weight=st.sampled_from(["float32", None]))
def test_queries_and_exports(make: Make, stream: Stream, weight: str | None) -> None:
    """R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13, R14, R15, R21: against the
    model; and nothing is written."""
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
    by_keys = map(to_host, backend.find_keys(segments, keys_of(src, dst)))
    assert_same(list(by_keys), [found, weights, times])
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
    for u, first, most in itertools.product((0, 7, 21), (0, 1, 9, NO_VERTEX), (1, 3, 100)):
        ids, weights, times = map(to_host, backend.neighbors_from(segments, u, first, most))
        assert ids.tolist() == [v for v in rows[u] if v >= first][:most]
        assert times.tolist() == [model.state[u, v][1] for v in ids.tolist()]
        if weight is not None:
            assert weights.tolist() == [model.state[u, v][0] for v in ids.tolist()]
    into = {v: sorted(u for u, x in model.state if x == v) for v in range(22)}
    repeated = np.sort(np.concatenate([vertices, vertices[:5]]))
    has = to_host(backend.has_in_edges(segments, repeated))
    assert has.tolist() == [bool(into[v]) for v in repeated.tolist()]
    targets = vertices[::2]
    which, sources = map(to_host, backend.scan_targets(segments, targets))
    pairs = sorted(zip(targets[which].tolist(), sources.tolist(), strict=True))
    assert pairs == [(v, u) for v in targets.tolist() for u in into[v]]
    ends = [v for edge in model.state for v in edge] + list(model.markers)
    assert backend.largest_vertex(segments) == max([-1, *ends])
    held = len(model.state), bool(model.markers)
    exported = (
        *backend.csr_rows(segments, 22, *held),
        *backend.csr_columns(segments, *held, backend.taker()),
    )
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
    if backend.copies_in_pieces:
        for name, column in zip(("keys", "weights", "times"), copied, strict=True):
            if column is not None:
                pieces = [piece.copy() for piece in backend.column_pieces(segments, name)]
                assert_same(np.concatenate([column[:0], *pieces]), column)
    assert_same(shape(backend, segments), before)


@pytest.mark.parametrize("n", [0, 1, 30, 5000])
def test_what_is_older(make: Make, n: int) -> None:
    """R17, R18, R20: in sparse and in full stores, with markers and without."""
    rng, store = np.random.default_rng(n), store_of(make())
    time = rng.integers(-(2**62), 2**62, n)
    kind = np.where(np.arange(n) % 9, Kind.INSERT, Kind.ADD_VERTEX)
    apply(store, updates(kind, rng.integers(0, 90, n), rng.integers(0, 2**32 - 1, n), time=time))
    backend, held = store.backend, slots(store)
    for before in (-(2**63), 0, 2**61, 2**63 - 1):
        keys, times = map(to_host, backend.older(store.segments, before))
        old = {key: t for key, (_, t) in held.items() if t < before and key & int(LOW) != int(LOW)}
        assert dict(zip(keys.tolist(), times.tolist(), strict=True)) == old
        assert len(keys) == len(old)
        columns, loops = backend.since(store.segments, before)
        stays = {key: value for key, value in held.items() if key not in old}
        assert list(by_key(columns).items()) == list(stays.items())
        assert loops == sum(key >> 32 == key & int(LOW) for key in old)
    sample = backend.sampled_times(store.segments).tolist()
    assert set(sample) <= {t for _, t in held.values()}
    assert sample or not held


@pytest.mark.parametrize("weight", ["float32", "float64", None])
@pytest.mark.parametrize("n", [0, 30, 5000])
def test_what_is_in_a_view(make: Make, n: int, weight: str | None) -> None:
    """R22, R23: in sparse and in full stores, with markers and without."""
    rng, store = np.random.default_rng(n), store_of(make(), weight=weight)
    time = rng.integers(-(2**62), 2**62, n)
    kind = np.where((np.arange(n) % 9 > 0) | (n < 100), Kind.INSERT, Kind.ADD_VERTEX)
    weights = rng.integers(1, 9, n)
    apply(store, updates(kind, rng.integers(0, 90, n), rng.integers(0, 99, n), weights, time))
    backend, held = store.backend, slots(store)
    for view in (
        TimeView(), TimeView(-5, 2**61), TimeView(7, 6), TimeView(half_life=2**60),
        TimeView(first=0, half_life=2**62, now=2**60), TimeView(last=5, half_life=1, now=-(2**63)),
    ):  # fmt: skip
        found = backend.csr_view(store.segments, 100, view, store.num_markers > 0, True)
        keys = [key for key, (_, time) in held.items()
                if view.first <= time <= view.last and key & int(LOW) != int(LOW)]  # fmt: skip
        times = np.array([held[key][1] for key in keys], np.int64)
        expected: Any = None if weight is None else np.array([held[k][0] for k in keys], weight)
        if view.half_life:
            now = times.max(initial=-(2**63)) if view.now is None else view.now
            expected = decayed(expected, times, Decay(
                int(now), view.half_life, min(1023 * view.half_life, 2**64 - 1), 1 / view.half_life
            ))  # fmt: skip
        indptr = np.searchsorted([key >> 32 for key in keys], np.arange(101))
        assert to_host(found[0]).tolist() == indptr.tolist()
        assert to_host(found[1]).tolist() == [key & int(LOW) for key in keys]
        assert_same([to_host(found[2]), to_host(found[3])], [expected, times])
        assert found[4] == sum(key >> 32 == key & int(LOW) for key in keys)


@pytest.mark.parametrize("n", [1, 700])
def test_whether_a_time_is_older(make: Make, n: int) -> None:
    """R19: of times on the host and where the store is, asked before the answer to the last is."""
    store, times = store_of(make()), np.arange(10, 10 + n)[::-1].copy()
    backend, segments = store.backend, store.segments
    xp = array_module(backend.slots(segments)[0])
    for column in (times, xp.asarray(times)):
        for before, expected in ((10, False), (11, True), (-(2**63), False), (2**63 - 1, True)):
            backend.any_older(segments, xp.asarray([0]), 1)
            assert backend.any_older(segments, column, before)() == expected


def test_host_memory(make: Make) -> None:
    """R16"""
    memory = make().host_memory(1000)
    assert isinstance(memory, np.ndarray)
    assert memory.dtype == np.uint8
    assert memory.nbytes >= 1000
    memory[:1000] = 7
