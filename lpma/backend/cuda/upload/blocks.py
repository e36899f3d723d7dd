"""Where a batch lies on the device, and how its columns get there.

A block on the device has a pinned twin on the host, for columns that do not lie in such memory.
Copies run on a stream of their own, and an event says when a group of columns has arrived. Columns
of a large batch in plain arrays are a `StagedCopy`: each is sent as soon as a few threads have
copied it to the twin (staging.py).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import cupy

from ....cuda import driver
from .staging import Staging

ALIGNMENT = 64


def padded(size: int) -> int:
    """The least multiple of ALIGNMENT that is no smaller."""
    return -(-size // ALIGNMENT) * ALIGNMENT


# What kernels wait for, in turn: sorting for the keys, locating for the weights, moving for all.
KEYS, WEIGHTS, ALL = range(3)
GROUPS = (("src", "dst", "kind"), ("weight",), ("time",))


class Block:
    """A pinned block and its twin on the device."""

    def __init__(self) -> None:
        self.size = 0
        self.pinned: Any = None
        self.pinned_size = 0
        self.device: Any = None
        self.sent = [cupy.cuda.Event(disable_timing=True) for _ in GROUPS]
        self.last = [KEYS, KEYS, KEYS]  # the event after which each of KEYS, WEIGHTS, ALL is there
        self.free = cupy.cuda.Event(disable_timing=True)
        self.used = False
        self.copying: StagedCopy | None = None  # what is not sent yet of the block's batch

    def reserve(self, size: int) -> None:
        """Room on the device, and nothing of the batch before on its way to it."""
        self.give_up()
        if size > self.size:
            size += size // 4
            if self.used:
                driver.await_event(self.free)
                # A batch that was refused has waited for its keys only.
                driver.await_event(self.arrival_event(ALL))
            self.device, self.size = None, 0
            self.device, self.size = cupy.empty(size, cupy.uint8), size
            self.used = False

    def landing(self, size: int) -> tuple[Any, int]:
        """Room in pinned memory, and where in it to begin. It is slow to allocate: only for columns
        that do not lie in such memory."""
        if self.used:
            driver.await_event(self.arrival_event(ALL))
        if self.pinned is None or self.pinned_size < size:
            self.pinned, self.pinned_size = None, 0
            size += size // 4
            try:
                self.pinned = cupy.cuda.alloc_pinned_memory(size + ALIGNMENT)
            except cupy.cuda.runtime.CUDARuntimeError as error:
                raise MemoryError(f"{size} bytes of pinned memory: {error}") from error
            self.pinned_size = size
        return self.pinned, -self.pinned.ptr % ALIGNMENT

    def copy(self, base: int, lo: int, hi: int, stream: Any) -> None:
        """Copy bytes lo … hi - 1 of the host's block at `base`."""
        driver.copy(self.device.data.ptr + lo, base + lo, hi - lo, stream)

    def send(
        self, base: int, spans: dict[str, tuple[int, int]], stream: Any, is_split: bool
    ) -> None:
        """Copy the columns at `spans` of the host's block at `base`. is_split: in three pieces, so
        that keys are sorted while the rest is on its way."""
        last = KEYS
        for group, names in enumerate(GROUPS if is_split else (tuple(spans),)):
            here = [spans[name] for name in names if name in spans]
            if here:
                self.copy(base, min(lo for lo, _ in here), max(hi for _, hi in here), stream)
                last = group
                driver.record(self.sent[last], stream)
            self.last[group:] = [last] * (len(GROUPS) - group)
        self.used = True

    def begin(self, copying: StagedCopy) -> None:
        """Let `bring` send these columns."""
        self.copying, last = copying, KEYS
        for group, names in enumerate(GROUPS):
            last = group if any(name in copying.spans for name in names) else last
            self.last[group] = last
        self.used = True

    def bring(self, what: int) -> None:
        """Send KEYS, WEIGHTS or ALL. Raises BatchError if a row of them is bad; then nothing more
        of the batch is sent."""
        copying = self.copying
        if copying is None:
            return
        try:
            while copying.left and copying.left[0][0] <= self.last[what]:
                group, name = copying.left.popleft()
                copying.send(name, self)
                if not copying.left or copying.left[0][0] > group:
                    driver.record(self.sent[group], copying.stream)
        except BaseException:
            self.give_up()
            raise
        if not copying.left:
            self.copying = None
            copying.staging.end()  # which keeps the caller's arrays

    def give_up(self) -> None:
        """Send nothing more of the block's batch; return when no thread copies for it."""
        copying, self.copying = self.copying, None
        if copying is not None:
            copying.staging.end()
            driver.record(self.sent[self.last[ALL]], copying.stream)

    def arrival_event(self, what: int) -> Any:
        """The event after which KEYS, WEIGHTS or ALL are on the device."""
        return self.sent[self.last[what]]


class StagedCopy:
    """Columns that threads copy to pinned memory, and those of them that are not sent yet."""

    def __init__(
        self, parts: dict[str, Any], spans: dict[str, tuple[int, int]], landing: Any, base: int,
        stream: Any, looks: bool,
    ) -> None:  # fmt: skip
        """landing: the pinned memory, in which the spans count from `base` on. looks: whether bad
        rows are refused."""
        self.spans, self._base, self.stream, self._looks = spans, base, stream, looks
        self.left = deque(
            (group, name) for group, names in enumerate(GROUPS) for name in names if name in parts
        )
        self._numbers = {name: number for number, (_, name) in enumerate(self.left)}
        self.staging = Staging(
            list(self._numbers), [parts[name] for name in self._numbers],
            [base + spans[name][0] for name in self._numbers], landing,
        )  # fmt: skip

    def send(self, name: str, to: Block) -> None:
        """Copy a column to its place in the block, once it is whole. Raises BatchError."""
        self.staging.finish(self._numbers[name])
        if self._looks:
            self.staging.refuse_bad(self._numbers[name])
        to.copy(self._base, *self.spans[name], self.stream)


class Blocks:
    """The two blocks of a store, which take turns."""

    def __init__(self, stream: Any, copies: Any) -> None:
        self._stream, self._copies = stream, copies
        self._blocks = (Block(), Block())
        self._turn = 0

    @property
    def nbytes(self) -> int:
        return sum(block.size for block in self._blocks)

    def next(self) -> Block:
        """The one whose batch ended first; the same again until it is `taken`, since the other
        one's batch may still be asked for."""
        return self._blocks[self._turn]

    def wait_for(self, block: Block) -> None:
        """Let copies to a block wait until it is no longer read; the memory of a new block may
        still be in use by the store's stream."""
        if block.used:
            driver.wait(self._copies, block.free)
        else:
            driver.follow(self._copies, self._stream)

    def taken(self) -> None:
        """The block that `next` returned is in use: the next batch gets the other one."""
        self._turn = 1 - self._turn
