"""A batch without a wait in between, and one look at the host's own memory.

A small one is a single launch (apply.cu). A large one is five, since each step has more blocks than
it would have within one kernel, and begins when the columns that it needs are there. Either way the
device decides whether the batch goes in as planned; what it leaves to the host is in order.cuh. The
host watches the answer, and lets other threads run if that takes long (lpma/cuda/driver.py). All
that kernels are told lies in one block (asking.py).

An answer comes before the slots are moved, so a batch is over for the host while the device is
still at work on it. Whatever comes next, on the store's stream, comes after.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from ...batch.columns import MAX_OPERATIONS, Columns
from ...cuda import driver
from ...pma.counters import Stats
from ...pma.strategy import TOP_DOWN
from ..overlapping import ONE_LAUNCH_ROWS
from ..values import BOTH, Committed, Costs, Unread
from .asking import (
    ADDRESS,
    APPLIED,
    ASKED,
    AT,
    ENDED,
    GOOD,
    HEAD,
    REPORT_AT,
    SKIPPED,
    VERDICT,
    Asking,
)
from .blocks import ALL, WEIGHTS
from .changes import Changes, Room
from .described import StagedBatch
from .direct import Direct, GivenBatch
from .located import Located
from .one import OneByOne
from .outcome import refuse_bad_rows, taken_in
from .segments import LEVELS, Segments

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


class AtOnce(OneByOne):
    """See lpma.backend.protocol.Better, and Overlapping."""

    costs: Costs

    @cached_property
    def _asking(self) -> Asking:
        return Asking(self.context)

    @cached_property
    def _direct(self) -> Direct:
        return Direct(self.context)

    @cached_property
    def _changes(self) -> Changes:
        return Changes(self.context)

    @cached_property
    def _by_layer(self) -> Any:  # all answers so far, added up
        return np.zeros((2, LEVELS), np.int64)

    def apply_at_once(
        self, segments: Segments, staged: StagedBatch, columns: Columns, direction: int,
        strategy: str, most_cost: float, stats: Stats,
    ) -> Committed | Located | None:  # fmt: skip
        """One launch, or five. A batch that the device refuses is only located; with one that is
        merged anyway, or too large, nothing is done."""
        rows = len(columns.src) * (2 if direction == BOTH else 1)
        if not 0 < rows <= MAX_OPERATIONS or most_cost < 0:
            return None
        done = self.outcome(self.launch(segments, staged, rows, direction, strategy, most_cost))
        if isinstance(done, Committed) and rows > ONE_LAUNCH_ROWS:
            self._give_back(segments)
        if isinstance(done, Committed) and isinstance(done.changes, Unread):
            return done._replace(changes=done.changes.read(done.changes.number))
        return done

    def expect(self, columns: Columns) -> None:
        """See lpma.backend.overlapping.Overlapping."""
        with suppress(MemoryError), self.context:  # `stage` meets it again
            self.context.upload.pinned.expect(columns)

    def may_overlap(self, segments: Segments, columns: Columns, rows: int, is_first: bool) -> bool:
        """See lpma.backend.overlapping.Overlapping."""
        fits = is_first or (rows <= self.work.rows and rows <= self.work.leaves)
        return 0 < rows <= ONE_LAUNCH_ROWS and fits and not columns.on_device

    def launch(
        self, segments: Segments, staged: StagedBatch, rows: int, direction: int, strategy: str,
        most_cost: float,
    ) -> Launched:  # fmt: skip
        """Launch the kernel."""
        asking, work, costs, written_before = self._asking, self.work, self.costs, self.written
        ticket_before, report_before = asking.ticket, work.report_at
        if (
            asking.store is not segments.record
            or asking.buffers != work.revision
            or rows > min(work.rows, work.leaves)
        ):
            self._prepare(segments, rows)
        kernels, columns = self.kernels(segments), staged.columns
        room, is_one_step = self._changes.room(rows), rows <= ONE_LAUNCH_ROWS
        is_sent = not isinstance(staged, GivenBatch)
        if isinstance(staged, GivenBatch):
            given = self._direct.describe(staged)
        else:
            given = staged.words
            if is_one_step:
                self.context.upload.await_part(staged, ALL)
        try:
            ticket, answer_at = asking.take_ticket()
            report_at, cleared_at = work.turn()
            ASKED.pack_into(
                asking.bytes, AT["asked"], *staged.words, *given, *asking.bounds_at, 1,
                work.next_plan(), strategy == TOP_DOWN, kernels.block_slots, room.keys_at,
                room.inserted_at, answer_at, ticket, cleared_at, most_cost, costs.leaf,
                costs.window, 0, len(columns.src), direction, columns.checked,
            )  # fmt: skip
            ADDRESS.pack_into(asking.bytes, REPORT_AT, report_at)
            if is_one_step:
                self.written = True
                kernels.launch("apply_batch", THREADS_A_ROW * rows, asking.to_apply)
            else:
                self._launch_steps(segments, staged, rows)
        except BaseException:
            asking.ticket = ticket_before  # its place may hold the answer to the batch before
            work.go_back(report_before, self.stream)
            raise
        if is_sent:
            self._end(staged)
        return Launched(ticket, segments, staged, rows, strategy, room, report_at, written_before)

    def _launch_steps(self, segments: Segments, staged: StagedBatch, rows: int) -> None:
        """Launch the steps of a large batch, of which the last two do nothing if the device refuses
        it. Raises BatchError if a row is bad that was copied meanwhile."""
        kernels, upload, asking = self.kernels(segments), self.context.upload, self._asking
        kernels.launch("sort_batch", rows, asking.to_sort)
        upload.await_part(staged, WEIGHTS)
        kernels.launch("locate", rows, asking.to_locate)
        upload.bring(staged)  # from here on no row can turn out to be bad
        self.written = True
        kernels.launch("decide", THREADS_A_ROW * rows, asking.to_apply)
        upload.await_part(staged, ALL)
        kernels.launch("move_leaves", THREADS_A_ROW * rows, asking.to_move_leaves)
        kernels.launch("move_windows", THREADS_A_ROW * rows, asking.to_move_windows)

    def _window_slots(self, segments: Segments) -> int:
        """Scratch for windows too large for a block: some, or what an earlier batch needed, which
        was refused for it."""
        some = min(SCRATCH_SLOTS, segments.segment_size << segments.m)
        return max(some, self._scratch_slots(segments))

    def _prepare(self, segments: Segments, rows: int) -> None:
        """Have buffers for that many rows, and the block tell of them and of the store."""
        asking, work = self._asking, self.work
        with self.context:
            self.kernels(segments)
            work.reserve(rows, rows)
            slots = self._window_slots(segments)
            work.reserve_tree(segments.m)
            asking.put("scratch", self._scratch(segments, slots))
            asking.bounds_at = self._bounds_at(segments)
        asking.put("store", segments.record)
        asking.put("work", work.argument)
        ADDRESS.pack_into(asking.bytes, AT["scratch_slots"], slots)
        asking.store, asking.buffers = segments.record, work.revision

    def _watch(self, ticket: int, word: int) -> Any:
        """The answer to a ticket, once that word of it is there, or it has ENDED. Raises CuPy's
        CUDARuntimeError if the device fails."""
        at = self._asking.answer_at(ticket)
        driver.await_word(at + 8 * word, ticket, self.stream, at + 8 * ENDED)
        return self._asking.answer(ticket)

    def await_good(self, launched: Launched) -> None:
        """See lpma.backend.overlapping.Overlapping."""
        columns = launched.staged.columns
        if columns.checked and columns.block is None:
            return  # else the caller may write to the columns once it is told
        ticket = launched.ticket
        if self._watch(ticket, GOOD)[GOOD] != ticket:  # it ended without
            self._refused(launched)

    def outcome(self, launched: Launched) -> Committed | Located:
        """See lpma.backend.overlapping.Overlapping."""
        ticket = launched.ticket
        answer = self._watch(ticket, ENDED)
        if answer[VERDICT] == APPLIED:
            done = taken_in(answer, launched.strategy, launched.room)
            launched.segments.num_slots += done.tally.delta
            self._by_layer += self._asking.by_layer(ticket)
            return done
        assert answer[VERDICT] != SKIPPED, "the batch before was taken in first"
        report = self._refused(launched)
        self.work.go_on(launched.report_at)  # the batch behind it touched nothing
        rows = launched.rows
        return Located(
            launched.staged, rows, report, launched.segments.m, launched.written_before,
            launched.room.arrays(rows) if launched.room.rows else None,
        )  # fmt: skip

    def _refused(self, launched: Launched) -> list[int]:
        """What the device reports of a batch that it refused. Raises BatchError if rows are bad."""
        report: list[int] = self._asking.answer(launched.ticket)[HEAD:].tolist()
        with self.context:  # first: a batch that is behind a closed gate goes in nowhere
            self.work.open_gate(self.stream)
        self.written = launched.written_before  # the device has taken back what it wrote
        refuse_bad_rows(report)
        return report

    def count(self, stats: Stats) -> None:
        """See lpma.backend.overlapping.Overlapping."""
        stats.note_windows(*self._by_layer)

    def _end(self, staged: StagedBatch) -> None:
        """Nothing launched from now on reads the batch, unless the device refuses it."""
        self.context.upload.done(staged)
        if staged.columns.on_device:  # the mover may still read them: the caller comes after it
            self.context.hand_out(cupy.cuda.get_current_stream())
