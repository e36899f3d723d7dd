"""Every backend against the numbered lines of lpma/backend/protocol.py and reading.py: mixed
batches, queries, exports. See test_conformance.py."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import opera
from lpma.arrays import array_module, to_host
from lpma.batch import Kind
from lpma.coerce import NO_VERTEX
from lpma.keys import LOW
from lpma.opera import apply_in_parallel
from lpma.unchanged import unchanged_of
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
    slow,
    stage,
    store_of,
    stores_of,
    streams,
    updates,
)
from tests.support.strategies import QUERIES, Burst


@given(
    seed=st.integers(0, 2**32), size=st.sampled_from([5, 40]), span=st.sampled_from([3, 9]),
    deletes=st.sampled_from([0.1, 0.6]), strategy=st.sampled_from(PLANNERS), both=st.booleans(),
    beside=st.booleans(),
)  # fmt: skip
def test_a_mixed_batch(
    make: Make, seed: int, size: int, span: int, deletes: float, strategy: str, both: bool,
    beside: bool,
) -> None:  # fmt: skip
    """R1, R2, W2, W12, W13: a query sees what came before it; in the end all is as if operations
    had come one by one, and what changed is what changed. The same where the batch stays beside the
    store (Q1 and Q2 of beside.py)."""
    with pytest.MonkeyPatch.context() as patched:
        if not beside:
            patched.setattr(opera, "stays_beside", lambda *_: False)
        _mixed_batches(make, seed, size, span, deletes, strategy, both)


def _mixed_batches(
    make: Make, seed: int, size: int, span: int, deletes: float, strategy: str, both: bool
) -> None:
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


def test_a_mixed_batch_allocates_beforehand(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: what it needs is there once it begins to write, if it is put into the store."""
    monkeypatch.setattr(opera, "stays_beside", lambda *_: False)
    store = filled(make, "top-down")
    stores = stores_of(store)
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


@pytest.mark.parametrize("strategy", PLANNERS)
@pytest.mark.parametrize("gone", [range(10, 530, 10), range(210, 410, 10)])
def test_a_mixed_batch_leaves_the_same_store(
    make: Make, strategy: str, gone: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W12, W13: what has become too empty is rebalanced or shrinks, without allocating; as the
    slow backend does it, window by window, and counted alike."""
    monkeypatch.setattr(opera, "stays_beside", lambda *_: False)
    batch = lpma.Batch()
    for target in gone:
        batch.degree(0)
        batch.delete(0, target, time=1)
    columns = batch.columns()
    ends: list[tuple[Any, Any]] = []
    for store in (filled(make, strategy), filled(slow, strategy)):
        compact: Any = store.backend.compact
        held: list[int] = []

        def noted(*given: Any, done: Any = compact, held: Any = held, store: Any = store) -> Any:
            held.append(store.backend.buffer_bytes)
            return done(*given)

        setattr(store.backend, "compact", noted)  # noqa: B010
        apply_in_parallel(stores_of(store), columns, stage(store, columns))
        assert held == [store.backend.buffer_bytes]
        assert list(slots(store)) == sorted({*range(10, 610, 10)} - {*gone})
        ends.append((shape(store.backend, store.segments), store.stats.as_dict()))
    assert_same(ends[0][0], ends[1][0])
    for name in ("expansions", "shrinks", "rebalances_by_layer", "segments_by_layer"):
        assert ends[0][1][name] == ends[1][1][name], name
    assert (ends[0][1]["shrinks"] > 0) == (len(gone) == 52)


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


@pytest.mark.parametrize("n", [0, 1, 30, 5000])
def test_what_is_older(make: Make, n: int) -> None:
    """R17, R18, R20: in sparse and in full stores, with markers and without."""
    rng, store = np.random.default_rng(n), store_of(make())
    time = rng.integers(-(2**62), 2**62, n)
    kind = np.where(np.arange(n) % 9, Kind.APPEND, Kind.ADD_VERTEX)
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
