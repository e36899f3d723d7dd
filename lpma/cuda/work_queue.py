"""Room for queues of rows in pieces: work_queue.cuh has the idea."""

from __future__ import annotations

PIECE = 256  # entries of a row that an item of a queue stands for, usually: work_queue.cuh


def queue_room(rows: int, entries: int, piece: int = PIECE) -> int:
    """How many items the rows of a graph are, at most, each in a queue once, and an empty row one
    item or none. piece: the entries of an item."""
    return rows + entries // piece
