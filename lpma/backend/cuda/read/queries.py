"""Queries for edges, scans of a whole store, and copies of its slots: what
lpma/backend/protocol.py asks for.

Inputs are NumPy or CuPy arrays, results are CuPy arrays. Inside a mixed batch that lies
beside the store, see beside.cu. Streams: see reader.py.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.driver import Array
from ..launch.kernels import launch_on
from ..store.segments import Segments
from ..upload.staged_batch import StagedBatch
from .neighbors import QUERY_THREADS
from .reader import UNCHECKED, Reader

SCAN_ROOM = 1 << 16


class Queries:
    """Of one store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def find_edges(
        self,
        segments: Segments,
        staged: StagedBatch | None,
        src: Array,
        dst: Array | None,
        limits: Array | None,
        unseen: bool = False,
    ) -> tuple[Array, Array | None, Array | None]:
        n, told = len(src), False
        weight, time = segments.value_dtypes
        with self._reader as reader:
            found, weights, times = reader.new((n, cupy.bool_), (n, weight), (n, time))
            if not n:
                return found, weights, times
            stem, name = "query", "find_edges"
            batch: tuple[Any, ...] = ()
            places: tuple[Any, ...] = ()
            checking: tuple[Any, ...] = UNCHECKED
            if staged is not None:
                stem, name, checking = "beside", "find_edges_beside", ()
                batch, places = reader.batch_and_places(staged, limits)
            elif unseen and (isinstance(src, cupy.ndarray) or isinstance(dst, cupy.ndarray)):
                checking, told = reader.checking(), True
            launch_on(
                segments, stem, name, n,
                segments.record, *batch, reader.given(src, np.uint32),
                reader.given(dst, np.uint32), *places, n, found, weights, times, *checking,
                block=QUERY_THREADS,
            )  # fmt: skip
            if told:
                reader.told()
        return found, weights, times

    def has_in_edges(self, segments: Segments, targets: Array) -> Array:
        with self._reader as reader:
            (found,) = reader.new((len(targets), cupy.bool_))
            driver.clear(found.data.ptr, found.nbytes, reader.stream)
            if len(targets):
                _scan(segments, targets, (found, None, None, 0, None))
        return found

    def scan_targets(self, segments: Segments, targets: Array) -> tuple[Array, Array]:
        hits, room = 0, SCAN_ROOM
        with self._reader as reader:
            while True:
                which, source = reader.new((room, np.int64), (room, np.uint32))
                if len(targets):
                    counter = driver.zeros(1, np.uint64)
                    _scan(segments, targets, (None, which, source, room, counter))
                    hits = driver.number(counter)
                if hits <= room:
                    break
                room = hits
        return which[:hits], source[:hits]

    def largest_vertex(self, segments: Segments) -> int:
        with self._reader:
            largest = driver.zeros(1, np.uint64)
            launch_on(
                segments, "scan", "largest_vertex", 32 * segments.groups,
                segments.record, largest,
            )  # fmt: skip
            return int(driver.number(largest)) - 1

    def slots(
        self, segments: Segments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        weight, time = segments.value_dtypes if values else (None, None)
        return self._written(segments, np.uint64, weight, time)

    def _written(self, segments: Segments, *dtypes: Any) -> tuple[Array, Array, Array]:
        """Keys, weights and times of all filled slots, each that has a dtype."""
        with self._reader as reader:
            keys, weights, times = reader.new(*((segments.num_slots, dtype) for dtype in dtypes))
            launch_on(
                segments, "export", "write_columns", 32 * segments.groups,
                segments.record, None, keys, weights, times,
            )  # fmt: skip
        return keys, weights, times

    def copy_slots(
        self, segments: Segments, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        """What `slots` gives, into host arrays of that length. They hold it when this returns.

        One column at a time, so that a device that is half full has room for it."""
        for place, target in enumerate((keys, weights, times)):
            if target is not None and segments.num_slots:
                dtypes = [target.dtype if i == place else None for i in range(3)]
                # On the caller's stream, which waits for the kernel. Nothing holds the column then.
                self._written(segments, *dtypes)[place].get(out=target)

    def host_memory(self, size: int) -> Array:
        """At least uint8[size] on the host, for copies of a growing store; page-locked if the
        system grants that: a device copies there several times as fast. Not from CuPy's pool, which
        would keep what a store has outgrown forever, since no other request has that size."""
        size = max(1, size + size // 4)
        try:
            memory = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)
        except (cupy.cuda.runtime.CUDARuntimeError, MemoryError):
            return np.empty(size, np.uint8)
        return np.frombuffer(memory, np.uint8, size)


def _scan(segments: Segments, targets: Array, out: tuple[Any, ...]) -> None:
    launch_on(
        segments, "scan", "scan_targets", 32 * segments.groups,
        segments.record, cupy.asarray(targets, np.uint32, "C"), len(targets), *out,
    )  # fmt: skip
