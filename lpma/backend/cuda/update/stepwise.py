"""A batch step by step, with looks at the device's report in between: a mixed one, and what the
device refused to apply by itself.

That is three launches, one look at the report, and a launch or two more: sorting, locating and
planning follow each other on the store's stream without involving the host; only then does the host
learn what the batch amounts to, and have leaves and windows moved. Planning writes the counts as
they will be, and `rollback` takes that back.

A mixed batch lies sorted beside the store while its queries are answered (beside.cu). Nothing is
written to the store until then; it is applied from the rows as they are sorted.
"""

from __future__ import annotations

import struct

import cupy
import numpy as np

from ....batch.columns import MAX_OPERATIONS, Columns
from ....errors import BatchError
from ....pma.counters import Stats
from ....pma.density import root_bounds
from ....pma.layout import Size
from ....pma.strategy import TOP_DOWN
from ...numpy import fold
from ...values import Array, Committed, Implied
from ..launch.kernels import launch_on
from ..read.reader import Reader, SortedBatch
from ..store.segments import Segments
from ..store.shapes import Shapes
from ..store.work import Report, Work
from ..upload.blocks import ALL, WEIGHTS
from ..upload.staged_batch import StagedBatch
from ..upload.uploader import Uploader
from .changes import Changes
from .located import DevicePlan, KeyRows, Located, refuse_bad_rows

# Bounds of judge.cuh: most, least; sign, plan, top_down, block_slots.
BOUNDS = struct.Struct("<QQiIii")


class StepwisePath:
    """Of one store. See lpma.backend.protocol.Writing."""

    def __init__(
        self, shapes: Shapes, work: Work, upload: Uploader, reader: Reader, changes: Changes
    ) -> None:
        self._shapes, self._work, self._upload = shapes, work, upload
        self._reader, self._context, self._changes = reader, reader.context, changes

    # -- sorted, and located --------------------------------------------------------------------

    def key_rows(
        self, staged: StagedBatch, columns: Columns, direction: int, implied: Implied | None = None
    ) -> KeyRows:
        """Made on the device by `locate`; with implied deletions, which are few, on the host."""
        made = None
        if implied is not None:
            on_host = fold.key_rows(columns, direction, implied)
            made = on_host.key, on_host.place.astype(np.uint32)
        rows = KeyRows(len(columns), direction, made)
        if len(rows) > MAX_OPERATIONS:
            raise MemoryError(f"{len(rows):,} key operations")
        return rows

    def _sort(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        """REQUIRES: the store's stream is the current one."""
        n, work = len(rows), self._work
        work.reserve(n)
        work.reserve_tree(segments.m)
        work.clear_report(self._context.stream)
        if rows.made is not None:
            work.put_rows(*rows.made)
        self._shapes.kernels.launch(
            "sort_batch", n,
            (staged.record, work.argument, np.int32(rows.direction),
             np.int32(bool(staged.columns.checked)), np.int64(0 if rows.made is None else n)),
        )  # fmt: skip

    def sort_beside(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        with self._context:
            self._sort(segments, staged, rows)
            ranks = cupy.empty(max(len(rows), 1), np.int64)
            launch_on(
                segments, "beside", "rank_rows", len(rows),
                segments.record, self._work.argument, ranks,
            )  # fmt: skip
            self._upload.await_part(staged, ALL)
        self._reader.beside = SortedBatch(staged, rows, self._work.argument, ranks)

    def asked(
        self, segments: Segments, staged: StagedBatch, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        n = len(places)
        with self._reader as reader:
            src, dst, limits = reader.new((n, np.uint32), (n, np.uint32), (n, np.int64))
            launch_on(
                segments, "beside", "list_asked", n,
                staged.record, reader.given(places, np.int64), n, src, dst, limits,
            )  # fmt: skip
        return src, dst, limits

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, strategy: str
    ) -> Located:
        """Sort the key operations, find what each does and, unless the store may have to grow,
        plan. From here on no batch lies beside the store: these rows may be those that did."""
        n, work, upload = len(rows), self._work, self._upload
        written_before, beside = work.written, self._reader.beside
        with self._context:
            if beside is None or beside.staged is not staged or beside.rows is not rows:
                self._sort(segments, staged, rows)
            self._reader.beside = None
            upload.await_part(staged, WEIGHTS)
            if staged.columns.expires:  # then times are read
                upload.await_part(staged, ALL)
            self._shapes.kernels.launch(
                "locate", n,
                (segments.record, staged.record, work.argument,
                 np.int32(bool(staged.columns.checked))),
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
            located.plan, located.planned_on = DevicePlan(strategy, report), segments
        return located

    # -- planned --------------------------------------------------------------------------------

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
        work.written = True
        bounds = np.frombuffer(how, f"V{BOUNDS.size}")
        kernels.launch("plan_batch", rows, (segments.record, work.argument, bounds))

    def plan(self, strategy: str, segments: Segments, located: Located) -> DevicePlan:
        """Already made by locating, if that was for this shape and strategy."""
        made, work = located.plan, self._work
        if made is not None and located.planned_on is segments and made.strategy == strategy:
            return made
        self.rollback(located)
        with self._context:
            work.reserve_tree(segments.m)
            if located.shift:
                self._shapes.kernels.launch(
                    "shift_ranks", located.rows, (work.argument, np.int32(located.shift))
                )
                located.shift = 0
            work.clear_report(self._context.stream, Report.WINDOWS)
            self._launch_plan(segments, located.rows, strategy)
            plan = DevicePlan(strategy, work.read_report(self._context.stream))
        located.plan, located.planned_on = plan, segments
        return plan

    def rollback(self, located: Located) -> None:
        """Subtract the batch's changes from the counts again."""
        if located.planned_on is None:
            return
        with self._context:
            self._launch_plan(located.planned_on, located.rows, TOP_DOWN, sign=-1)
        located.plan = located.planned_on = None
        self._work.written = located.written_before

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

    # -- carried out ----------------------------------------------------------------------------

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

    def commit(
        self, segments: Segments, located: Located, plan: DevicePlan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        """Carry out a plan, if one is left to carry out, and say what the batch amounted to."""
        redundant, num_rounds, held = 0, 0, 0
        if plan is not None:
            self._move(segments, located, plan)
            stats.note_windows(np.array(plan.windows_by_layer), np.array(plan.held_by_layer))
            redundant, num_rounds = plan.redundant, plan.num_rounds
            held = sum(plan.held_by_layer)
        n, room = located.tally.num_changes, located.room
        return Committed(
            tally=located.tally,
            unchanged=located.report[Report.UNCHANGED : Report.WINDOWS_BY_LAYER],
            changes=room.arrays(n) if n <= min(most_changes, room.rows) else None,
            redundant=redundant, num_rounds=num_rounds, held=held,
        )  # fmt: skip

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
