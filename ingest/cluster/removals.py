"""Removals of vertices at a shard that reads several partitions: refused, and told.

REMOVE_VERTEX stands in every partition, since edges into the vertex may lie in any. A shard of one
partition drops those of its own, at that place. One of several reads the removal several times, and
in no order with the other partitions' edges: the second reading would drop an edge that was
inserted again after the first. So it takes such a record for one that cannot be read, which makes
it a dead letter, counted as all of these are. `PartitionedSink(shards=…)` refuses it sooner.
"""

from __future__ import annotations

import numpy as np

from lpma.batch import Kind

from ..errors import RecordError
from ..formats.records import decode_record
from ..types import Polled, Rejected

REASON = (
    "remove_vertex: exact only where there are as many shards as partitions: delete the vertex's "
    "edges, or write a topic of that many partitions (`lpma repartition`)"
)


def without_removals(polled: list[Polled]) -> list[Polled]:
    """The same, with a Rejected in place of each record that removes a vertex."""
    return [_refused(one) if _may_remove(one) else one for one in polled]


def _may_remove(polled: Polled) -> bool:
    return isinstance(polled.value, bytes) and b"kind" in polled.value  # as a rule, no other look


def _refused(polled: Polled) -> Polled:
    assert isinstance(polled.value, bytes)
    try:
        kinds = decode_record(polled.value, names=True).batch.kind
    except RecordError:
        return polled  # whoever decodes it says what is wrong
    if not np.any(kinds == Kind.REMOVE_VERTEX):
        return polled
    return polled._replace(value=Rejected(polled.value, REASON))
