"""A batch step by step, with looks at the device's report in between: a mixed one, and what the
device refused to apply by itself.

That is three launches, one look at the report, and a launch or two more: sorting, locating and
planning follow each other on the store's stream without involving the host; only then does the host
learn what the batch amounts to, and have leaves and windows moved. Planning writes the counts as
they will be, and `rollback` takes that back.
"""

from __future__ import annotations

import struct

import numpy as np

from ....batch.columns import MAX_OPERATIONS, Columns
from ....errors import BatchError
from ....pma.counters import Stats
from ....pma.density import root_bounds
from ....pma.layout import Size
from ....pma.strategy import TOP_DOWN
from ...values import Committed, Implied
from ..store.segments import Segments
from ..store.shapes import Shapes
from ..store.work import Report, Work
from ..streams import Context
from ..upload.blocks import ALL, WEIGHTS
from ..upload.staged_batch import StagedBatch
from ..upload.uploader import Uploader
from .changes import Changes
from .located import DevicePlan, KeyRows, Located, changes_of, keys_on_host
from .mixed import MixedBatches
from .outcome import committed, refuse_bad_rows

# Bounds of judge.cuh: most, least; sign, plan, top_down, block_slots.
BOUNDS = struct.Struct("<QQiIii")


class StepwisePath:
    """Of one store. See lpma.backend.protocol.Writing."""

    def __init__(
        self, context: Context, shapes: Shapes, work: Work, upload: Uploader, mixed: MixedBatches,
        changes: Changes,
    ) -> None:  # fmt: skip
        self._context, self._shapes, self._work = context, shapes, work
        self._upload, self._mixed, self._changes = upload, mixed, changes

    def key_rows(
        self, staged: StagedBatch, columns: Columns, direction: int, implied: Implied | None = None
    ) -> KeyRows:
        """Made on the device by `locate`; with implied deletions, which are few, on the host."""
        made = None if implied is None else keys_on_host(columns, direction, implied)
        rows = KeyRows(len(columns), direction, made)
        if len(rows) > MAX_OPERATIONS:
            raise MemoryError(f"{len(rows):,} key operations")
        return rows

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, strategy: str
    ) -> Located:
        """Sort the key operations, find what each does and, unless the store may have to grow,
        plan."""
        n, work, upload = len(rows), self._work, self._upload
        written_before = work.written
        with self._context:
            checked = np.int32(bool(staged.columns.checked))
            self._mixed.sort_to_apply(segments, staged, rows)
            expires = staged.columns.expires  # then times are read
            for part in (WEIGHTS, ALL) if expires else (WEIGHTS,):
                upload.await_part(staged, part)
            self._shapes.kernels.launch(
                "locate", n,
                (segments.record, staged.record, work.argument, checked),
            )  # fmt: skip
            most = root_bounds(segments.size, segments.segment_size)[0]
            ahead = segments.num_slots + n <= most
            if ahead:
                self._launch_plan(segments, n, strategy)
            room = self._changes.room(n)  # while the device is at work
            upload.bring(staged)
            report = work.read_report(self._context.stream)
        try:
            refuse_bad_rows(report)
        except BatchError:
            work.written = written_before  # kernels write nothing of a batch with bad rows
            raise
        located = Located(staged, n, report, segments.m, written_before, room)
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
        kernels, work = self._shapes.kernels, self._work
        how = BOUNDS.pack(
            *self._shapes.bounds_at(segments), sign, work.next_plan(), strategy == TOP_DOWN,
            kernels.block_slots,
        )  # fmt: skip
        name = "plan_batch" if sign > 0 else "rollback_batch"
        work.written = True
        kernels.launch(
            name, rows, (segments.record, work.argument, np.frombuffer(how, f"V{BOUNDS.size}"))
        )

    def plan(self, strategy: str, segments: Segments, located: Located) -> DevicePlan:
        """Already made by locating, if that was for this shape and strategy."""
        made = located.plan
        if made is not None and located.planned_on is segments and made.strategy == strategy:
            return made
        self.rollback(located)
        with self._context:
            return self._plan(segments, located, strategy)

    def _plan(self, segments: Segments, located: Located, strategy: str) -> DevicePlan:
        work, stream = self._work, self._context.stream
        work.reserve_tree(segments.m)
        if located.shift:
            self._shapes.kernels.launch(
                "shift_ranks", located.rows, (work.argument, np.int32(located.shift))
            )
            located.shift = 0
        work.clear_report(stream, Report.WINDOWS)
        self._launch_plan(segments, located.rows, strategy)
        located.plan = DevicePlan.of(work.read_report(stream), strategy)
        located.planned_on = segments
        return located.plan

    def rollback(self, located: Located) -> None:
        """Subtract the batch's changes from the counts again."""
        if located.planned_on is None:
            return
        with self._context:
            self._launch_plan(located.planned_on, located.rows, TOP_DOWN, sign=-1)
        located.plan = located.planned_on = None
        self._work.written = located.written_before

    def rebuild(self, segments: Segments, located: Located, size: Size) -> Segments:
        """The store that a batch is planned on with the batch merged in, in fresh levels. The merge
        goes by the counts as they will be, which any plan writes."""
        if located.planned_on is not segments:
            self.plan(TOP_DOWN, segments, located)
        with self._context:
            fresh = self._shapes.empty_like(segments, size)
            fresh.num_slots = segments.num_slots + located.tally.delta
            self._upload.await_part(located.staged, ALL)
            self._shapes.kernels.launch(
                "rebuild", max(32 << segments.m, 2 << fresh.m),
                (segments.record, fresh.record, located.staged.record, self._work.argument,
                 np.int64(fresh.num_slots), *located.room.at),
            )  # fmt: skip
        return fresh

    def reserve(
        self, segments: Segments, located: Located, plan: DevicePlan, shrinking: int
    ) -> None:
        """Scratch for windows too large for a block, and for `shrink` of `shrinking` slots."""
        if not plan.large_slots and not shrinking:
            return
        with self._context:
            self._shapes.scratch(segments, max(plan.large_slots, shrinking))
            if shrinking:
                self._shapes.reserve_shrinking(segments)

    def commit(
        self, segments: Segments, located: Located, plan: DevicePlan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        """Carry out a plan, if one is left to carry out, and say what the batch amounted to."""
        if plan is not None:
            self._move(segments, located, plan)
        return committed(located, plan, stats, changes_of(located, most_changes))

    def _move(self, segments: Segments, located: Located, plan: DevicePlan) -> None:
        kernels, work, staged = self._shapes.kernels, self._work.argument, located.staged
        self._work.written = True
        with self._context:
            self._upload.await_part(staged, ALL)
            kernels.launch(
                "move_leaves", 4 * plan.num_touched,
                (segments.record, staged.record, work, *located.room.at),
            )  # fmt: skip
            if plan.num_windows:
                kernels.launch(
                    "move_windows", plan.held_above_leaves,
                    (segments.record, staged.record, work,
                     self._shapes.scratch(segments, plan.large_slots),
                     np.int32(plan.strategy == TOP_DOWN)),
                )  # fmt: skip
        segments.num_slots += located.tally.delta
