"""Where a batch's kernel writes the keys that it inserts and deletes, for the history.

Idea: to allocate two arrays takes CuPy as long as a tenth of a small batch. So places are cut from
pieces of memory, each of which lives as long as an array in it does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy

from ...history import MAX_KEYS

PIECE_BYTES = 1 << 20
KEY_BYTES = 9  # a key, and whether it was inserted
ALIGNMENT = 256


class Room(NamedTuple):
    """Room for the changes of a batch of `rows` key operations; `rows` 0: there is none."""

    memory: Any  # CuPy's pointer
    rows: int
    keys_at: int
    inserted_at: int

    def arrays(self, n: int) -> tuple[Any, Any] | None:
        """The first n keys, and whether each was inserted."""
        if not self.rows:
            return None
        inserted = self.memory + 8 * self.rows
        return cupy.ndarray((n,), cupy.uint64, self.memory), cupy.ndarray((n,), bool, inserted)


NO_ROOM = Room(None, 0, 0, 0)


class Changes:
    """Cuts rooms for the batches of one store."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._piece: Any = None
        self._at = self._size = 0

    def room(self, rows: int) -> Room:
        """Room for a batch of that many key operations, unless the history would not keep them or
        memory is short: then it forgets."""
        if rows > MAX_KEYS:
            return NO_ROOM
        size = -(-KEY_BYTES * rows // ALIGNMENT) * ALIGNMENT
        if self._at + size > self._size:
            self._piece, self._size = None, 0
            try:
                with self._context:
                    self._piece = cupy.empty(max(4 * size, PIECE_BYTES), cupy.uint8)
            except MemoryError:
                return NO_ROOM
            self._size, self._at = int(self._piece.nbytes), 0
        memory = self._piece.data + self._at
        self._at += size
        keys_at = int(memory.ptr)
        return Room(memory, rows, keys_at, keys_at + 8 * rows)
