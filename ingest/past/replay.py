"""A stream taken again from a checkpoint to a place in its past, in silence.

Idea: a resume builds the batches of the first run from the journal. So does this, with the same
code; it only stops sooner, and nothing leaves: queries are not asked, no reply and no dead letter
is written. The version rises all the same for a batch of queries alone, as it did then.

A version is a whole batch. A time may lie within one: then the operations up to it are applied as a
batch of their own, whose version is that of the batch they were part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import lpma

from ..events import LetterEvents
from ..pipeline import recovery
from ..pipeline.batching import StreamBatch
from ..pipeline.pipeline import Pipeline
from ..settings import Settings
from ..sources.base import Source
from ..state.checkpoint import State
from ..state.journal import Chunk, Entry
from ..state.stream_state import StreamState


class Silence(LetterEvents):
    """Logs nothing: what became a dead letter was logged when it did."""

    def note(self, kind: str, topic: str, partition: int, offset: int, reason: str) -> None:
        pass


def settings_of(state: State) -> Settings:
    """What decides how records become batches, as a checkpoint has it; nothing leaves."""
    kept = state.record_settings.kept({})
    own = Settings(**kept, replies=_nowhere, dead_letters=_nowhere, history=0)
    return recovery.with_query_rules_of(own, state)


def _nowhere(_: object) -> None:
    """Takes what would leave."""


class Replay:
    """Takes a graph on from the checkpoint whose state this is. REQUIRES: the source and the graph
    stand there; the graph has its names, if the stream has."""

    def __init__(self, source: Source, graph: lpma.Graph, state: State) -> None:
        settings = settings_of(state)
        recovery.check_fit(source, graph, settings)
        opened = recovery.opened(state, source)
        self._stream = StreamState(source, graph, settings, graph.names, opened)
        self._pipeline = Pipeline._of(self._stream)
        self._pipeline.outputs.events = Silence()
        self.replayed = 0  # operations

    @property
    def state(self) -> State:
        """Where the stream stands now."""
        return self._stream.state

    def to_version(self, version: int, entries: Iterable[Entry]) -> None:
        """Apply whole batches until the graph has this version, or the entries end. Raises
        OffsetError, RewrittenError, CheckpointError as `recovery.replayed`."""
        for batch in self._replayed(entries):
            self._apply(batch)
            if self._stream.graph.version >= version:
                return

    def to_time(self, time_ms: int, entries: Iterable[Entry]) -> None:
        """Apply what the entries buffered up to this stamp. Raises as `to_version`."""
        for batch in self._replayed(self._up_to(time_ms, entries)):
            self._apply(batch)
        waiting = self._pipeline.intake.batcher
        rest = waiting.take(waiting.operations, waiting.operations)
        if rest.operations:
            self._apply(rest)

    def _up_to(self, time_ms: int, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The entries without later records, up to the first batch that held one of these."""
        is_later = False
        for entry in entries:
            if isinstance(entry, Chunk):
                is_later = is_later or entry.stamp > time_ms
                if not is_later:
                    yield entry
            elif is_later and entry.operations > self._pipeline.intake.batcher.operations:
                return
            else:
                yield entry

    def _replayed(self, entries: Iterable[Entry]) -> Iterator[StreamBatch]:
        return recovery.replayed(self._stream.source, self._pipeline.intake, entries)

    def _apply(self, batch: StreamBatch) -> None:
        """As a run does, but for the queries. What the batch does to a window depends on them,
        too."""
        self._pipeline._carry_out(batch, asks=False)
        self.replayed += batch.operations
