"""Reading a store on a CUDA device: what lpma/backend/reading.py asks for.

Inputs are NumPy or CuPy arrays, results are CuPy arrays. Inside a mixed batch that lies
beside the store, see beside.cu.

Streams: kernels run on the store's own stream. Results are allocated on the stream that is
current for the caller; the store's stream waits for that one before it writes, and that one for
the store's before it goes on. So whatever the caller enqueues next reads whole results, and
freeing one is ordered after that. A consumer on yet another stream must wait for the caller's, as
CuPy's DLPack does by itself.

Requires: the class that this is mixed into has a `stream` and a `context`.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...cuda import driver
from .described import StagedBatch
from .listing import QUERY_THREADS, values_for
from .reach import Reach
from .read_launch import NULL, column, groups, launch_on, or_null
from .segments import Segments

Array = Any  # numpy.ndarray or cupy.ndarray in, cupy.ndarray out
SCAN_ROOM = 1 << 16


class Reads(Reach):
    """The reading half of the backend."""

    def find_edges(
        self,
        segments: Segments,
        staged: StagedBatch | None,
        src: Array,
        dst: Array,
        limits: Array | None,
    ) -> tuple[Array, Array | None, Array | None]:
        """(found, weights, times) of q edge queries."""
        n = len(src)
        with self._reading() as reading:
            weights, times = values_for(segments, n, reading.new)
            found = reading.new(n, cupy.bool_)
            if n:
                stem, name = "query", "find_edges"
                batch, places = self._beside(staged, limits)
                if batch:
                    stem, name = "beside", "find_edges_beside"
                launch_on(
                    segments, stem, name, n,
                    segments.record, *batch, reading.given(src, np.uint32),
                    reading.given(dst, np.uint32), *places, n, found, or_null(weights),
                    or_null(times), block=QUERY_THREADS,
                )  # fmt: skip
        return found, weights, times

    def has_in_edges(self, segments: Segments, targets: Array) -> Array:
        """bool[q]: whether rising `targets` have an in-edge, by a scan of the store."""
        with self._reading() as reading:
            found = reading.new(len(targets), cupy.bool_)
            driver.clear(found.data.ptr, found.nbytes, self.stream)
            if len(targets):
                _scan(segments, targets, (found, NULL, NULL, 0, NULL))
        return found

    def scan_targets(self, segments: Segments, targets: Array) -> tuple[Array, Array]:
        """All edges into rising `targets`, in no order: (index of the target, source)."""
        hits, room = 0, SCAN_ROOM
        with self._reading() as reading:
            while True:
                which, source = reading.new(room, np.int64), reading.new(room, np.uint32)
                if len(targets):
                    counter = driver.zeros(1, np.uint64)
                    _scan(segments, targets, (NULL, which, source, room, counter))
                    hits = driver.number(counter)
                if hits <= room:
                    break
                room = hits
        return which[:hits], source[:hits]

    def largest_vertex(self, segments: Segments) -> int:
        """The largest id that an edge or a marker has; -1 for an empty store."""
        with self._reading():
            largest = driver.zeros(1, np.uint64)
            launch_on(
                segments, "scan", "largest_vertex", 32 * groups(segments),
                segments.record, largest,
            )  # fmt: skip
            return int(driver.number(largest)) - 1

    def slots(
        self, segments: Segments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        """All filled slots in key order, markers included: (keys, weights, times); without
        `values` the keys alone."""
        n = segments.num_slots
        with self._reading() as reading:
            weights, times = values_for(segments, n, reading.new) if values else (None, None)
            keys = reading.new(n, np.uint64)
            launch_on(
                segments, "export", "write_slots", 32 * groups(segments),
                segments.record, keys, or_null(weights), or_null(times),
            )  # fmt: skip
        return keys, weights, times

    def copy_slots(
        self, segments: Segments, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        """What `slots` gives, into host arrays of that length. They hold it when this returns.

        One column at a time, so that a device that is half full has room for it."""
        n = segments.num_slots
        for place, target in enumerate((keys, weights, times)):
            if target is None or n == 0:
                continue
            columns: list[Any] = [NULL, NULL, NULL]
            with self._reading() as reading:
                columns[place] = reading.new(n, target.dtype)
                launch_on(
                    segments, "export", "write_slots", 32 * groups(segments),
                    segments.record, *columns,
                )  # fmt: skip
            columns[place].get(out=target)  # on the caller's stream, which waits for the kernel

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
        segments, "scan", "scan_targets", 32 * groups(segments),
        segments.record, column(targets, np.uint32), len(targets), *out,
    )  # fmt: skip
