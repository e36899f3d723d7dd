"""At which marker each partition stands: when an epoch is whole, and when it is given up.

Idea: one epoch is tried at a time, the highest that a marker was met of. A partition that meets its
marker stands there, and is left unread, until all stand. So what has been read then is what lies
before the markers, in every partition. Source: the alignment of barriers in Carbone et al.,
"Lightweight asynchronous snapshots for distributed dataflows" (arXiv:1506.08603).

Invariants:
1. An epoch is whole only while every partition stands at its first marker of that epoch.
2. An epoch is tried once: `floor` is the highest that has ended, and no marker up to it counts any
   more. So one that is written twice cannot close the same epoch at two places.
3. A marker of a lower epoch than the one that is tried is passed: another partition has passed
   that epoch without it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..types import Partition


class Alignment:
    """The markers that some partitions stand at. floor: no marker up to this epoch counts.

    >>> from ingest.cluster.alignment import Alignment
    >>> first, second = ingest.Partition("updates", 0), ingest.Partition("updates", 1)
    >>> alignment = Alignment([first, second])
    >>> alignment.meets(first, 7), alignment.is_whole
    (True, False)
    >>> alignment.meets(second, 7), alignment.is_whole
    (True, True)
    >>> alignment.end()
    >>> alignment.floor, alignment.meets(first, 7)
    (7, False)
    """

    def __init__(self, partitions: Iterable[Partition], floor: int = 0) -> None:
        self.partitions = frozenset(partitions)
        self.floor = floor
        self.highest = floor  # of which a marker was met
        self.epoch: int | None = None  # that is tried; None: none is
        self.standing: frozenset[Partition] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether every partition stands at the marker of `epoch`."""
        return self.epoch is not None and self.standing == self.partitions

    @property
    def missing(self) -> frozenset[Partition]:
        """The partitions that have not met the marker of `epoch` yet."""
        return self.partitions - self.standing

    def meets(self, partition: Partition, epoch: int) -> bool:
        """A marker was read of `partition`; whether it stands there now. A higher epoch than the
        one that is tried takes its place: that one can never be whole, since epochs rise.
        REQUIRES: the partition stands nowhere."""
        assert partition in self.missing
        self.highest = max(self.highest, epoch)
        if epoch <= self.floor or (self.epoch is not None and epoch < self.epoch):
            return False
        if epoch != self.epoch:
            self.end()
            self.epoch = epoch
        self.standing |= {partition}
        return True

    def end(self) -> None:
        """The epoch that is tried is closed, or given up; nobody stands anywhere."""
        self.floor = self.floor if self.epoch is None else self.epoch
        self.epoch, self.standing = None, frozenset()
