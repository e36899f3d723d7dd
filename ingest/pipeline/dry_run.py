"""A dry run: counts what a pipeline would do with a stream. Nothing is applied, and nothing is
written anywhere: no reply, no dead letter, no journal, no checkpoint.

Records pass the pipeline's own decoder, so the counts are those of a real run that begins at the
same place, except for queries that are put off under load.

What a window would expire depends on everything before, so only a graph can tell. With a window the
dry run has a graph of its own in memory: batches are cut, applied to it, and expired by the
pipeline's own code. A real run also cuts batches by age, and an edge that is seen again in the
batch that would have expired it stays. So where a stream is slow, or stops between two runs, a real
run may count a few more.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

import lpma
from lpma.batch.columns import Kind

from ..formats.kinds import WORDS
from ..formats.row_reader import in_runs
from ..settings import Settings
from ..sources.base import Source
from ..state.checkpoint import State
from ..state.stream_state import StreamState
from ..timers import now_ms
from ..types import Partition
from .batching import Batcher, BufferedRows, StreamBatch, updates_of
from .outputs import FirstRecords, Outputs
from .record_decoder import RecordDecoder
from .recovery import check_fit, vertices_of
from .windows import facts_of, slide, with_expiry

WAIT_S = 0.1  # for the first record of a poll


class DryRun:
    """Counts what `source` holds from `state` on.

    graph: says which queries it could answer; of nobody else's, since a window changes it.
    settings: those of the pipeline. answers: whether it would have a sink for replies; nothing else
    about sinks matters. judged: how many records are, at the beginning of a stream. One thread at a
    time; `stop` may be called from any.

    Raises PipelineError if a pipeline would not take these together."""

    def __init__(
        self, source: Source, graph: lpma.Graph, settings: Settings, state: State, *, answers: bool,
        judged: int = 0,
    ) -> None:  # fmt: skip
        check_fit(source, graph, settings)
        self.source = source
        self.window: DryWindow | None = None  # what a window would do
        vertices = None
        if settings.window is not None:
            self.window = DryWindow(graph, settings, state)
            vertices = vertices_of(settings, graph)
        self.applied = state.operations  # before this
        self.settings = settings
        self.records = 0
        self.operations = 0  # updates and queries
        self.updates: Counter[str] = Counter()  # by the name of their kind
        self.queries = 0
        self.refused: Counter[str] = Counter()  # queries that would not be answered, by the error
        self.outputs = Outputs(
            None, (lambda reply: None) if answers else None, settings.reply_topics
        )
        self._first = FirstRecords(judged, self.outputs)
        stream = StreamState(source, graph, settings, vertices, state)
        self._decoder = RecordDecoder(stream, self.outputs, self._first)
        self._stopping = False

    @property
    def duplicates(self) -> int:
        """Records that would be dropped because their source had sent them before."""
        return self._decoder.reader.duplicates

    def run(self, limit: int | None = None, *, follow: bool = False) -> None:
        """Count to the present end, or beyond it with `follow`, until `stop`; no further than the
        record that brings the operations to `limit`. Raises AllRecordsBad where a pipeline
        does."""
        while not self._stopping and (limit is None or self.operations < limit):
            polled = self.source.poll_many(self.settings.poll_records, WAIT_S)
            if not polled and not follow and self.source.at_end():
                break
            stamp = now_ms()
            for record in in_runs(polled):
                left = None if limit is None else limit - self.operations
                if left is not None and left <= 0:
                    break
                if left is not None and record.offset + left <= record.last:
                    record = record.split(record.offset + left)[0]
                self.records += record.last - record.offset + 1
                for piece in self._decoder.pieces(record, stamp):
                    self._count(piece)
            self.outputs.flush()
        self._first.end()
        if self.window is not None:
            self.window.end()
        self._stopping = False

    def stop(self) -> None:
        """Let `run` return after the current records."""
        self._stopping = True

    def _count(self, piece: BufferedRows) -> None:
        self.operations += len(piece)
        if self.window is not None:
            self.window.add(piece)
        if piece.query is None:
            counts = np.bincount(piece.columns.kind, minlength=1)
            for kind in np.flatnonzero(counts).tolist():
                self.updates[WORDS[Kind(kind)]] += int(counts[kind])
            return
        self.queries += 1
        if piece.refusal is not None:
            self.refused[piece.refusal.error] += 1

    def lag(self) -> dict[Partition, int]:
        """Records that were not read, by partition; empty for a file. The source is asked."""
        places = self.source.positions()
        ends = self.source.end_offsets()
        return {p: max(0, end - places[p]) for p, end in ends.items() if p in places}


class DryWindow:
    """Applies pieces to `graph`, from `state` on. REQUIRES: the settings have a window, the graph
    keeps times, and vertices of pieces are its ids."""

    def __init__(self, graph: lpma.Graph, settings: Settings, state: State) -> None:
        assert isinstance(settings.window, int)
        self._graph = graph
        self._settings = settings
        self._width = settings.window
        self._newest = state.window_newest
        self._expired_before = graph.expired
        self._batcher = Batcher(
            settings.batch_size, 0, settings.max_queries,
            by_arrival=settings.window_time == "arrival",
        )  # fmt: skip
        self.late = 0  # edges that would be too old when they come
        self.untimed = 0  # updates without a time of their own

    @property
    def expired(self) -> int:
        return self._graph.expired - self._expired_before

    def facts(self) -> dict[str, int | str | None]:
        """As `PipelineStats.window_facts`, and what has no time."""
        found = facts_of(self._width, self._settings.window_time, self._newest)
        assert found is not None
        return {**found, "late": self.late, "untimed": self.untimed}

    def add(self, piece: BufferedRows) -> None:
        """Take in what would be buffered; apply whatever makes a batch."""
        self._batcher.add([piece])
        if piece.query is None and piece.columns.time is None:
            self.untimed += len(piece)
        waiting = self._batcher
        while waiting.operations >= waiting.size or waiting.queries >= waiting.max_queries:
            self._apply(waiting.take(waiting.size, waiting.max_queries))

    def end(self) -> None:
        self._apply(self._batcher.take(self._batcher.size, self._batcher.max_queries))

    def _apply(self, batch: StreamBatch) -> None:
        moved = slide(batch, self._newest, self._width, self._settings.window_time == "arrival")
        columns = updates_of(batch.columns)
        if moved.before is not None:
            columns = with_expiry(columns, moved.before)
        if len(columns):
            self._graph.apply(columns.replace(ids_resolved=self._graph.names is not None))
        self._newest = moved.newest
        self.late += moved.late
