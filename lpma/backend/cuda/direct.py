"""Small batches that kernels read where they lie, in pinned memory of the host.

Idea: to copy a few hundred kilobytes by the device's copy engine takes a call for the copy, three
for the events around it, and some ten microseconds until the kernel behind it begins: as long as
the kernel needs to read them by itself. So the kernel of a small batch gets two descriptions of it
(apply.cu): where the host has the columns, each of which it reads once, and where it puts those
that later steps read in another order. Columns of `lpma.pinned_batch` are read where they are;
others are copied into pinned memory first.

A kernel reads 14 to 25 GB/s there, the copy engine 35 and more, and it may do so while the host
prepares the launch: from MOST_ROWS on that is faster.

The host may write to that memory again once it knows that the rows are good, which the kernel says
after it has read them. Of two pinned blocks, which take turns, the one to be written to belongs to
a batch whose outcome is known (pending.py).
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import cupy

from ...batch.columns import Columns
from . import staging
from .batches import Upload
from .blocks import ALIGNMENT, padded
from .context import Context
from .described import StagedBatch, Words, needed, places_of, words_of

MOST_ROWS = 1 << 14
ROW_BYTES = {"kind": 1, "src": 4, "dst": 4, "weight": 8, "time": 8}  # as BATCH has them


class GivenBatch(StagedBatch):
    """A batch on the host, which is sent to the device if anybody asks where it is there."""

    def __init__(self, columns: Columns, now: int, upload: Upload, context: Context) -> None:
        self.columns = columns
        self.now = now
        self.given: Words | None = None  # of the host's memory
        self._upload, self._context = upload, context

    def __getattr__(self, name: str) -> Any:
        if name not in ("words", "block"):
            raise AttributeError(name)
        with self._context:
            sent = self._upload.send(self.columns, self.now)
        self.words, self.block = sent.words, sent.block
        return getattr(sent, name)


def can_be_given(columns: Columns) -> bool:
    """Whether a batch has only edges, is small enough, and on the host."""
    is_small = 0 < len(columns.src) <= MOST_ROWS
    return columns.edges_only and is_small and not columns.on_device


class _Landing:
    """Pinned memory for the columns of a batch, with an array over each part."""

    def __init__(self, context: Context) -> None:
        sizes = [padded(MOST_ROWS * width) for width in ROW_BYTES.values()]
        try:
            memory = context.pinned(sum(sizes) + ALIGNMENT)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise MemoryError(f"pinned memory for small batches: {error}") from error
        self._at = list(accumulate(sizes[:-1], initial=padded(int(memory.ptr))))

    def put(self, arrays: tuple[Any, ...], looks: bool) -> list[int]:
        """Copy columns here, in the order of ROW_BYTES. Returns where they are; 0 for None. looks:
        raise BatchError if a row is bad."""
        given = {name: a for name, a in zip(ROW_BYTES, arrays, strict=True) if a is not None}
        at = [0 if a is None else at for a, at in zip(arrays, self._at, strict=True)]
        staging.put_here(list(given), list(given.values()), list(filter(None, at)), looks)
        return at


class Direct:
    """Describes batches to the kernel of one store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._landings: list[_Landing] = []
        self._turn = 0
        with context:  # for kinds, weights and times, which the kernel copies
            self._copies = cupy.empty(MOST_ROWS * 17, cupy.uint8)
        at = self._copies.data.ptr
        self._time_at, self._weight_at, self._kind_at = (at + MOST_ROWS * i for i in (0, 8, 16))

    def describe(self, batch: GivenBatch) -> Words:
        """The words of a batch where the host has it; its own become those of the device's copy."""
        if batch.given is not None:
            return batch.given
        columns, block = batch.columns, batch.columns.block
        if block is None:
            at = self._landing().put(needed(columns), columns.unvalidated)
        else:
            at = places_of(columns).at
        kind_at, _, _, weight_at, time_at = at
        given = words_of(columns, batch.now, at)
        kept = kind_at and self._kind_at, 0, 0, weight_at and self._weight_at
        batch.words = given[0], *kept, time_at and self._time_at, *given[6:]
        batch.block, batch.given = None, given
        return given

    def _landing(self) -> _Landing:
        self._turn = 1 - self._turn
        if not self._landings:
            self._landings = [_Landing(self._context), _Landing(self._context)]
        return self._landings[self._turn]
