"""Batches in pinned memory (`lpma.pinned_batch`): sent as they are, before they are looked at.

Idea: to see whether a million rows all append takes the host as long as it takes to send a fifth of
them, and what comes before that as long again. So the copy is begun first, with what every batch of
edges needs (`expect`), and whatever else turns out to be needed follows (`send`).

A batch that is applied in one launch needs all of its columns at once. It goes in one piece and,
where the store's stream has nothing else to do, on that: there is nothing to overlap with, and each
call to the driver counts. Of a larger one, keys are sorted while the rest is on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...batch import Columns
from .blocks import ALL, KEYS, Block
from .described import BATCH_ORDER, StagedBatch, needed, words_of

WHOLE_ROWS = 1 << 17  # up to which all columns are needed at once (at_once.py)


class _Begun(NamedTuple):
    """A batch of which `sent` bytes of the host's block are on their way."""

    columns: Columns
    block: Block
    is_alone: bool  # on the store's stream
    spans: dict[str, tuple[int, int]]  # of all columns, in the host's block
    sent: int


class PinnedUpload:
    """See Upload, whose part this is."""

    def __init__(self, stream: Any, copies: Any, next_block: Callable[[], Block]) -> None:
        self._stream, self._copies, self._next_block = stream, copies, next_block
        self._begun: _Begun | None = None

    def expect(self, columns: Columns) -> None:
        """Begin to send a batch that may be the next one. REQUIRES: it has rows."""
        kind, n = columns.kind, len(columns.kind)
        arrays = kind, columns.src, columns.dst, columns.weight, columns.time
        base, places = columns.block.ptr, columns.block.places(arrays)
        spans = {
            name: (at - base, at - base + array.nbytes)
            for name, at, array in zip(BATCH_ORDER, places, arrays, strict=True)
            if array is not None
        }
        block, is_whole = self._next_block(), n <= WHOLE_ROWS
        size, keys = max(end for _, end in spans.values()), max(spans["src"][1], spans["dst"][1])
        block.reserve(size)
        is_alone = is_whole and self._stream.done
        if not is_alone:
            # A new block's memory may be what the store's stream is still at work on.
            self._copies.wait_event(block.free if block.used else self._stream.record())
        elif block.used:  # a batch that was refused has not waited for all that was sent for it
            self._stream.wait_event(block.there(ALL))
        sent = size if is_whole and not kind[0] else keys  # a batch that deletes needs its keys
        block.copy(base, 0, sent, self._stream if is_alone else self._copies)
        self._begun = _Begun(columns, block, is_alone, spans, sent)

    def send(self, columns: Columns, now: int) -> StagedBatch:
        """See Upload.send."""
        if self._begun is None or self._begun.columns is not columns:
            self.expect(columns)
        assert self._begun is not None
        _, block, is_alone, spans, sent = self._begun
        self._begun = None
        arrays = zip(BATCH_ORDER, needed(columns), strict=True)
        wanted = {name: spans[name] for name, array in arrays if array is not None}
        base = columns.block.ptr
        if is_alone:
            end = max(end for _, end in wanted.values())
            if end > sent:
                block.copy(base, sent, end, self._stream)
            block.last, block.used = [KEYS, KEYS, KEYS], False
        else:
            block.send(base, wanted, self._copies, len(columns.kind) > WHOLE_ROWS, sent)
            self._stream.wait_event(block.there(KEYS))
        to = block.device.data.ptr
        places = [to + wanted[name][0] if name in wanted else 0 for name in BATCH_ORDER]
        return StagedBatch(words_of(columns, now, places), columns, block)

    def drop(self) -> None:
        """Nothing more is sent of a batch that was expected and did not come."""
        if self._begun is not None and not self._begun.is_alone:
            self._begun.block.note_sent(self._copies)
        self._begun = None
