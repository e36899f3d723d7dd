"""The CUDA backend: the operations of protocol.py, each a kernel or two.

A batch without expansion or global merge is one launch if it is small, five if it is large, and a
look or two at what the device answers: at_once.py, direct.py. A mixed one, and what the device
refused, is three launches, one look at the report, and a launch or two more: sorting, locating and
planning follow each other on the store's stream without involving the host; only then does the host
learn what the batch amounts to, and have leaves and windows moved. Planning writes the counts as
they will be, and `rollback` takes that back.

Here a batch is staged, located, planned and committed; shapes.py makes whole stores, reads.py
answers queries and exports.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...batch.columns import MAX_OPERATIONS, Columns
from ...errors import BatchError
from ...pma.counters import Stats
from ...pma.density import root_bounds
from ...pma.layout import Size
from ...pma.strategy import TOP_DOWN
from ..defaults import Defaults
from ..values import BOTH, Committed, Costs, Implied
from . import staging
from .beside import BesideTheStore
from .blocks import ALL, WEIGHTS
from .changes import room_for_changes
from .context import Context
from .described import StagedBatch
from .direct import GivenBatch, can_be_given
from .located import DevicePlan, KeyRows, Located, changes_of, keys_on_host
from .outcome import committed, refuse_bad_rows
from .segments import Segments
from .shapes import addresses
from .work import Report

Array = Any

# Bounds of judge.cuh: most, least; sign, plan, top_down, block_slots.
BOUNDS = struct.Struct("<QQiIii")


class CudaBackend(BesideTheStore, Defaults):
    """See lpma.backend.protocol. One instance per store; not thread-safe."""

    name = "cuda"
    overlaps = foresees = True
    validates = True  # rows of unchecked columns, while they are sorted
    costs = Costs(leaf=10.0, window=2.0, rebuild=1.2, fresh=3e7, evened=1 << 22)  # on an H200

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.stream = context.stream
        self.written = False

    def stages_unvalidated(self, rows: int) -> bool:
        """Not while the kernels for it are being read."""
        return rows > 0 and staging.compiled.is_ready()

    def stage(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> StagedBatch:
        """The columns on their way to the device; those of a small batch of edges only if need
        be."""
        now = int(time[0]) if len(time) == 1 else 0
        if can_be_given(columns):
            return GivenBatch(columns, now, self.context.upload, self.context)
        with self.context:
            return self.context.upload.send(columns, now)

    def key_rows(
        self, staged: StagedBatch, columns: Columns, lo: int, hi: int, direction: int,
        implied: Implied | None = None,
    ) -> KeyRows:  # fmt: skip
        """Made on the device by `locate`; with implied deletions, which are few, on the host."""
        sides = 2 if direction == BOTH else 1
        made = None
        if implied is not None:
            made = keys_on_host(columns, lo, hi, direction, implied)
        rows = KeyRows(lo, hi, direction, sides, made)
        if len(rows) > MAX_OPERATIONS:
            raise MemoryError(f"{len(rows):,} key operations")
        return rows

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, strategy: str
    ) -> Located:
        """Sort the key operations, find what each does and, unless the store may have to grow,
        plan."""
        n, stream, work = len(rows), self.context.stream, self.work
        written_before = self.written
        with self.context:
            kernels, checked = self.kernels(segments), np.int32(bool(staged.columns.checked))
            if not self.is_sorted(staged, rows):
                self.sort(segments, staged, rows)
            self.beside = None
            expires = staged.columns.expires  # then times are read
            for part in (WEIGHTS, ALL) if expires else (WEIGHTS,):
                self.context.upload.await_part(staged, part)
            kernels.launch(
                "locate", n,
                (segments.record, staged.record, work.argument, checked),
            )  # fmt: skip
            most = root_bounds(segments.size, segments.segment_size)[0]
            ahead = segments.num_slots + n <= most
            if ahead:
                self._launch_plan(segments, n, strategy)
            changed = room_for_changes(n)  # while the device is at work
            self.context.upload.bring(staged)
            report = work.read_report(stream)
        try:
            refuse_bad_rows(report)
        except BatchError:
            self.written = written_before  # kernels write nothing of a batch with bad rows
            raise
        located = Located(staged, n, report, segments.m, written_before, changed)
        if ahead:
            located.plan, located.planned_on = DevicePlan.of(report, strategy), segments
        return located

    def place_on(self, segments: Segments, located: Located) -> None:
        """On a store with that many more levels: rank i is then i * 2^levels, which planning
        writes."""
        located.shift += segments.m - located.m
        located.m = segments.m

    def _launch_plan(self, segments: Segments, rows: int, strategy: str, sign: int = 1) -> None:
        """Write the counts as they will be, and the plan; with sign -1, the counts back."""
        kernels = self.kernels(segments)
        most, least = self.device_bounds(segments.size, segments.segment_size)
        how = BOUNDS.pack(
            most.data.ptr, least.data.ptr, sign, self.work.next_plan(), strategy == TOP_DOWN,
            kernels.block_slots,
        )  # fmt: skip
        name = "plan_batch" if sign > 0 else "rollback_batch"
        self.written = True
        kernels.launch(
            name, rows,
            (segments.record, self.work.argument, np.frombuffer(how, f"V{BOUNDS.size}")),
        )  # fmt: skip

    def plan(self, strategy: str, segments: Segments, located: Located) -> DevicePlan:
        """Already made by locating, if that was for this shape and strategy."""
        made = located.plan
        if made is not None and located.planned_on is segments and made.strategy == strategy:
            return made
        self.rollback(located)
        with self.context:
            return self._plan(segments, located, strategy)

    def _plan(self, segments: Segments, located: Located, strategy: str) -> DevicePlan:
        work = self.work
        work.reserve_tree(segments.m)
        if located.shift:
            self.kernels(segments).launch(
                "shift_ranks", located.rows, (work.argument, np.int32(located.shift))
            )
            located.shift = 0
        work.clear_report(self.context.stream, Report.WINDOWS)
        self._launch_plan(segments, located.rows, strategy)
        located.plan = DevicePlan.of(work.read_report(self.context.stream), strategy)
        located.planned_on = segments
        return located.plan

    def rollback(self, located: Located) -> None:
        """Subtract the batch's changes from the counts again."""
        if located.planned_on is None:
            return
        with self.context:
            self._launch_plan(located.planned_on, located.rows, TOP_DOWN, sign=-1)
        located.plan = located.planned_on = None
        self.written = located.written_before

    def rebuild(self, segments: Segments, located: Located, size: Size) -> Segments:
        """The merge goes by the counts as they will be, which any plan writes."""
        if located.planned_on is not segments:
            self.plan(TOP_DOWN, segments, located)
        return self._merged(segments, located, size)

    def reserve(
        self, segments: Segments, located: Located, plan: DevicePlan, shrinking: int
    ) -> None:
        """Scratch for windows too large for a block, and for `shrink` of `shrinking` slots."""
        if not plan.large_slots and not shrinking:
            return
        with self.context:
            self._scratch(segments, max(plan.large_slots, shrinking))
            if shrinking:
                self._reserve_shrinking(segments)

    def commit(
        self, segments: Segments, located: Located, plan: DevicePlan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        """Carry out a plan, if one is left to carry out, and say what the batch amounted to."""
        if plan is not None:
            self._move(segments, located, plan)
        return committed(located, plan, stats, changes_of(located, most_changes))

    def _move(self, segments: Segments, located: Located, plan: DevicePlan) -> None:
        kernels, work, staged = self.kernels(segments), self.work.argument, located.staged
        self.written = True
        with self.context:
            self.context.upload.await_part(staged, ALL)
            kernels.launch(
                "move_leaves", 4 * plan.num_touched,
                (segments.record, staged.record, work, *addresses(located.changed)),
            )  # fmt: skip
            if plan.num_windows:
                kernels.launch(
                    "move_windows", plan.held_above_leaves,
                    (segments.record, staged.record, work,
                     self._scratch(segments, plan.large_slots),
                     np.int32(plan.strategy == TOP_DOWN)),
                )  # fmt: skip
        segments.num_slots += located.tally.delta

    def wait(self) -> None:
        self.context.stream.synchronize()

    def trim(self, segments: Segments, staged: StagedBatch) -> None:
        """Runs after what the store's stream has under way with the batch."""
        self.beside = None
        self._end(staged)
        self._give_back(segments)
