"""The CUDA backend: the coarse operations of `lpma.backend.Backend`, each a kernel or two.

A batch without expansion or global merge is one copy to the device, three launches, one look at
the report, and a launch or two more: sorting, locating and planning follow each other on the
store's stream without a word to the host; only then does it learn what the batch comes to, and has
leaves and windows moved. Planning writes the counts as they will be, so a batch that is not carried
out after all is withdrawn.

This is a batch's way; what becomes of a store's levels is in shapes.py, reading (queries, exports)
in reads.py.
"""

from __future__ import annotations

import struct
from typing import Any

import cupy
import numpy as np

from ...batch import FIRST_QUERY, MAX_HOPS, MAX_OPERATIONS, MAX_VERTEX, MAX_WEIGHT, Kind
from ...density import bounds
from ...errors import BatchError
from ...history import MAX_KEYS
from ...stats import Stats
from ..protocol import BOTH, REVERSE, Costs
from . import most_levels
from .batches import ALL, WEIGHTS, DeviceBatch
from .context import Context
from .located import DevicePlan, KeyRows, Located
from .reads import Reads
from .segments import Segments
from .shapes import Shapes, addresses
from .work import Report

Array = Any

KEPT_BYTES = 1 << 30  # buffers for batches of some millions

# Bounds of plan.cu: most, least; sign, plan, top_down, settled, block_slots.
BOUNDS = struct.Struct("<QQiIiii4x")

