"""The front of the pipeline, stages 1 to 5: what a source holds becomes batches.

The journal is written before the buffer is filled: what is or was in the buffer is in the journal,
in the same order and under the same stamp. A replay fills and cuts the buffer as the journal says;
the settings, which may have changed since, do not count then.

Beside a flood a query is answered within moments, by three rules:

1. A poll asks for about as many operations as the batch lacks, so little lies before what comes
   next.
2. Where the source has more than a poll brought, live queries are read first if the source can do
   that (`Source.queries_ahead`): before each batch, and every `LOOK_EVERY_MS` while one fills.
3. Queries read ahead close the batch at hand. Before more are read ahead, the source is polled in
   its own order, for `SHARE` times as long as they took: however many ask, the updates go on.

Requests of other threads of this process close a batch too: see `graph_requests.py`.

Records in Confluent's envelope are read by schemas of a registry. While one of these is not known,
what was polled is held back, and nothing else is polled: batches are cut of what is buffered, and
requests are answered. It is stamped, journaled and buffered once the registry has answered.

While too many queries wait, those read are refused instead of answered: see `Backlog`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from ..errors import CheckpointError
from ..formats.row_reader import in_runs
from ..sources.base import Log, Source
from ..sources.fingerprints import check_same
from ..state.journal import Chunk, Cut, Entry, Journal, chunks
from ..state.stream_state import Gap, StreamState
from ..timers import Stages
from ..types import Partition, Polled, Position, RecordFingerprint
from .batching import Batcher, BufferedRows, StreamBatch
from .graph_requests import GraphRequests
from .outputs import Outputs
from .record_decoder import RecordDecoder
from .written import WrittenTimes

POLL_ROWS = 4096  # at least: they are applied in less time than a poll takes
FIRST_RECORDS = 32  # polled at first, when they may have any number of rows
LOOK_AT_END_S = 0.1  # of the source, for a backlog of queries
LOOK_EVERY_MS = 10  # for queries to be read first, while a batch fills
SHARE = 9  # of the updates' time to that of queries which are read before them
MOST_SHARE_MS = 100  # of that, before queries are read first again
UNPOLLED_S = 0.01  # while questions are answered, at most
LOOK_S = 0.005  # for questions, where a source cannot be woken
SCHEMA_S = 1.0  # for a schema of records that were polled, before requests are answered
AWAY_S = 0.05  # the same while the registry is away
RECENT_S = 10.0  # and while some came lately
ASKED_S = 0.1  # after a question, while the next is likely to come
ASKED_ROWS = 1 << 16  # of a batch meanwhile: the next one waits behind it
FILL_MS = 2  # from a query to the close of its batch, at least, while there is more to read


@dataclass
class Pace:
    """How the last polls went, which decides how the next is made. Times in ms are stamps."""

    ahead_from_ms: int  # when queries may be read ahead again
    behind: bool = False  # whether the last poll brought all that was asked for
    gave_way: bool = False  # whether queries were read ahead since the last poll
    cut_short: bool = False  # whether the last poll may have waited less than a batch may
    polled_at: float = -math.inf  # when the last poll ended, by the monotonic clock
    rows_a_record: int = 0  # of the last poll that brought updates; 0: there was none

    def ahead_took(self, started_ms: int, now_ms: int) -> None:
        """Note how long the batch took whose queries were read ahead (rule 3)."""
        self.ahead_from_ms = now_ms + min(SHARE * (now_ms - started_ms), MOST_SHARE_MS)

    def polled_lately(self) -> bool:
        """Whether requests may come first: those that never cease would stop the stream."""
        return time.monotonic() - self.polled_at < UNPOLLED_S

    def records(self, lacking: int, most: int, hurries: bool) -> int:
        """How many records to poll, at most so many, for a batch that lacks so many operations,
        by how many rows records had (rule 1); few if it hurries, since a request waits behind
        it."""
        if not self.rows_a_record:
            return min(most, FIRST_RECORDS)
        rows = POLL_ROWS if hurries else max(POLL_ROWS, lacking)
        return min(most, -(-rows // self.rows_a_record))


class Intake:
    """Makes batches of what the source of `stream` holds."""

    def __init__(
        self,
        stream: StreamState,
        decoder: RecordDecoder,
        outputs: Outputs,
        stages: Stages,
        requests: GraphRequests,
    ) -> None:
        source, settings = stream.source, stream.settings
        self.journal: Journal | None = None  # None: nothing is written down
        self.fingerprints = dict(stream.state.fingerprints)  # of what was polled last
        self.taken = 0  # operations of all batches
        self.written = WrittenTimes()  # of what is buffered, and of what was applied
        self._held: list[Entry] = []  # for the journal, while dead letters are held, too
        self._held_back: list[Polled] = []  # until their schemas are known
        self._source, self._schemas = source, stream.schemas
        self._decoder = decoder
        self._outputs = outputs
        self._settings = settings
        self._stamp = stream.state.stamp  # no later one falls below it
        self._stages = stages
        self._requests = requests
        self._backlog = Backlog(source, settings.max_waiting_queries)
        self._pace = Pace(self._stamp)
        self._query_ms = round(settings.query_interval * 1000)
        self.batcher = Batcher(
            settings.batch_size,
            round(settings.batch_interval * 1000),
            settings.max_queries,
            self._query_ms,
            by_arrival=settings.window is not None and settings.window_time == "arrival",
            by_record=source.cuts_batches,
        )

    def next_batch(self, limit: int, drain: bool) -> StreamBatch:
        """Poll until a batch closes, or nothing comes for an interval (`drain`: or nothing is
        there now); then cut it."""
        ends, pace = drain or self._source.bounded, self._pace
        if time.monotonic() - self._requests.asked_at < ASKED_S:
            limit = min(limit, ASKED_ROWS)
        before, now = self._stamp, self._now()
        if pace.gave_way:  # the batch before this one was theirs
            pace.ahead_took(before, now)
        look_at = max(now, pace.ahead_from_ms)  # for queries to be read first
        while True:
            if pace.behind and not pace.gave_way and now >= look_at and not self._held_back:
                if self._read_ahead(ends):
                    break
                look_at = now + LOOK_EVERY_MS
            turn = self._requests.due(self.flows)
            if turn == 0 and (self.flows or pace.polled_lately()):
                break
            if self.batcher.closes(now, limit) or self.batcher.is_barren(now, not ends):
                break
            if ends and self.at_end():
                break
            lacking = min(self.batcher.size, limit) - self.batcher.operations
            asked = pace.records(lacking, self._settings.poll_records, turn is not None)
            polled = self._receive(now, asked, turn)
            pace.gave_way = False
            if polled:
                if not self._take_in(polled, asked, ends):
                    break
            elif not self.batcher.operations or not pace.cut_short:
                break
            now = self._now()
        return self._cut(limit)

    def at_end(self) -> bool:
        """Whether all that the source holds now was taken from it and buffered."""
        return not self._held_back and self._source.at_end()

    @property
    def flows(self) -> bool:
        """Whether something waits to be applied, here or in the source."""
        return bool(self.batcher.operations) or self._pace.behind

    def _read_ahead(self, ends: bool) -> bool:
        """Read queries before what was written before them, if the source says so; none while some
        wait in the buffer."""
        if self.batcher.query_stamps:
            return False
        asked = self._settings.poll_records
        with self._stages.poll:
            polled = self._source.queries_ahead(asked)
        if not polled or not self._take_in(polled, asked, ends):
            return False
        self._pace.behind = self._pace.gave_way = True
        return True

    def _take_in(self, polled: list[Polled], asked: int, ends: bool) -> bool:
        """2 to 4, of what was polled when so many records were asked for; False: it is held back,
        until its schemas are known."""
        stamp = self._now()  # now: records were waited for
        self._held_back = []
        if (schemas := self._schemas) is not None:
            wait = SCHEMA_S if schemas.trouble() is None else AWAY_S
            if not schemas.ready(self._decoder.reader.topics.schema_ids(polled), stamp, wait):
                self._held_back = polled
                return False
        runs = list(in_runs(polled))
        # A caller that reads to an end wants every query answered, however many there are.
        records = sum(run.records for run in runs)
        behind = self._pace.behind = records >= asked
        self.batcher.query_interval_ms = max(self._query_ms, FILL_MS * behind)
        shed = self._backlog.overlong() if behind and not ends else ()
        self._write_down(runs, stamp, shed)
        self._buffer(runs, stamp, shed)
        return True

    def _now(self) -> int:
        """The stamp for what is buffered now, in ms: the clock, but it never falls."""
        self._stamp = max(self._stamp, self._settings.clock())
        return self._stamp

    def time_between(self) -> int:
        """A stamp for between the last batch and the next: now, or the first that waits."""
        waiting = self.batcher.pieces
        return min(self._now(), waiting[0].stamp) if waiting else self._now()

    def _receive(self, now: int, records: int, turn: float | None) -> list[Polled]:
        """1: wait for records, no longer than until the batch in front closes for its age, or for
        a request, in `turn` seconds."""
        due = self.batcher.due()
        wait = self._settings.batch_interval if due is None else (due - now) / 1000
        shorter = wait if turn is None else turn
        if not self._source.can_wake and time.monotonic() - self._requests.asked_at < RECENT_S:
            shorter = min(shorter, LOOK_S)
        with self._stages.poll:
            polled = self._held_back or self._source.poll_many(records, min(wait, shorter))
        self._pace.polled_at = time.monotonic()
        self._pace.cut_short = shorter < wait or self._requests.due(self.flows) is not None
        return polled

    def _write_down(self, runs: list[Polled], stamp: int, shed: Collection[Partition]) -> None:
        """2: journal what was polled: an entry for each stretch of a partition, because one for
        each record would cost more than reading it."""
        last = {run.partition: run for run in runs}
        fingerprints = {
            p: found for p, run in last.items() if (found := run.fingerprint) is not None
        }
        if self.journal is not None:
            entries: list[Entry] = []
            for partition, group in groupby(runs, key=attrgetter("partition")):
                stretch = list(group)
                end = stretch[-1]
                found = fingerprints.get(partition) if end is last[partition] else None
                entries.append(
                    Chunk(stamp, partition, stretch[0].offset, end.last, partition in shed,
                          found.digest if found is not None else "")
                )  # fmt: skip
            self._held += entries
            self.write_held()
        self.fingerprints |= fingerprints

    def write_held(self) -> None:
        """Journal what is to be, unless the dead letters of it are held: then nothing of the
        stream is to be left if it stops."""
        if self.journal is None or not self._held or self._outputs.held:
            return
        with self._stages.journal:
            self.journal.append(self._held)
        self._held = []

    def _buffer(self, runs: list[Polled], stamp: int, shed: Collection[Partition]) -> None:
        """3, 4: decode, admit and buffer records; queries from the partitions `shed` are refused.
        What else is refused becomes a dead letter."""
        records = sum(run.records for run in runs)
        rows, asked = -self.batcher.operations, -len(self.batcher.query_stamps)
        with self._stages.buffer:
            pieces = [
                piece
                for run in runs
                for piece in self._decoder.pieces(run, stamp, run.partition in shed)
            ]
            self.batcher.add(pieces)
            for run in runs:
                self.written.buffer(run)
            self._requests.buffered = self.taken + self.batcher.operations
            self._requests.read.update((piece.partition, piece.last + 1) for piece in pieces)
            self._backlog.note(pieces)
            asked += len(self.batcher.query_stamps)
            if asked < len(pieces):
                rows += self.batcher.operations - asked
                self._pace.rows_a_record = max(1, rows // records)

    def _cut(self, limit: int) -> StreamBatch:
        """5: take a batch from the front of the buffer, and journal where it ends."""
        with self._stages.buffer:
            batch = self.batcher.take(
                min(self.batcher.operations, self.batcher.size, limit), self.batcher.max_queries
            )
            self.taken += batch.operations
        self.flush_letters()
        if batch.operations and self.journal is not None:
            self._held.append(Cut(batch.operations))
            self.write_held()
        return batch

    def flush_letters(self) -> None:
        """Send the dead letters of what was taken; of what only waits they would leave again, when
        it is read again."""
        if self._outputs.letters:
            waiting = {piece.partition: piece.offset for piece in reversed(self.batcher.pieces)}
            with self._stages.reply:
                self._outputs.flush(waiting)

    # Recovery --------------------------------------------------------------------------------

    def waiting(self, pending: StreamBatch | None) -> list[Entry]:
        """What a journal must say for a replay to restore this buffer: what is buffered, and before
        it the batch that was taken last, if it is not applied yet."""
        taken = pending.pieces if pending else ()
        every = [*taken, *self.batcher.pieces]
        pieces = [p for i, p in enumerate(every) if not (i and p.rests(every[i - 1]))]
        waiting = chunks(
            Chunk(p.stamp, p.partition, p.offset, p.last, shed=p.is_shed) for p in pieces
        )
        return [*waiting, Cut(pending.operations)] if pending else [*waiting]

    def buffer_again(self, chunk: Chunk, read: Callable[[Chunk], list[Polled]]) -> None:
        """Buffer what the journal says was buffered. Raises what `read` raises, RewrittenError if
        that ends with another record than the first time."""
        self._stamp = max(self._stamp, chunk.stamp)
        with self._stages.poll:
            polled = read(chunk)
        found = polled[-1].fingerprint
        if chunk.digest:
            check_same(chunk.partition, found, RecordFingerprint(chunk.last, chunk.digest))
        if found is not None:
            self.fingerprints[chunk.partition] = found
        if self._schemas is not None:
            with self._stages.poll:
                self._schemas.wait(self._decoder.reader.topics.schema_ids(polled), chunk.stamp)
        self._buffer(list(in_runs(polled)), chunk.stamp, (chunk.partition,) if chunk.shed else ())

    def cut_again(self, cut: Cut) -> StreamBatch:
        """The batch that the journal says was cut. Raises CheckpointError if there is too little
        for it."""
        waiting = self.batcher.operations
        if waiting < cut.operations:
            raise CheckpointError(
                f"the journal cuts {cut.operations} operations, but only {waiting} are waiting: "
                "the source has changed; start a new checkpoint"
            )
        self.taken += cut.operations
        batch = self.batcher.take(cut.operations, cut.operations)
        self.flush_letters()
        return batch

    def ends(self, positions: Mapping[Partition, Position]) -> dict[Partition, int]:
        """Where the source is read from next: after what is buffered, elsewhere at `positions`."""
        ends = {partition: position.offset for partition, position in positions.items()}
        return ends | {piece.partition: piece.last + 1 for piece in self.batcher.pieces}

    def skip(self, gap: Gap) -> None:
        """Forget the last record read if it lies in a gap: nothing can be compared with it."""
        found = self.fingerprints.get(gap.partition)
        if found is not None and found.offset < gap.stop:
            del self.fingerprints[gap.partition]


class Backlog:
    """Which queries are told to come back later, because too many wait in `source`.

    Queries wait in the log, where they cost no memory, and are answered in order. If more arrive
    than can be answered, all would be answered late, most after their clients have given up. So
    while too many wait, those read are refused instead, which is quick, until the queue is short
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

    def note(self, pieces: Iterable[BufferedRows]) -> None:
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
