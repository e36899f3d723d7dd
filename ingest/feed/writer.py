"""The batches of a pipeline, watched and published as its edge feed beside the stream.

While `Pipeline.run` goes on, parts are made, encoded and sent by a thread of their own, one version
at a time, in order. So a feed that is slower than the stream holds it back, a batch later.
`Pipeline.step` waits, and so do checkpoints, a replay, and a feed that goes to a function.

Invariants: those of `results/worker.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import lpma
from lpma import Watch
from lpma.batch.columns import Columns

from ..events import log_event
from ..formats.changes import MAX_CHANGES_ROWS, GraphFacts
from ..results.forms import CHANGES, CHANGES_IN_ROWS
from ..results.publisher import Publisher
from ..results.worker import BackgroundTask
from ..state.stream_state import StreamState
from ..timers import Stages
from .content import FeedContent, Version, ids_used

FORMS = {"columns": (CHANGES, MAX_CHANGES_ROWS), "json": (CHANGES_IN_ROWS, 1)}


class FeedWriter:
    """Publishes what the batches of `stream` change, if its settings say where to. sync: makes the
    journal durable; called by any thread."""

    def __init__(self, stream: StreamState, stages: Stages, sync: Callable[[], None]) -> None:
        self.publisher: Publisher | None = None
        self.runs_on = False  # whether the stream goes on without waiting
        self._stream = stream
        self._stages = stages
        self._sync = sync
        self._sending = BackgroundTask("lpma-feed")

    def begin(self, *, resumes: bool, anew: str = "") -> bool:
        """Let the feed begin at this state, or go on; whether a run was begun. anew: why one has to
        be; "": only if it must."""
        stream, settings = self._stream, self._stream.settings
        if settings.changes is None:
            if stream.state.fed is not None:
                run, version = stream.state.fed.run, stream.state.version
                log_event("the edge feed ends", logging.WARNING, run=run, version=version)
            stream.update(fed=None)  # a run has no gaps
            return False
        graph = stream.graph
        assert isinstance(graph, lpma.Graph), "recovery.check_fit has seen it"
        if self.publisher is None:
            form, rows = FORMS[settings.changes_format]
            content = FeedContent(GraphFacts.of(graph), stream.vertices, rows)
            self.publisher = Publisher(content, settings.changes, form, self._sync)
        begun = self.publisher.begin(
            stream.state.fed, stream.state, Version.of(graph), resumes=resumes, anew=anew
        )
        stream.update(fed=self.publisher.published)
        return begun

    def watch(self) -> Watch | None:
        """What is to see the next batch applied; None: nothing is published."""
        return None if self.publisher is None else Watch()

    def follow(self, columns: Columns, watch: Watch, stamp: int) -> None:
        """Publish what a batch has changed. REQUIRES: `watch` has seen these columns applied."""
        publisher, stream = self.publisher, self._stream
        assert publisher is not None
        named = 0 if stream.vertices is None else ids_used(columns)
        publish = partial(
            self._publish, publisher, watch, named, max(stamp, stream.state.stamp)
        )  # fmt: skip
        if self.runs_on and publisher.sends_beside:
            self._sending.begin(publish)
            return
        publish()
        stream.update(fed=publisher.published)

    def _publish(self, publisher: Publisher, watch: Watch, named: int, stamp: int) -> None:
        """The journal first (invariant 3 of the pipeline)."""
        with self._stages.feed:
            made = publisher.make(Version(watch.changes, named), stamp)
        if made:
            self._sync()
            with self._stages.feed:
                publisher.send(made)

    def look(self) -> None:
        """Before a step: raise what failed since."""
        self._sending.look(False)

    def settle(self) -> None:
        """Wait until the feed is at the last batch. Raises what failed."""
        self._sending.wait()
        if self.publisher is not None:
            self._stream.update(fed=self.publisher.published)

    def close(self) -> None:
        """Finish what is under way, and release the thread and the place of the feed."""
        self._sending.close()
        if self.publisher is not None:
            self.publisher.close()
