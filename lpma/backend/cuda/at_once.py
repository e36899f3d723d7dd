"""A small batch by one launch, and one look at the host's own memory.

What the device decides and what it leaves to the host is in apply.cu. The host watches the answer
as one.py does, but lets other threads run in between: several graphs on several devices share one
interpreter. All that kernels are told lies in one block (asking.py).

An answer comes before the slots are moved, so a batch is over for the host while the device is
still at work on it. Whatever comes next, on the store's stream, comes after.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import sched_yield
from typing import Any

import cupy

from ...batch import MAX_HOPS, MAX_VERTEX, MAX_WEIGHT, Columns, Kind
from ...errors import BatchError
from ...history import MAX_KEYS
from ...hybrid import TOP_DOWN
from ...stats import Stats
from ..values import BOTH, Changed, Committed, Costs
from .asking import (
    ADDRESS,
    APPLIED,
    ASKED,
    AT,
    ENDED,
    GOOD,
    HEAD,
    REFUSED,
    REPORT_AT,
    SKIPPED,
    VERDICT,
    Asking,
)
from .batches import ALL, StagedBatch
from .changes import Changes, Room
from .direct import Direct, GivenBatch
from .located import DevicePlan, Located, tally_of
from .one import OneByOne
from .segments import Segments
from .work import Report

Array = Any

AT_ONCE_ROWS = 1 << 17  # beyond it a launch a step is faster
THREADS_A_ROW = 8  # so that leaves and windows, of which a warp takes some, have warps enough
SCRATCH_SLOTS = 1 << 17  # for windows too large for a block; a batch that needs more is refused
UNCHANGED, WINDOWS_BY_LAYER = int(Report.UNCHANGED), int(Report.WINDOWS_BY_LAYER)
HELD_BY_LAYER = int(Report.HELD_BY_LAYER)
WINDOWS, REDUNDANT = int(Report.WINDOWS), int(Report.REDUNDANT)
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

    def apply_small(
        self, segments: Segments, staged: StagedBatch, columns: Columns, direction: int,
        strategy: str, most_cost: float, stats: Stats,
    ) -> Committed | Located | None:  # fmt: skip
        """One launch. Nothing is done for a large batch; one that the device refuses is only
        located."""
        rows = len(columns.src) * (2 if direction == BOTH else 1)
        if not 0 < rows <= AT_ONCE_ROWS or most_cost < 0:
            return None
        launched = self.launch(segments, staged, rows, direction, strategy, most_cost)
        return self.outcome(launched, stats)

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
            given = staged.packed
            self.context.upload.await_part(staged, ALL)
        try:
            ticket, answer_at = asking.take_ticket()
            asking.bytes[AT["batch"] : AT["asked"]] = staged.packed + given
            ASKED.pack_into(
                asking.bytes, AT["asked"], *asking.bounds_at, 1, work.next_plan(),
                strategy == TOP_DOWN, 0, kernels.block_slots, 0, room.keys_at, room.inserted_at,
                answer_at, ticket, work.turn(), most_cost, self.costs.leaf, self.costs.window,
                0, len(columns.src), direction, columns.checked,
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

    def _watch(self, ticket: int, words: tuple[int, ...]) -> Any:
        """The answer to a ticket, once one of its `words` is there. Raises CuPy's CUDARuntimeError
        if the device fails."""
        answer = self._asking.answer(ticket)
        for _ in range(LOOKS):
            for word in words:
                if answer[word] == ticket:
                    return answer
            sched_yield()  # without the interpreter's lock; a sleep of 0 s takes 50 us
        self.stream.synchronize()
        assert any(answer[word] == ticket for word in words), "a kernel has ended and not answered"
        return answer

    def await_good(self, launched: Launched) -> None:
        """See lpma.backend.overlapping.Overlapping."""
        columns = launched.staged.columns
        if columns.checked and columns.block is None:
            return  # else the caller may write to the columns once it is told
        answer = self._watch(launched.ticket, (GOOD, ENDED))
        if answer[GOOD] != launched.ticket:  # it ended without
            self._read(launched)

    def _read(self, launched: Launched) -> tuple[int, list[int]]:
        """Wait for (verdict, report). Raises BatchError if rows are bad."""
        told = self._watch(launched.ticket, (ENDED,)).tolist()
        verdict, report = told[VERDICT], told[HEAD:]
        if verdict == REFUSED:
            self.written = launched.written_before  # the device has taken back what it wrote
            with self.context:
                self.work.open_gate(self.stream)
            refuse_bad_rows(report)
        return verdict, report

    def outcome(self, launched: Launched, stats: Stats) -> Committed | Located:
        """See lpma.backend.overlapping.Overlapping."""
        verdict, report = self._read(launched)
        assert verdict != SKIPPED, "the batch before was taken in first"
        segments, rows = launched.segments, launched.rows
        if verdict == APPLIED:
            done = taken_in(report, launched.strategy, stats, launched.room)
            segments.num_slots += done.tally.delta
            return done
        if launched.ticket != self._asking.ticket:
            self.work.turn()  # back to its report: the batch behind it touched nothing
        return Located(
            launched.staged, rows, report, False, segments.m, launched.written_before,
            launched.room.arrays(rows),
        )  # fmt: skip

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


def taken_in(report: list[int], strategy: str, stats: Stats, room: Room) -> Committed:
    """What a batch that was applied at once amounted to; `committed` without a plan to hand on."""
    tally = tally_of(report)
    unchanged = report[UNCHANGED:WINDOWS_BY_LAYER]
    changes = room.arrays(tally.num_changes)
    if not tally.touched:
        return Committed(tally, unchanged, changes)
    left, layer, held = report[WINDOWS] + report[WINDOWS_BY_LAYER], 0, 0
    while left:
        windows = report[WINDOWS_BY_LAYER + layer]
        if windows:
            left -= windows
            held_here = report[HELD_BY_LAYER + layer]
            held += held_here
            _note_layer(stats, layer, windows, held_here)
        layer += 1
    rounds = 1 if strategy == TOP_DOWN else max(layer, 1)
    return Committed(tally, unchanged, changes, report[REDUNDANT], rounds, held)


def _note_layer(stats: Stats, layer: int, windows: int, held: int) -> None:
    """Windows of a layer were rebalanced, which hold so many slots."""
    stats.rebalances_by_layer[layer] += windows
    stats.segments_by_layer[layer] += windows << layer
    stats.slots_by_layer[layer] += held


def committed(
    located: Located, plan: DevicePlan | None, stats: Stats, changes: Changed
) -> Committed:
    """What a located batch amounted to, whose plan, if there was one, is carried out."""
    redundant, num_rounds, held = 0, 0, 0
    if plan is not None:
        for layer, windows in enumerate(plan.windows_by_layer):
            _note_layer(stats, layer, windows, plan.held_by_layer[layer])
        redundant, num_rounds = plan.redundant, plan.num_rounds
        held = sum(plan.held_by_layer)
    return Committed(located.tally, located.unchanged, changes, redundant, num_rounds, held)
