"""Bringing a batch to the device: packed, pinned, and during the work on the batch before.

A batch from the host is copied into one of two pinned blocks (blocks.py) and sent on a stream of
its own; the columns of `lpma.pinned_batch` already lie in such memory and are sent from there. The
two blocks take turns, so a copy waits only for the batch before the last. Columns that are already
on the device are used where they are.

A batch that is applied by one launch goes in one piece. A large one goes keys first, which are
sorted while the rest is on its way: `await_part` and `bring` wait for what is needed next.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ....batch.columns import Columns
from ....cuda import driver
from ...overlapping import ONE_LAUNCH_ROWS
from ..streams import Context
from . import staging
from .blocks import ALL, KEYS, WEIGHTS, Block, Blocks, StagedCopy, padded
from .staged_batch import BATCH_ORDER, StagedBatch, required_columns
from .staging import width

SPLIT_BYTES = 1 << 20


class Uploader:
    """Sends the batches of one graph's stores; not thread-safe."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stream = context.stream  # of the stores: what is sent is used there
        with context:
            self._blocks = Blocks(context.stream, context.copies)

    @property
    def nbytes(self) -> int:
        return self._blocks.nbytes

    def send(self, columns: Columns, now: int) -> StagedBatch:
        """The batch on its way; the store's stream waits for its keys. now: the time of rows that
        have none."""
        named = zip(BATCH_ORDER, required_columns(columns), strict=True)
        given = {name: array for name, array in named if array is not None and len(array)}
        host = {name: array for name, array in given.items() if type(array) is np.ndarray}
        at = {name: array.data.ptr for name, array in given.items() if name not in host}
        with self._context:
            block = self._send_host(host, at, columns) if host else None
        weight, addresses = columns.weight, [at.get(name, 0) for name in BATCH_ORDER]
        wide = weight is not None and weight.itemsize == 8
        words = len(columns.kind), *addresses, now, wide, columns.one_kind or 0
        return StagedBatch(words=words, columns=columns, block=block)

    def _send_host(self, parts: dict[str, Any], at: dict[str, int], columns: Columns) -> Block:
        """Send columns by a block. `at` gets where on the device they will be."""
        block, own, copies = self._blocks.next(), columns.block, self._context.copies
        is_large, spans, size = len(columns) > ONE_LAUNCH_ROWS, {}, 0
        for name, array in parts.items():
            place = size
            if own is not None:  # pinned memory
                place = (columns.places or ())[BATCH_ORDER.index(name)] - own.ptr
            spans[name] = (place, place + len(array) * width(name, array))
            size = padded(max(size, spans[name][1]))
        block.reserve(size)
        pinned, first = (own, 0) if own is not None else block.landing(size)
        base = pinned.ptr + first
        self._blocks.wait_for(block)
        if own is not None:
            block.send(base, spans, copies, is_large)
        elif is_large and (columns.unvalidated or staging.is_worth(size)):
            block.begin(StagedCopy(parts, spans, pinned, base, copies, columns.unvalidated))
            block.bring(KEYS)
        else:
            into = [base + lo for lo, _ in spans.values()]
            staging.put_here(list(parts), list(parts.values()), into, columns.unvalidated)
            block.send(base, spans, copies, is_large and size > SPLIT_BYTES)
        driver.wait(self._stream, block.arrival_event(KEYS))
        self._blocks.taken()
        to = block.device.data.ptr
        at |= {name: to + lo for name, (lo, _) in spans.items()}
        return block

    # -- once it is on its way ------------------------------------------------------------------

    def bring(self, batch: StagedBatch, what: int = ALL) -> None:
        """Send WEIGHTS, or ALL. Raises BatchError if columns are unvalidated, and a row is bad."""
        block = batch.block
        if block is None:
            return
        try:
            block.bring(what)
        except BaseException:
            driver.record(block.free, self._stream)  # what was launched before may still read it
            raise

    def await_part(self, batch: StagedBatch, what: int) -> None:
        """`bring`, and make the store's stream wait for it."""
        self.bring(batch, what)
        block = batch.block
        if block is not None and block.last[what] > KEYS:  # which it has waited for
            driver.wait(self._stream, block.arrival_event(what))

    def done(self, batch: StagedBatch) -> None:
        """No later work on the store's stream reads this batch, and its columns are the caller's
        again. So this waits until a large pinned batch has been copied, and makes the caller's
        stream wait for the last reader of device arrays."""
        block = batch.block
        if block is not None and block.used:
            driver.record(block.free, self._stream)
            if batch.columns.block is not None and block.last[ALL] > block.last[WEIGHTS]:
                driver.await_event(block.arrival_event(ALL))
        if batch.columns.on_device:
            self._context.hand_out(cupy.cuda.get_current_stream())
