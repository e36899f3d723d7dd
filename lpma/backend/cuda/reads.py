"""Reading a store on a CUDA device: what lpma/backend/reading.py asks for.

Inputs are NumPy or CuPy arrays, results are CuPy arrays. Inside a mixed batch the store holds
versions, and queries fold those before their limits (versions.cuh).

Streams: kernels run on the store's own stream. Results are allocated on the stream that is
current for the caller; the store's stream waits for that one before it writes, and that one for
the store's before it goes on. So whatever the caller enqueues next reads whole results, and
freeing one is ordered after that. A consumer on yet another stream must wait for the caller's, as
CuPy's DLPack does by itself.

Requires: the class that this is mixed into has a `stream`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy
import numpy as np

from ...cuda.launch import blocks_for
from .ages import Ages
from .batches import StagedBatch
from .read_launch import NULL, column, groups, launch_on, or_null, record_of
from .segments import Segments

Array = Any  # numpy.ndarray or cupy.ndarray in, cupy.ndarray out
New = Callable[..., Array]  # (length, dtype, last=True)

QUERY_THREADS = 128
WARPS = 8192  # about what a large device holds at once
MOST_TILES = 16  # of 32 rows, one warp's share of an answer
SCAN_ROOM = 1 << 16


class Reads(Ages):
    """The reading half of the backend."""

    stream: Any  # cupy.cuda.Stream, non-blocking

    @contextmanager
    def _reading(self) -> Iterator[New]:
        """Run the body on the store's device and stream. Yields what allocates results: it
        orders the store's stream after the caller's, so a first result comes before inputs are
        read. Of results that are allocated one after the other, to order the last is enough."""
        own = self.stream
        with cupy.cuda.Device(own.device_id):
            caller = cupy.cuda.get_current_stream()
            apart = own.ptr != caller.ptr

            def new(length: int, dtype: Any, last: bool = True) -> Array:
                with caller:
                    array = cupy.empty(length, dtype)
                if apart and last:
                    own.wait_event(caller.record())
                return array

            with own:
                yield new
            if apart:
                caller.wait_event(own.record())

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
        with self._reading() as new:
            weights, times = _values(segments, n, new)
            found = new(n, cupy.bool_)
            if n:
                launch_on(
                    segments, "query", "find_edges", n,
                    segments.record, record_of(staged), column(src, np.uint32),
                    column(dst, np.uint32), column(limits, np.int64), n,
                    found, or_null(weights), or_null(times), block=QUERY_THREADS,
                )  # fmt: skip
        return found, weights, times

    def count_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array, limits: Array | None
    ) -> Array:
        """int64[q]: how many neighbours each query has."""
        n = len(vertices)
        with self._reading() as new:
            counts = new(n, np.int64)
            if n and segments.seqs is None:
                launch_on(
                    segments, "query", "count_neighbors", 2 * n,
                    segments.record, column(vertices, np.uint32), n, counts,
                    block=QUERY_THREADS,
                )  # fmt: skip
            elif n:
                located = _locate(segments, vertices, new)
                rows = int(located[0][-1])
                packed = _read_present(
                    segments, staged, limits, located, rows, (None, None, None)
                )  # fmt: skip
                ends = packed[located[0]]
                cupy.subtract(ends[1:], ends[:-1], out=counts)
        return counts

    def neighbors(
        self,
        segments: Segments,
        staged: StagedBatch | None,
        vertices: Array,
        limits: Array | None,
        values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:
        """(indptr, ids, weights, times) of q queries; the last two only with `values`."""
        n = len(vertices)
        with self._reading() as new:
            if n == 0:
                indptr, rows = new(1, np.int64), 0
                indptr.fill(0)
            else:
                located = _locate(segments, vertices, new)
                indptr = located[0]
                rows = int(indptr[-1])
            weights, times = _values(segments, rows, new) if values else (None, None)
            ids = new(rows, np.uint32)
            columns: tuple[Array, ...] = (ids, weights, times)
            if rows and segments.seqs is None:
                tiles = min(MOST_TILES, max(1, -(-rows // (32 * WARPS))))
                launch_on(
                    segments, "neighbors", "read_neighbors", 32 * -(-rows // (32 * tiles)),
                    segments.record, n, *located, rows, tiles, *map(or_null, columns),
                )  # fmt: skip
            elif rows:
                packed = _read_present(segments, staged, limits, located, rows, columns)
                candidates, indptr = indptr, new(n + 1, np.int64)
                cupy.take(packed, candidates, out=indptr)
                rows = int(packed[-1])
                columns = tuple(None if c is None else c[:rows] for c in columns)
        return indptr, columns[0], columns[1], columns[2]

    def has_in_edges(
        self, segments: Segments, staged: StagedBatch | None, targets: Array, limits: Array | None
    ) -> Array:
        """bool[q]: whether rising `targets` have an in-edge, by a scan of the store."""
        with self._reading() as new:
            found = new(len(targets), cupy.bool_)
            found.fill(False)
            if len(targets):
                _scan(segments, staged, targets, limits, (found, NULL, NULL, 0, NULL))
        return found

    def scan_targets(
        self, segments: Segments, staged: StagedBatch | None, targets: Array, limits: Array | None
    ) -> tuple[Array, Array]:
        """All edges into rising `targets`, in no order: (index of the target, source)."""
        hits, room = 0, SCAN_ROOM
        with self._reading() as new:
            while True:
                which, source = new(room, np.int64), new(room, np.uint32)
                if len(targets):
                    counter = cupy.zeros(1, np.uint64)
                    _scan(segments, staged, targets, limits, (NULL, which, source, room, counter))
                    hits = int(counter[0])
                if hits <= room:
                    break
                room = hits
        return which[:hits], source[:hits]

    def largest_vertex(self, segments: Segments) -> int:
        """The largest id that an edge or a marker has; -1 for an empty store."""
        with self._reading():
            largest = cupy.zeros(1, np.uint64)
            launch_on(
                segments, "scan", "largest_vertex", 32 * groups(segments),
                segments.record, largest,
            )  # fmt: skip
            return int(largest[0]) - 1

    def slots(
        self, segments: Segments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        """All filled slots in key order, markers included: (keys, weights, times); without
        `values` the keys alone."""
        n = segments.num_slots
        with self._reading() as new:
            weights, times = _values(segments, n, new) if values else (None, None)
            keys = new(n, np.uint64)
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
            with self._reading() as new:
                columns[place] = new(n, target.dtype)
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


def _values(segments: Segments, n: int, new: New) -> tuple[Array | None, Array | None]:
    """Columns for n weights and times; None if the store keeps none."""
    weights = new(n, segments.weights[0].dtype) if segments.weights else None
    return weights, new(n, np.int64) if segments.times else None


def _locate(segments: Segments, vertices: Array, new: New) -> tuple[Array, Array, Array]:
    """(indptr, begin, before): the rows of every query, with versions the candidates' (see
    neighbors.cu)."""
    n = len(vertices)
    indptr = new(n + 1, np.int64)
    begin, before = cupy.empty(n, np.uint64), cupy.empty(n, np.int64)
    status = cupy.zeros(1 + blocks_for(2 * n), np.uint64)
    launch_on(
        segments, "neighbors", "locate_neighbors", 2 * n,
        segments.record, column(vertices, np.uint32), n, indptr, begin, before, status,
    )  # fmt: skip
    return indptr, begin, before


def _read_present(
    segments: Segments, staged: StagedBatch | None, limits: Array | None,
    located: tuple[Array, ...], rows: int, columns: tuple[Array | None, ...],
) -> Array:  # fmt: skip
    """Pack the candidates that are present into `columns`; int64[rows + 1]: how many before."""
    packed = cupy.empty(rows + 1, np.int64)
    status = cupy.zeros(1 + blocks_for(rows + 1), np.uint64)
    launch_on(
        segments, "neighbors", "read_present", rows + 1,
        segments.record, record_of(staged), column(limits, np.int64), len(located[1]), *located,
        rows, packed, *map(or_null, columns), status,
    )  # fmt: skip
    return packed


def _scan(
    segments: Segments,
    staged: StagedBatch | None,
    targets: Array,
    limits: Array | None,
    out: tuple[Any, ...],
) -> None:
    launch_on(
        segments, "scan", "scan_targets", 32 * groups(segments),
        segments.record, record_of(staged), column(targets, np.uint32), column(limits, np.int64),
        len(targets), *out,
    )  # fmt: skip
