"""Room for queues of rows in pieces: pieces.cuh has the idea."""

from __future__ import annotations

PIECE = 256  # pieces.cuh: entries of a row that an item of a queue stands for


def queue_room(rows: int, entries: int) -> int:
    """How many items the rows of a graph are, at most, each in a queue once."""
    return rows + entries // PIECE
