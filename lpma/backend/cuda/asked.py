"""What a caller on the host asks for, where kernels read it.

Idea: to copy forty kilobytes to the device takes CuPy 20 us, and beside a thread that computes
15 ms, since it lets go of the interpreter's lock for it (lpma/cuda/driver.py). So a few columns are
put into page-locked memory, and kernels read them there, each value once. Two pieces of memory take
turns. An event says that nothing reads a piece any more, and it has mostly happened long before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy

from ...cuda import driver
from .blocks import padded

Array = Any  # numpy.ndarray

PIECE_BYTES = 1 << 21


class _Piece:
    def __init__(self, memory: Any) -> None:
        self.at = int(memory.ptr)
        self.bytes = memoryview(memory).cast("B")
        self.used = 0
        self.read = cupy.cuda.Event(disable_timing=True)


class Asked:
    """The columns of one reader's queries, which go to kernels of one stream."""

    def __init__(self, pinned: Callable[[int], Any]) -> None:
        """pinned: gives memory that is kept until the stream is done, even if this is gone."""
        self._pinned = pinned
        self._pieces: list[_Piece] = []
        self._turn = 0

    def put(self, column: Array) -> int | None:
        """Where kernels read a contiguous column until `end`; None: there is no room."""
        if not self._pieces:
            self._pieces = [_Piece(self._pinned(PIECE_BYTES)) for _ in range(2)]
        piece, size = self._pieces[self._turn], column.nbytes
        if piece.used + size > PIECE_BYTES:
            return None
        if not piece.used:
            driver.await_event(piece.read)
        at, piece.used = piece.used, padded(piece.used + size)
        if size:
            piece.bytes[at : at + size] = column.data.cast("B")
        return piece.at + at

    def end(self, stream: Any) -> None:
        """What the stream is given from now on reads none of it."""
        piece = self._pieces[self._turn] if self._pieces else None
        if piece is not None and piece.used:
            driver.record(piece.read, stream)
            piece.used, self._turn = 0, 1 - self._turn
