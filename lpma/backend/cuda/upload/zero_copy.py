"""Small batches that kernels read where they lie, in pinned memory of the host.

Idea: to copy a few hundred kilobytes by the device's copy engine takes four calls, and some ten
microseconds until the kernel behind it begins: as long as the kernel needs to read them by itself.
So it gets two descriptions of a small batch (apply.cu): where the host has the columns, each of
which it reads once, and where it puts those that later steps read in another order. Columns of
`lpma.pinned_batch` are read where they are; others are copied into pinned memory first.

A kernel reads 14 to 25 GB/s there, the copy engine 35 and more: from MOST_ROWS on that is faster.

The host may write to that memory again once it knows that the rows are good, which the kernel says
after it has read them. Of two pinned blocks, which take turns, the one to be written to belongs to
a batch whose outcome is known (pending.py).
"""

from __future__ import annotations

from itertools import accumulate

import cupy

from ....batch.columns import Columns
from ..streams import Context
from . import staging
from .blocks import ALIGNMENT, padded
from .staged_batch import BATCH_ORDER, DELETE, Words, required_columns

MOST_ROWS = 1 << 14
ROW_BYTES = 1, 4, 4, 8, 8  # at the most, of BATCH_ORDER


class ZeroCopy:
    """Describes batches to the kernel of one store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._landings: list[list[int]] = []  # of two blocks, where each of BATCH_ORDER begins
        with context:  # for kinds, weights and times, which the kernel copies
            self._copies = cupy.empty(MOST_ROWS * 17, cupy.uint8)
        at = self._copies.data.ptr
        self._time_at, self._weight_at, self._kind_at = (at + MOST_ROWS * i for i in (0, 8, 16))

    def describe(self, columns: Columns, now: int, turn: int) -> tuple[Words, Words]:
        """The words of a batch where the host has it, and those of the device's copy. turn: 0 or 1,
        in which of the two blocks it lands, if it does; not that of a batch that is pending. Raises
        BatchError if columns are unvalidated, and a row is bad."""
        places, weight, one_kind = columns.places, columns.weight, columns.one_kind
        kind_at, src_at, dst_at, weight_at, time_at = places or self._put(columns, turn)
        if one_kind is not None:
            kind_at = 0
            if one_kind == DELETE:
                weight_at = time_at = 0
        wide = weight is not None and weight.itemsize == 8
        n, rest = len(columns.kind), (now, wide, one_kind or 0)
        copied = kind_at and self._kind_at, 0, 0, weight_at and self._weight_at
        return (
            (n, kind_at, src_at, dst_at, weight_at, time_at, *rest),
            (n, *copied, time_at and self._time_at, *rest),
        )

    def _put(self, columns: Columns, turn: int) -> list[int]:
        """Copy columns to a block. Returns where they are; 0 for None."""
        if not self._landings:
            self._landings = [self._landing(), self._landing()]
        required, places = required_columns(columns), self._landings[turn].copy()
        names, arrays, into = [], [], []
        for i, array in enumerate(required):
            if array is None:
                places[i] = 0
            else:
                names.append(BATCH_ORDER[i])
                arrays.append(array)
                into.append(places[i])
        staging.put_here(names, arrays, into, columns.unvalidated)
        return places

    def _landing(self) -> list[int]:
        sizes = [padded(MOST_ROWS * width) for width in ROW_BYTES]
        try:
            memory = self._context.pinned(sum(sizes) + ALIGNMENT)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise MemoryError(f"pinned memory for small batches: {error}") from error
        return list(accumulate(sizes[:-1], initial=padded(int(memory.ptr))))
