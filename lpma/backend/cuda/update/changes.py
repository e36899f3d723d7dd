"""Where a batch's kernel writes the keys that it inserts and deletes, for the history.

Idea: CuPy takes a tenth of a small batch's time to allocate two arrays. So rooms are cut from
pieces of memory; a piece lives as long as a room or an array in it.
"""

from __future__ import annotations

from typing import Any

import cupy

from ....record import Record
from ...overlapping import ONE_LAUNCH_ROWS
from ...values import MAX_CHANGES

PIECE_BYTES = 1 << 20
KEY_BYTES = 9  # a key, and whether it was inserted
ALIGNMENT = 256


class Room(Record):
    """Room for the changes of a batch of `rows` key operations; `rows` 0: there is none."""

    piece: Any  # of memory, as bytes
    first: int  # of them
    rows: int
    at: tuple[int, int]  # where the keys are, and whether they were inserted

    def arrays(self, n: int) -> tuple[Any, Any]:
        """The first n keys, and whether each was inserted. REQUIRES: there is room for them."""
        if not n:
            return cupy.empty(0, cupy.uint64), cupy.empty(0, cupy.bool_)
        keys = self.piece.data + self.first
        inserted = keys + 8 * self.rows
        return cupy.ndarray((n,), cupy.uint64, keys), cupy.ndarray((n,), bool, inserted)


NO_ROOM = Room(piece=None, first=0, rows=0, at=(0, 0))


class Changes:
    """Cuts rooms for the batches of one store."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._piece: Any = None
        self._begin = self._next = self._size = 0

    def room(self, rows: int) -> Room:
        """Room for a batch of that many key operations. None if the history would not keep so many,
        or memory is short: then the history forgets."""
        if rows > MAX_CHANGES:
            return NO_ROOM
        size = -(-KEY_BYTES * rows // ALIGNMENT) * ALIGNMENT
        if self._next + size > self._size:
            self._piece, self._size = None, 0
            try:
                with self._context:
                    several = 1 if rows > ONE_LAUNCH_ROWS else 4
                    self._piece = cupy.empty(max(several * size, PIECE_BYTES), cupy.uint8)
            except MemoryError:
                return NO_ROOM
            self._begin, self._size = int(self._piece.data.ptr), int(self._piece.nbytes)
            self._next = 0
        first, keys_at = self._next, self._begin + self._next
        self._next = first + size
        return Room(piece=self._piece, first=first, rows=rows, at=(keys_at, keys_at + 8 * rows))
