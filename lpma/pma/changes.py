"""What becomes of an edge or a vertex."""

from __future__ import annotations

from enum import IntEnum


class Change(IntEnum):
    """How an edge or a vertex differs from what it was.

    >>> lpma.Change.REMOVED
    <Change.REMOVED: 1>
    """

    INSERTED = 0
    REMOVED = 1
    VERTEX_ADDED = 2  # by itself: it stays without an edge
    VERTEX_REMOVED = 3
    CHANGED = 4  # its weight, its time, or both
