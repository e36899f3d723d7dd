"""Every backend against the numbered lines of lpma/backend/protocol.py: planning, whole stores.

The same bodies run on the CPU's two backends, on the GPU's, and on the two of slow_backend.py: one
that does the least that is asked, one that takes the liberties that are granted. A test's docstring
cites the lines that it holds a backend to. What a batch comes to is in test_conformance_batches.py,
mixed batches and reading are in test_conformance_reads.py. test_conformance_mutants.py sees to it
that each line is cited, and that a backend that breaks one fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpma.arrays import to_host
from lpma.backend import values
from lpma.backend.numba.backend import NumbaBackend
from lpma.backend.numpy.backend import NumpyBackend
from lpma.backend.protocol import Backend
from lpma.backend.values import Array, Costs
from lpma.pma.density import bounds
from lpma.pma.layout import Size
from tests.support.layout_oracles import columns_by_rank
from tests.support.oracles import ModelGraph, assert_same
from tests.support.seam import (
    MERGES,
    PLANNERS,
    SIZE,
    Make,
    Stream,
    appends,
    apply,
    deletions,
    edges_of,
    filled,
    model_slots,
    needs_plans,
    prepare,
    shape,
    slots,
    slow,
    store_of,
    streams,
)
from tests.support.slow_backend import SlowBackend, SlowPlan
from tests.support.slow_store import SlowSegments

if TYPE_CHECKING:
    from lpma.backend.cuda.backend import CudaBackend
    from lpma.backend.cuda.store.segments import Segments as CudaSegments
    from lpma.backend.cuda.update.located import DevicePlan
    from lpma.backend.cuda.update.located import KeyRows as CudaRows
    from lpma.backend.cuda.update.located import Located as CudaLocated
    from lpma.backend.cuda.upload.staged_batch import StagedBatch as CudaBatch
    from lpma.backend.numba.located import KeyRows, Located, StagedBatch
    from lpma.backend.numba.rebalance import WindowPlan
    from lpma.backend.numba.segments import Segments as CpuSegments
    from lpma.backend.numpy.backend import Located as NumpyLocated
    from lpma.backend.numpy.fold import KeyRows as NumpyRows
    from lpma.backend.numpy.fold import StagedBatch as NumpyBatch
    from lpma.backend.numpy.segments import Segments as NumpySegments
    from tests.support.slow_backend import SlowLocated
    from tests.support.slow_store import SlowBatch, SlowRows

    def of_the_cpu(
        backend: NumbaBackend,
    ) -> Backend[CpuSegments, StagedBatch, KeyRows, Located, WindowPlan]:
        return backend  # mypy holds the methods' types to the protocols

    def without_kernels(
        backend: NumpyBackend,
    ) -> Backend[NumpySegments, NumpyBatch, NumpyRows, NumpyLocated, Any]:
        return backend

    def of_the_gpu(
        backend: CudaBackend,
    ) -> Backend[CudaSegments, CudaBatch, CudaRows, CudaLocated, DevicePlan]:
        return backend

    def of_the_tests(
        backend: SlowBackend,
    ) -> Backend[SlowSegments, SlowBatch, SlowRows, SlowLocated, SlowPlan]:
        return backend


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
        store.backend.rollback(prepared.located)
        store.end_batch(staged)
        assert not store.backend.written
        assert_same(shape(store.backend, published), before)
        model.apply(columns)
        apply(store, columns)
        assert edges_of(store) == model_slots(model)


@pytest.mark.parametrize("method", ["plan", "reserve", "rebuild", "expand"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_fails_before_the_first_write_changes_nothing(
    make: Make,
    method: str,
    when: str,
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A2, W5: memory runs out in a method, or after what it did, or it is cut off; the host rolls
    back."""
    batches = {"expand": range(1, 400, 3), "rebuild": range(1, 600, 2)}
    columns = appends(*batches.get(method, [11, 12, 13, 14, 15, 16]))
    store = filled(make, "top-down", "auto" if method == "rebuild" else "never")
    if method == "rebuild":
        monkeypatch.setattr(store.backend, "costs", Costs(load=min(store.backend.costs.load, 1)))
    else:
        needs_plans(store.backend)
    before, done = shape(store.backend, store.segments), getattr(store.backend, method)

    def failing(*arguments: Any) -> Any:
        if when == "after":
            done(*arguments)
        raise error("for a test")

    with monkeypatch.context() as patch:
        patch.setattr(store.backend, method, failing)
        with pytest.raises(error, match="for a test"):
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
        staged, prepared = prepare(store, columns)
        held = store.backend.buffer_bytes
        store.commit(prepared, len(columns))
        assert store.backend.buffer_bytes == held
        store.end_batch(staged)


@pytest.mark.parametrize("strategy", PLANNERS)
def test_shrinking_allocates_nothing(make: Make, strategy: str) -> None:
    """A2, W6: where it follows a commit that leaves the root too empty."""
    store = filled(make, strategy)
    staged, prepared = prepare(store, deletions(*range(10, 530, 10)))
    held = store.backend.buffer_bytes
    store.commit(prepared, 52)
    assert store.stats.shrinks > 0
    assert store.backend.buffer_bytes == held
    store.end_batch(staged)
    assert list(slots(store)) == [*range(530, 610, 10)]


# Whole stores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["float32", "float64", None])
def test_an_empty_store(make: Make, weight: str | None) -> None:
    """S1, R10"""
    store = store_of(make(), weight=weight)
    segments = store.segments
    assert (segments.m, segments.num_slots, segments.segment_size) == (0, 0, SIZE)
    assert len(segments.keys) == 1
    if weight is None:
        assert segments.weights is None
    else:
        assert segments.weights is not None
        assert segments.weights[0].dtype == weight
    assert segments.times is not None
    assert slots(store) == {}
    assert store.backend.largest_vertex(segments) == -1


@pytest.mark.parametrize("least", [1, 7, values.PIECE_SLOTS])
@pytest.mark.parametrize("n", [0, 1, 3, 57, 58, 200])
def test_a_store_of_whole_columns_is_spread_evenly(
    make: Make, monkeypatch: pytest.MonkeyPatch, n: int, least: int
) -> None:
    """S2, S3: in pieces, too, of which some may lie within a segment."""
    monkeypatch.setattr(values, "PIECE_SLOTS", least)
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
    needs_plans(store.backend)
    before = shape(store.backend, store.segments)
    larger = store.backend.expand(store.segments, Size(store.segments.m + 1))
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
    """S5: as the slow backend does it, window by window."""
    ours, theirs = filled(make, strategy), filled(slow, strategy)
    needs_plans(ours.backend)
    gone = np.random.default_rng(seed).permutation(np.arange(10, 610, 10))[left:].tolist()
    for store in (ours, theirs):
        apply(store, deletions(*gone))
    assert ours.stats.shrinks == theirs.stats.shrinks > 0
    assert_same(shape(ours.backend, ours.segments), shape(theirs.backend, theirs.segments))
