"""What a pipeline reports: how far the stream has got, what was counted, how long it took.

Every figure may be read from any thread while the pipeline runs.
"""

from __future__ import annotations

import time
from collections import deque

from lpma.pma.counters import Unchanged

from ..results.figures import Tracked
from ..results.publisher import Publisher
from ..settings import BatchStats, CheckpointFigures, Settings
from ..sources.base import KnowsEnds, Source
from ..state.checkpoint import Accepted, State
from ..state.checkpointer import Checkpointer
from ..timers import Stages
from ..types import Mark, Partition, Position, StreamGraph
from .intake import Feed
from .outputs import Outputs
from .record_decoder import Admission
from .recovery import Gap
from .windows import bound_of, facts_of, width_of


class Progress:
    """The figures of one pipeline since it was made or resumed, unless they say otherwise."""

    journal_loss: str | None = None  # what `resume` gave up of the journal, as it was allowed to
    tracked: Tracked | None = None  # the figures of the setting `track`, from the first step on
    results: Publisher | None = None  # of the setting `results`
    outputs: Outputs
    _checkpoints: Checkpointer | None = None
    _admission: Admission
    _feed: Feed

    def __init__(self, source: Source, graph: StreamGraph, settings: Settings, state: State):
        self.source = source
        self.graph = graph
        self.settings = settings
        self.history: deque[BatchStats] = deque(maxlen=settings.history)
        self.gaps: list[Gap] = []  # records gone that `resume` skipped, as it was allowed to
        self.batches = 0  # applied, those of a replay included
        self.queries = 0  # among their operations
        self.replayed = 0  # operations that `resume` applied again
        self.late_by_window = 0  # edges appended that were outside the window when they came
        self.untimed = 0  # updates without a time of their own, where there is a window
        self.stages = Stages()
        self._state = state
        self._unchanged_before = self._unchanged = graph.unchanged
        self._expired = graph.expired
        self._started = time.perf_counter()

    @property
    def operations(self) -> int:
        """How many were applied since the stream began."""
        return self._state.operations

    @property
    def unchanged(self) -> Unchanged:
        """The operations that were applied since this start and changed nothing, by why."""
        return self._unchanged.since(self._unchanged_before)

    @property
    def expired(self) -> int:
        """The edges that expired since the stream began, by a window or by an expiry in the
        stream."""
        return self._state.expired

    @property
    def accepted(self) -> tuple[Accepted, ...]:
        """What was given up since the stream began, because whoever runs it accepted the loss."""
        return self._state.accepted

    @property
    def expired_before(self) -> int | None:
        """The window's bound: edges of an earlier time have expired. None: there is no window, or
        nothing has moved it yet."""
        return bound_of(self._state.window_newest, width_of(self.settings.window))

    def window_facts(self) -> dict[str, int | str | None] | None:
        """The window, its bound, how many edges were outside of it when they came, and how many
        updates had no time of their own, both since this start; None: there is no window."""
        settings = self.settings
        found = facts_of(width_of(settings.window), settings.window_time, self._state.window_newest)
        return found and {**found, "late": self.late_by_window, "untimed": self.untimed}

    def positions(self) -> dict[Partition, Position]:
        """Where each partition would be read from had only the applied batches been read."""
        return dict(self._state.positions)

    def lag(self) -> dict[Partition, int]:
        """Records between the last one applied and the end of each partition, as far as the source
        knows its ends without asking; empty for a file."""
        if not isinstance(self.source, KnowsEnds):
            return {}
        applied = self._state.positions
        ends = self.source.known_ends()
        return {p: max(0, end - applied[p].offset) for p, end in ends.items() if p in applied}

    @property
    def checkpoint_figures(self) -> CheckpointFigures | None:
        """Of the last checkpoint that this pipeline committed; None before there is one."""
        return None if self._checkpoints is None else self._checkpoints.figures

    @property
    def checkpoint_age(self) -> float | None:
        """Seconds since the last checkpoint was taken, or since the start; None without a
        checkpoint directory."""
        return None if self._checkpoints is None else self._checkpoints.age

    def waits_for(self) -> str | None:
        """What the stream waits for, beside its source: that what leaves it is written. None:
        nothing, or not for long. May be called from any thread."""
        results = None if self.results is None else self.results.trouble()
        return results or self.outputs.trouble()

    @property
    def last_read(self) -> dict[Partition, Mark]:
        """The record that was read last of each partition, as far as it is known."""
        return dict(self._feed.marks)

    def knows_producer(self, partition: Partition, source: str) -> bool:
        """Whether this source has sent something to a partition."""
        return self._admission.knows(partition, source)

    def producers_left(self, partition: Partition) -> int:
        """How many more sources of a partition can be remembered; records of others are refused."""
        return self._admission.producers_left(partition)

    @property
    def duplicates(self) -> int:
        """Records dropped since this start because their source had sent them before."""
        return self._admission.duplicates

    def is_repeat(self, partition: Partition, offset: int) -> bool:
        """Whether the record at that place is among the last 10,000 dropped as sent before. May be
        called from any thread."""
        return self._admission.is_repeat(partition, offset)
