"""The batches of a pipeline, watched and published as its edge feed beside the stream.

While `Pipeline.run` goes on, parts are made, encoded and sent by a thread of their own, in order.
It takes all versions that wait, and syncs and sends them together: so the slower syncs and
transactions are, the more versions share one. `MOST_WAITING` wait at most, so a feed that is slower
than the stream holds it back. `Pipeline.step` waits for its version, and so do checkpoints, a
replay, and a feed that goes to a function.

Invariants: those of `results/worker.py`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import lpma
from lpma import Watch
from lpma.batch.columns import Columns

from ..events import log_event
from ..formats.changes import MAX_CHANGES_ROWS, GraphFacts
from ..results.forms import CHANGES, CHANGES_IN_ROWS
from ..results.publisher import Publisher
from ..state.stream_state import StreamState
from ..timers import Stages
from .content import FeedContent, Version, ids_used

MOST_WAITING = 4  # versions, beside those that are being sent
FORMS = {"columns": (CHANGES, MAX_CHANGES_ROWS), "json": (CHANGES_IN_ROWS, 1)}


class Watched(NamedTuple):
    """A batch that was applied. named: 1 + the largest id that it used; stamp: of its version."""

    watch: Watch
    named: int
    stamp: int


class _Queue:
    """Batches that wait to be published, and the thread that takes them: all that wait, in order.
    After a failure none is taken any more, and every method but `close` raises its error. Used by
    one thread."""

    def __init__(self, publish: Callable[[Sequence[Watched]], None]) -> None:
        self._publish = publish
        self._worker = ThreadPoolExecutor(1, "lpma-feed")
        self._waiting: deque[Watched] = deque()
        self._calls: deque[Future[None]] = deque()  # each takes what it finds; not over yet
        self._error: BaseException | None = None

    def put(self, watched: Watched) -> None:
        """Have a batch published, once no more than MOST_WAITING wait."""
        self.look()
        while len(self._waiting) >= MOST_WAITING:
            self._calls.popleft().result()
        self._waiting.append(watched)
        self._calls.append(self._worker.submit(self._take))

    def _take(self) -> None:
        if self._error is not None:
            raise self._error
        # What is put from now on has a call of its own.
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            if taken:
                self._publish(taken)
        except BaseException as error:
            self._error = error
            raise

    def look(self) -> None:
        """Raise what failed since."""
        while self._calls and self._calls[0].done():
            self._calls.popleft().result()
        if self._error is not None:
            raise self._error

    def wait(self) -> None:
        """Wait until all is published."""
        while self._calls:
            self._calls.popleft().result()
        self.look()

    def close(self) -> None:
        """End the thread, after all that waits. What that raises is dropped."""
        self._worker.shutdown()


class FeedWriter:
    """Publishes what the batches of `stream` change, if its settings say where to. sync: makes the
    journal durable; called by any thread."""

    def __init__(self, stream: StreamState, stages: Stages, sync: Callable[[], None]) -> None:
        self.publisher: Publisher | None = None
        self.runs_on = False  # whether the stream goes on without waiting
        self._stream = stream
        self._stages = stages
        self._sync = sync
        self._sending = _Queue(self._publish)

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
        watched = Watched(watch, named, max(stamp, stream.state.stamp))
        if self.runs_on and publisher.sends_beside:
            self._sending.put(watched)
            return
        self._publish([watched])
        stream.update(fed=publisher.published)

    def _publish(self, watched: Sequence[Watched]) -> None:
        """The journal first (invariant 3 of the pipeline)."""
        publisher = self.publisher
        assert publisher is not None
        with self._stages.feed:
            made = publisher.make((Version(w.watch.changes, w.named), w.stamp) for w in watched)
        if made:
            self._sync()
            with self._stages.feed:
                publisher.send(made)

    def look(self) -> None:
        """Before a step: raise what failed since."""
        self._sending.look()

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
