"""Bringing a batch to the device: packed, pinned, and during the work on the batch before.

A batch from the host is copied into one of two pinned blocks and sent on a stream of its own, in
one piece or, where it is large, keys first; `lpma.pinned_batch` columns already lie in such a
block and are sent from there. The two device blocks take turns, so a copy waits only for the batch
before the last. Columns that are already on the device are used where they are. A large batch of
plain arrays is copied and sent by several threads: see staging.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ...batch import Columns, Kind
from ...unseen import LARGE, narrow, width
from .segments import BATCH
from .staging import Column, Staging

ALIGNMENT = 64
SPLIT_BYTES = 1 << 20


@dataclass(frozen=True)
class StagedBatch:
    """A batch's columns on the device, as kernels get them. `columns` is the host's view."""

    record: Any  # BATCH, as one opaque value
    columns: Columns  # keeps alive what is already on the device
    block: Any  # where the rest lies; None: there is none


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
        self.staging: Staging | None = None  # of the batch that has the block, if it is large
        self.stream: Any = None  # on which that one is sent
        self.done_to = -1  # the last of its parts that is

    def reserve(self, size: int) -> None:
        """Room on the device, and nothing of the batch before on its way to it."""
        self.there(ALL)
        if size > self.size:
            size += size // 4
            if self.used:
                self.free.synchronize()
                self.there(ALL).synchronize()  # a batch that was refused waited for its keys only
            self.device, self.size = None, 0
            self.device, self.size = cupy.empty(size, cupy.uint8), size
            self.used = False

    def landing(self, size: int) -> Any:
        """Room in pinned memory, which takes the system long to make: only for columns that do
        not lie in such memory."""
        if self.used:
            self.there(ALL).synchronize()
        if self.pinned is None or self.pinned_size < size:
            self.pinned, self.pinned_size = None, 0
            size += size // 4
            try:
                self.pinned = cupy.cuda.alloc_pinned_memory(size)
            except cupy.cuda.runtime.CUDARuntimeError as error:
                raise MemoryError(f"{size} bytes of pinned memory: {error}") from error
            self.pinned_size = size
        return self.pinned

    def send(self, base: int, spans: dict[str, tuple[int, int]], stream: Any) -> None:
        """Copy the columns at `spans` of the host's block at `base`: a large batch in three
        pieces, so that keys are sorted while the rest is on its way."""
        size = max(end for _, end in spans.values())
        self.staging, last = None, KEYS
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

    def send_in_pieces(
        self, parts: dict[str, Any], spans: dict[str, tuple[int, int]], landing: Any, stream: Any
    ) -> None:
        """Begin to copy the columns `parts` to their `spans`, through `landing`, which is this
        block's pinned memory as bytes."""
        columns, last = [], KEYS
        for group, names in enumerate(_GROUPS):
            here = [name for name in names if name in parts]
            last = group if here else last
            self.last[group] = last
            columns += [
                Column(name, parts[name], spans[name][0], width(name, parts[name]), group)
                for name in here
            ]
        self.stream, self.done_to = stream, -1
        self.staging = Staging(columns, landing, self.pinned.ptr, self.device, stream)
        self.used = True

    def there(self, what: int) -> Any:
        """The event after which KEYS, WEIGHTS or ALL are on the device."""
        last = self.last[what]
        while self.staging is not None and self.done_to < last:
            staging, part = self.staging, self.done_to + 1
            if part == self.last[ALL]:
                self.staging = None  # which keeps the caller's arrays
            try:
                staging.finish(part)
            except BaseException:
                self.staging, part = None, self.last[ALL]
                raise
            finally:
                self.sent[part].record(self.stream)
                self.done_to = part
        return self.sent[last]


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
        n, one_kind = len(columns), columns.one_kind
        parts: dict[str, Any] = {"src": columns.src, "dst": columns.dst} if n else {}
        if n and one_kind is None:
            parts["kind"] = columns.kind
        if n and one_kind != Kind.DELETE:
            if columns.weight is not None:
                parts["weight"] = columns.weight
            if columns.time is not None and len(columns.time) == n:
                parts["time"] = columns.time
        host = {name: array for name, array in parts.items() if isinstance(array, np.ndarray)}
        at = {name: array.data.ptr for name, array in parts.items() if name not in host}
        block = self._send_host(host, at, columns.block) if host else None
        wide = columns.weight is not None and columns.weight.dtype == np.float64
        addresses = (at.get(name, 0) for name in ("kind", "src", "dst", "weight", "time"))
        record = BATCH.pack(n, *addresses, now, wide, one_kind or 0)
        return StagedBatch(np.frombuffer(record, f"V{BATCH.size}"), columns, block)

    def _send_host(self, parts: dict[str, Any], at: dict[str, int], pinned: Any) -> _Block:
        block = self._blocks[self._turn]
        self._turn = 1 - self._turn
        spans, size = {}, 0
        for name, array in parts.items():
            if pinned is not None:
                size = array.__array_interface__["data"][0] - pinned.ptr
            spans[name] = (size, size + len(array) * width(name, array))
            size = _padded(spans[name][1])
        size = max(end for _, end in spans.values())
        block.reserve(size)
        landing = None
        if pinned is None:
            pinned = block.landing(size)
            landing = np.frombuffer(pinned, np.uint8, size)
        in_pieces = landing is not None and len(next(iter(parts.values()))) >= LARGE
        if landing is not None and not in_pieces:
            for name, (lo, hi) in spans.items():
                narrow(name, parts[name], landing[lo:hi])
        # A new block's memory may be what the store's stream is still at work on.
        self._copies.wait_event(block.free if block.used else self._stream.record())
        if in_pieces:
            block.send_in_pieces(parts, spans, landing, self._copies)
        else:
            block.send(pinned.ptr, spans, self._copies)
        self._stream.wait_event(block.there(KEYS))
        for name, (lo, _) in spans.items():
            at[name] = block.device.data.ptr + lo
        return block

    def await_part(self, batch: StagedBatch, what: int) -> None:
        """Make the store's stream wait for WEIGHTS, or for ALL."""
        if batch.block is not None and batch.block.last[what] > batch.block.last[what - 1]:
            self._stream.wait_event(batch.block.there(what))

    def refuse(self, batch: StagedBatch) -> None:
        """Return when nothing of a batch that was refused is on its way any more: its memory and
        the caller's arrays are free."""
        if batch.block is not None:
            batch.block.there(ALL).synchronize()

    def done(self, batch: StagedBatch) -> None:
        """Note that nothing sent to the store's stream from now on reads this batch."""
        if batch.block is not None:
            batch.block.there(ALL)
            batch.block.free.record(self._stream)

    def release(self) -> None:
        """Give the blocks back."""
        for block in self._blocks:
            block.there(ALL)
        self._stream.synchronize()
        self._copies.synchronize()
        self._blocks = (_Block(), _Block())
