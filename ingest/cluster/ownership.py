"""Which updates a partition may hold: those of the vertices that it owns.

Idea: a shard applies whatever its partitions hold. A row that a plain producer put into another
partition than its source vertex's would be kept where nobody looks for it, and be counted all the
same. So each record is checked as it is decoded: one with such a row becomes a dead letter, which
names the partition where it belongs. A removal of a vertex belongs in every partition.

A removal says here which partition it was read from, in its `dst`, which has no other meaning:
`removals.py` needs it where a shard reads several.

Trick: names that are text cost a third of a microsecond each to hash, so of a record with many the
owners of those that were met lately are remembered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpma.batch import Kind
from lpma.owners import owners_of

from ..errors import RecordError
from ..types import Array, Partition, Record


class Ownership:
    """What each of so many partitions may hold."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._type = np.uint8 if partitions <= 2**8 else np.uint16

    def owned(self, partition: Partition, record: Record) -> Record:
        """The record as it is to be applied. Raises RecordError if a row belongs elsewhere."""
        batch = record.batch
        sources = batch.src if record.names is None else record.names.src
        owners = owners_of(sources, self.partitions, self._type)
        elsewhere = owners != partition.number
        if not batch.edges_only:
            removals = batch.kind == Kind.REMOVE_VERTEX
            elsewhere &= ~removals
            dst = np.where(removals, np.uint32(partition.number), batch.dst)
            record = replace(record, batch=replace(batch, dst=dst))
        if elsewhere.any():
            raise _elsewhere(partition, sources, owners, elsewhere)
        return record


def _elsewhere(partition: Partition, sources: Array, owners: Array, rows: Array) -> RecordError:
    """What is wrong with a record of which these rows belong in other partitions."""
    row = int(np.flatnonzero(rows)[0])
    vertex = sources[row : row + 1].tolist()[0]
    return RecordError(
        f"row {row}: vertex {vertex!r:.80} belongs in partition {owners[row]} of "
        f"{partition.topic!r}, not in {partition.number}, and {np.count_nonzero(rows)} of "
        f"{len(sources)} rows do not belong here: write with PartitionedSink, or `lpma repartition`"
    )
