"""A dry run: counts what a pipeline would do with a stream. Nothing leaves, and nothing is written
anywhere: no reply, no dead letter, no journal, no checkpoint.

Idea: it is a pipeline without a place to write to, whose batches are cut by its own code, so the
counts are those of a real run that begins at the same place. What a window would expire depends on
everything before, so with a window its batches are applied to a graph in memory, too. A real run
also cuts batches by age, and an edge that is seen again in the batch that would have expired it
stays. So where a stream is slow, or stops between two runs, a real run may count a few more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

import lpma
from lpma.batch.columns import UPDATES

from ..formats.kinds import WORDS
from ..settings import Settings
from ..sources.base import Source
from ..state.checkpoint import State
from ..state.stream_state import StreamState
from ..state.table_rows import TableRows
from ..types import Partition
from .batching import StreamBatch
from .pipeline import Pipeline
from .recovery import check_fit, rows_of, schemas_of, vertices_of


class DryRun:
    """Counts what `source` holds from `state` on.

    graph: says which queries it could answer; of nobody else's, since a window changes it.
    settings: those of the pipeline. answers: whether it would have a sink for replies; nothing else
    about sinks matters. judged: how many records are, at the beginning of a stream. checkpoint:
    where schemas of records in Confluent's envelope may be kept already. rows: of tables, where
    `state` remembers some. One thread at a time; `stop` may be called from any.

    Raises PipelineError if a pipeline would not take these together."""

    def __init__(
        self, source: Source, graph: lpma.Graph, settings: Settings, state: State, *, answers: bool,
        judged: int = 0, checkpoint: Path | None = None, rows: TableRows | None = None,
    ) -> None:  # fmt: skip
        check_fit(source, graph, settings)
        nowhere = replace(
            settings, dead_letters=lambda _: None, replies=(lambda _: None) if answers else None,
            results=None, alerts=(),
        )  # fmt: skip
        stream = StreamState(
            source, graph, nowhere, vertices_of(settings, graph), state,
            rows=rows_of(settings, graph) if rows is None else rows,
            schemas=schemas_of(settings, checkpoint, writes=False),
        )  # fmt: skip
        self._pipeline = Pipeline._of(stream, judged)
        self._expired_before = state.expired
        self.source = source
        self.settings = settings
        self.outputs = self._pipeline.outputs
        self.stats = self._pipeline.stats
        self.applied = state.operations  # before this
        self.records = 0
        self.operations = 0  # updates and queries
        self.updates: Counter[str] = Counter()  # by the name of their kind
        self.queries = 0
        self.refused: Counter[str] = Counter()  # queries that would not be answered, by the error
        self._stopping = False

    @property
    def expired(self) -> int | None:
        """The edges that a window would expire; None: there is none."""
        return None if self.settings.window is None else self.stats.expired - self._expired_before

    def run(self, limit: int | None = None, *, follow: bool = False) -> None:
        """Count to the present end, or beyond it with `follow`, until `stop`; at most `limit`
        operations. Raises AllRecordsBad where a pipeline does."""
        while not self._stopping and (limit is None or self.operations < limit):
            left = self.settings.batch_size if limit is None else limit - self.operations
            batch = self._pipeline.intake.next_batch(left, drain=not follow)
            if batch.operations:
                self._pipeline._begin(drain=not follow)
            self._count(batch)
            if self.settings.window is not None:
                self._pipeline._carry_out(batch, asks=False)
            ends = self.source.bounded or not follow
            if not batch.operations and ends and self._pipeline.intake.at_end():
                break
        self._pipeline.check_first_records()
        self._stopping = False

    def stop(self) -> None:
        """Let `run` return after the current batch."""
        self._stopping = True

    def _count(self, batch: StreamBatch) -> None:
        self.operations += batch.operations
        whole = [piece for piece in batch.pieces if piece.ends or piece.counts_rows]
        self.records += sum(piece.last - piece.offset + 1 for piece in whole)
        counts = np.bincount(batch.columns.kind, minlength=max(UPDATES) + 1).tolist()
        self.updates += Counter({WORDS[kind]: counts[kind] for kind in UPDATES})
        self.queries += len(batch.queries)
        self.refused.update(asked.refusal.error for asked in batch.queries if asked.refusal)

    def lag(self) -> dict[Partition, int]:
        """Records that were not read, by partition; empty for a file. The source is asked."""
        places = self.source.positions()
        ends = self.source.end_offsets()
        return {p: max(0, end - places[p]) for p, end in ends.items() if p in places}
