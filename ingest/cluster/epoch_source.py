"""A source that ends epochs: it stops at markers until the graph is what lay before all of them.

Idea: the pipeline reads this source as any other. One epoch is tried at a time, the highest that a
marker was met of. Where its marker was read, a partition stands, and is left unread, until the
others have come to theirs. Once all stand, nothing at all is read, and a request of the pipeline,
which comes as soon as all that was read is applied, closes the epoch. Source: the alignment of
barriers in Carbone et al., "Lightweight asynchronous snapshots for distributed dataflows"
(arXiv:1506.08603).

    reads ──a marker was read──▶ aligns ──all stand──▶ closes ──the request was answered──▶ reads
                                   └──the epoch is given up──▶ reads

An epoch that is tried is given up when
    - a partition meets the marker of a higher one;
    - `ALIGN_S` have passed since it was tried, and a partition that lacks its marker has been read
      to where it ended then, or to where it ends now.
So no partition holds up the others for longer than that and the reading of what it holds. Whatever
becomes of an epoch, no record is dropped, and the order within each partition stays.

Tricks: what a poll brings behind a marker is kept, and comes first when reading goes on: nothing is
read twice, and a broker is not asked to go back. That is at most what one poll brings for each
partition. Many records that came as one are searched at once, and cut behind their markers alone,
so rows are decoded together as in any pipeline.

Invariants:
1. An epoch is whole only while every partition stands at its first marker of that epoch.
2. An epoch is tried once: `floor` is the highest that has ended, and no marker up to it counts any
   more. So one that is written twice cannot close the same epoch at two places.
3. A marker of a lower epoch than the one that is tried is passed: another partition has passed
   that epoch without it.
4. Nothing that lies behind a marker of the epoch that is tried is handed out before the epoch ends.
5. Before anything is, `floor` is on the disk: after a crash no epoch is tried again unless every
   partition stands at its marker, or before it.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lpma.batch.columns import Columns
from lpma.host import sync_data

from ..events import log_event
from ..formats.markers import marker_of, markers_in
from ..formats.row_reader import in_runs
from ..pipeline.graph_requests import GraphRequests, GraphView
from ..sources.base import Identity, Log, Source
from ..types import Partition, Polled, RecordFingerprint, Sink, Values

if TYPE_CHECKING:
    from lpma.names import Names

    from .owners import Ownership

ALIGN_S = 2.0
LOOK_S = 0.05  # between two looks at whether an epoch that lasts longer is to be given up


class Closer(Protocol):
    """What is to happen as epochs end."""

    def close(self, epoch: int, moment: GraphView) -> Any:
        """Take what is to be kept of the graph, which is at the end of `epoch`. The stream waits
        meanwhile."""

    def ended(self, floor: int, closed: Future[Any] | None) -> None:
        """No epoch up to `floor` will be closed any more, but that one has been if `closed` is
        given: what `close` returned or raised. Its journal is synced then."""


class NotedEpoch:
    """A number in a file of its own, durable when `note` returns. 0 before the first."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self.value = 0
        with suppress(FileNotFoundError, ValueError):
            self.value = int(self._path.read_bytes())

    def note(self, epoch: int) -> None:
        """Write it, in one piece that fits a disk's sector."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o666)
        try:
            os.pwrite(file, b"%020d\n" % epoch, 0)
            sync_data(file)
        finally:
            os.close(file)
        self.value = epoch


class EpochSource(Source):
    """`source`, read in step with the markers of `partitions` once `begin` was called; as it is
    before that, as a replay needs it. ownership: what its partitions may hold. One thread at a
    time."""

    _closer: Closer  # from `begin` on

    def __init__(
        self,
        source: Log,
        partitions: Iterable[Partition],
        noted: NotedEpoch,
        ownership: Ownership,
    ) -> None:
        self.can_wake = source.can_wake
        self.alignment = Alignment(partitions, noted.value)
        self.read_time = 0  # when the last record read was written, ms since 1970
        self._source = source
        self._noted = noted
        self._ownership = ownership
        self._kept: list[Polled] = []  # behind markers, or more than was asked for
        self._requests: GraphRequests | None = None  # none: markers are records as any
        self._closing: Future[Any] | None = None
        self._tried_at = 0.0  # by the monotonic clock: since when the epoch is tried
        self._ends: dict[Partition, int] | None = None  # when ALIGN_S had passed

    def begin(
        self,
        requests: GraphRequests,
        closer: Closer,
        last: Mapping[Partition, RecordFingerprint],
    ) -> None:
        """End epochs from now on. last: what was read last of each partition; one of which that
        is a marker stands at it, as it did before the pipeline was stopped."""
        self._requests, self._closer = requests, closer
        offsets = {p: found.offset for p, found in last.items() if p in self.alignment.partitions}
        found = self._source.records_at(offsets)
        epochs = {p: marker_of(record.value) for p, record in found.items()}
        for epoch, partition in sorted((e, p) for p, e in epochs.items() if e is not None):
            self._meet(partition, epoch)
        closer.ended(self.alignment.floor, None)

    # Reading ---------------------------------------------------------------------------------

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        return self._polled(self._source.poll, max_records, timeout)

    def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
        def runs(max_records: int, timeout: float) -> list[Polled]:
            return list(in_runs(self._source.poll_many(max_records, timeout)))

        return self._polled(runs, max_records, timeout)

    def _polled(
        self, poll: Callable[[int, float], list[Polled]], max_records: int, timeout: float
    ) -> list[Polled]:
        if self._requests is None:
            return poll(max_records, timeout)
        if self._closes(self._requests):
            return []
        self._look()
        polled = self._passed([], self._kept, max_records)
        if not polled:
            kept = self._kept
            polled = self._passed(kept, poll(max_records, self._patience_s(timeout)), max_records)
        if polled:
            self.read_time = polled[-1].time
            if self.alignment.floor > self._noted.value:
                self._noted.note(self.alignment.floor)  # invariant 5
        return polled

    def owned(self, partition: Partition, batch: Columns, names: Names | None) -> Columns:
        return self._ownership.owned(partition, batch, names)

    def _passed(self, kept: list[Polled], polled: list[Polled], most: int) -> list[Polled]:
        """The first of these records that may be handed out, up to a marker at which the partition
        then stands; the others are kept behind those that are `kept` already."""
        standing = self.alignment.standing
        pieces = deque(piece for one in polled for piece in self._cut(one))
        passed: list[Polled] = []
        kept, count = list(kept), 0
        while pieces and (not passed or count + pieces[0][0].records <= most):
            piece, epoch = pieces.popleft()
            if piece.partition in standing:
                kept.append(piece)
                continue
            passed.append(piece)
            count += piece.records
            if epoch is not None and self._meet(piece.partition, epoch):
                break
        self._kept = [*kept, *(piece for piece, _ in pieces)]
        return passed

    def _cut(self, polled: Polled) -> Iterator[tuple[Polled, int | None]]:
        """The same, cut behind each marker; with each piece the epoch of the marker that it ends
        with, None if it ends with none."""
        start = polled.offset
        if polled.partition in self.alignment.partitions:
            for place, epoch in markers_in(polled.value):
                behind = start + place + 1
                if behind > polled.last:
                    yield polled, epoch
                    return
                head, polled = polled.split(behind)
                yield self._with_time(head), epoch
        yield polled, None

    def _with_time(self, polled: Polled) -> Polled:
        """The same with the time of its last record, which its fingerprint goes by."""
        if not isinstance(polled.value, Values) or polled.value.times is not None:
            return polled
        found = self._source.records_at({polled.partition: polled.last})
        return polled._replace(time=found.get(polled.partition, polled).time)

    def _meet(self, partition: Partition, epoch: int) -> bool:
        """See `Alignment.meets`. The epoch that was tried until now may be given up for it."""
        before = self.alignment.epoch
        if not self.alignment.meets(partition, epoch):
            return False
        if before != epoch:
            if before is not None:
                self._told_given_up(before, f"{partition.topic}/{partition.number} is at {epoch}")
            self._tried_at, self._ends = time.monotonic(), None
        if not self.alignment.is_whole:
            self._leave_unread(self.alignment.standing)
        return True

    def _leave_unread(self, standing: frozenset[Partition]) -> None:
        only = self._source.positions().keys() - standing if standing else None
        self._source.read_only(only)

    # How an epoch ends -----------------------------------------------------------------------

    def _closes(self, requests: GraphRequests) -> bool:
        """Whether an epoch is being closed, so that nothing may be read."""
        epoch = self.alignment.epoch
        if epoch is None or not self.alignment.is_whole:
            return False
        if self._closing is None:
            closer = self._closer
            self._closing = requests.ask_here(lambda moment: closer.close(epoch, moment))
            self._closing.add_done_callback(lambda closed: closer.ended(epoch, closed))
        if not self._closing.done():
            return True
        self._closing = None
        self._end()
        return False

    def _look(self) -> None:
        """Give up an epoch that has been tried for long enough."""
        tried = self.alignment.epoch
        if tried is None or time.monotonic() - self._tried_at < ALIGN_S:
            return
        if self._ends is None:
            self._ends = self._source.end_offsets()
        places, known = self.positions(), self._source.known_ends()
        for partition in sorted(self.alignment.missing):
            end = self._ends[partition]
            if places[partition] >= min(end, known.get(partition, end)):
                self._end()
                self._told_given_up(tried, f"{partition.topic}/{partition.number} has no marker")
                return

    def _end(self) -> None:
        self.alignment.end()
        self._leave_unread(frozenset())

    def _told_given_up(self, epoch: int, why: str) -> None:
        log_event("epoch given up", logging.WARNING, epoch=epoch, reason=why)
        self._closer.ended(epoch, None)

    def _patience_s(self, timeout: float) -> float:
        """How long a poll may wait, so that `_look` comes in time."""
        if self.alignment.epoch is None:
            return timeout
        left = self._tried_at + ALIGN_S - time.monotonic()
        return min(timeout, max(left, LOOK_S))

    # As the source itself --------------------------------------------------------------------

    def seek(self, positions: Mapping[Partition, int]) -> None:
        """REQUIRES: `begin` was not called yet."""
        assert self._requests is None
        self._source.seek(positions)

    def positions(self) -> dict[Partition, int]:
        first = {record.partition: record.offset for record in reversed(self._kept)}
        return self._source.positions() | first

    def at_end(self) -> bool:
        return not self._kept and not self.alignment.is_whole and self._source.at_end()

    def identity(self) -> Identity:
        return self._source.identity()

    def sink(self) -> Sink | None:
        return self._source.sink()

    def end_offsets(self) -> dict[Partition, int]:
        return self._source.end_offsets()

    def first_offsets(self) -> dict[Partition, int]:
        return self._source.first_offsets()

    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled]:
        return self._source.records_at(offsets)

    def known_ends(self) -> dict[Partition, int]:
        return self._source.known_ends()

    def queries_ahead(self, max_records: int) -> list[Polled]:
        if self._kept or self.alignment.is_whole:
            return []  # some of them may lie before those that the source would bring
        return self._source.queries_ahead(max_records)

    def poll_one(self, partition: Partition, max_records: int) -> list[Polled] | None:
        """REQUIRES: `begin` was not called yet."""
        assert self._requests is None
        return self._source.poll_one(partition, max_records)

    def wake(self) -> None:
        self._source.wake()


class Alignment:
    """The markers that some partitions stand at. floor: no marker up to this epoch counts."""

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
