"""A small batch by one launch, and one look at the host's own memory.

What the device decides and what it leaves to the host is in apply.cu. The host watches the answer
as one.py does, but lets other threads run in between: several graphs on several devices share one
interpreter. All that kernels are told lies in one block (asking.py).

An answer comes before the slots are moved, so a batch is over for the host while the device is
still at work on it. Whatever comes next, on the store's stream, comes after.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from os import sched_yield
from typing import Any

import cupy
import numpy as np

from ...batch import MAX_HOPS, MAX_VERTEX, MAX_WEIGHT, Columns, Kind
from ...errors import BatchError
from ...history import MAX_KEYS
from ...hybrid import TOP_DOWN
from ...stats import Stats
from ..overlapping import AT_ONCE_ROWS
from ..values import BOTH, Changed, Committed, Costs, Unread
from .asking import (
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
    Asking,
)
from .blocks import ALL
from .changes import Changes, Room
from .described import StagedBatch
from .direct import Direct, GivenBatch
from .located import DevicePlan, Located, tally_of
from .one import OneByOne
from .segments import LEVELS, Segments
from .work import Report

Array = Any

THREADS_A_ROW = 8  # so that leaves and windows, of which a warp takes some, have warps enough
SCRATCH_SLOTS = 1 << 17  # for windows too large for a block; a batch that needs more is refused
UNCHANGED, WINDOWS, REDUNDANT = int(Report.UNCHANGED), int(Report.WINDOWS), int(Report.REDUNDANT)
HELD_ABOVE, HELD_IN_LEAVES = int(Report.HELD_ABOVE), HEAD + int(Report.HELD_BY_LAYER)
LOOKS = 1000  # at the answer, about a millisecond, before the thread goes to sleep

COMPLAINTS = (
    (Report.BAD_KIND, f"kind: values go from 0 to {int(Kind.VERTEX)}"),
    (Report.BAD_VERTEX, f"vertex ids go from 0 to {MAX_VERTEX}"),
    (Report.BAD_WEIGHT, f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken"),
    (Report.BAD_HOPS, f"hops: the number of steps goes from 1 to {MAX_HOPS}"),
)


def refuse_bad_rows(report: list[int]) -> None:
    """Raises BatchError if the device found any. REQUIRES: it has written nothing of the batch."""
    for word, complaint in COMPLAINTS:
        if report[word]:
            raise BatchError(f"{complaint} ({report[word]} rows)")


@dataclass
class Launched:
    """A batch on its way through the device, whose outcome the host has yet to read."""

    ticket: int
    segments: Segments
    staged: StagedBatch
    rows: int  # key operations at most
    strategy: str
    room: Room  # for its changes
    written_before: bool


class AtOnce(OneByOne):
    """See lpma.backend.protocol.SmallBatches and Overlapping."""

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

    def apply_small(
        self, segments: Segments, staged: StagedBatch, columns: Columns, direction: int,
        strategy: str, most_cost: float, stats: Stats,
    ) -> Committed | Located | None:  # fmt: skip
        """One launch. Nothing is done for a large batch; one that the device refuses is only
        located."""
        rows = len(columns.src) * (2 if direction == BOTH else 1)
        if not 0 < rows <= AT_ONCE_ROWS or most_cost < 0:
            return None
        done = self.outcome(self.launch(segments, staged, rows, direction, strategy, most_cost))
        if isinstance(done, Committed) and isinstance(done.changes, Unread):
            return done._replace(changes=done.changes.read(done.changes.number))
        return done

    def expect(self, columns: Columns) -> None:
        """See lpma.backend.overlapping.Overlapping."""
        if len(columns.kind) > AT_ONCE_ROWS:
            with suppress(MemoryError), self.context:  # `stage` meets it again
                self.context.upload.pinned.expect(columns)

    def may_overlap(self, segments: Segments, columns: Columns, rows: int, is_first: bool) -> bool:
        """See lpma.backend.overlapping.Overlapping."""
        fits = is_first or (rows <= self.work.rows and rows <= self.work.leaves)
        return 0 < rows <= AT_ONCE_ROWS and fits and not columns.on_device

    def launch(
        self, segments: Segments, staged: StagedBatch, rows: int, direction: int, strategy: str,
        most_cost: float,
    ) -> Launched:  # fmt: skip
        """Launch the kernel."""
        asking, work, written_before = self._asking, self.work, self.written
        if (
            asking.store is not segments.record
            or asking.buffers != work.revision
            or rows > min(work.rows, work.leaves)
        ):
            self._prepare(segments, rows)
        kernels, columns = self.kernels(segments), staged.columns
        room = self._changes.room(rows)
        is_sent = not isinstance(staged, GivenBatch)
        if isinstance(staged, GivenBatch):
            given = self._direct.describe(staged)
        else:
            given = staged.words
            self.context.upload.await_part(staged, ALL)
        try:
            ticket, answer_at = asking.take_ticket()
            ASKED.pack_into(
                asking.bytes, AT["asked"], *staged.words, *given, *asking.bounds_at, 1,
                work.next_plan(), strategy == TOP_DOWN, 0, kernels.block_slots, 0, room.keys_at,
                room.inserted_at, answer_at, ticket, work.turn(), most_cost, self.costs.leaf,
                self.costs.window, 0, len(columns.src), direction, columns.checked,
            )  # fmt: skip
            ADDRESS.pack_into(asking.bytes, REPORT_AT, work.report_at)
            self.written = True
            kernels.launch("apply_batch", THREADS_A_ROW * rows, asking.to_apply)
        except BaseException:
            work.clear_reports(self.stream)
            raise
        if is_sent:
            self._end(staged)
        return Launched(ticket, segments, staged, rows, strategy, room, written_before)

    def _prepare(self, segments: Segments, rows: int) -> None:
        """Have buffers for that many rows, and the block tell of them and of the store."""
        asking, work = self._asking, self.work
        slots = min(SCRATCH_SLOTS, segments.segment_size << segments.m)
        with self.context:
            self.kernels(segments)
            work.reserve(rows, rows)
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
        answer = self._asking.answer(ticket)
        for _ in range(LOOKS):
            if answer[word] == ticket or answer[ENDED] == ticket:
                return answer
            sched_yield()  # without the interpreter's lock; a sleep of 0 s takes 50 us
        self.stream.synchronize()
        assert answer[ENDED] == ticket, "a kernel has ended and not answered"
        return answer

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
        if ticket != self._asking.ticket:
            self.work.turn()  # back to its report: the batch behind it touched nothing
        rows = launched.rows
        return Located(
            launched.staged, rows, report, False, launched.segments.m, launched.written_before,
            launched.room.arrays(rows) if launched.room.rows else None,
        )  # fmt: skip

    def _refused(self, launched: Launched) -> list[int]:
        """What the device reports of a batch that it refused. Raises BatchError if rows are bad."""
        report: list[int] = self._asking.answer(launched.ticket)[HEAD:].tolist()
        self.written = launched.written_before  # the device has taken back what it wrote
        with self.context:
            self.work.open_gate(self.stream)
        refuse_bad_rows(report)
        return report

    def count(self, stats: Stats) -> None:
        """See lpma.backend.overlapping.Overlapping."""
        stats.add_windows(*self._by_layer)

    def _end(self, staged: StagedBatch) -> None:
        """Nothing launched from now on reads the batch, unless the device refuses it."""
        self.context.upload.done(staged)
        if staged.columns.on_device:  # the mover may still read them: the caller comes after it
            cupy.cuda.get_current_stream().wait_event(self.stream.record())


def room_for_changes(rows: int) -> tuple[Array, Array] | None:
    """(keys, inserted) for the history, which keeps no more than MAX_KEYS and may forget."""
    if rows > MAX_KEYS:
        return None
    try:
        return cupy.empty(rows, cupy.uint64), cupy.empty(rows, cupy.bool_)
    except MemoryError:
        return None


def taken_in(answer: Any, strategy: str, room: Room) -> Committed:
    """What a batch that was applied at once amounted to; `committed` without a plan to hand on."""
    report = answer[HEAD:BY_LAYER].tolist()
    tally = tally_of(report)
    changes = Unread(tally.num_changes, room.arrays) if room.rows else None
    if not tally.touched:
        return Committed(tally, report[UNCHANGED:], changes)
    rounds = 1
    if strategy != TOP_DOWN:
        left, layer = report[WINDOWS] + answer[BY_LAYER], BY_LAYER
        while left:
            left -= answer[layer]
            layer += 1
        rounds = max(layer - BY_LAYER, 1)
    held = report[HELD_ABOVE] + answer[HELD_IN_LEAVES]
    return Committed(tally, report[UNCHANGED:], changes, report[REDUNDANT], rounds, held)


def committed(
    located: Located, plan: DevicePlan | None, stats: Stats, changes: Changed
) -> Committed:
    """What a located batch amounted to, whose plan, if there was one, is carried out."""
    redundant, num_rounds, held = 0, 0, 0
    if plan is not None:
        stats.add_windows(np.array(plan.windows_by_layer), np.array(plan.held_by_layer))
        redundant, num_rounds = plan.redundant, plan.num_rounds
        held = sum(plan.held_by_layer)
    return Committed(located.tally, located.unchanged, changes, redundant, num_rounds, held)
