"""Bringing a batch to the device: packed, pinned, and beside the work on the batch before.

A batch from the host is copied into one of two pinned blocks and sent in one piece, on a stream
of its own; `lpma.pinned_batch` columns already lie in such a block and are sent from there. The
two device blocks take turns, so a copy waits only for the batch before the last. Columns that
are on the device already are used where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ...batch import Columns, Kind
from .segments import BATCH

ALIGNMENT = 64
SPLIT_BYTES = 2 << 20


@dataclass(frozen=True)
class DeviceBatch:
    """A batch's columns on the device, as kernels get them. `columns` is the host's view."""

    record: Any  # BATCH, as one opaque value
    columns: Columns  # what is on the device already stays alive with them
    block: Any  # where the rest lies; None: there is no rest


class _Block:
    """A pinned block and its twin on the device."""

    def __init__(self) -> None:
        self.size = 0
        self.pinned: Any = None
        self.device: Any = None
        self.sent = cupy.cuda.Event(disable_timing=True)
        self.free = cupy.cuda.Event(disable_timing=True)
        self.used = False

    def reserve(self, size: int) -> None:
        if size > self.size:
            size += size // 4
            if self.used:
                self.free.synchronize()
            self.pinned = self.device = None
            self.size = 0
            self.pinned = cupy.cuda.alloc_pinned_memory(size)
            self.device = cupy.empty(size, cupy.uint8)
            self.size = size
            self.used = False

    def copy(self, base: int, lo: int, hi: int, stream: Any) -> None:
        """Send bytes lo … hi - 1 of the host's block at `base`."""
        cupy.cuda.runtime.memcpyAsync(
            self.device.data.ptr + lo, base + lo, hi - lo,
            cupy.cuda.runtime.memcpyHostToDevice, stream.ptr,
        )  # fmt: skip
        self.sent.record(stream)


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Upload:
    """Sends batches; not for two threads at once."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream  # of the store: what is sent is used there
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._blocks = (_Block(), _Block())
        self._turn = 0

    @property
    def nbytes(self) -> int:
        return sum(block.size for block in self._blocks)

    def send(self, columns: Columns, now: int) -> DeviceBatch:
        """The batch on its way; the store's stream waits for its keys."""
        n, kind = len(columns), columns.kind
        one_kind = int(kind[0]) if n and kind.min() == kind.max() else None
        parts: list[tuple[str, Any]] = [("src", columns.src), ("dst", columns.dst)] if n else []
        if n and one_kind != Kind.DELETE:
            if columns.time is not None and len(columns.time) == n:
                parts.append(("time", columns.time))
            if columns.weight is not None:
                parts.append(("weight", columns.weight))
        if n and one_kind is None:
            parts.append(("kind", kind))
        host = [(name, array) for name, array in parts if isinstance(array, np.ndarray)]
        at = {name: array.data.ptr for name, array in parts if not isinstance(array, np.ndarray)}
        block = self._send_host(host, at, columns.block) if host else None
        wide = columns.weight is not None and columns.weight.dtype == np.float64
        addresses = (at.get(name, 0) for name in ("kind", "src", "dst", "weight", "time"))
        record = BATCH.pack(n, *addresses, now, wide, one_kind or 0)
        return DeviceBatch(np.frombuffer(record, f"V{BATCH.size}"), columns, block)

    def _send_host(self, parts: list[tuple[str, Any]], at: dict[str, int], pinned: Any) -> _Block:
        block = self._blocks[self._turn]
        self._turn = 1 - self._turn
        if pinned is not None:
            base = pinned.ptr
            starts = [array.__array_interface__["data"][0] - base for _, array in parts]
        else:
            starts = np.cumsum([0, *(_padded(array.nbytes) for _, array in parts)]).tolist()
        ends = [start + array.nbytes for start, (_, array) in zip(starts, parts, strict=False)]
        block.reserve(max(ends))
        if pinned is None:
            if block.used:
                block.sent.synchronize()
            base = block.pinned.ptr
            landing = np.frombuffer(block.pinned, np.uint8, max(ends))
            for start, end, (_, array) in zip(starts, ends, parts, strict=False):
                landing[start:end] = array.view(np.uint8)
        if block.used:
            self._copies.wait_event(block.free)
        # The keys of a large batch go ahead: they are sorted while the rest is on its way.
        keys_end = ends[1] if max(ends) > SPLIT_BYTES else max(ends)
        block.copy(base, 0, keys_end, self._copies)
        self._stream.wait_event(block.sent)
        if keys_end < max(ends):
            block.copy(base, keys_end, max(ends), self._copies)
        block.used = True
        for start, (name, _) in zip(starts, parts, strict=False):
            at[name] = block.device.data.ptr + start
        return block

    def all_there(self, batch: DeviceBatch) -> None:
        """The store's stream waits for the whole batch."""
        if batch.block is not None:
            self._stream.wait_event(batch.block.sent)

    def done(self, batch: DeviceBatch) -> None:
        """Nothing sent to the store's stream from now on reads this batch."""
        if batch.block is not None:
            batch.block.free.record(self._stream)

    def release(self) -> None:
        """Give the blocks back."""
        self._stream.synchronize()
        self._copies.synchronize()
        self._blocks = (_Block(), _Block())
