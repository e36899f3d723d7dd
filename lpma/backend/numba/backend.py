"""The CPU backend: the coarse operations of `lpma.backend.Backend`, each a few compiled kernels.

Every method cuts its work for the threads, runs a kernel on each piece and joins the results.
Buffers that live for one batch are kept in a `Workspace` and used again, because fresh memory
costs a page fault for each of its pages.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...density import bounds
from ...rebalance import DELETED, WindowPlan, bottom_up, top_down
from ...rebalance.hybrid import TOP_DOWN
from . import compact, export, keys, locate, move, query, rebuild
from .locate import DELETIONS, LARGEST, SLOTS, TOUCHED
from .memory import View
from .rows import BatchView, Leaves, Rows
from .segments import Segments, address, empty_segments, expanded, shrunk
from .sort import sort_pairs
from .threads import THREADS, cuts, run_all

Array = npt.NDArray[Any]

NO_BATCH = BatchView(0, 0, 0, 0, 0, 0)
NO_ROWS = Rows(0, 0, 0, 0, 0, 0, 0)
NO_LEAVES = Leaves(0, 0, 0, 0, 0, 0)

ROWS_PER_TASK = 1024
QUERIES_PER_TASK = 256
SEGMENTS_PER_TASK = 1024
LARGE_LAYER = 11  # windows of more segments than 2^11 are cut for all threads


_BATCH_BUFFERS = (
    ("keys", np.uint64), ("places", np.uint32), ("rows.keys", np.uint64),
    ("rows.places", np.uint32), ("action", np.uint8), ("position", np.uint16),
    ("weight", np.float64), ("time", np.int64), ("rank", np.int64), ("lo", np.int64),
    ("hi", np.int64), ("delta", np.int64), ("flags", np.int64),
)  # fmt: skip


_TOUCHED = ("rank", "lo", "hi", "delta", "flags")


class Workspace:
    """Buffers by name, grown as needed, overwritten by each use."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def take(self, name: str, n: int, dtype: npt.DTypeLike) -> Array:
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < n or buffer.dtype != dtype:
            buffer = np.empty(n + n // 4, dtype)
            self._buffers[name] = buffer
        return buffer[:n]

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def trim(self, most: int) -> None:
        """Let everything go if it holds more than `most` bytes."""
        if self.nbytes > most:
            self._buffers.clear()


@dataclass(frozen=True)
class BatchColumns:
    """A batch's columns, by place, in the store's dtypes; `weight` and `time` have one row where
    every operation has the same."""

    kind: Array  # uint8
    weight: Array  # float32 or float64
    time: Array  # int64

    @cached_property
    def view(self) -> BatchView:
        """For kernels. Holds addresses only."""
        return BatchView(
            address(self.kind),
            address(self.weight),
            self.weight.itemsize if len(self.weight) > 1 else 0,
            int(self.weight.dtype == np.float64),
            address(self.time),
            8 if len(self.time) > 1 else 0,
        )


@dataclass(frozen=True)
class Touched:
    """The leaves that a batch changes, by rising rank; int64 each. See rows.Leaves."""

    rank: Array
    lo: Array
    hi: Array
    delta: Array
    flags: Array

    @property
    def view(self) -> Leaves:
        """For kernels. Holds addresses only."""
        return Leaves(len(self.rank), *(address(column) for column in vars(self).values()))


@dataclass(frozen=True)
class Located:
    """A sorted batch with what each operation does, and the leaves it touches. Its arrays lie in
    the backend's workspace: locating another batch overwrites them."""

    batch: BatchColumns
    key: Array  # uint64[n], rising
    columns: tuple[Array, ...]  # place, action, position, weight, time: see rows.Rows
    touched: Touched
    tally: Array  # int64[6], see locate.py
    versions: bool

    @cached_property
    def rows(self) -> Rows:
        """For kernels. Holds addresses only."""
        columns = (address(column) for column in self.columns)
        return Rows(len(self.key), address(self.key), *columns)

    @property
    def delta(self) -> int:
        """Net change of the number of filled slots."""
        return int(self.tally[SLOTS])

    @property
    def deletes(self) -> bool:
        return bool(self.tally[DELETIONS])

    def on_expanded(self, levels: int) -> Located:
        """The same on a store of `levels` levels more: rank i is then i * 2^levels."""
        if levels == 0:
            return self
        rank = self.touched.rank << levels if levels > 0 else self.touched.rank >> -levels
        return replace(self, touched=replace(self.touched, rank=rank))


class NumbaBackend:
    """See lpma.backend.Backend. One instance a store; not for two threads at once."""

    name = "cpu"

    def __init__(self) -> None:
        self.workspace = Workspace()

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers kept from batch to batch."""
        return self.workspace.nbytes

    def empty(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool
    ) -> Segments:
        return empty_segments(segment_size, weight_dtype, times)

    def expand(self, segments: Segments) -> Segments:
        return expanded(segments)

    def columns(
        self, kind: Array, weight: Array | None, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> BatchColumns:
        """A batch as kernels read it, by place; weight None: 1 throughout. time: int64[n or 1]."""
        dtype = np.dtype(np.float64) if weight_dtype is None else weight_dtype
        weights = np.ones(1, dtype) if weight is None else weight.astype(dtype, copy=False)
        contiguous = np.ascontiguousarray
        return BatchColumns(contiguous(kind), contiguous(weights), contiguous(time))

    def keys(
        self, kind: Array, src: Array, dst: Array, lo: int, hi: int, direction: int
    ) -> tuple[Array, Array]:
        """(keys, places) of the key operations of rows lo … hi - 1, see keys.py. Both lie in
        the workspace: the next call overwrites them."""
        n = hi - lo
        room = 2 * n if direction == keys.BOTH else n
        out = self.workspace.take("rows.keys", room, np.uint64)
        places = self.workspace.take("rows.places", room, np.uint32)
        if direction != keys.BOTH and keys.edges_only(kind, lo, hi):
            reverse = direction == keys.REVERSE
            run_all(
                keys.edge_keys,
                [
                    (src, dst, lo, lo + first, lo + last, reverse, out, places)
                    for first, last in cuts(n, 1 << 16)
                ],
            )
            return out, places
        n = keys.all_keys(kind, src, dst, lo, hi, direction, out, places)
        return out[:n], places[:n]

    def locate(
        self, segments: Segments, batch: BatchColumns, key: Array, place: Array, versions: bool
    ) -> Located:
        """Sort the key operations (arrays are overwritten) and find what each does."""
        n = len(key)
        take = self.workspace.take
        key, place = sort_pairs(
            key, place, take("keys", n, np.uint64), take("places", n, np.uint32)
        )
        columns = (place, take("action", n, np.uint8), take("position", n, np.uint16),
                   take("weight", n, np.float64), take("time", n, np.int64))  # fmt: skip
        touched = Touched(*(take(name, n, np.int64) for name in _TOUCHED))
        located = Located(batch, key, columns, touched, np.zeros(6, np.int64), versions)
        edges = np.array([0] + [hi for _, hi in cuts(n, ROWS_PER_TASK)], np.int64)
        locate.run_starts(key, edges)
        view, rows, leaves = segments.view, located.rows, touched.view
        tallies = run_all(
            locate.locate,
            [
                (view, batch.view, rows, lo, hi, leaves, versions)
                for lo, hi in zip(edges[:-1], edges[1:], strict=True)
            ],
        )
        lengths = np.array([tally[TOUCHED] for tally in tallies])
        count = locate.join_leaves(leaves, edges, lengths)
        touched = Touched(*(column[:count] for column in vars(touched).values()))
        return replace(located, touched=touched, tally=_joined(tallies))

    def plan(self, strategy: str, segments: Segments, located: Located) -> WindowPlan:
        """The strategy's plan for a located batch that the root has room for."""
        chosen = top_down if strategy == TOP_DOWN else bottom_up
        most, least = bounds(segments.m, segments.segment_size)
        return chosen.plan(segments.counts, located.touched, most, least)

    def reserve(self, segments: Segments, plan: WindowPlan) -> None:
        """Allocate all that `move` will need, so that it cannot fail half-way."""
        highest = int(plan.layer.max(initial=0))
        for thread in range(THREADS):
            slots = segments.segment_size << min(highest, LARGE_LAYER)
            self._buffer(segments, f"scratch{thread}", slots)
        if highest > LARGE_LAYER:
            self._buffer(segments, "large", segments.segment_size << highest)

    def reserve_mixed(self, segments: Segments, rows: int) -> None:
        """Allocate what a mixed batch of `rows` key operations may need at the most."""
        for name, dtype in _BATCH_BUFFERS:
            self.workspace.take(name, rows, dtype)
        for thread in range(THREADS):
            slots = segments.segment_size << min(segments.m, LARGE_LAYER)
            self._buffer(segments, f"scratch{thread}", slots)
        if segments.m > LARGE_LAYER:
            self._buffer(segments, "large", segments.segment_size << segments.m)

    def _buffer(self, segments: Segments, name: str, slots: int) -> tuple[int, int, int, int]:
        view = segments.view
        widths = (8, view.weight_bytes, view.time_bytes, view.seq_bytes)
        arrays = [
            self.workspace.take(f"{name}.{i}", slots * width, np.uint8)
            for i, width in enumerate(widths)
        ]
        a, b, c, d = (array.ctypes.data for array in arrays)
        return a, b, c, d

    def move(self, segments: Segments, located: Located, plan: WindowPlan) -> None:
        """Carry out a plan. Allocates nothing that `reserve` has not."""
        view = segments.view
        layer = min(int(plan.layer.max(initial=0)), LARGE_LAYER)
        buffers = deque(
            self._buffer(segments, f"scratch{thread}", segments.segment_size << layer)
            for thread in range(THREADS)
        )
        columns = (plan.window, plan.layer, plan.lo, plan.hi, plan.members)
        windows = move.Windows(*(address(column) for column in columns))
        rows, leaves = located.rows, located.touched.view
        for first, last in zip(plan.rounds[:-1], plan.rounds[1:], strict=True):
            work = (1 << np.minimum(plan.layer[first:last], layer)).cumsum() if layer else None
            pieces = _even_pieces(int(first), int(last), work)
            run_all(
                _move_windows,
                [
                    (view, rows, leaves, windows, lo, hi, located.versions, layer, buffers)
                    for lo, hi in pieces
                ],
            )
            for i in np.flatnonzero(plan.layer[first:last] > layer) + first:
                self._move_large(segments, located, plan, int(i))
        move.sum_upward(view, located.touched.rank)

    def _move_large(self, segments: Segments, located: Located, plan: WindowPlan, i: int) -> None:
        """Gather and spread one window in pieces on all threads."""
        view = segments.view
        layer, w = int(plan.layer[i]), int(plan.window[i])
        n = 1 << layer
        rank = (w << layer) - (1 << view.m)
        edges = np.array([0] + [hi for _, hi in cuts(n, SEGMENTS_PER_TASK, 4)], np.int64)
        lo, hi = int(plan.lo[i]), int(plan.hi[i])
        members = address(plan.members)
        rows, leaves = located.rows, located.touched.view
        starts, member = move.piece_offsets(view, rank, edges, leaves, members, lo, hi)
        total = int(starts[-1])
        buffer = self._buffer(segments, "large", total)
        following = np.uint64(move.following_fence(view, rank + n))
        run_all(
            move.gather,
            [
                (view, rank + edges[k], rank + edges[k + 1], rows, leaves, members, member[k],
                 member[k + 1], located.versions, _at(view, buffer, int(starts[k])))
                for k in range(len(edges) - 1)
            ],
        )  # fmt: skip
        run_all(
            move.spread,
            [
                (view, buffer, total, rank, n, edges[k], edges[k + 1], following)
                for k in range(len(edges) - 1)
            ],
        )
        move.sum_window(view, w, layer)

    def rebuild(self, segments: Segments, located: Located, m: int) -> Segments:
        """The store with the batch merged in, in fresh levels: a global merge."""
        fresh = empty_segments(
            segments.segment_size,
            segments.weights[0].dtype if segments.weights else None,
            segments.times is not None,
            m,
        )
        total = segments.num_slots + located.delta
        source, to = segments.view, fresh.view
        if total:
            work = max(1 << segments.m, len(located.key) // segments.segment_size)
            pieces = len(cuts(work, SEGMENTS_PER_TASK, 4))
            rows, leaves = located.rows, located.touched.view
            places = rebuild.cut(source, rows, leaves, pieces)
            run_all(
                rebuild.merge_piece,
                [(source, to, rows, leaves, places, piece, total) for piece in range(pieces)],
            )
        rebuild.finish_tree(to, total)
        return fresh

    def build(
        self, segment_size: int, m: int, stored: Array, weights: Array | None, times: Array | None
    ) -> Segments:
        """A store from whole columns, sorted by key."""
        fresh = empty_segments(
            segment_size, None if weights is None else weights.dtype, times is not None, m
        )
        none = np.zeros(0, np.int64)
        columns = (stored, none.astype(np.float32) if weights is None else weights,
                   none if times is None else times)  # fmt: skip
        total = len(stored)
        if total:
            run_all(
                rebuild.fill_piece,
                [(fresh.view, *columns, lo, hi, total) for lo, hi in cuts(total, 1 << 16)],
            )
        rebuild.finish_tree(fresh.view, total)
        return fresh

    def shrink(self, segments: Segments, most: Array) -> tuple[Segments, Array]:
        """One level less: pairs of segments merge, what exceeds a segment rolls up. Returns the
        smaller store and the windows rebalanced by layer. most: bounds of the smaller store."""
        smaller = shrunk(segments)
        buffer = self._buffer(segments, "large", segments.num_slots)
        moved = move.shrink(
            segments.view, smaller.view, NO_ROWS, NO_LEAVES, most, buffer
        )
        return smaller, moved

    def survivors(self, segments: Segments, located: Located) -> tuple[Located, Any]:
        """What remains of the versions `located` put in: their keys' final actions."""
        n = len(located.key)
        first, last = np.empty(n, np.int64), np.empty(n, np.int64)
        edges = np.array([0] + [hi for _, hi in cuts(n, ROWS_PER_TASK)], np.int64)
        locate.run_starts(located.key, edges)
        view, batch, rows = segments.view, located.batch.view, located.rows
        tallies = run_all(
            compact.survivors,
            [
                (view, batch, rows, lo, hi, first, last)
                for lo, hi in zip(edges[:-1], edges[1:], strict=True)
            ],
        )
        ranks, first_row = compact.versioned_ranks(rows, first, last)
        nothing = np.zeros(len(ranks), np.int64)
        touched = Touched(ranks, nothing, nothing, nothing, np.full(len(ranks), DELETED))
        final = replace(located, touched=touched, tally=_joined(tallies), versions=False)
        return final, (first_row, last)

    def compact(self, segments: Segments, final: Located, where: Any) -> None:
        """Fold the versions away, in place; `final` and `where` come from `survivors`."""
        first_row, last = where
        ranks = final.touched.rank
        view, rows = segments.view, final.rows
        run_all(
            compact.compact_segments,
            [
                (view, rows, ranks, first_row, last, lo, hi)
                for lo, hi in cuts(len(ranks), ROWS_PER_TASK)
            ],
        )
        move.sum_upward(view, ranks)

    def changes(self, located: Located) -> tuple[Array, Array]:
        """(keys, inserted) of the edges that a batch inserts or deletes, markers left out."""
        return locate.changes(located.rows)

    def find_edges(
        self, segments: Segments, batch: BatchColumns | None, wanted: Array, limits: Array
    ) -> tuple[Array, Array, Array]:
        """(found, weights, times) of q edge queries; batch is None outside a mixed batch."""
        n = len(wanted)
        weights = np.zeros(n, segments.weights[0].dtype if segments.weights else np.float32)
        found, times = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        pieces = cuts(n, 4 * QUERIES_PER_TASK, 4)
        view = segments.view
        if batch is None:
            run_all(
                query.find_stored_edges,
                [(view, wanted, lo, hi, found, weights, times) for lo, hi in pieces],
            )
        else:
            run_all(
                query.find_edges,
                [
                    (view, batch.view, wanted, limits, lo, hi, found, weights, times)
                    for lo, hi in pieces
                ],
            )
        return found, weights, times

    def count_neighbors(
        self, segments: Segments, batch: BatchColumns | None, vertices: Array, limits: Array
    ) -> Array:
        """int64[q]: how many neighbours each query has; vertices: uint64[q]."""
        counts = np.empty(len(vertices), np.int64)
        view = batch.view if batch else NO_BATCH
        run_all(
            query.count_neighbors,
            [
                (segments.view, view, vertices, limits, lo, hi, counts)
                for lo, hi in cuts(len(vertices), QUERIES_PER_TASK, 4)
            ],
        )
        return counts

    def neighbors(
        self,
        segments: Segments,
        batch: BatchColumns | None,
        vertices: Array,
        limits: Array,
        values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:
        """(indptr, ids, weights, times) of q queries; the last two only with `values`."""
        counts = self.count_neighbors(segments, batch, vertices, limits)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        n = int(indptr[-1])
        with_weights = values and segments.weights is not None
        with_times = values and segments.times is not None
        weights = np.empty(
            n if with_weights else 0,
            segments.weights[0].dtype if segments.weights else np.float32,
        )
        ids, times = np.empty(n, np.uint32), np.empty(n if with_times else 0, np.int64)
        view = batch.view if batch else NO_BATCH
        run_all(
            query.read_neighbors,
            [
                (segments.view, view, vertices, limits, lo, hi, indptr, ids, weights, times)
                for lo, hi in cuts(len(vertices), QUERIES_PER_TASK, 4)
            ],
        )
        return indptr, ids, weights if with_weights else None, times if with_times else None

    def has_in_edges(
        self, segments: Segments, batch: BatchColumns | None, targets: Array, limits: Array
    ) -> Array:
        """bool[q]: whether rising `targets` have an in-edge, by a scan of the store."""
        found = np.zeros(len(targets), np.bool_)
        which, source = np.empty(0, np.int64), np.empty(0, np.uint32)
        view = batch.view if batch else NO_BATCH
        run_all(
            query.scan_targets,
            [
                (segments.view, view, targets, limits, lo, hi, found, which, source)
                for lo, hi in cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
            ],
        )
        return found

    def scan_targets(
        self, segments: Segments, batch: BatchColumns | None, targets: Array, limits: Array
    ) -> tuple[Array, Array]:
        """All edges into rising `targets`: (index of the target, source), by a scan."""
        view = batch.view if batch else NO_BATCH
        pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
        found = np.zeros(len(targets), np.bool_)

        def scan(first: int, last: int, room: int) -> tuple[int, Array, Array]:
            which, source = np.empty(room, np.int64), np.empty(room, np.uint32)
            hits = query.scan_targets(
                segments.view, view, targets, limits, first, last, found, which, source
            )
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

    def csr(
        self, segments: Segments, num_vertices: int, num_edges: int, markers: bool
    ) -> tuple[Array, Array, Array | None, Array | None]:
        """(indptr, indices, weights, times) over rows 0 … num_vertices - 1."""
        view = segments.view
        pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
        surveys = run_all(export.survey, [(view, *piece, markers) for piece in pieces])
        indptr = np.empty(num_vertices + 1, np.int64)
        indices = np.empty(num_edges, np.uint32)
        weights = np.empty(
            num_edges if segments.weights else 0,
            segments.weights[0].dtype if segments.weights else np.float32,
        )
        times = np.empty(num_edges if segments.times else 0, np.int64)
        calls = []
        out, source = 0, -1
        for (first, last), (edges, last_source) in zip(pieces, surveys, strict=True):
            calls.append((view, first, last, out, source, indptr, indices, weights, times))
            out += edges
            source = max(source, last_source)
        run_all(export.write_csr, calls)
        indptr[source + 1 :] = num_edges
        return (
            indptr,
            indices,
            weights if segments.weights else None,
            times if segments.times else None,
        )

    def slots(self, segments: Segments) -> tuple[Array, Array | None, Array | None]:
        """All filled slots in key order, markers included: (keys, weights, times)."""
        n = segments.num_slots
        stored = np.empty(n, np.uint64)
        weights = np.empty(
            n if segments.weights else 0,
            segments.weights[0].dtype if segments.weights else np.float32,
        )
        times = np.empty(n if segments.times else 0, np.int64)
        leaves = 1 << segments.m
        starts = np.concatenate([[0], np.cumsum(segments.counts[leaves:])])
        run_all(
            export.write_slots,
            [
                (segments.view, lo, hi, int(starts[lo]), stored, weights, times)
                for lo, hi in cuts(leaves, SEGMENTS_PER_TASK, 4)
            ],
        )
        return stored, weights if segments.weights else None, times if segments.times else None

    def trim(self, segments: Segments) -> None:
        """Give back buffers out of proportion to the store."""
        self.workspace.trim(max(1 << 24, segments.nbytes // 4))


def _move_windows(view: View, rows: Rows, leaves: Leaves, windows: move.Windows, lo: int, hi: int,
                  versions: bool, layer: int, buffers: deque[Any]) -> None:  # fmt: skip
    """One task of a round, with a buffer that no other task has meanwhile."""
    buffer = buffers.popleft()
    move.move_windows(view, rows, leaves, windows, lo, hi, versions, buffer, layer)
    buffers.append(buffer)


def _joined(tallies: list[Array]) -> Array:
    joined: Array = np.sum(tallies, axis=0)
    joined[LARGEST] = max(tally[LARGEST] for tally in tallies)
    return joined


def _at(view: View, buffer: tuple[int, int, int, int], n: int) -> tuple[int, int, int, int]:
    return (
        buffer[0] + n * 8,
        buffer[1] + n * view.weight_bytes,
        buffer[2] + n * view.time_bytes,
        buffer[3] + n * view.seq_bytes,
    )


def _even_pieces(first: int, last: int, work: Array | None) -> list[tuple[int, int]]:
    """Windows first … last - 1 in ranges of about equal work, given its running sum."""
    if work is None or len(work) == 0:
        return [(first + lo, first + hi) for lo, hi in cuts(last - first, 256, 4)]
    ranges = cuts(int(work[-1]), 256, 4)
    edges = np.searchsorted(work, [hi for _, hi in ranges], side="left") + 1
    edges = np.concatenate([[0], np.minimum(edges, len(work))])
    edges[-1] = len(work)
    return [
        (first + int(lo), first + int(hi))
        for lo, hi in zip(edges[:-1], edges[1:], strict=True)
        if hi > lo
    ]
