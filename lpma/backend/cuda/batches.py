"""Bringing a batch to the device: packed, pinned, and during the work on the batch before.

A batch from the host is copied into one of two pinned blocks and sent on a stream of its own, in
one piece or, where it is large, keys first; `lpma.pinned_batch` columns already lie in such a
block and are sent from there. The two device blocks take turns, so a copy waits only for the batch
before the last. Columns that are already on the device are used where they are.

Of a large batch in plain arrays each column is sent as soon as a few threads have copied it
(staging.py), and the store goes on meanwhile: `await_part` and `bring` wait for what is needed
next.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from ...arrays import address
from ...batch import Columns
from . import staging
from .described import BATCH, Words, needed, words_of
from .staging import Staging, width

ALIGNMENT = 64
SPLIT_BYTES = 1 << 20
WHOLE_ROWS = 1 << 17  # up to which all columns are needed at once (at_once.py)


@dataclass
class StagedBatch:
    """A batch's columns on the device, as kernels get them. `columns` is the host's view."""

    words: Words
    columns: Columns  # keeps alive what is already on the device
    block: Any  # where the rest lies; None: there is none

    @cached_property
    def record(self) -> Any:
        """BATCH, as one opaque value."""
        return np.frombuffer(BATCH.pack(*self.words), f"V{BATCH.size}")


# What kernels wait for, in turn: sorting for the keys, locating for the weights, moving for all.
KEYS, WEIGHTS, ALL = range(3)
_GROUPS = (("src", "dst", "kind"), ("weight",), ("time",))


class _Block:
    """A pinned block and its twin on the device."""

    def __init__(self) -> None:
        self.size = 0
        self.pinned: Any = None
        self.pinned_size = 0
        self.device: Any = None
        self.sent = [cupy.cuda.Event(disable_timing=True) for _ in _GROUPS]
        self.last = [KEYS, KEYS, KEYS]  # the event after which each of KEYS, WEIGHTS, ALL is there
        self.free = cupy.cuda.Event(disable_timing=True)
        self.used = False
        self.coming: _Coming | None = None  # what of the batch that has the block is not sent yet

    def reserve(self, size: int) -> None:
        """Room on the device, and nothing of the batch before on its way to it."""
        self.give_up()
        if size > self.size:
            size += size // 4
            if self.used:
                self.free.synchronize()
                self.there(ALL).synchronize()  # a batch that was refused waited for its keys only
            self.device, self.size = None, 0
            self.device, self.size = cupy.empty(size, cupy.uint8), size
            self.used = False

    def landing(self, size: int) -> tuple[Any, int]:
        """Room in pinned memory, and where in it to begin. It takes the system long to make: only
        for columns that do not lie in such memory."""
        if self.used:
            self.there(ALL).synchronize()
        if self.pinned is None or self.pinned_size < size:
            self.pinned, self.pinned_size = None, 0
            size += size // 4
            try:
                self.pinned = cupy.cuda.alloc_pinned_memory(size + ALIGNMENT)
            except cupy.cuda.runtime.CUDARuntimeError as error:
                raise MemoryError(f"{size} bytes of pinned memory: {error}") from error
            self.pinned_size = size
        return self.pinned, -self.pinned.ptr % ALIGNMENT

    def send(self, base: int, spans: dict[str, tuple[int, int]], stream: Any) -> None:
        """Copy the columns at `spans` of the host's block at `base`: a large batch in three
        pieces, so that keys are sorted while the rest is on its way."""
        size = max(end for _, end in spans.values())
        last = KEYS
        for group, names in enumerate(_GROUPS if size > SPLIT_BYTES else (tuple(spans),)):
            here = [spans[name] for name in names if name in spans]
            if here:
                lo, hi = min(lo for lo, _ in here), max(hi for _, hi in here)
                cupy.cuda.runtime.memcpyAsync(
                    self.device.data.ptr + lo, base + lo, hi - lo,
                    cupy.cuda.runtime.memcpyHostToDevice, stream.ptr,
                )  # fmt: skip
                last = group
                self.sent[last].record(stream)
            self.last[group:] = [last] * (len(_GROUPS) - group)
        self.used = True

    def begin(self, coming: _Coming) -> None:
        """Let `bring` send these columns."""
        self.coming, last = coming, KEYS
        for group, names in enumerate(_GROUPS):
            last = group if any(name in coming.spans for name in names) else last
            self.last[group] = last
        self.used = True

    def bring(self, what: int) -> None:
        """Have KEYS, WEIGHTS or ALL on the way. Raises BatchError if a row of them is bad, and then
        nothing else of the batch is."""
        coming = self.coming
        if coming is None:
            return
        try:
            while coming.left and coming.left[0][0] <= self.last[what]:
                group, name = coming.left.popleft()
                coming.send(name, self.device.data.ptr)
                if not coming.left or coming.left[0][0] > group:
                    self.sent[group].record(coming.stream)
        except BaseException:
            self.give_up()
            raise
        if not coming.left:
            self.coming = None
            coming.staging.end()  # which keeps the caller's arrays

    def give_up(self) -> None:
        """Send nothing more of the batch that has the block; return when nobody copies for it."""
        coming, self.coming = self.coming, None
        if coming is not None:
            coming.staging.end()
            self.sent[self.last[ALL]].record(coming.stream)

    def there(self, what: int) -> Any:
        """The event after which KEYS, WEIGHTS or ALL are on the device."""
        return self.sent[self.last[what]]


class _Coming:
    """Columns that threads copy to pinned memory, and those of them that are not sent yet."""

    def __init__(
        self, parts: dict[str, Any], spans: dict[str, tuple[int, int]], landing: Any, base: int,
        stream: Any, looks: bool,
    ) -> None:  # fmt: skip
        """landing: the pinned memory, in which the spans count from `base` on. looks: whether bad
        rows are refused."""
        self.spans, self._base, self.stream, self._looks = spans, base, stream, looks
        self.left = deque(
            (group, name) for group, names in enumerate(_GROUPS) for name in names if name in parts
        )
        self._numbers = {name: number for number, (_, name) in enumerate(self.left)}
        self.staging = Staging(
            list(self._numbers), [parts[name] for name in self._numbers],
            [base + spans[name][0] for name in self._numbers], landing,
        )  # fmt: skip

    def send(self, name: str, to: int) -> None:
        """Copy a column to its place in the device's block at `to`, once it is whole. Raises
        BatchError."""
        self.staging.finish(self._numbers[name])
        if self._looks:
            self.staging.refuse_bad(self._numbers[name])
        lo, hi = self.spans[name]
        cupy.cuda.runtime.memcpyAsync(
            to + lo, self._base + lo, hi - lo, cupy.cuda.runtime.memcpyHostToDevice,
            self.stream.ptr,
        )  # fmt: skip


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Upload:
    """Sends batches; not thread-safe."""

    def __init__(self, stream: Any, copies: Any) -> None:
        self._stream = stream  # of the store: what is sent is used there
        self._copies = copies
        self._blocks = (_Block(), _Block())
        self._turn = 0

    @property
    def nbytes(self) -> int:
        return sum(block.size for block in self._blocks)

    def send(self, columns: Columns, now: int) -> StagedBatch:
        """The batch on its way; the store's stream waits for its keys."""
        n = len(columns)
        if columns.block is not None and 0 < n <= WHOLE_ROWS and self._stream.done:
            return self._send_alone(columns, now)
        kind, src, dst, weight, time = needed(columns)
        every = {"src": src, "dst": dst, "kind": kind, "weight": weight, "time": time}
        parts = {name: array for name, array in every.items() if n and array is not None}
        host = {name: array for name, array in parts.items() if isinstance(array, np.ndarray)}
        at = {name: array.data.ptr for name, array in parts.items() if name not in host}
        block = self._send_host(host, at, columns) if host else None
        addresses = (at.get(name, 0) for name in ("kind", "src", "dst", "weight", "time"))
        return StagedBatch(words_of(columns, now, addresses), columns, block)

    def _send_alone(self, columns: Columns, now: int) -> StagedBatch:
        """Copy pinned columns on the store's own stream, in one piece and without an event: where
        it has nothing else to do there is nothing to overlap with, and a call is slow."""
        block, base = self._next_block(), columns.block.ptr
        arrays = needed(columns)
        at = columns.block.places(arrays)
        ends = (a + array.nbytes for a, array in zip(at, arrays, strict=True) if array is not None)
        size = max(ends) - base
        block.reserve(size)
        if block.used:  # a batch that was refused has not waited for all that was sent for it
            self._stream.wait_event(block.there(ALL))
        block.last, block.used = [KEYS, KEYS, KEYS], False
        to = block.device.data.ptr
        cupy.cuda.runtime.memcpyAsync(
            to, base, size, cupy.cuda.runtime.memcpyHostToDevice, self._stream.ptr
        )
        there = (a and a - base + to for a in at)
        return StagedBatch(words_of(columns, now, there), columns, block)

    def _next_block(self) -> _Block:
        block = self._blocks[self._turn]
        self._turn = 1 - self._turn
        return block

    def _send_host(self, parts: dict[str, Any], at: dict[str, int], columns: Columns) -> _Block:
        block, pinned = self._next_block(), columns.block
        spans, size = {}, 0
        for name, array in parts.items():
            if pinned is not None:
                size = address(array) - pinned.ptr
            spans[name] = (size, size + len(array) * width(name, array))
            size = _padded(spans[name][1])
        size = max(end for _, end in spans.values())
        block.reserve(size)
        first = 0
        if pinned is None:
            pinned, first = block.landing(size)
        base = pinned.ptr + first
        is_plain = columns.block is None
        # A new block's memory may be what the store's stream is still at work on.
        self._copies.wait_event(block.free if block.used else self._stream.record())
        if is_plain and (columns.as_given or staging.is_worth(size)):
            block.begin(_Coming(parts, spans, pinned, base, self._copies, columns.as_given))
            block.bring(ALL if len(columns) <= WHOLE_ROWS else KEYS)
        else:
            if is_plain:
                landing = np.frombuffer(pinned, np.uint8, size, first)
                for name, (lo, hi) in spans.items():
                    landing[lo:hi] = parts[name].view(np.uint8)
            block.send(base, spans, self._copies)
        self._stream.wait_event(block.there(KEYS))
        for name, (lo, _) in spans.items():
            at[name] = block.device.data.ptr + lo
        return block

    def bring(self, batch: StagedBatch) -> None:
        """Have all of a batch on its way."""
        if batch.block is not None:
            batch.block.bring(ALL)

    def await_part(self, batch: StagedBatch, what: int) -> None:
        """Make the store's stream wait for WEIGHTS, or for ALL. Raises BatchError if columns are as
        they were given, and a row is bad."""
        block = batch.block
        if block is not None:
            block.bring(what)
            if block.last[what] > block.last[what - 1]:
                self._stream.wait_event(block.there(what))

    def done(self, batch: StagedBatch) -> None:
        """Note that nothing sent to the store's stream from now on reads this batch."""
        if batch.block is not None and batch.block.used:
            batch.block.free.record(self._stream)

    def release(self) -> None:
        """Give the blocks back."""
        for block in self._blocks:
            block.give_up()
        self._stream.synchronize()
        self._copies.synchronize()
        self._blocks = (_Block(), _Block())
