"""Reading a store on the CPU: what lpma/backend/reading.py asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arrays import address
from ...cpu.threads import cuts, run_all
from .. import ages
from . import ages as kernels
from . import export, hops, query
from .allocate import empty
from .beside import NOTHING_BESIDE, put_seen
from .csr import SEGMENTS_PER_TASK, CsrReads, values_at
from .located import StagedBatch
from .memory import HALF
from .mixed import Beside
from .segments import Segments
from .workspace import SlotAddress

Array = npt.NDArray[Any]

QUERIES_PER_TASK = 256
UNREAD = np.empty(0, np.int64)  # limits where there is no mixed batch


class Reads(CsrReads):
    """The reading half of the backend."""

    beside: Beside | None = None  # the batch that lies beside the store

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
        wanted = (src.astype(np.uint64) << HALF) | dst
        weights = np.zeros(n, segments.weights[0].dtype if segments.weights else np.float32)
        found, times = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        pieces = cuts(n, 4 * QUERIES_PER_TASK, 4)
        view, to = segments.view, values_at(segments, weights, times)
        run_all(query.find_edges, [(view, wanted, lo, hi, found, *to) for lo, hi in pieces])
        if staged is not None:
            beside = self._beside.view
            run_all(
                put_seen,
                [(view, beside, wanted, limits, lo, hi, found, *to) for lo, hi in pieces],
            )
        return (
            found,
            weights if segments.weights else None,
            times if segments.times else None,
        )

    @property
    def _beside(self) -> Beside:
        assert self.beside is not None, "REQUIRES: sort_beside"
        return self.beside

    def count_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array, limits: Array | None
    ) -> Array:
        """int64[q]: how many neighbours each query has; vertices: uint32[q]."""
        return self._find_neighbors(segments, staged, vertices.astype(np.uint64), limits)[0]

    def _find_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array, limits: Array | None
    ) -> list[Array]:
        """(counts, ranks, positions), int64[q] each: see query.count_neighbors."""
        n = len(vertices)
        found = [np.empty(n, np.int64) for _ in range(3)]
        run_all(
            query.count_neighbors,
            [(segments.view, vertices, lo, hi, *found) for lo, hi in cuts(n, QUERIES_PER_TASK, 4)],
        )
        if staged is not None and limits is not None:
            found[0] += self._beside.degrees.since(vertices, limits)
        return found

    def neighbors(
        self,
        segments: Segments,
        staged: StagedBatch | None,
        vertices: Array,
        limits: Array | None,
        values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:
        """(indptr, ids, weights, times) of q queries; the last two only with `values`."""
        vertices = vertices.astype(np.uint64)
        found = self._find_neighbors(segments, staged, vertices, limits)
        if staged is None or limits is None:
            return self._read(segments, found, values)
        beside = self._beside.view, vertices, limits
        return self._read(segments, found, values, query.read_seen, *beside)

    def neighbors_from(
        self, segments: Segments, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        """(ids, weights, times) of a piece of a row."""
        found = [np.empty(1, np.int64) for _ in range(3)]
        key = np.uint64(vertex << 32 | first)
        query.count_neighbors_from(segments.view, key, min(most, segments.num_slots), *found)
        return self._read(segments, found, True)[1:]

    def _read(
        self, segments: Segments, found: list[Array], values: bool,
        kernel: Callable[..., None] = query.read_neighbors, *beside: Any,
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        """What `neighbors` gives. found: as `_find_neighbors` gives it; beside: what that kernel
        takes besides."""
        counts, ranks, positions = found
        indptr = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=indptr[1:])
        n = int(indptr[-1])
        with_weights = values and segments.weights is not None
        with_times = values and segments.times is not None
        weights = np.empty(
            n if with_weights else 0,
            segments.weights[0].dtype if segments.weights else np.float32,
        )
        ids, times = np.empty(n, np.uint32), np.empty(n if with_times else 0, np.int64)
        to = values_at(segments, weights, times) if values else (0, 0)
        run_all(
            kernel,
            [
                (segments.view, *beside, lo, hi, ranks, positions, indptr, ids, *to)
                for lo, hi in cuts(len(counts), QUERIES_PER_TASK, 4)
            ],
        )
        return indptr, ids, weights if with_weights else None, times if with_times else None

    def reach(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array, steps: Array,
        limits: Array | None, largest_vertex: Callable[[], int],
    ) -> tuple[Array, Array] | None:  # fmt: skip
        """See lpma.backend.protocol.Better."""
        beside = NOTHING_BESIDE if staged is None else self._beside.view
        return hops.reach(
            segments.view, beside, vertices, steps, UNREAD if limits is None else limits
        )

    def has_in_edges(self, segments: Segments, targets: Array) -> Array:
        """bool[q]: whether rising `targets` have an in-edge, by a scan of the store."""
        targets = targets.astype(np.uint64)
        found = np.zeros(len(targets), np.bool_)
        which, source = np.empty(0, np.int64), np.empty(0, np.uint32)
        run_all(
            query.scan_targets,
            [
                (segments.view, targets, lo, hi, found, which, source)
                for lo, hi in cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
            ],
        )
        return found

    def scan_targets(self, segments: Segments, targets: Array) -> tuple[Array, Array]:
        """All edges into rising `targets`: (index of the target, source), by a scan."""
        targets = targets.astype(np.uint64)
        pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
        found = np.zeros(len(targets), np.bool_)

        def scan(first: int, last: int, room: int) -> tuple[int, Array, Array]:
            which, source = np.empty(room, np.int64), np.empty(room, np.uint32)
            hits = query.scan_targets(segments.view, targets, first, last, found, which, source)
            return hits, which[:hits], source[:hits]

        results = []
        for (first, last), (hits, *some) in zip(
            pieces, run_all(scan, [(lo, hi, 4096) for lo, hi in pieces]), strict=True
        ):
            results.append(some if hits <= 4096 else list(scan(first, last, hits)[1:]))
        return (
            np.concatenate([which for which, _ in results]),
            np.concatenate([source for _, source in results]),
        )

    def largest_vertex(self, segments: Segments) -> int:
        """The largest id that an edge or a marker has; -1 for an empty store."""
        pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
        return max(run_all(query.largest_vertex, [(segments.view, *piece) for piece in pieces]))

    def slots(
        self, segments: Segments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        """All filled slots in key order, markers included: (keys, weights, times); without
        `values` the keys alone."""
        n = segments.num_slots
        keys = np.empty(n, np.uint64)
        if not values:
            starts = _starts(segments)
            pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
            run_all(
                export.write_keys,
                [(segments.view, lo, hi, keys, int(starts[lo])) for lo, hi in pieces],
            )
            return keys, None, None
        weights = np.empty(n, segments.weights[0].dtype) if segments.weights else None
        times = np.empty(n, np.int64) if segments.times else None
        self.copy_slots(segments, keys, weights, times)
        return keys, weights, times

    def older(self, segments: Segments, before: int) -> tuple[Array, Array]:
        """(keys, times) of the edges older than a time."""

        starts = _starts(segments)

        def piece(first: int, last: int) -> tuple[Array, Array]:
            room = int(starts[last] - starts[first]) + 1  # what is not written takes no memory
            keys, times = np.empty(room, np.uint64), np.empty(room, np.int64)
            n = kernels.write_older(segments.view, first, last, before, keys, times)
            return keys[:n], times[:n]

        pieces = run_all(piece, cuts(1 << segments.m, SEGMENTS_PER_TASK, 4))
        keys, times = zip(*pieces, strict=True)
        return np.concatenate(keys), np.concatenate(times)

    def since(
        self, segments: Segments, before: int
    ) -> tuple[tuple[Array, Array | None, Array | None], int]:
        """All slots but the edges older than a time, and how many of those were loops."""
        return ages.without_older(self.slots(segments), before)

    def sampled_times(self, segments: Segments) -> Array:
        """The times of some slots, from all over the store."""
        return ages.sampled_times(segments)

    def any_older(self, segments: Segments, times: Array, before: int) -> Callable[[], bool]:
        """A look at a batch's times."""
        found = bool((times < before).any())
        return lambda: found

    def copy_slots(
        self, segments: Segments, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        """What `slots` gives, into arrays of that length."""
        starts = _starts(segments)
        columns = [0 if column is None else address(column) for column in (keys, weights, times)]
        widths = [0 if column is None else column.itemsize for column in (keys, weights, times)]

        def to(row: int) -> SlotAddress:
            key, weight, time = (
                start + row * width for start, width in zip(columns, widths, strict=True)
            )
            return key, weight, time

        run_all(
            export.write_slots,
            [
                (segments.view, lo, hi, to(int(starts[lo])))
                for lo, hi in cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
            ],
        )

    def host_memory(self, size: int) -> Array:
        """At least uint8[size], not initialized, for copies of a growing store: there is as much
        again, which takes no memory until it is written."""
        return empty(2 * size, np.uint8)


def _starts(segments: Segments) -> Array:
    """int64[segments + 1]: how many slots are filled before each segment."""
    return np.concatenate([[0], np.cumsum(segments.counts[1 << segments.m :])])
