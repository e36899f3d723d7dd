"""What an exchange costs where a shard lies: constants of the cost model of a cluster."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from algorithms.sharded import Part
from algorithms.sharded.programs.oriented import inside
from algorithms.sharded.runtime.rows import joined, packed
from algorithms.sharded.runtime.state import ShardState
from algorithms.triangles.ranked import lister
from algorithms.views.simple import View
from lpma.arrays import array_module, device_of, finish

from ..stopwatch import Figure
from .cluster_drawn import Place

TIMES = 5  # each, after a first


def least(seconds: list[float]) -> Figure:
    return Figure(min(seconds), seconds)


def value_s(part: Part) -> float:
    """Seconds to gather a value from a random place and to put it in another."""
    with device_of(part.indptr):
        xp = array_module(part.indptr)
        n = max(part.num_rows, 1)
        rows = xp.asarray(np.random.default_rng(1).permutation(n).astype(np.uint32))
        values = xp.zeros(n)

        def exchanged() -> float:
            began = time.perf_counter()
            message = values[rows]
            values[rows] = message
            finish(values)
            return time.perf_counter() - began

        exchanged()
        return least([exchanged() for _ in range(TIMES)]) / n


def deal_s(part: Part) -> float:
    """Seconds to deal a row to one of two owners, as `ShardState.by_owner` does."""
    with device_of(part.indptr):
        xp = array_module(part.indptr)
        n = max(part.num_rows, 1)
        rows = xp.arange(n, dtype=np.uint32)
        held = ShardState(replace(part, shard=0, shards=2))
        finish(held.owner)

        def dealt() -> float:
            began = time.perf_counter()
            finish(held.by_owner(rows)[0])
            return time.perf_counter() - began

        dealt()
        return least([dealt() for _ in range(TIMES)]) / n


def ship_s(part: Part) -> float:
    """Seconds to pack an entry of a row, to put it together with others, to keep it, and to rank
    it."""
    with device_of(part.indptr):
        xp = array_module(part.indptr)
        rows = xp.flatnonzero(part.indptr[1:] > part.indptr[:-1]).astype(np.uint32)
        everything = xp.ones(part.num_rows, np.bool_)

        def shipped() -> float:
            began = time.perf_counter()
            message = (rows, *packed(part.indptr, rows, [part.indices]))
            kept = inside(View(*joined(part.num_rows, rows, [message], 1)), everything)
            finish(kept.indices)
            return time.perf_counter() - began

        def ranked() -> float:
            began = time.perf_counter()
            finish(lister(view).rank(view).indices)
            return time.perf_counter() - began

        view = View(part.indptr, part.indices)
        seconds = [(shipped(), 2 * ranked()) for _ in range(TIMES + 1)]  # half of them is ranked
        least = [min(times) for times in zip(*seconds[1:], strict=True)]
        return sum(least) / max(len(part.indices), 1)


def link_bytes_s(place: Place) -> float:
    """Of a copy from one device to another; without limit where messages go by reference."""
    if len(place.devices) < 2:
        return float("inf")
    import cupy

    with cupy.cuda.Device(place.devices[0]):
        there = cupy.zeros(1 << 26, np.uint8)
    with cupy.cuda.Device(place.devices[1]):
        seconds = []
        for _ in range(TIMES + 1):
            cupy.cuda.runtime.deviceSynchronize()
            began = time.perf_counter()
            there.copy()
            cupy.cuda.runtime.deviceSynchronize()
            seconds.append(time.perf_counter() - began)
    return there.nbytes / least(seconds[1:])