_COMPLAINTS = (
    (Report.BAD_KIND, f"kind: values go from 0 to {int(Kind.VERTEX)}"),
    (Report.BAD_VERTEX, f"vertex ids go from 0 to {MAX_VERTEX}"),
    (Report.BAD_WEIGHT, f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken"),
    (Report.BAD_HOPS, f"hops: the number of steps goes from 1 to {MAX_HOPS}"),
)


class CudaBackend(Shapes, Reads):
    """See lpma.backend.Backend. One instance a store; not for two threads at once."""

    name = "cuda"
    validates = True  # rows of unchecked columns, while they are sorted
    way_out = (
        "share the graph out over several, or use device='cpu'; a device with more memory does not "
        "help"
    )
    costs = Costs(leaf=10.0, window=2.0, merge=1.2)  # measured on an H200

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.stream = context.stream
        self.written = False

    def most_levels(self, segment_size: int) -> int:
        return most_levels(segment_size)

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers kept from batch to batch."""
        return self.work.nbytes + self.context.upload.nbytes

    def columns(self, columns: Any, time: Array, weight_dtype: np.dtype[Any] | None) -> DeviceBatch:
        """A batch as kernels read it, sent to the device."""
        with self.context:
            now = int(time[0]) if len(time) == 1 else 0
            return self.context.upload.send(columns, now)

    def keys(
        self, batch: DeviceBatch, columns: Any, lo: int, hi: int, direction: int,
        more: tuple[Array, Array] | None = None,
    ) -> tuple[KeyRows, None]:  # fmt: skip
        """The key operations of rows lo … hi - 1, and of `more`: made on the device, but for
        those that removals of vertices imply."""
        sides = 2 if direction == BOTH else 1
        made = None
        if more is not None:
            made = _keys_on_host(columns, lo, hi, direction, more)
        rows = KeyRows(lo, hi, direction, sides, made)
        if len(rows) > MAX_OPERATIONS:
            raise MemoryError(f"{len(rows):,} key operations")
        return rows, None

    def locate(
        self, segments: Segments, batch: DeviceBatch, rows: KeyRows, places: None, versions: bool,
        strategy: str,
    ) -> Located:  # fmt: skip
        """Sort the key operations, find what each does and, unless the store may have to grow,
        plan. Raises BatchError where unchecked rows are bad."""
        n, stream, work = len(rows), self.context.stream, self.work
        with self.context:
            work.reserve(n, n)
            work.reserve_tree(segments.m)
            work.clear_report(stream)
            kernels = self.kernels(segments)
            made = np.int64(0)
            if rows.made is not None:
                work.put_rows(*rows.made)
                made = np.int64(n)
            checked = np.int32(bool(batch.columns.checked))
            kernels.launch(
                "sort_batch", n,
                (batch.record, work.argument, np.int64(rows.lo), np.int64(rows.hi),
                 np.int32(rows.direction), checked, made),
            )  # fmt: skip
            self.context.upload.await_part(batch, WEIGHTS)
            kernels.launch(
                "locate", n,
                (segments.record, batch.record, work.argument, np.int32(versions), checked),
            )  # fmt: skip
            most = int(bounds(segments.m, segments.segment_size)[0][segments.m])
            ahead = segments.num_slots + n <= most
            top_down = strategy == "top-down"
            if ahead:
                self._launch_plan(segments, n, top_down, settled=False)
            changed = _room_for_changes(n)  # while the device is at work
            report = work.read_report(stream)
        for word, complaint in _COMPLAINTS:
            if report[word]:
                self.written = False  # kernels write nothing of a batch with bad rows
                raise BatchError(f"{complaint} ({report[word]} rows)")
        located = Located(batch, n, report, versions, None if versions else changed)
        if ahead:
            located.plan, located.planned_on = DevicePlan.of(report, top_down), segments
        return located

    def merge_small(self, *batch: Any) -> tuple[None, None]:
        """Small batches have no road of their own: what they take is launches, and few of them."""
        return None, None

    def _launch_plan(
        self, segments: Segments, rows: int, top_down: bool, settled: bool, sign: int = 1
    ) -> None:
        kernels = self.kernels(segments)
        most, least = self.device_bounds(segments.m, segments.segment_size)
        how = BOUNDS.pack(
            most.data.ptr, least.data.ptr, sign, self.work.next_plan(), top_down, settled,
            kernels.block_slots,
        )  # fmt: skip
        name = "plan_batch" if sign > 0 else "withdraw_batch"
        self.written = True
        kernels.launch(
            name, rows,
            (segments.record, self.work.argument, np.frombuffer(how, f"V{BOUNDS.size}")),
        )  # fmt: skip

    def _plan(self, segments: Segments, located: Located, top_down: bool) -> DevicePlan:
        """Plan a batch for which locating did not."""
        work = self.work
        work.reserve_tree(segments.m)
        if located.shift:
            self.kernels(segments).launch(
                "shift_ranks", located.rows, (work.argument, np.int32(located.shift))
            )
            located.shift = 0
        work.clear_report(self.context.stream, Report.WINDOWS)
        self._launch_plan(segments, located.rows, top_down, located.settled)
        located.plan = DevicePlan.of(work.read_report(self.context.stream), top_down)
        located.planned_on = segments
        return located.plan

    def plan(self, strategy: str, segments: Segments, located: Located) -> DevicePlan:
        """The strategy's plan for a located batch that the root has room for."""
        if located.plan is not None and located.planned_on is segments:
            return located.plan
        with self.context:
            return self._plan(segments, located, strategy == "top-down")

    def withdraw(self, located: Located) -> None:
        """Take back what planning wrote, the batch being given up."""
        if located.planned_on is None or located.plan is None:
            return
        with self.context:
            self._launch_plan(located.planned_on, located.rows, True, located.settled, sign=-1)
        located.plan = located.planned_on = None
        self.written = False

    def rebuild(self, segments: Segments, located: Located, m: int) -> Segments:
        """The store with the batch merged in, in fresh levels: a global merge."""
        if located.planned_on is None:
            self.plan("top-down", segments, located)
        source = located.planned_on
        assert source is not None
        try:
            fresh = self._room_for_merged(source, m)
        except MemoryError:
            self.withdraw(located)
            raise
        return self._merge_into(fresh, source, located)

    def held_above_leaves(self, plan: DevicePlan, segments: Segments) -> int:
        return plan.held_above_leaves

    def count_work(
        self, plan: DevicePlan, located: Located, segments: Segments, stats: Stats
    ) -> int:
        """Add the windows in which slots moved, and the edges they hold; their sum."""
        for layer, windows in enumerate(plan.windows_by_layer):
            stats.rebalances_by_layer[layer] += windows
            stats.segments_by_layer[layer] += windows << layer
            stats.slots_by_layer[layer] += plan.held_by_layer[layer]
        return sum(plan.held_by_layer)

    def reserve(
        self, segments: Segments, located: Located, plan: DevicePlan, shrinking: int
    ) -> None:
        """Allocate all that `move` will need, and `shrink` of `shrinking` slots."""
        if not plan.large_slots and not shrinking:
            return
        try:
            with self.context:
                self._scratch(segments, max(plan.large_slots, shrinking))
                if shrinking:
                    self._reserve_shrinking(segments)
        except MemoryError:
            self.withdraw(located)
            raise

    def reserve_mixed(self, segments: Segments, rows: int, room: int) -> None:
        """Allocate what a mixed batch of `rows` key operations may need at the most."""
        with self.context:
            self.work.reserve(room, 2 * rows)
            self.work.reserve_tree(segments.m)
            self._reserve_shrinking(segments)
            self._scratch(segments, segments.num_slots + rows)

    def move(self, segments: Segments, located: Located, plan: DevicePlan) -> None:
        """Carry out a plan. Allocates nothing that `reserve` has not."""
        kernels, work, batch = self.kernels(segments), self.work.argument, located.batch
        with self.context:
            self.context.upload.await_part(batch, ALL)
            if not located.settled:
                kernels.launch(
                    "move_leaves", 4 * plan.num_touched,
                    (segments.record, batch.record, work, np.int32(located.versions),
                     *addresses(located.changed)),
                )  # fmt: skip
            if plan.num_windows:
                kernels.launch(
                    "move_windows", plan.held_above_leaves,
                    (segments.record, batch.record, work,
                     self._scratch(segments, plan.large_slots), np.int32(plan.top_down),
                     np.int32(located.versions), np.int32(located.settled)),
                )  # fmt: skip
        if not located.settled:
            segments.num_slots += located.delta

    def compact(self, segments: Segments, located: Located, strategy: str) -> Located:
        """Fold the versions that `located` put in onto the stored edges. What it returns has the
        segments that they lay in as touched leaves, with nothing left to do in them, and is
        planned: the root has room for less than it held."""
        work, top_down = self.work, strategy == "top-down"
        with self.context:
            changed = _room_for_changes(located.rows)
            work.clear_report(self.context.stream, Report.LONG_RUNS)
            self.kernels(segments).launch(
                "compact", located.rows,
                (segments.record, located.batch.record, work.argument, *addresses(changed)),
            )  # fmt: skip
            self._launch_plan(segments, 2 * located.rows, top_down, settled=True)
            report = work.read_report(self.context.stream)
        segments.num_slots -= report[Report.COMPACTED]
        final = Located(located.batch, 2 * located.rows, report, False, changed, settled=True)
        final.plan, final.planned_on = DevicePlan.of(report, top_down), segments
        return final

    def changes(self, located: Located, most: int) -> tuple[Array, Array] | None:
        """(keys, inserted) of what a batch inserts or deletes, markers too; None where there is
        more than `most`. They are written by what commits the batch: see `wait`."""
        n = located.num_changes
        if n > most or located.changed is None:
            return None
        keys, inserted = located.changed
        return (keys, inserted) if n == located.rows else (keys[:n], inserted[:n])

    def wait(self) -> None:
        """Until all that was asked of the store is done."""
        self.context.stream.synchronize()

    def trim(self, segments: Segments, batch: DeviceBatch) -> None:
        """A batch is over: give back buffers that are large, and large beside the store."""
        self.context.upload.done(batch)
        if batch.columns.on_device:  # the mover may still read them: the caller comes after it
            cupy.cuda.get_current_stream().wait_event(self.stream.record())
        held = self.buffer_bytes
        if held > KEPT_BYTES and held > segments.nbytes // 4:
            self.work.release()


def _room_for_changes(rows: int) -> tuple[Array, Array] | None:
    """(keys, inserted) for the history, which keeps no more than MAX_KEYS and may forget."""
    if rows > MAX_KEYS:
        return None
    try:
        return cupy.empty(rows, cupy.uint64), cupy.empty(rows, cupy.bool_)
    except MemoryError:
        return None


def _keys_on_host(
    columns: Any, lo: int, hi: int, direction: int, more: tuple[Array, Array]
) -> tuple[Array, Array]:
    """What the device does for plain rows, for a batch that removes vertices."""
    kind, src, dst = (c[lo:hi] for c in (columns.kind, columns.src, columns.dst))
    u, v = src.astype(np.uint64), dst.astype(np.uint64)
    half, place = np.uint64(32), np.arange(lo, hi, dtype=np.uint32)
    edge, vertex = kind <= Kind.DELETE, (kind > Kind.DELETE) & (kind < FIRST_QUERY)
    ahead, back = (u << half) | v, (v << half) | u
    parts = [(back if direction == REVERSE else ahead, edge)]
    if direction == BOTH:
        parts.append((back, edge & (u != v)))
    if direction != REVERSE:
        parts.append(((u << half) | np.uint64(0xFFFFFFFF), vertex))
    keys = np.concatenate([*(key[chosen] for key, chosen in parts), more[0]])
    places = np.concatenate([*(place[chosen] for _, chosen in parts), more[1]])
    order = np.argsort(places, kind="stable")
    return keys[order], places[order].astype(np.uint32)
