"""Which updates a partition may hold: those of the vertices that it owns.

Idea: a shard applies whatever its partitions hold. A row that a plain producer put into another
partition than its source vertex's would be kept where nobody looks for it, and be counted all the
same. So each record is checked before its rows are buffered: one with such a row becomes a dead
letter, which names the partition where it belongs. A removal of a vertex belongs in every
partition, and so do an expiry, and a deletion at a name that nobody gave: it does nothing.

A removal or an expiry says here which partition it was read from, in its `dst`, which has no other
meaning: `removals.py` needs it where a shard reads several.

Trick: one compiled pass over a record's sources, which takes a nanosecond a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.batch.columns import Columns, Kind
from lpma.cpu.jit import compiled, inlined
from lpma.names import UNKNOWN, Names

from ..errors import RecordError
from ..types import Array, Partition
from .owner_kernels import owner_of
from .owners import OwnersOfIds

_REMOVE = int(Kind.REMOVE_VERTEX)  # and above it EXPIRE, the last kind of an update
_NONE = np.zeros(0, np.uint32)
_REMOVES = -2  # no row lies elsewhere, some belong everywhere
_UNKNOWN = np.int64(UNKNOWN)


class Ownership:
    """What each of so many partitions may hold."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._owners = OwnersOfIds(partitions)

    def owned(self, partition: Partition, batch: Columns, names: Names | None) -> Columns:
        """Updates of that partition as they are to be applied. names: of the ids in src; None: they
        are the vertices. Raises RecordError if a row belongs elsewhere."""
        table = _NONE if names is None else self._owners.table(names)
        row = _elsewhere(batch.src, batch.kind, table, self.partitions, partition.number)
        if row >= 0:
            raise self._error(partition, batch, names, row)
        if row != _REMOVES:
            return batch
        removals = batch.kind >= Kind.REMOVE_VERTEX
        return batch.replace(dst=np.where(removals, np.uint32(partition.number), batch.dst))

    def _error(
        self, partition: Partition, batch: Columns, names: Names | None, row: int
    ) -> RecordError:
        """What is wrong with a record of which that row is the first that lies elsewhere."""
        ids: Array = batch.src[row : row + 1]
        (vertex,) = (ids if names is None else names.of(ids)).tolist()
        owner = self._owners.of(ids, names)[0]
        return RecordError(
            f"row {row}: vertex {vertex!r:.80} belongs in partition {owner} of "
            f"{partition.topic!r}, not in {partition.number}: write with ingest.PartitionedSink, "
            "or repair the topic with `lpma repartition`",
            "misplaced",
        )


@inlined
def _lies_elsewhere(id: Any, kind: Any, table: Any, number: int) -> bool:
    """Of a vertex with a name."""
    at = np.int64(id)
    differs = np.int64(table[min(at, np.int64(len(table) - 1))]) != number
    return bool(differs & (at != _UNKNOWN) & (kind < _REMOVE))


@compiled
def _elsewhere(ids: Any, kind: Any, table: Any, partitions: int, number: int) -> int:
    """The first row whose vertex another partition owns; else _REMOVES if there is a removal or an
    expiry, or −1. table: the owners by id; empty: they are hashed."""
    folded, inverse = (1 << 32) % partitions, 1.0 / partitions
    others: Any = 0
    removals: Any = 0
    for i in range(len(kind)):
        removals += np.int64(kind[i] >= _REMOVE)
    if len(table) == 0:
        for i in range(len(ids)):  # without a branch, so that it runs on vectors
            owner = owner_of(np.uint64(ids[i]), partitions, folded, inverse)
            others += np.int64(owner != number) & np.int64(kind[i] < _REMOVE)
    else:
        for i in range(len(ids)):
            others += np.int64(_lies_elsewhere(ids[i], kind[i], table, number))
    if others == 0:
        return _REMOVES if removals else -1
    for i in range(len(ids)):
        if len(table) == 0:
            owner = owner_of(np.uint64(ids[i]), partitions, folded, inverse)
            if owner != number and kind[i] < _REMOVE:
                return i
        elif _lies_elsewhere(ids[i], kind[i], table, number):
            return i
    return -1
