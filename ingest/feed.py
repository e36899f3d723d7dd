"""The pipeline's front: polled, stamped, journaled, decoded, buffered, and cut into batches.

The journal is written before the buffer: what is in the buffer, or was, is in the journal, in the
same order and under the same stamp. A replay fills the buffer and cuts it as the journal says; the
settings, which may have changed since, do not count then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from .admission import Intake
from .batcher import Batcher, Position, StreamBatch
from .errors import CheckpointError
from .formats.fast_rows import with_runs
from .queries.shedding import Backlog
from .queries.sinks import Outputs
from .settings import Settings
from .sources.base import Partition, Polled, Source
from .state.gap import Gap
from .state.journal import Chunk, Cut, Entry, Journal, chunks
from .state.journal_replay import Replay
from .state.marks import Mark, check_same, mark_of, marks_of
from .timers import Stages


class Feed:
    """Makes batches of what `source` holds. `stamp` is one that no later stamp falls below;
    `marks` are of what was polled before."""

    def __init__(
        self,
        source: Source,
        intake: Intake,
        outputs: Outputs,
        settings: Settings,
        stamp: int,
        marks: Mapping[Partition, Mark],
        stages: Stages,
    ) -> None:
        self.journal: Journal | None = None  # none: nothing is written down
        self.marks = dict(marks)  # of what was polled last
        self._source = source
        self._intake = intake
        self._outputs = outputs
        self._settings = settings
        self._stamp = stamp
        self._stages = stages
        self._backlog = Backlog(source, settings.max_waiting_queries)
        self._batcher = Batcher(
            settings.batch_size,
            round(settings.batch_interval * 1000),
            settings.max_queries,
            round(settings.query_interval * 1000),
        )

    def next_batch(self, limit: int, drain: bool) -> StreamBatch:
        """Poll until a batch closes, or nothing comes for an interval (`drain`: or nothing is
        there now); then cut it."""
        ends = drain or self._source.bounded
        while not self._batcher.closes(now := self._now(), limit):
            if ends and self._source.at_end():
                break
            due = self._batcher.due()
            wait = self._settings.batch_interval if due is None else (due - now) / 1000
            with self._stages.poll:
                polled = self._source.poll(self._settings.poll_records, wait)
            if not polled:
                break
            now = self._now()  # what came was waited for
            # Whoever reads to an end wants all of it answered, however much there is.
            full = len(polled) >= self._settings.poll_records
            shed = self._backlog.overlong() if full and not ends else ()
            marks = marks_of(polled)
            self._write(_polled_chunks(polled, now, shed, marks))
            self.marks |= marks
            self._buffer(polled, now, shed)
        operations = min(self._batcher.operations, self._batcher.size, limit)
        with self._stages.buffer:
            batch = self._batcher.take(operations, self._batcher.max_queries)
        if batch.operations:
            self._write([Cut(batch.operations)])
        return batch

    def _now(self) -> int:
        """The stamp for what is buffered now, in ms: the clock, but it never falls."""
        self._stamp = max(self._stamp, self._settings.clock())
        return self._stamp

    def _write(self, entries: Iterable[Entry]) -> None:
        if self.journal is not None:
            with self._stages.journal:
                self.journal.append(entries)

    def _buffer(self, polled: list[Polled], stamp: int, shed: Collection[Partition]) -> None:
        """Buffer records; queries from the partitions `shed` are told to come back later."""
        with self._stages.buffer:
            # Under a late policy a row's dead letter is its record as it came: they stay apart.
            records = with_runs(polled) if self._settings.late == "apply" else polled
            pieces = [
                piece
                for record in records
                for piece in self._intake.pieces(record, stamp, record.partition in shed)
            ]
            for piece in pieces:
                self._batcher.add(piece)
            self._backlog.note(pieces)
        if self._outputs.letters:
            with self._stages.reply:
                self._outputs.flush()

    def waiting(self, pending: StreamBatch | None) -> list[Entry]:
        """What a journal must say so that a replay comes to what waits here: what is buffered,
        and before it the batch that was taken last, where it is not applied yet."""
        taken = pending.pieces if pending else ()
        # A record is read whole: what a batch left of one comes with the part before it.
        pieces = [p for i, p in enumerate([*taken, *self._batcher.pieces]) if i == 0 or not p.row]
        waiting = chunks(
            Chunk(p.stamp, p.partition, p.offset, p.last, shed=p.is_shed) for p in pieces
        )
        return [*waiting, Cut(pending.operations)] if pending else [*waiting]

    def replay(self, entries: Iterable[Entry]) -> Iterator[StreamBatch]:
        """The batches that journal entries tell of; what they leave waiting stays buffered.

        REQUIRES: the source stands where the journal begins. Raises OffsetError where records are
        gone, RewrittenError or CheckpointError where the source holds others."""
        source = Replay(self._source)
        for entry in entries:
            if isinstance(entry, Chunk):
                self._stamp = max(self._stamp, entry.stamp)
                shed = (entry.partition,) if entry.shed else ()
                with self._stages.poll:
                    polled = source.read(entry)
                self._check(entry, polled[-1])
                self._buffer(polled, entry.stamp, shed)
            elif self._batcher.operations < entry.operations:
                raise CheckpointError(
                    f"the journal cuts {entry.operations} operations where "
                    f"{self._batcher.operations} wait: the source has changed; start afresh"
                )
            else:
                yield self._batcher.take(entry.operations, entry.operations)

    def _check(self, chunk: Chunk, last: Polled) -> None:
        """Look whether what was read again ends with the same record, before it is buffered."""
        mark = mark_of(last)
        if chunk.digest:
            check_same(chunk.partition, mark, Mark(chunk.last, chunk.digest))
        if mark is not None:
            self.marks[chunk.partition] = mark

    def ends(self, positions: Mapping[Partition, Position]) -> dict[Partition, int]:
        """Where the source is read from next: behind what is buffered, elsewhere at `positions`."""
        ends = {partition: position.offset for partition, position in positions.items()}
        return ends | {piece.partition: piece.last + 1 for piece in self._batcher.pieces}

    def skip(self, gap: Gap) -> None:
        """Forget what was read last, where it lies in a gap: nothing can be compared with it."""
        mark = self.marks.get(gap.partition)
        if mark is not None and mark.offset < gap.stop:
            del self.marks[gap.partition]


def _polled_chunks(
    polled: list[Polled],
    stamp: int,
    shed: Collection[Partition],
    marks: Mapping[Partition, Mark],
) -> Iterator[Chunk]:
    """One entry for each stretch of a partition: one for each record costs more than reading it."""
    for partition, stretch in groupby(polled, key=attrgetter("partition")):
        records = list(stretch)
        first, last = records[0].offset, records[-1].last
        mark = marks.get(partition)
        digest = mark.digest if mark is not None and mark.offset == last else ""
        yield Chunk(stamp, partition, first, last, partition in shed, digest)
