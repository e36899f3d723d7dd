"""The controls on a CUDA device, and the streams drawn there."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import device, workloads
from benchmarks.controls.packed import Packed
from benchmarks.keys import Array, keys_of
from benchmarks.model import Model
from benchmarks.stores.gpu.race import ROUNDS
from tests.conftest import missing


def test_a_packed_batch_is_one_piece() -> None:
    keys = np.array([7, 3], np.uint64)
    memory = Packed.empty(3, columns=True, pinned=False)
    batch = Packed.fill(memory, keys, np.array([1, 2], np.float32), np.array([8, 9]))
    assert (batch.n, batch.nbytes) == (2, 40)
    assert memory[:16].view(np.uint64).tolist() == [7, 3]
    assert memory[16:32].view(np.int64).tolist() == [8, 9]
    assert memory[32:40].view(np.float32).tolist() == [1, 2]
    assert Packed.fill(memory, keys, None, None).nbytes == 16


def test_rounds_keep_to_the_stream() -> None:
    rounds = ROUNDS[10**6]
    assert rounds.within(rounds.streamed) is rounds
    fewer = rounds.within(rounds.streamed - 1)
    assert fewer is not None
    assert fewer.streamed <= rounds.streamed - 1
    assert fewer.inserts >= 2
    assert rounds.within(3) is None


@pytest.fixture
def gpu() -> None:
    reason = device.why_none()
    if reason is not None:
        missing("gpu", reason)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("columns", [True, False])
def test_flat_merge_against_the_model(columns: bool) -> None:
    import cupy

    from benchmarks.controls.flat_merge import FlatMerge

    workload = workloads.rmat(12, 20_000, 30_000)
    model, store = Model(*workload.base()), FlatMerge(columns)
    store.load(cupy.asarray(model.keys), 0)
    for i, size in enumerate((1, 1_000, 10_000, 5_000)):
        batch = workload.stream(i * 3_000, size)  # parts of it again
        given = _packed(keys_of(*batch), columns)
        if i == 3:
            store.delete(given)
            model.delete(*batch)
        else:
            store.insert(given)
            model.insert(*batch)
        keys, weights, _ = store.contents()
        assert np.array_equal(keys.get(), model.keys)
        assert not columns or float(weights.min()) >= 1


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_contiguous_pma_against_the_model() -> None:
    from benchmarks.controls.contiguous_pma import ContiguousPma

    workload = workloads.rmat(12, 0, 50_000)
    model, store = Model(*workload.stream(0, 0)), ContiguousPma()
    for start in range(0, 50_000, 2_500):
        batch = workload.stream(start, 5_000)  # half of it again
        store.insert(_packed(keys_of(*batch), True))
        model.insert(*batch)
        keys, weights, times = store.contents()
        assert np.array_equal(keys.get(), model.keys)
        assert store.num_edges == len(model.keys) == len(weights) == len(times)


def _packed(keys: Array, columns: bool) -> Packed:
    memory = Packed.empty(len(keys), columns)
    ones = np.ones(len(keys), np.float32) if columns else None
    return Packed.fill(memory, keys, ones, np.arange(len(keys)) if columns else None)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_streams_are_those_of_the_cpu() -> None:
    from benchmarks import workloads_gpu

    here, there = workloads.rmat(10, 2_000, 3_000), workloads_gpu.rmat(10, 2_000, 3_000)
    assert np.array_equal(there.keys.get(), keys_of(here.src, here.dst))
