"""What a pipeline reports: how far the stream has got, what was counted, how long it took.

Metrics, events, the HTTP service and the command line all read this one object. Every figure may be
read from any thread while the pipeline runs.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque

from lpma.pma.counters import Unchanged

from ..events import log_event
from ..feed.writer import FeedWriter
from ..formats.times import UNITS
from ..results.worker import ResultsWorker
from ..settings import BatchStats, CheckpointFigures
from ..state.checkpoint import Accepted
from ..state.checkpointer import Checkpointer
from ..state.stream_state import Gap, StreamState
from ..timers import Stages
from ..types import Partition
from .batching import StreamBatch
from .outputs import Outputs
from .record_decoder import RecordDecoder
from .windows import bound_of, facts_of, width_of
from .written import WrittenTimes


class PipelineStats:
    """The figures of one pipeline, since it was made or resumed unless they say otherwise."""

    def __init__(
        self,
        stream: StreamState,
        stages: Stages,
        decoder: RecordDecoder,
        outputs: Outputs,
        results: ResultsWorker,
        feed: FeedWriter,
        written: WrittenTimes,
    ) -> None:
        self.stages = stages
        self.history: deque[BatchStats] = deque(maxlen=stream.settings.history)
        self.gaps: list[Gap] = []  # records gone that `resume` skipped, as it was allowed to
        self.journal_loss: str | None = None  # what `resume` gave up of the journal, if allowed to
        self.batches = 0  # applied, those of a replay included
        self.queries = 0  # among their operations
        self.replayed = 0  # operations that `resume` applied again
        self.late_by_window = 0  # edges appended that were outside the window when they came
        self.untimed = 0  # updates without a time of their own, where there is a window
        self.other_units: Counter[str] = Counter()  # times that look to be in it, and not in ms
        self.checkpoints: Checkpointer | None = None  # while checkpoints are taken
        self._stream = stream
        self._decoder = decoder
        self._outputs = outputs
        self._results = results
        self._feed = feed
        self._written = written
        self._since = stream.state.stamp  # ms: the state was that then; 0: not known
        self._unchanged_before = self._unchanged = stream.graph.unchanged
        self._started = time.perf_counter()

    def count(self, batch: StreamBatch, seconds: float, late: int, expired: int) -> None:
        """Count a batch that was applied in so many seconds. late: edges outside the window when
        they came. expired: edges that expired with it."""
        graph = self._stream.graph
        self.late_by_window += late
        self.other_units.update({unit: n for unit, (n, _) in batch.other_units.items()})
        if self._stream.settings.window is not None:
            self.untimed += batch.untimed
        if not batch.operations:
            return
        before, self._unchanged = self._unchanged, graph.unchanged
        self.batches += 1
        self.queries += len(batch.queries)
        self.history.append(
            BatchStats(
                operations=batch.operations,
                queries=len(batch.queries),
                seconds=seconds,
                since_start=time.perf_counter() - self._started,
                total_operations=self.operations,
                version=graph.version,
                num_edges=graph.num_edges,
                density=graph.density,
                time=batch.stamp,
                unchanged=self._unchanged.since(before),
                expired=expired,
            )
        )

    def tell_units(self, batch: StreamBatch) -> None:
        """Say, once each, which times of a batch look to be in another unit than ms. A file says it
        when it is read."""
        for unit, (_, first) in batch.other_units.items():
            if unit not in self.other_units and not self._stream.source.bounded:
                advice = (
                    f"times such as {first} look like {UNITS[unit][1]} since 1970, and are taken "
                    "as milliseconds: declare the unit, as in "
                    f"Fields(…, time_unit={unit!r}), with a new checkpoint, unless they are right"
                )
                log_event("other unit", logging.WARNING, example=first, unit=unit, advice=advice)

    @property
    def absent_fields(self) -> Counter[str]:
        """Records without a field that the mapping names and none had, by "topic: field", since
        this start, once that was told."""
        return self._decoder.reader.fields.counts

    @property
    def operations(self) -> int:
        """How many were applied since the stream began."""
        return self._stream.state.operations

    @property
    def unchanged(self) -> Unchanged:
        """The operations that changed nothing, by why."""
        return self._unchanged.since(self._unchanged_before)

    @property
    def duplicates(self) -> int:
        """Records dropped because their source had sent them before."""
        return self._decoder.reader.duplicates

    @property
    def skipped(self) -> Counter[str]:
        """Records of Debezium that are about no row, by what they are: "tombstone", "heartbeat",
        "transaction", "schema change" or "message"."""
        return Counter(self._decoder.reader.topics.skipped)

    @property
    def expired(self) -> int:
        """The edges that expired since the stream began, by a window or by an expiry in the
        stream."""
        return self._stream.state.expired

    @property
    def accepted(self) -> tuple[Accepted, ...]:
        """What was given up since the stream began, because whoever runs it accepted the loss."""
        return self._stream.state.accepted

    @property
    def expired_before(self) -> int | None:
        """The window's bound: edges of an earlier time have expired. None: there is no window, or
        nothing has moved it yet."""
        width = width_of(self._stream.settings.window)
        return bound_of(self._stream.state.window_newest, width)

    def window_facts(self) -> dict[str, int | str | None] | None:
        """The window, its bound, how many edges were outside of it when they came, and how many
        updates had no time of their own; None: there is no window."""
        settings, newest = self._stream.settings, self._stream.state.window_newest
        found = facts_of(width_of(settings.window), settings.window_time, newest)
        return found and {**found, "late": self.late_by_window, "untimed": self.untimed}

    def lag(self) -> dict[Partition, int]:
        """Records between the last one applied and the end of each partition, as far as the source
        knows its ends without asking; empty for a file."""
        applied, ends = self._stream.state.positions, self._stream.source.known_ends()
        return {p: max(0, end - applied[p].offset) for p, end in ends.items() if p in applied}

    def lag_seconds(self) -> dict[Partition, float]:
        """How long the first record that is not applied has waited, by partition and by when its
        source says that it was written; 0.0 where none waits. Of records that were not read yet,
        since when the last one before them was written, or what the graph began with."""
        now, written, found = self._stream.settings.clock(), self._written, {}
        self._since = self._since or now  # of a new stream, when it was first asked about
        for p, records in self.lag().items():
            since = written.waiting.get(p) or written.applied.get(p) or self._since
            found[p] = max(0, now - since) / 1000 if records else 0.0
        return found

    @property
    def checkpoint_figures(self) -> CheckpointFigures | None:
        """Of the last checkpoint that this pipeline committed; None before there is one."""
        return None if self.checkpoints is None else self.checkpoints.figures

    @property
    def checkpoint_age(self) -> float | None:
        """Seconds since the last checkpoint was taken, or since the start; None without a
        checkpoint directory."""
        return None if self.checkpoints is None else self.checkpoints.age

    def waits_for(self) -> str | None:
        """What the stream waits for besides its source: something that leaves it to be written, or
        a schema registry. None: nothing, or not for long."""
        for publisher in (self._results.publisher, self._feed.publisher):
            if publisher is not None and (trouble := publisher.trouble()) is not None:
                return trouble
        schemas = self._stream.schemas
        return self._outputs.trouble() or (None if schemas is None else schemas.trouble())
