"""Kernels read a batch's columns only once they are on the device, however late each arrives.

Copies are mostly over before anybody reads, so here each of them is kept waiting. A kernel that did
not wait would read what an earlier batch left in the same block. The CPU backend is the oracle."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Batch, Kind
from lpma.backend.overlapping import ONE_LAUNCH_ROWS
from tests.support.oracles import assert_same
from tests.support.plain_arrays import assert_same_graph

pytestmark = pytest.mark.gpu

SPAN = 3000
LATE_S = 0.01


@pytest.fixture
def late(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every copy of a column begins late."""
    from lpma.backend.cuda.upload import staging
    from lpma.backend.cuda.upload.blocks import Block

    def materialize_deferred(self: Block, base: int, lo: int, hi: int, stream: Any) -> None:
        stream.launch_host_func(time.sleep, LATE_S)
        copy(self, base, lo, hi, stream)

    staging.compiled.get_ready()
    copy = Block.copy
    monkeypatch.setattr(Block, "copy", materialize_deferred)


@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize("n", [20_000, 100_000, ONE_LAUNCH_ROWS + 1])
@pytest.mark.parametrize("of", ["plain", "validated", "pinned"])
@pytest.mark.usefixtures("late")
def test_updates(of: str, n: int, times: bool) -> None:
    rng = np.random.default_rng(n)
    there, here = (lpma.Graph(device=device, times=times) for device in ("cuda", "cpu"))
    src, dst = rng.integers(0, SPAN, (2, 4 * n))
    for g in (there, here):
        g.insert(src, dst, np.full(4 * n, 0.25), time=5 if times else None)
    for turn in range(1, 5):  # each of the two blocks comes twice
        src, dst = rng.integers(0, SPAN, (2, n))
        columns = Batch.from_columns(
            Kind.INSERT, src, dst, np.full(n, turn / 4), np.full(n, turn) if times else None
        )
        here.apply(columns)
        if of == "plain":
            there.insert(src, dst, np.full(n, turn / 4), np.full(n, turn) if times else None)
        else:
            there.apply(columns if of == "validated" else pinned(columns))
        assert_same_graph(there, here)


def pinned(columns: lpma.Columns) -> lpma.Columns:
    batch = lpma.pinned_batch(len(columns))
    assert batch.weight is not None
    assert batch.time is not None
    batch.kind[:], batch.src[:], batch.dst[:] = columns.kind, columns.src, columns.dst
    batch.weight[:] = columns.weight
    batch.time[:] = 0 if columns.time is None else columns.time
    return batch


@pytest.mark.usefixtures("late")
def test_queries_among_updates() -> None:
    """They are answered from the batch as it lies beside the store."""
    n, rng = 100_000, np.random.default_rng(3)
    there, here = (lpma.Graph(device=device, times=False) for device in ("cuda", "cpu"))
    src, dst = rng.integers(0, SPAN, (2, 4 * n))
    for g in (there, here):
        g.insert(src, dst, np.full(4 * n, 0.25))
    for turn in range(1, 5):
        kinds = np.full(n, int(Kind.INSERT))
        kinds[100:200] = Kind.EDGE
        src, dst = rng.integers(0, SPAN, (2, n))
        src[100:200], dst[100:200] = src[:100], dst[:100]
        batch = Batch.from_columns(kinds, src, dst, np.full(n, turn / 4))
        got, expected = there.apply(batch), here.apply(batch)
        for number in range(100):
            assert_same(got[number], expected[number], f"batch {turn}, query {number}")
    assert_same_graph(there, here)
