"""Snapshots of a store on a CUDA device: rows at once, columns late.

Idea: rows move 12 bytes an edge, weights and times 24 more, and what is made of a snapshot mostly
reads the rows alone. export.cu has the kernels, and what they move.

Streams: a snapshot's arrays belong to the stream that was current when it was taken, its `Taker`.
Columns that are copied later, perhaps by a batch of another thread, are allocated there and ordered
before what is enqueued there afterwards. Whoever reads them first has its own stream wait for that
one.

Rows are not made from the last snapshot's, as on the CPU: docs/development/notes/batches-gpu.md
says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.driver import Array
from ....time_view import TimeView
from ..launch.kernels import launch_on
from ..launch.options import THREADS
from ..store.segments import Segments
from .reader import Reader

LONG, PIECE = 4096, 65536  # starts.cuh
HEAD, PIECE_WORDS = 2, 2  # words of 8 bytes
PER_THREAD = 2  # the address of the stream that is another one in every thread


@dataclass(frozen=True)
class Taker:
    """The stream that was current where a snapshot was taken, on the store's device."""

    device: int
    stream: Any  # cupy.cuda.Stream

    @property
    def waits(self) -> bool:
        return bool(self.stream.ptr != PER_THREAD)

    def arrive(self) -> None:
        with cupy.cuda.Device(self.device):
            current = cupy.cuda.get_current_stream()
            if current.ptr != self.stream.ptr:
                driver.follow(current, self.stream)


class Rows:
    """What writes rows: a kernel, a second one for long gaps, and where the first notes them for
    the second. Two words take turns to count what is noted, since the second kernel clears the
    other one: so neither has to be cleared before a launch."""

    def __init__(self) -> None:
        self._room: Array | None = None
        self._turn = 0

    def write(
        self, segments: Segments, file: str, kernel: str, num_rows: int, indptr: Array,
        before: tuple[Any, ...], after: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        """Launch the kernel with its arguments `before` and `after` those of the noted gaps.
        REQUIRES: the stream that launches go to is the current one."""
        most = num_rows // LONG + num_rows // PIECE + 2
        # If an exception comes between the launches, what is noted is lost, and the room with it.
        room, self._room = self._room, None
        if room is None or len(room) < HEAD + PIECE_WORDS * most:
            room = driver.zeros(HEAD + PIECE_WORDS * most * 5 // 4, np.uint64)
        head = room.data.ptr
        number, other, pieces = head + 8 * self._turn, head + 8 - 8 * self._turn, head + 8 * HEAD
        launch_on(
            segments, file, kernel, 32 * segments.groups,
            segments.record, *before, number, pieces, *after,
        )  # fmt: skip
        if num_rows + 1 >= LONG:  # else there can be no long gap
            launch_on(
                segments, "export", "fill_pieces", THREADS * min(most, 1024),
                number, other, pieces, indptr,
            )  # fmt: skip
            self._turn = 1 - self._turn
        self._room = room


class Snapshots:
    """Gives rows and columns of one store."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._rows = reader, Rows()

    def taker(self) -> Taker:
        device = self._reader.stream.device_id
        with cupy.cuda.Device(device):
            return Taker(device, cupy.cuda.get_current_stream())

    def csr_rows(
        self, segments: Segments, num_rows: int, num_edges: int, markers: bool
    ) -> tuple[Array, Array]:
        with self._reader as reader:
            indices, indptr = reader.new((num_edges, np.uint32), (num_rows + 1, np.int64))
            marked = _markers(segments) if markers else None
            given = marked, num_rows, num_edges, indptr, indices
            self._rows.write(segments, "export", "write_rows", num_rows, indptr, given)
        return indptr, indices

    def csr_columns(
        self, segments: Segments, num_edges: int, markers: bool, taker: Any
    ) -> tuple[Array | None, Array | None]:
        weight, time = segments.value_dtypes
        if weight is None and time is None:
            return None, None
        with self._reader as reader:
            reader.caller = taker.stream
            weights, times = reader.new((num_edges, weight), (num_edges, time))
            marked = _markers(segments) if markers else None
            launch_on(
                segments, "export", "write_columns", 32 * segments.groups,
                segments.record, marked, None, weights, times,
            )  # fmt: skip
        return weights, times

    def csr_view(
        self, segments: Segments, num_rows: int, view: TimeView, markers: bool, loops: bool
    ) -> tuple[Array, Array, Array | None, Array, int]:
        weight, time = segments.value_dtypes
        if weight is None and view.half_life:
            weight = np.float32
        with self._reader as reader:
            counts, (edges, newest, found) = _counted(segments, view, markers or loops)
            indptr, indices, weights, times = reader.new(
                (num_rows + 1, np.int64), (edges, np.uint32), (edges, weight), (edges, time)
            )
            decay = view.decay(newest)
            now, half_life, most, inverse = (0, 0, 0, 0.0) if decay is None else decay
            self._rows.write(
                segments, "views", "write_view", num_rows, indptr,
                (view.first, view.last, counts, num_rows, edges, indptr, indices, weights, times),
                (now, half_life, most, np.float64(inverse)),
            )  # fmt: skip
        return indptr, indices, weights, times, found


def _counted(segments: Segments, view: TimeView, keyed: bool) -> tuple[Array, tuple[int, int, int]]:
    """How many edges in a view there are up to the end of each group of segments; and in all, with
    the newest of their times and how many of them are loops. keyed: as of count_view."""
    groups = segments.groups
    words = driver.zeros(groups + 2, np.int64)
    counts, newest, loops = words[:groups], words[groups : groups + 1], words[groups + 1 :]
    is_open = bool(view.half_life) and view.now is None
    launch_on(
        segments, "views", "count_view", 32 * groups,
        segments.record, view.first, view.last, np.bool_(keyed), counts,
        newest if is_open else None, loops,
    )  # fmt: skip
    cupy.cumsum(counts, out=counts)
    edges, later, found = driver.fetch(words[groups - 1 :]).view(np.uint64).tolist()
    return counts, (edges, view.first + later, found)


def _markers(segments: Segments) -> Array:
    """How many markers there are up to the end of each group of segments."""
    counts = cupy.empty(segments.groups, np.int64)
    launch_on(
        segments, "export", "count_markers", 32 * segments.groups, segments.record, counts
    )  # fmt: skip
    return cupy.cumsum(counts)
