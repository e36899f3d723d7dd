"""A large batch's way from a caller's arrays to the device, by several threads in pieces.

A device copies from pinned memory only, and one thread fills that at a fraction of what memory and
bus carry. So columns are cut into pieces. Each thread takes the next piece, copies it to the pinned
block (unseen.narrow, which changes its type on the way) and sends it; the thread of the batch does
so too until the part it waits for is on its way, launches what needs that part, and comes back for
the next while the helpers go on.

NumPy's loops and CUDA's calls release the interpreter's lock, so plain threads suffice; a piece is
large beside what taking it costs. Pieces are taken in the order in which kernels need them.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import cupy

from ...cpu import threads
from ...unseen import narrow

PIECE_ROWS = 1 << 16
MOST_THREADS = 4  # the batch's own among them

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


@dataclass(frozen=True)
class Column:
    """A column to be sent: its name, its rows, where it goes in the block, bytes a row, and the
    number of the part of the batch that it belongs to."""

    name: str
    rows: Any
    at: int
    width: int
    part: int


class Staging:
    """Columns on their way. Whoever needs a part calls `finish`; until then neither the pinned
    memory nor the caller's arrays are free."""

    def __init__(
        self, columns: Sequence[Column], landing: Any, pinned: int, device: Any, stream: Any
    ) -> None:
        """columns: by rising part. landing: the pinned block, uint8, at address `pinned`; device:
        the memory that it goes to, which stays as long as a helper may send to it."""
        self._landing, self._device, self._stream = landing, device, stream.ptr
        self._shift = pinned, device.data.ptr
        self._number = cupy.cuda.runtime.getDevice()
        pieces = [
            (column, lo, min(lo + PIECE_ROWS, len(column.rows)))
            for column in columns
            for lo in range(0, len(column.rows), PIECE_ROWS)
        ]
        self._left = [0] * (1 + max(column.part for column in columns))
        for column, _, _ in pieces:
            self._left[column.part] += 1
        self._pieces = deque(pieces)
        self._ready = threading.Condition()
        self._error: BaseException | None = None
        self._call_helpers(len(pieces))

    def _call_helpers(self, pieces: int) -> None:
        global _pool
        most = min(MOST_THREADS, threads.THREADS) - 1
        if most and _pool is None:
            _pool = ThreadPoolExecutor(most, thread_name_prefix="lpma-staging")
        for _ in range(min(most, pieces - 1)):
            assert _pool is not None
            _pool.submit(self._help)

    def _help(self) -> None:
        cupy.cuda.runtime.setDevice(self._number)
        while self._take_one():
            pass

    def _take_one(self) -> bool:
        """Copy and send the next piece. False: none was left."""
        try:
            column, lo, hi = self._pieces.popleft()
        except IndexError:
            return False
        error: BaseException | None = None
        try:
            begin, end = column.at + lo * column.width, column.at + hi * column.width
            narrow(column.name, column.rows[lo:hi], self._landing[begin:end])
            pinned, device = self._shift
            cupy.cuda.runtime.memcpyAsync(
                device + begin, pinned + begin, end - begin,
                cupy.cuda.runtime.memcpyHostToDevice, self._stream,
            )  # fmt: skip
        except BaseException as caught:  # noqa: BLE001  # raised by `finish`
            error = caught
        with self._ready:
            self._error = self._error or error
            self._left[column.part] -= 1
            if not self._left[column.part]:
                self._ready.notify_all()
        return True

    def _next_part(self) -> int:
        try:
            column, _, _ = self._pieces[0]
        except IndexError:
            return len(self._left)
        return column.part

    def finish(self, part: int) -> None:
        """Return once this part and those before it are sent. Raises what kept a piece from it,
        when no other is under way and none will be."""
        while self._next_part() <= part and self._take_one():
            pass
        with self._ready:
            self._ready.wait_for(lambda: not any(self._left[: part + 1]))
        if self._error is not None:
            self._give_up()
            raise self._error

    def _give_up(self) -> None:
        """Take what is left, so that nobody sends it, and wait for the rest."""
        with self._ready:
            while self._pieces:
                try:
                    column, _, _ = self._pieces.popleft()
                except IndexError:  # a helper was faster
                    break
                self._left[column.part] -= 1
            self._ready.wait_for(lambda: not any(self._left))
