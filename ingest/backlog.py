"""Which queries are told to come back later, because too many wait in the source.

Queries wait in the log, where they cost no memory, and are answered in their order. If more
arrive than can be answered, all would be answered late, most after their clients had given up.
So while too many wait, those read are refused instead, which is quick, until the queue is short
again: the oldest are refused, and the others are answered within a bounded time.

Only partitions that hold nothing but queries are counted and refused: a query between updates
has to wait for those updates in any case. How many wait is the source's end less its position;
the source is asked for its end only while polls come back full, so that a stream that keeps up
never pays for it. A bounded source keeps no query waiting.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from .batcher import Piece
from .sources.base import Log, Source
from .types import Partition

LOOK_EVERY_S = 0.1  # at the source's end


class Backlog:
    """The partitions of `source` whose queries are put off, while more than `max_waiting` wait."""

    def __init__(self, source: Source, max_waiting: int) -> None:
        self._log = source if isinstance(source, Log) else None
        self._max_waiting = max_waiting
        self._ends: dict[Partition, int] = {}
        self._looked = -LOOK_EVERY_S
        self._of_queries: dict[Partition, bool] = {}  # whether what was last read was nothing else

    def note(self, pieces: Iterable[Piece]) -> None:
        """Note what was last read from the partitions."""
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
