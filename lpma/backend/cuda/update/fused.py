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

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ....batch.columns import Columns
from ....pma.counters import Stats
from ....pma.strategy import TOP_DOWN
from ...overlapping import ONE_LAUNCH_ROWS
from ...values import Committed, Costs
from ..store.segments import LEVELS, Segments
from ..store.shapes import Shapes
from ..store.work import Work
from ..streams import Context
from ..upload.blocks import ALL, WEIGHTS
from ..upload.staged_batch import HostBatch, StagedBatch
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
from .located import Located
from .outcome import applied, refuse_bad_rows

Array = Any

THREADS_A_ROW = 8  # so that leaves and windows, of which a warp takes some, have warps enough
SCRATCH_SLOTS = 1 << 17  # at the least


@dataclass
class Launched:
    """A batch on its way through the device, whose outcome the host has yet to read."""

    ticket: int
    segments: Segments
    staged: StagedBatch
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

    def may_overlap(self, segments: Segments, columns: Columns, rows: int, is_first: bool) -> bool:
        work = self._work
        fits = is_first or (rows <= work.rows and rows <= work.leaves)
        return 0 < rows <= ONE_LAUNCH_ROWS and fits and not columns.on_device

    def launch(
        self, segments: Segments, staged: StagedBatch, rows: int, direction: int, strategy: str,
        most_cost: float,
    ) -> Launched:  # fmt: skip
        """Launch the kernel, or the five."""
        block, work, costs, written_before = self.block, self._work, self._costs, self._work.written
        ticket_before, report_before = block.ticket, work.report_at
        if (
            block.store is not segments.record
            or block.buffers != work.revision
            or rows > min(work.rows, work.leaves)
        ):
            self._prepare(segments, rows)
        kernels, columns = self._shapes.kernels, staged.columns
        room, is_one_step = self._changes.room(rows), rows <= ONE_LAUNCH_ROWS
        is_sent = not isinstance(staged, HostBatch)
        if isinstance(staged, HostBatch):
            given = self._zero_copy.describe(staged)
        else:
            given = staged.words
            if is_one_step:
                self._upload.await_part(staged, ALL)
        try:
            block.ticket = ticket = ticket_before + 1
            report_at = work.turn(report_before)
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
        if is_sent:
            self._upload.done(staged)
        return Launched(ticket, segments, staged, rows, strategy, room, report_at, written_before)

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

    def _window_slots(self, segments: Segments) -> int:
        """Slots of scratch for windows too large for a block: a minimum, or what a batch needed
        that was refused for want of it."""
        some = min(SCRATCH_SLOTS, segments.segment_size << segments.m)
        return max(some, self._shapes.scratch_slots(segments))

    def _prepare(self, segments: Segments, rows: int) -> None:
        """Reserve buffers for that many rows, and write them and the store into the block."""
        block, shapes, work = self.block, self._shapes, self._work
        with self._context:
            work.reserve(rows, rows)
            slots = self._window_slots(segments)
            work.reserve_tree(segments.m)
            block.put("scratch", shapes.scratch(segments, slots))
            block.bounds_at = shapes.bounds_at(segments)
        block.put("store", segments.record)
        block.put("work", work.argument)
        ADDRESS.pack_into(block.bytes, AT["scratch_slots"], slots)
        block.store, block.buffers = segments.record, work.revision

    def await_good(self, launched: Launched) -> None:
        columns, ticket = launched.staged.columns, launched.ticket
        if columns.checked and columns.block is None:
            return  # otherwise the caller may write to the columns once this returns
        mailbox = self.block.mailboxes[ticket & 1]
        if mailbox.wait(self._stream, ticket, GOOD, ENDED)[GOOD] != ticket:  # it ended without
            self._refused(launched)

    def outcome(self, launched: Launched) -> Committed | Located:
        ticket, room = launched.ticket, launched.room
        mailbox = self.block.mailboxes[ticket & 1]
        answer = mailbox.wait(self._stream, ticket, ENDED, ENDED)
        if answer[VERDICT] == APPLIED:
            done = applied(answer, launched.strategy, room)
            launched.segments.num_slots += done.tally.delta
            self._by_layer += mailbox.memory[8 * BY_LAYER :].view(np.int64).reshape(2, LEVELS)
            return done
        assert answer[VERDICT] != SKIPPED, "the batch before was taken in first"
        report = self._refused(launched)
        self._work.go_on(launched.report_at)  # the batch behind it touched nothing
        rows = launched.rows
        return Located(
            launched.staged, rows, report, launched.segments.m, launched.written_before, room
        )

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
