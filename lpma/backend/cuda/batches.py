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

from ...batch import Columns
from .segments import BATCH

ALIGNMENT = 64


@dataclass(frozen=True)
class DeviceBatch:
    """A batch's columns on the device, as kernels get them. `columns` is the host's view."""

    record: Any  # BATCH
    columns: Columns
    held: Any  # what the addresses belong to


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
        """The batch on the device; the store's stream waits for it."""
        n = len(columns)
        record = np.zeros((), BATCH)
        record["n"], record["now"] = n, now
        parts: list[tuple[str, Any]] = [("src", columns.src), ("dst", columns.dst)]
        if columns.time is not None and len(columns.time) == n and n:
            parts.insert(0, ("time", columns.time))
        if columns.weight is not None and n:
            parts.append(("weight", columns.weight))
            record["wide"] = columns.weight.dtype == np.float64
        if columns.kind.any():
            parts.append(("kind", columns.kind))
        held = [array for _, array in parts if not isinstance(array, np.ndarray)]
        for name, array in parts:
            if not isinstance(array, np.ndarray):
                record[name] = array.data.ptr
        host = [(name, array) for name, array in parts if isinstance(array, np.ndarray)]
        if host:
            held.append(self._send_host(host, record, columns.block))
        return DeviceBatch(record, columns, held)

    def _send_host(self, parts: list[tuple[str, Any]], record: Any, pinned: Any) -> Any:
        starts, size = [], 0
        for _, array in parts:
            starts.append(size)
            size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        block = self._blocks[self._turn]
        self._turn = 1 - self._turn
        if pinned is not None:
            base = pinned.ptr
            starts = [array.__array_interface__["data"][0] - base for _, array in parts]
            size = max(
                start + array.nbytes for start, (_, array) in zip(starts, parts, strict=True)
            )
        block.reserve(size)
        if pinned is None:
            if block.used:
                block.sent.synchronize()
            pinned = block.pinned
            base = pinned.ptr
            landing = np.frombuffer(pinned, np.uint8, size)
            for start, (_, array) in zip(starts, parts, strict=True):
                landing[start : start + array.nbytes] = array.view(np.uint8)
        if block.used:
            self._copies.wait_event(block.free)
        cupy.cuda.runtime.memcpyAsync(
            block.device.data.ptr, base, size, cupy.cuda.runtime.memcpyHostToDevice,
            self._copies.ptr,
        )  # fmt: skip
        block.sent.record(self._copies)
        block.used = True
        self._stream.wait_event(block.sent)
        for start, (name, _) in zip(starts, parts, strict=True):
            record[name] = block.device.data.ptr + start
        return block

    def done(self, batch: DeviceBatch) -> None:
        """Nothing sent to the store's stream from now on reads this batch."""
        for held in batch.held:
            if isinstance(held, _Block):
                held.free.record(self._stream)

    def release(self) -> None:
        """Give the blocks back."""
        self._stream.synchronize()
        self._copies.synchronize()
        self._blocks = (_Block(), _Block())
