"""What a pipeline publishes after each batch: changes of its figures, and alerts.

A *run* of results is told from the empty graph on, so that a reader who has met all of it knows the
figures. Its name is in the checkpoint. A run ends where what was told cannot be gone on from: other
figures or rules are asked for, or a journal was lost, after which versions are made anew. Names of
runs follow from the checkpoint, so a resume that is repeated comes to the same ones.

Invariants:
1. Results leave after the journal is synced, so a resume makes the same batches, and so the same
   versions and results: see `changes.py`.
2. No checkpoint is taken before the results of its version have left.
So after a crash a replay makes again all results that may be missing, and others that were sent;
these have the same run, version and part. Those at or below what the place of the results says it
holds are not sent again.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ..formats.results import Result
from ..publishing import check_rules, figures_of
from ..state.published import Published
from .changes import Changes
from .sinks import opened

if TYPE_CHECKING:
    from lpma.names import Names

    from ..settings import Settings
    from ..state.checkpoint import State
    from ..tracking import Tracked


class Publisher:
    """The results of one pipeline. Counters are since this start, and may be read from any thread.
    REQUIRES: the settings name a place for results. Raises SourceError if it cannot be used."""

    def __init__(self, settings: Settings, names: Names | None) -> None:
        rules = check_rules(settings.alerts, settings.track)
        self.figures = figures_of(settings.track)
        self._rules = tuple(str(rule) for rule in rules)
        self._changes = Changes(rules, names)
        self._sink = opened(settings.results)
        self._held = (-1, -1)  # the place up to which the sink holds this run's results
        self.published: Published | None = None  # what a checkpoint keeps
        self.records = 0  # sent
        self.rows = 0  # changes and alerts in them
        self.alerts = 0  # rows of alerts
        self.repeats = 0  # records not sent again, because they were there
        self.waiting = 0  # records that the sink was given and has not taken yet

    def begin(self, state: State, tracked: Tracked, *, resumes: bool, anew: bool = False) -> bool:
        """Go on with the checkpoint's run, or begin one (`anew`: in any case), which tells all that
        the graph holds; whether one was begun. REQUIRES: state and tracked are of one version."""
        before = state.published
        alike = before is not None and (before.figures, before.rules) == (self.figures, self._rules)
        if before is not None and alike and not anew:
            self.published = before
            newest = self._sink.newest()
            if newest is not None and newest.run == before.run:
                self._held = newest.place
            self._changes.since(tracked.values)
            return False
        run = _next_run(state, self.figures, self._rules) if resumes else os.urandom(8).hex()
        self.published = Published(run, self.figures, self._rules)
        newest = self._sink.newest() if resumes else None
        self._held = newest.place if newest is not None and newest.run == run else (-1, -1)
        self._changes = self._changes.anew()
        self.publish(tracked, state.stamp)
        return True

    def publish(self, tracked: Tracked, time: int) -> None:
        """Send what has changed since the last call. Raises what the sink raises."""
        published = self.published
        assert published is not None, "begin comes first"
        made = self._changes.to(published.run, tracked.version, time, tracked.values)
        results = [result for result in made if result.place > self._held]
        self.repeats += len(made) - len(results)
        if results:
            self.waiting = len(results)
            self._sink.send(results)
            self.waiting = 0
            self._count(results)
        self.published = replace(published, records=published.records + len(made))

    def _count(self, results: list[Result]) -> None:
        self.records += len(results)
        self.rows += sum(result.rows for result in results)
        self.alerts += sum(result.rows for result in results if result.alert is not None)

    def close(self) -> None:
        """Close what was opened here."""
        self._sink.close()


def _next_run(state: State, figures: tuple[str, ...], rules: tuple[str, ...]) -> str:
    """The name of a run that begins at this state."""
    before = state.published
    parts = (
        before and before.run, figures, rules, state.identity.cluster, state.version, state.stamp,
        state.operations, len(state.accepted),
    )  # fmt: skip
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
