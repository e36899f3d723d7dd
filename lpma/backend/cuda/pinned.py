"""Batches in pinned memory (`lpma.pinned_batch`), sent from where they lie.

A batch that is applied by one launch needs all of its columns at once. It goes in one piece
and, where the store's stream has nothing else to do, on that: there is nothing to overlap with, and
each call to the driver counts.

Of a larger one, keys are sorted while the rest is on its way, and the keys are on their way before
anybody has looked at the batch (`expect`): to see whether a million rows all append takes the host
as long as it takes to send a fifth of them. What else is needed follows (`send`).
"""

from __future__ import annotations

from typing import Any

from ...batch.columns import Columns
from ...cuda import driver
from ..overlapping import ONE_LAUNCH_ROWS
from .blocks import ALL, KEYS, Begun, Blocks
from .described import BATCH_ORDER, StagedBatch, needed, places_of, words_of

Spans = dict[str, tuple[int, int]]


class PinnedUpload:
    """See Upload, whose part this is."""

    def __init__(self, stream: Any, copies: Any, blocks: Blocks) -> None:
        self._stream, self._copies, self._blocks = stream, copies, blocks

    def expect(self, columns: Columns) -> None:
        """Begin to send a batch that may be the next one. REQUIRES: it is not for one launch."""
        every = columns.kind, columns.src, columns.dst, columns.weight, columns.time
        spans = _spans(columns, every)
        block, keys = self._blocks.next(), max(spans["src"][1], spans["dst"][1])
        block.reserve(max(end for _, end in spans.values()))
        self._blocks.wait_for(block)
        block.copy(columns.block.ptr, 0, keys, self._copies)
        self._blocks.begun = Begun(columns, block, keys)

    def send(self, columns: Columns, now: int) -> StagedBatch:
        """See Upload.send."""
        is_whole, base = len(columns.kind) <= ONE_LAUNCH_ROWS, columns.block.ptr
        if is_whole and driver.is_done(self._stream):
            return self._send_alone(columns, now)
        spans, blocks = _spans(columns, needed(columns)), self._blocks
        if is_whole:
            block, sent = blocks.next(), 0
            block.reserve(max(end for _, end in spans.values()))
            blocks.wait_for(block)
        else:
            if blocks.begun is None or blocks.begun.columns is not columns:
                self.expect(columns)
            assert blocks.begun is not None
            (_, block, sent), blocks.begun = blocks.begun, None
        block.send(base, spans, self._copies, is_split=not is_whole, sent=sent)
        driver.wait(self._stream, block.there(KEYS))
        blocks.taken()
        to = block.device.data.ptr
        places = [to + spans[name][0] if name in spans else 0 for name in BATCH_ORDER]
        return StagedBatch(words_of(columns, now, places), columns, block)

    def _send_alone(self, columns: Columns, now: int) -> StagedBatch:
        """In one piece, on the store's stream and without an event."""
        block, base, places = self._blocks.next(), columns.block.ptr, places_of(columns)
        size = places.end - base
        block.reserve(size)
        if block.used:  # a batch that was refused has not waited for all that was sent for it
            driver.wait(self._stream, block.there(ALL))
        block.last, block.used = [KEYS, KEYS, KEYS], False
        block.copy(base, 0, size, self._stream)
        self._blocks.taken()
        moved = block.device.data.ptr - base
        at = [a and a + moved for a in places.at]
        return StagedBatch(words_of(columns, now, at), columns, block)


def _spans(columns: Columns, arrays: tuple[Any, ...]) -> Spans:
    """Where columns begin and end in the batch's block, of those that are not None."""
    block = columns.block
    return {
        name: (at - block.ptr, at - block.ptr + array.nbytes)
        for name, at, array in zip(BATCH_ORDER, block.places(arrays), arrays, strict=True)
        if array is not None
    }
