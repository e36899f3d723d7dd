"""The store's kernels as their callers see them: what they read and write, and how they answer.

A kernel that applies a batch by itself does two things, one after the other: it reads keys, kinds
and weights, and answers; then it reads times. The host knows only of the first that it is over."""

from __future__ import annotations

from typing import Any

from lpma.backend.cuda.launch.mailbox import Mailbox
from lpma.backend.cuda.store.work import Report, Work
from lpma.backend.cuda.update.launch_block import (
    APPLIED,
    AT,
    ENDED,
    GOOD,
    HEAD,
    REFUSED,
    SKIPPED,
    VERDICT,
)
from lpma.backend.cuda.upload import blocks, zero_copy
from lpma.backend.cuda.upload.staged_batch import BATCH, BATCH_ORDER, required_columns
from lpma.cuda.launch import Packed
from lpma.store.lpma import LPMA

from ..emulated import cupy_on_host
from . import stand_in
from .clocks import HOST, GraphView
from .stand_in import clocks

WIDTHS = {"kind": 1, "src": 4, "dst": 4, "time": 8}
KEYS, FOLDED, TIMES = ("kind", "src", "dst"), ("kind", "weight"), ("time",)
READS = {  # by kernel: which of its arguments is the batch, and what it reads of it
    "sort_batch": (0, KEYS), "locate": (1, FOLDED),
    "move_leaves": (1, TIMES), "rebuild": (2, TIMES),
}  # fmt: skip


class Kernels:
    """Of one store. `declines`, `finds_bad_rows`: how the next batch that it decides on ends."""

    block_slots = 1024

    def __init__(self) -> None:
        self.backend: Any = None
        self.declines = self.finds_bad_rows = False
        self.launched: list[str] = []
        self._is_shut = False  # the gate of apply.cu
        self._answered: dict[int, GraphView] = {}  # by ticket
        self._batch_of: dict[int, int] = {}  # likewise

    def launch(self, name: str, threads: int, args: Any) -> None:
        self.launched.append(name)
        stream = args.stream if isinstance(args, Packed) else cupy_on_host.current().ptr
        at = clocks.moment(stream)
        buffer = self.backend.work._buffer
        clocks.use(buffer.data.ptr, buffer.nbytes, True, at, f"{name} writes its buffers")
        if name in ("apply_batch", "decide"):
            self._decide(name, at)
        elif name in READS and not self._is_shut:
            place, columns = READS[name]
            batch = self._asked(0) if isinstance(args, Packed) else args[place].tobytes()
            self.read(name, batch, columns, at)

    def read(self, name: str, batch: bytes, columns: tuple[str, ...], at: GraphView) -> None:
        """Note that a kernel reads columns of a Batch."""
        for column, (lo, size) in _spans(batch).items():
            if column not in columns:
                continue
            clocks.use(lo, size, False, at, f"{name} reads {column}")
            if lo >= stand_in.FIRST_ADDRESS and clocks.written_for(lo, size) != clocks.batch:
                clocks.conflicts.add(("another batch", f"{name} reads {column}"))

    def _asked(self, which: int) -> bytes:
        """One of the two Batches that a batch's kernels are told of."""
        at = AT["asked"] + which * BATCH.size
        return bytes(self.backend.fused.block.bytes[at : at + BATCH.size])

    def _decide(self, name: str, at: GraphView) -> None:
        """apply_batch and decide: read what they read, and answer."""
        block, batch, given = self.backend.fused.block, self._asked(0), self._asked(1)
        ticket = block.ticket
        answer = block.mailboxes[ticket & 1].words
        self._answered[ticket], self._batch_of[ticket] = at, clocks.batch
        report = [0] * int(Report.WORDS)
        report[Report.TOUCHED] = 1
        if self._is_shut:
            verdict = SKIPPED
        else:
            verdict = REFUSED if self.declines or self.finds_bad_rows else APPLIED
            report[Report.BAD_KIND] = int(self.finds_bad_rows)
            if name == "apply_batch":
                self._apply(batch, given, at)
        self._is_shut = verdict != APPLIED
        if verdict != SKIPPED and not self.finds_bad_rows:
            answer[GOOD] = ticket
        self.declines = self.finds_bad_rows = False
        for i, word in enumerate(report):
            answer[HEAD + i] = word
        answer[VERDICT], answer[ENDED] = verdict, ticket

    def _apply(self, batch: bytes, given: bytes, at: GraphView) -> None:
        self.read("apply_batch", given, (*KEYS, *FOLDED), at)
        if given != batch:
            self.read("apply_batch", given, TIMES, at)
            for column, (lo, size) in _spans(batch).items():
                clocks.use(lo, size, True, at, f"apply_batch copies {column}")
        self.read("apply_batch", batch, TIMES, clocks.moment(at.actor))

    def report(self) -> list[int]:
        """What the host reads of a batch that it has located or planned."""
        words = [0] * int(Report.WORDS)
        words[Report.TOUCHED] = words[Report.WINDOWS] = 1
        return words

    def install(self, backend: Any) -> None:
        """Have them be the backend's kernels, and its host's accesses to memory be noted."""
        self.backend, wait, finish_pending = backend, Mailbox.wait, LPMA.finish_pending

        def waited(of: Any, stream: Any, ticket: int, *words: int) -> Any:
            found = wait(of, stream, ticket, *words)
            clocks.learn(HOST, self._answered[ticket].clock)
            return found

        def taken_in(store: LPMA) -> bool:
            """What is done meanwhile is done for the batch behind."""
            now, pending = clocks.batch, store.pending
            if pending is not None:
                clocks.batch = self._batch_of[pending.launched.ticket]
            try:
                return finish_pending(store)
            finally:
                clocks.batch = now

        def read_report(_: Work, stream: Any) -> list[int]:
            stream.synchronize()
            return self.report()

        def open_gate(_: Work, stream: Any) -> None:
            self._is_shut = False

        landing, put = blocks.Block.landing, zero_copy.ZeroCopy._put

        def noted_landing(block: Any, size: int) -> Any:
            memory, first = landing(block, size)
            self.host_writes(memory.ptr + first, size)
            return memory, first

        def noted_put(of: Any, columns: Any, turn: int) -> list[int]:
            places = put(of, columns, turn)
            for place, array in zip(places, required_columns(columns), strict=True):
                if array is not None:
                    self.host_writes(place, array.nbytes)
            return places

        for owner, name, instead in (
            (LPMA, "finish_pending", taken_in),
            (Mailbox, "wait", waited),
            (Work, "read_report", read_report),
            (Work, "open_gate", open_gate),
            (blocks.Block, "landing", noted_landing),
            (zero_copy.ZeroCopy, "_put", noted_put),
        ):
            setattr(owner, name, instead)

    def host_writes(self, lo: int, size: int) -> None:
        clocks.use(lo, size, True, clocks.moment(HOST), "the host writes")


def _spans(batch: bytes) -> dict[str, tuple[int, int]]:
    """(address, bytes) of each column of a Batch that is there."""
    n, *places, _, wide, _ = BATCH.unpack(batch)
    widths = WIDTHS | {"weight": 8 if wide else 4}
    return {
        column: (place, n * widths[column])
        for column, place in zip(BATCH_ORDER, places, strict=True)
        if place
    }
