"""The front of the pipeline, stages 1 to 5: what a source holds becomes batches.

The journal is written before the buffer is filled: what is or was in the buffer is in the journal,
in the same order and under the same stamp. A replay fills the buffer and cuts it as the journal
says; the settings, which may have changed since, do not count then.

Beside a flood a query is answered within moments, by three rules:

1. A poll asks for about as many operations as the batch lacks, so little lies before what comes
   next.
2. Where the source has more than a poll brought, live queries are read first if it can do that
   (`ReadsAhead`): before each batch, and every `LOOK_EVERY_MS` while one fills.
3. Queries read so close the batch at hand. Before the next are read so, the source is polled in
   its own order, and for `SHARE` times as long as those took: however many ask, the updates go on.

Questions of other threads of this process close a batch too: see `graph_requests.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from ..errors import CheckpointError
from ..formats.fast_rows import MIN_RUN
from ..settings import Settings
from ..sources.base import Log, ReadsAhead, Source, Wakes
from ..sources.marks import check_same
from ..state.journal import Chunk, Cut, Entry, Journal, chunks
from ..timers import Stages
from ..types import Mark, Partition, Polled, Position
from .batching import Batcher, Piece, StreamBatch
from .graph_requests import Interludes
from .outputs import Outputs
from .record_decoder import Admission
from .recovery import Gap, Rereader

POLL_ROWS = 4096  # at least: they are applied in less time than a poll takes
FIRST_RECORDS = 32  # polled at first, when they may have any number of rows
LOOK_AT_END_S = 0.1  # of the source, for a backlog of queries
LOOK_EVERY_MS = 10  # for queries to be read first, while a batch fills
SHARE = 9  # of the updates' time to that of queries which are read before them
MOST_SHARE_MS = 100  # of that, before queries are read first again
UNPOLLED_S = 0.01  # while questions are answered, at most
LOOK_S = 0.005  # for questions, where a source cannot be woken
RECENT_S = 10.0  # and while some came lately
ASKED_S = 0.1  # after a question, while the next is likely to come
ASKED_ROWS = 1 << 16  # of a batch meanwhile: the next one waits behind it
FILL_MS = 2  # from a query to the close of its batch, at least, while there is more to read


class Feed:
    """Makes batches of what `source` holds. `stamp` is one that no later stamp falls below;
    `marks` are of what was polled before."""

    def __init__(
        self,
        source: Source,
        admission: Admission,
        outputs: Outputs,
        settings: Settings,
        stamp: int,
        marks: Mapping[Partition, Mark],
        stages: Stages,
        interludes: Interludes,
    ) -> None:
        self.journal: Journal | None = None  # None: nothing is written down
        self.marks = dict(marks)  # of what was polled last
        self._held: list[Entry] = []  # for the journal, while dead letters are held, too
        self._source = source
        self._admission = admission
        self._outputs = outputs
        self._settings = settings
        self._stamp = stamp
        self._stages = stages
        self._backlog = Backlog(source, settings.max_waiting_queries)
        self.taken = 0  # operations of all batches
        self._interludes = interludes
        self._wakes = isinstance(source, Wakes)
        self._ahead = source if isinstance(source, ReadsAhead) else None
        self._behind = False  # whether the last poll brought all that was asked for
        self._gave_way = False  # whether queries were read ahead since the last poll
        self._polled_at = -math.inf  # when the last poll ended, by the monotonic clock
        self._cut_short = False  # whether the last poll may have waited less than a batch may
        self._ahead_from = stamp  # when queries may be read ahead again
        self._rows_a_record = 0  # of the last poll that brought updates; 0: there was none
        self._query_ms = round(settings.query_interval * 1000)
        self._batcher = Batcher(
            settings.batch_size,
            round(settings.batch_interval * 1000),
            settings.max_queries,
            self._query_ms,
            by_arrival=settings.window is not None and settings.window_time == "arrival",
        )

    def next_batch(self, limit: int, drain: bool) -> StreamBatch:
        """Poll until a batch closes, or nothing comes for an interval (`drain`: or nothing is
        there now); then cut it."""
        ends = drain or self._source.bounded
        if time.monotonic() - self._interludes.asked_at < ASKED_S:
            limit = min(limit, ASKED_ROWS)
        before, now = self._stamp, self._now()
        if self._gave_way:  # the batch before this one was theirs, and took so long
            self._ahead_from = now + min(SHARE * (now - before), MOST_SHARE_MS)
        look_at = max(now, self._ahead_from)  # for queries to be read first
        while True:
            if self._behind and not self._gave_way and now >= look_at:
                if self._read_ahead(ends):
                    break
                look_at = now + LOOK_EVERY_MS
            turn = self._interludes.due(self.flows)
            if turn == 0 and (self.flows or self._polled_lately()):
                break
            if self._batcher.closes(now, limit) or self._batcher.is_barren(now, not ends):
                break
            if ends and self._source.at_end():
                break
            asked = self._lacking(limit, turn is not None)
            polled = self._receive(now, asked, turn)
            self._gave_way = False
            if polled:
                self._take_in(polled, asked, ends)
            elif not self._batcher.operations or not self._cut_short:
                break
            now = self._now()
        return self._cut(limit)

    @property
    def flows(self) -> bool:
        """Whether something waits to be applied, here or in the source."""
        return bool(self._batcher.operations) or self._behind

    def _polled_lately(self) -> bool:
        """Whether questions may come first: those that never cease would stop the stream."""
        return time.monotonic() - self._polled_at < UNPOLLED_S

    def _lacking(self, limit: int, hurries: bool) -> int:
        """How many records to poll for the batch in front, by how many rows records had; few if it
        hurries, since a question waits behind it."""
        if not self._rows_a_record:
            return min(self._settings.poll_records, FIRST_RECORDS)
        rows = max(POLL_ROWS, min(self._batcher.size, limit) - self._batcher.operations)
        if hurries:
            rows = POLL_ROWS
        return min(self._settings.poll_records, -(-rows // self._rows_a_record))

    def _read_ahead(self, ends: bool) -> bool:
        """Read queries before what was written before them, if the source says so; none while some
        wait in the buffer."""
        if self._ahead is None or self._batcher.query_stamps:
            return False
        asked = self._settings.poll_records
        with self._stages.poll:
            polled = self._ahead.queries_ahead(asked)
        if polled:
            self._take_in(polled, asked, ends)
            self._behind = self._gave_way = True
        return bool(polled)

    def _take_in(self, polled: list[Polled], asked: int, ends: bool) -> None:
        """2 to 4, of what was polled when so many records were asked for."""
        stamp = self._now()  # now: records were waited for
        # A caller that reads to an end wants every query answered, however many there are.
        self._behind = len(polled) >= asked
        self._batcher.query_interval_ms = max(self._query_ms, FILL_MS * self._behind)
        shed = self._backlog.overlong() if self._behind and not ends else ()
        self._write_down(polled, stamp, shed)
        self._admit(polled, stamp, shed)

    def _now(self) -> int:
        """The stamp for what is buffered now, in ms: the clock, but it never falls."""
        self._stamp = max(self._stamp, self._settings.clock())
        return self._stamp

    def time_between(self) -> int:
        """A stamp for between the last batch and the next: now, or the first that waits."""
        waiting = self._batcher.pieces
        return min(self._now(), waiting[0].stamp) if waiting else self._now()

    def _receive(self, now: int, records: int, turn: float | None) -> list[Polled]:
        """1: wait for records, no longer than until the batch in front closes for its age, or for
        an interlude, in `turn` seconds."""
        due = self._batcher.due()
        wait = self._settings.batch_interval if due is None else (due - now) / 1000
        shorter = wait if turn is None else turn
        if not self._wakes and time.monotonic() - self._interludes.asked_at < RECENT_S:
            shorter = min(shorter, LOOK_S)
        with self._stages.poll:
            polled = self._source.poll(records, min(wait, shorter))
        self._polled_at = time.monotonic()
        self._cut_short = shorter < wait or self._interludes.due(self.flows) is not None
        return polled

    def _write_down(self, polled: list[Polled], stamp: int, shed: Collection[Partition]) -> None:
        """2: journal what was polled: an entry for each stretch of a partition, because one for
        each record would cost more than reading it."""
        last = {record.partition: record for record in polled}
        marks = {p: mark for p, record in last.items() if (mark := record.mark) is not None}
        if self.journal is not None:
            entries: list[Entry] = []
            for partition, stretch in groupby(polled, key=attrgetter("partition")):
                records = list(stretch)
                end = records[-1]
                mark = marks.get(partition) if end is last[partition] else None
                entries.append(
                    Chunk(stamp, partition, records[0].offset, end.last, partition in shed,
                          mark.digest if mark is not None else "")
                )  # fmt: skip
            self._held += entries
            self.write_held()
        self.marks |= marks

    def write_held(self) -> None:
        """Journal what is to be, unless the dead letters of it are held: then nothing of the
        stream is to be left if it stops."""
        if self.journal is None or not self._held or self._outputs.held:
            return
        with self._stages.journal:
            self.journal.append(self._held)
        self._held = []

    def _admit(self, polled: list[Polled], stamp: int, shed: Collection[Partition]) -> None:
        """3, 4: decode, admit and buffer records; queries from the partitions `shed` are put off.
        What is refused becomes a dead letter."""
        records = len(polled)
        rows, asked = -self._batcher.operations, -len(self._batcher.query_stamps)
        with self._stages.buffer:
            # Under a late policy a row's dead letter is its own record: they stay apart.
            if len(polled) >= MIN_RUN and self._settings.late == "apply":
                polled = self._admission.joined(polled)
            pieces = [
                piece
                for record in polled
                for piece in self._admission.pieces(record, stamp, record.partition in shed)
            ]
            self._batcher.add(pieces)
            self._interludes.buffered = self.taken + self._batcher.operations
            self._interludes.read.update((piece.partition, piece.last + 1) for piece in pieces)
            self._backlog.note(pieces)
            asked += len(self._batcher.query_stamps)
            if asked < len(pieces):
                rows += self._batcher.operations - asked
                self._rows_a_record = max(1, rows // records)
        if self._outputs.letters:
            with self._stages.reply:
                self._outputs.flush()

    def _cut(self, limit: int) -> StreamBatch:
        """5: take a batch from the front of the buffer, and journal where it ends."""
        with self._stages.buffer:
            batch = self._batcher.take(
                min(self._batcher.operations, self._batcher.size, limit), self._batcher.max_queries
            )
            self.taken += batch.operations
        if batch.operations and self.journal is not None:
            self._held.append(Cut(batch.operations))
            self.write_held()
        return batch

    # Recovery --------------------------------------------------------------------------------

    def waiting(self, pending: StreamBatch | None) -> list[Entry]:
        """What a journal must say for a replay to restore this buffer: what is buffered, and before
        it the batch that was taken last, if it is not applied yet."""
        taken = pending.pieces if pending else ()
        every = [*taken, *self._batcher.pieces]
        pieces = [p for i, p in enumerate(every) if not (i and p.rests(every[i - 1]))]
        waiting = chunks(
            Chunk(p.stamp, p.partition, p.offset, p.last, shed=p.is_shed) for p in pieces
        )
        return [*waiting, Cut(pending.operations)] if pending else [*waiting]

    def replay(self, entries: Iterable[Entry]) -> Iterator[StreamBatch]:
        """The batches that journal entries describe; what they leave waiting stays buffered.

        REQUIRES: the source stands where the journal begins. Raises OffsetError if records are
        gone, RewrittenError or CheckpointError if the source holds others."""
        source = Rereader(self._source)
        for entry in entries:
            if isinstance(entry, Chunk):
                self._stamp = max(self._stamp, entry.stamp)
                with self._stages.poll:
                    polled = source.read(entry)
                self._check(entry, polled[-1].mark)
                self._admit(polled, entry.stamp, (entry.partition,) if entry.shed else ())
            elif self._batcher.operations < entry.operations:
                raise CheckpointError(
                    f"the journal cuts {entry.operations} operations, but only "
                    f"{self._batcher.operations} are waiting: the source has changed; start a new "
                    "checkpoint"
                )
            else:
                self.taken += entry.operations
                yield self._batcher.take(entry.operations, entry.operations)

    @property
    def buffer(self) -> Batcher:
        """What waits for its batch."""
        return self._batcher

    def _check(self, chunk: Chunk, mark: Mark | None) -> None:
        """Check that what was read again ends with the same record, before it is buffered."""
        if chunk.digest:
            check_same(chunk.partition, mark, Mark(chunk.last, chunk.digest))
        if mark is not None:
            self.marks[chunk.partition] = mark

    def ends(self, positions: Mapping[Partition, Position]) -> dict[Partition, int]:
        """Where the source is read from next: after what is buffered, elsewhere at `positions`."""
        ends = {partition: position.offset for partition, position in positions.items()}
        return ends | {piece.partition: piece.last + 1 for piece in self._batcher.pieces}

    def skip(self, gap: Gap) -> None:
        """Forget the last record read if it lies in a gap: nothing can be compared with it."""
        mark = self.marks.get(gap.partition)
        if mark is not None and mark.offset < gap.stop:
            del self.marks[gap.partition]


class Backlog:
    """Which queries are told to come back later, because too many wait in `source`.

    Queries wait in the log, where they cost no memory, and are answered in their order. If more
    arrive than can be answered, all would be answered late, most after their clients had given up.
    So while too many wait, those read are refused instead, which is quick, until the queue is short
    again: the oldest are refused, and the others are answered within a bounded time.

    Only partitions that hold nothing but queries are counted and refused: a query between updates
    has to wait for those updates in any case. How many wait is the source's end less its position;
    the source is asked for its end only while polls come back full, so that a stream that keeps up
    never pays for it. A bounded source keeps no query waiting."""

    def __init__(self, source: Source, max_waiting: int) -> None:
        self._log = source if isinstance(source, Log) else None
        self._max_waiting = max_waiting
        self._ends: dict[Partition, int] = {}
        self._looked = -LOOK_AT_END_S
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
        if partitions and now - self._looked >= LOOK_AT_END_S:
            self._ends, self._looked = self._log.end_offsets(), now
        places = self._log.positions()
        waiting = sum(self._ends.get(p, 0) - places[p] for p in partitions if p in places)
        return partitions if waiting > self._max_waiting else ()
