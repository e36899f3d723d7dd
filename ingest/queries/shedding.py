"""Which queries are told to come back later, because too many wait.

Idea: queries wait in the log, where they cost no memory, and are answered in their order. Where
more come than can be answered, all would be answered late, most after their askers had gone. So
while too many wait, those read are refused instead, which is quick, until the queue is short again:
the oldest are refused, and the others are answered within a bounded time.

Only partitions of queries alone count and are refused. A query between updates waits for these
whatever is done with it. How many wait is the source's end less its position; it is asked for only
while a poll brings all that it may, so that a stream that keeps up never pays for it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from ..batcher import Piece
from ..sources.base import Log, Partition, Source

LOOK_EVERY_S = 0.1  # at the source's end


class Backlog:
    """Counts the queries that wait in `source`; a bounded source has none to keep waiting."""

    def __init__(self, source: Source, max_waiting: int) -> None:
        self._log = source if isinstance(source, Log) else None
        self._max_waiting = max_waiting
        self._ends: dict[Partition, int] = {}
        self._looked = -LOOK_EVERY_S
        self._of_queries: dict[Partition, bool] = {}  # whether what was last read was nothing else

    def note(self, pieces: Iterable[Piece]) -> None:
        """What has been read from the partitions, last."""
        found: dict[Partition, bool] = {}
        for piece in pieces:
            is_query = piece.query is not None
            found[piece.partition] = is_query and found.get(piece.partition, True)
        self._of_queries |= found

    def overlong(self) -> Collection[Partition]:
        """The partitions whose queries are refused now, none while few enough wait."""
        if self._log is None:
            return ()
        partitions = {partition for partition, alone in self._of_queries.items() if alone}
        now = time.monotonic()
        if partitions and now - self._looked >= LOOK_EVERY_S:
            self._ends, self._looked = self._log.end_offsets(), now
        places = self._log.positions()
        waiting = sum(self._ends.get(p, 0) - places[p] for p in partitions if p in places)
        return partitions if waiting > self._max_waiting else ()
