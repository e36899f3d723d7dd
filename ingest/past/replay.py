"""A stream taken again from a checkpoint to a place in its past, in silence.

Idea: a resume builds the batches of the first run from the journal. So does this, with the same
code; it only stops sooner, and nothing leaves: queries are not asked, no reply and no dead letter
is written. The version rises all the same for a batch of queries alone, as it did then.

A version is a whole batch. A time may lie within one: then the operations up to it are applied as a
batch of their own, whose version is that of the batch they were part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import lpma
from lpma.batch.columns import Columns, Kind

from ..events import LetterEvents
from ..pipeline import recovery
from ..pipeline.batching import Asked, StreamBatch, updates_of
from ..pipeline.steps import Steps
from ..settings import Settings
from ..sources.base import Source
from ..state.checkpoint import State
from ..state.journal import Chunk, Entry
from ..types import Answer

if TYPE_CHECKING:
    from lpma.engine.answers import Answers


class Silence(LetterEvents):
    """Logs nothing: what became a dead letter was logged when it did."""

    def note(self, kind: str, topic: str, partition: int, offset: int, reason: str) -> None:
        pass


def settings_of(state: State) -> Settings:
    """What decides how records become batches, as a checkpoint has it; nothing leaves."""
    kept = state.record_settings.kept({})
    own = Settings(**kept, replies=_nowhere, dead_letters=_nowhere, history=0)
    return recovery.asking_as(own, state)


def _nowhere(_: object) -> None:
    """Takes what would leave."""


class Replay(Steps):
    """Takes a graph on from the checkpoint whose state this is. REQUIRES: the source and the graph
    stand there; the graph has its names, if the stream has."""

    graph: lpma.Graph

    def __init__(self, source: Source, graph: lpma.Graph, state: State) -> None:
        super().__init__(source, graph, settings_of(state), state, graph.names)
        self.outputs.events = Silence()

    @property
    def state(self) -> State:
        """Where the stream stands now."""
        return self._state

    def to_version(self, version: int, entries: Iterable[Entry]) -> None:
        """Apply whole batches until the graph has this version, or the entries end. Raises
        OffsetError, RewrittenError, CheckpointError as `Feed.replay`."""
        for batch in self._feed.replay(entries):
            self._take(batch)
            if self.graph.version >= version:
                return

    def to_time(self, time_ms: int, entries: Iterable[Entry]) -> None:
        """Apply what the entries buffered up to this stamp. Raises as `to_version`."""
        for batch in self._feed.replay(self._up_to(time_ms, entries)):
            self._take(batch)
        waiting = self._feed.buffer
        rest = waiting.take(waiting.operations, waiting.operations)
        if rest.operations:
            self._take(rest)

    def _up_to(self, time_ms: int, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The entries without later records, up to the first batch that held one of these."""
        is_later = False
        for entry in entries:
            if isinstance(entry, Chunk):
                is_later = is_later or entry.stamp > time_ms
                if not is_later:
                    yield entry
            elif is_later and entry.operations > self._feed.buffer.operations:
                return
            else:
                yield entry

    def _take(self, batch: StreamBatch) -> None:
        self._carry_out(batch)
        self.replayed += batch.operations

    def _apply(
        self, batch: StreamBatch, before: int | None
    ) -> tuple[Answers | Sequence[Answer], Sequence[Asked], float]:
        """As a run does, but for the queries. What the batch does to a window is known by now: it
        depends on them, too."""
        columns = batch.columns
        if batch.queries and len(columns):
            columns = updates_of(columns)
            if not len(columns):  # a query that costs nothing, for the version
                vertex, kind = np.zeros(1, np.uint32), np.full(1, Kind.DEGREE, np.uint8)
                columns = Columns(kind, vertex, vertex, None, np.full(1, batch.stamp, np.int64))
        return super()._apply(replace(batch, columns=columns, queries=()), before)
