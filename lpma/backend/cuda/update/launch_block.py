"""The one argument of apply_batch and decide, and the words in which the device answers.

Parts of it are the arguments of the other kernels of a large batch. Each batch writes the last
part; those about the store and the buffers stay until these change. Two mailboxes for answers take
turns: a batch may be launched before the answer to the one before it is read.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ....cuda.launch import Packed
from ..launch.mailbox import Mailbox
from ..store.segments import STORE
from ..store.work import COLUMNS, WORK, Report
from ..streams import Context
from ..upload.staged_batch import BATCH

# Order of order.cuh from its batches on: two Batches as BATCH has them; Bounds (most, least; sign,
# plan, top_down, block_slots); changed, inserted, answer, ticket, next_report; most_cost,
# leaf_cost, window_cost; direction, checked.
ASKED = struct.Struct(BATCH.format + BATCH.format[1:] + "QQiIii QQQqQ ddd ii")
# Where some of them are: top_down, changed, direction.
TOP_DOWN_AT, CHANGED_AT, DIRECTION_AT = (2 * BATCH.size + at for at in (24, 32, 96))
ORDER = np.dtype(
    [("store", STORE), ("work", WORK), ("scratch", COLUMNS), ("scratch_slots", "<u8"),
     ("asked", f"V{ASKED.size}")]
)  # fmt: skip
AT = {name: int(ORDER.fields[name][1]) for name in ORDER.names or ()}  # type: ignore[index]
REPORT_AT = AT["work"] + int(WORK.fields["report"][1])  # type: ignore[index]
ADDRESS = struct.Struct("<Q")

SKIPPED, REFUSED, APPLIED = range(3)  # Verdict of order.cuh
GOOD, ENDED, VERDICT, HEAD = range(4)  # words of an answer; the report follows
SIZE = HEAD + int(Report.WORDS)
BY_LAYER = HEAD + int(Report.WINDOWS_BY_LAYER)  # windows, and what they hold: the end of a report


class LaunchBlock:
    """One for each store."""

    def __init__(self, context: Context) -> None:
        zero = ORDER.itemsize  # a word behind the order: no keys are made on the host
        block = np.zeros(zero + 8, np.uint8)
        self.bytes = block.data
        store, work, scratch, batch = (AT[name] for name in ("store", "work", "scratch", "asked"))
        direction, checked = batch + DIRECTION_AT, batch + DIRECTION_AT + 4
        changed, inserted = batch + CHANGED_AT, batch + CHANGED_AT + 8

        def arguments(*at: int) -> Packed:
            return Packed(block, at, context.stream)

        self.to_apply = arguments(0)
        self.to_sort = arguments(batch, work, direction, checked, zero)
        self.to_locate = arguments(store, batch, work, checked)
        self.to_move_leaves = arguments(store, batch, work, changed, inserted)
        down = batch + TOP_DOWN_AT
        self.to_move_windows = arguments(store, batch, work, scratch, down)
        # What the block is written for: the store's record, and the state of the buffers.
        self.store: Any = None
        self.buffers = -1
        self.bounds_at = (0, 0)
        self.mailboxes = Mailbox(context, 8 * SIZE), Mailbox(context, 8 * SIZE)  # by ticket, modulo
        self.ticket = 0  # the last one, of both

    def put(self, name: str, record: Any) -> None:
        """Write a part of the block that stays."""
        at = AT[name]
        self.bytes[at : at + record.nbytes] = record.view(np.uint8).data
