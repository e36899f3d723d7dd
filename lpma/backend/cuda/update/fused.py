"""A batch without a wait between its steps: the device decides, and the host reads the answer.

A small batch is a single launch (apply.cu). A large one is five launches: each step then has more
blocks than within one kernel, and starts when the columns that it needs have arrived. Either way
the device decides whether the batch is applied as planned; order.cuh says what it leaves to the
host. The host polls its own memory for the answer, and lets other threads run if that takes long
(lpma/cuda/driver.py). The arguments of all kernels lie in one block (launch_block.py).

The answer comes before the slots are moved: the batch is over for the host while the device is
still at work on it. Later work on the store's stream comes after.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ....batch.columns import Columns
from ....pma.counters import Stats
from ....pma.strategy import TOP_DOWN
from ....record import Record
from ...overlapping import ONE_LAUNCH_ROWS
from ...values import Array, Committed, Costs, Tally, Unread
from ..store.segments import LEVELS, Segments
from ..store.shapes import Shapes
from ..store.work import REPORT, Report, Work
from ..streams import Context
from ..upload import zero_copy
from ..upload.blocks import ALL, WEIGHTS
from ..upload.staged_batch import StagedBatch, Words
from ..upload.uploader import Uploader
from ..upload.zero_copy import ZeroCopy
from .changes import Changes, Room
from .launch_block import (
    ADDRESS,
    APPLIED,
    ASKED,
    AT,
    BY_LAYER,
    ENDED,
    GOOD,
    HEAD,
    REPORT_AT,
    SKIPPED,
    VERDICT,
    LaunchBlock,
)
from .located import TALLY, Located, refuse_bad_rows

THREADS_A_ROW = 8  # so that leaves and windows, of which a warp takes some, have warps enough
SCRATCH_SLOTS = 1 << 17  # at the least

UNCHANGED, WINDOWS, REDUNDANT = int(Report.UNCHANGED), int(Report.WINDOWS), int(Report.REDUNDANT)
HELD_ABOVE, HELD_IN_LEAVES = int(Report.HELD_ABOVE), HEAD + int(Report.HELD_BY_LAYER)


class Launched(Record):
    """A batch on its way through the device, whose outcome the host has yet to read."""

    ticket: int
    segments: Segments
    staged: StagedBatch
    given: Words  # of the batch where the kernel reads it first
    rows: int  # key operations at most
    strategy: str
    room: Room  # for its changes
    report_at: int
    written_before: bool


class FusedPath:
    """Of one store. See lpma.backend.overlapping.Overlapping."""

    def __init__(
        self, context: Context, shapes: Shapes, work: Work, upload: Uploader, changes: Changes,
        costs: Costs,
    ) -> None:  # fmt: skip
        self._context, self._stream = context, context.stream
        self._shapes, self._work, self._upload, self._costs = shapes, work, upload, costs
        self._changes = changes
        self._by_layer = np.zeros((2, LEVELS), np.int64)  # all answers so far, added up

    @cached_property
    def block(self) -> LaunchBlock:
        return LaunchBlock(self._context)

    @cached_property
    def _zero_copy(self) -> ZeroCopy:
        return ZeroCopy(self._context)

    def launch(
        self, segments: Segments, columns: Columns, time: Array, rows: int, direction: int,
        strategy: str, most_cost: float, is_behind: bool = False, again: Launched | None = None,
    ) -> Launched | None:  # fmt: skip
        """Launch the kernel, or the five."""
        block, work, costs = self.block, self._work, self._costs
        if rows > work.rows and is_behind:
            return None  # which needs its buffers
        ticket_before, written_before = block.ticket, work.written
        ticket, is_one_step = ticket_before + 1, rows <= ONE_LAUNCH_ROWS
        now = int(time[0]) if len(time) == 1 else 0
        if again is not None:
            staged, given, ticket = again.staged, again.given, ticket + 1  # it keeps its turn
        elif len(columns.kind) <= zero_copy.MOST_ROWS and not columns.on_device:
            given, own = self._zero_copy.describe(columns, now, ticket & 1)
            staged = StagedBatch(words=own, columns=columns, block=None)
        else:
            staged = self._upload.send(columns, now)
            given = staged.words
        if block.store is not segments.record or block.buffers != work.revision or rows > work.rows:
            self._prepare(segments, rows)
        kernels, room = self._shapes.kernels, self._changes.room(rows)
        if is_one_step and staged.block is not None:
            self._upload.await_part(staged, ALL)
        report_before = work.fields[REPORT]
        try:
            block.ticket = ticket
            work.fields[REPORT] = report_at = work.both_reports - report_before  # of zeros
            ASKED.pack_into(
                block.bytes, AT["asked"], *staged.words, *given, *block.bounds_at, 1,
                work.next_plan(), strategy == TOP_DOWN, kernels.block_slots, *room.at,
                block.mailboxes[ticket & 1].at, ticket, report_before,
                most_cost, costs.leaf, costs.window, direction, columns.checked,
            )  # fmt: skip
            ADDRESS.pack_into(block.bytes, REPORT_AT, report_at)
            if is_one_step:
                work.written = True
                kernels.launch("apply_batch", THREADS_A_ROW * rows, block.to_apply)
            else:
                self._launch_steps(staged, rows)
        except BaseException:
            block.ticket = ticket_before  # its place may hold the answer to the batch before
            work.go_back(report_before, self._stream)
            raise
        if staged.block is not None or columns.on_device:
            self._upload.done(staged)
        return Launched(
            ticket=ticket, segments=segments, staged=staged, given=given, rows=rows,
            strategy=strategy, room=room, report_at=report_at, written_before=written_before,
        )  # fmt: skip

    def _launch_steps(self, staged: StagedBatch, rows: int) -> None:
        """Launch the steps of a large batch. The last two do nothing if the device refuses it.
        Raises BatchError if a row that was copied meanwhile is bad."""
        kernels, upload, block = self._shapes.kernels, self._upload, self.block
        kernels.launch("sort_batch", rows, block.to_sort)
        upload.await_part(staged, WEIGHTS)
        kernels.launch("locate", rows, block.to_locate)
        upload.bring(staged)  # from here on no row can turn out to be bad
        self._work.written = True
        kernels.launch("decide", THREADS_A_ROW * rows, block.to_apply)
        upload.await_part(staged, ALL)
        kernels.launch("move_leaves", THREADS_A_ROW * rows, block.to_move_leaves)
        kernels.launch("move_windows", THREADS_A_ROW * rows, block.to_move_windows)

    def _prepare(self, segments: Segments, rows: int) -> None:
        """Reserve buffers for that many rows, and write them and the store into the block."""
        block, shapes, work = self.block, self._shapes, self._work
        with self._context:
            work.reserve(rows)
            # For windows too large for a block: a minimum, or what a batch needed that was refused
            # for want of it.
            some = min(SCRATCH_SLOTS, segments.segment_size << segments.m)
            slots = max(some, work.scratch_slots)
            work.reserve_tree(segments.m)
            block.put("scratch", shapes.scratch(segments, slots))
            block.bounds_at = shapes.bounds_at(segments)
        block.put("store", segments.record)
        block.put("work", work.argument)
        ADDRESS.pack_into(block.bytes, AT["scratch_slots"], slots)
        block.store, block.buffers = segments.record, work.revision

    def await_good(self, launched: Launched) -> None:
        columns, ticket = launched.staged.columns, launched.ticket
        # The caller may write to others once this returns.
        if not columns.checked or columns.block is not None:
            mailbox = self.block.mailboxes[ticket & 1]
            if mailbox.wait(self._stream, ticket, GOOD, ENDED)[GOOD] != ticket:
                self._refused(launched)  # it ended without
        self._work.written = False

    def outcome(self, launched: Launched) -> Committed | Located:
        mailbox, room = self.block.mailboxes[launched.ticket & 1], launched.room
        answer = mailbox.wait(self._stream, launched.ticket, ENDED, ENDED)
        if answer[VERDICT] != APPLIED:
            assert answer[VERDICT] != SKIPPED, "the batch before was taken in first"
            report = self._refused(launched)
            self._work.fields[REPORT] = launched.report_at  # the batch behind it touched nothing
            m, before = launched.segments.m, launched.written_before
            return Located(launched.staged, launched.rows, report, m, before, room)
        report = answer[HEAD:BY_LAYER].tolist()
        touched, inserted, deleted, markers, loops, largest = report[TALLY]
        tally = Tally(
            touched=touched, delta=inserted - deleted, markers=markers, loops=loops,
            largest=largest - 1, deletions=deleted,
        )  # fmt: skip
        launched.segments.num_slots += inserted - deleted
        self._by_layer += mailbox.memory[8 * BY_LAYER :].view(np.int64).reshape(2, LEVELS)
        changes = Unread(number=inserted + deleted, read=room.arrays) if room.rows else None
        if not touched:
            return Committed(tally=tally, unchanged=report[UNCHANGED:], changes=changes)
        rounds = 1
        if launched.strategy != TOP_DOWN:
            left, layer = report[WINDOWS] + answer[BY_LAYER], BY_LAYER
            while left:
                left -= answer[layer]
                layer += 1
            rounds = max(layer - BY_LAYER, 1)
        held = report[HELD_ABOVE] + answer[HELD_IN_LEAVES]
        return Committed(
            tally=tally, unchanged=report[UNCHANGED:], changes=changes,
            redundant=report[REDUNDANT], num_rounds=rounds, held=held,
        )  # fmt: skip

    def _refused(self, launched: Launched) -> list[int]:
        """What the device reports of a batch that it refused. Raises BatchError if rows are bad."""
        mailbox = self.block.mailboxes[launched.ticket & 1]
        report: list[int] = mailbox.words[HEAD:].tolist()
        with self._context:  # first: a batch that is behind a closed gate goes in nowhere
            self._work.open_gate(self._stream)
        self._work.written = launched.written_before  # the device has taken back what it wrote
        refuse_bad_rows(report)
        return report

    def count(self, stats: Stats) -> None:
        stats.note_windows(*self._by_layer)
