"""The one argument of apply.cu and decide.cu, and the words in which the device answers.

The argument lies in memory that is kept. A batch writes its last part anew; what is known of the
store and of the buffers stays until it changes. Answers come in turns to one of two places, since a
batch may be launched before the answer to the one before it is read. They lie in the host's memory,
which the owner of the stream keeps for as long as a kernel may write there.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...cuda.launch import Packed
from .context import Context
from .described import BATCH
from .segments import LEVELS, STORE
from .work import COLUMNS, WORK, Report

# Order of order.cuh from its batches on: two Batches as BATCH has them; Bounds (most, least; sign,
# plan, top_down, block_slots); changed, inserted, answer, ticket, next_report; most_cost,
# leaf_cost, window_cost; lo, hi, direction, checked.
ASKED = struct.Struct(BATCH.format + BATCH.format[1:] + "QQiIii QQQqQ ddd qqii")
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


class Asking:
    """One for each store."""

    def __init__(self, context: Context) -> None:
        block = np.zeros(ORDER.itemsize, np.uint8)
        self.bytes = block.data
        self.to_apply = Packed(block, [0], context.stream)
        # What the block is written for: the store's record, and the state of the buffers.
        self.store: Any = None
        self.buffers = -1
        self.scratch: Any = None  # Columns
        self.bounds_at = (0, 0)
        memory = context.pinned(2 * 8 * SIZE)
        answers = np.frombuffer(memory, np.int64, 2 * SIZE)
        answers[:] = 0
        self._answers = answers[:SIZE].data, answers[SIZE:].data
        self._by_layer = tuple(
            answers[first + BY_LAYER : first + SIZE].reshape(2, LEVELS) for first in (0, SIZE)
        )
        self._at = int(memory.ptr), int(memory.ptr) + 8 * SIZE
        self.ticket = 0

    def take_ticket(self) -> tuple[int, int]:
        """(a ticket, where its answer goes)."""
        self.ticket += 1
        return self.ticket, self._at[self.ticket & 1]

    def answer(self, ticket: int) -> Any:
        """The words of an answer, of the last ticket or the one before it."""
        return self._answers[ticket & 1]

    def by_layer(self, ticket: int) -> Any:
        """int64[2, LEVELS]: how many windows an answer tells of, and what they hold."""
        return self._by_layer[ticket & 1]

    def put(self, name: str, record: Any) -> None:
        """Write a part of the block that stays."""
        at = AT[name]
        self.bytes[at : at + record.nbytes] = record.view(np.uint8).data
