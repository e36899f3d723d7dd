"""A dry run: what a pipeline would do with a stream, counted. Nothing is applied, and nothing is
written anywhere: no reply, no dead letter, no journal, no checkpoint. Where there is a window, the
graph in memory is brought up to date all the same: see `dry_window.py`.

Records pass the pipeline's own admission, so the counts are those of a real run that begins at the
same place, except for queries that are put off under load.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

import lpma
from lpma.batch.columns import Kind

from .admission import Admission
from .batcher import Piece
from .dry_window import DryWindow
from .first_records import FirstRecords
from .formats.fast_rows import coalesce_rows
from .formats.kinds import WORDS
from .queries.sinks import Outputs
from .settings import Settings
from .sources.base import Source
from .starting import check_fit, vertices_of
from .state.checkpoint import State
from .timers import now_ms
from .types import Partition

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
        self.names = settings.names
        self.records = 0
        self.operations = 0  # updates and queries
        self.updates: Counter[str] = Counter()  # by the name of their kind
        self.queries = 0
        self.refused: Counter[str] = Counter()  # queries that would not be answered, by the error
        self.outputs = Outputs(
            None, (lambda reply: None) if answers else None, settings.reply_topics
        )
        self._settings = settings
        self._first = FirstRecords(judged, self.outputs)
        self._admission = Admission(
            graph, self.outputs, settings, vertices, state, first=self._first
        )
        self._stopping = False

    @property
    def duplicates(self) -> int:
        """Records that would be dropped because their source had sent them before."""
        return self._admission.duplicates

    def run(self, limit: int | None = None, *, follow: bool = False) -> None:
        """Count to the present end, or beyond it with `follow`, until `stop`; no further than the
        record that brings the operations to `limit`. Raises AllRecordsBad where a pipeline
        does."""
        while not self._stopping and (limit is None or self.operations < limit):
            polled = self.source.poll(self._settings.poll_records, WAIT_S)
            if not polled and not follow and self.source.at_end():
                break
            stamp = now_ms()
            for record in coalesce_rows(polled) if self._settings.late == "apply" else polled:
                left = None if limit is None else limit - self.operations
                if left is not None and left <= 0:
                    break
                if left is not None and record.offset + left <= record.last:
                    record = record.split(record.offset + left)[0]
                self.records += record.last - record.offset + 1
                for piece in self._admission.pieces(record, stamp):
                    self._count(piece)
            self.outputs.flush()
        self._first.end()
        if self.window is not None:
            self.window.end()
        self._stopping = False

    def stop(self) -> None:
        """Let `run` return after the current records."""
        self._stopping = True

    def _count(self, piece: Piece) -> None:
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
