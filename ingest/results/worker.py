"""Tracked figures and their results, computed and sent beside the batches that come after.

`Pipeline.run` waits for neither before it goes on. There, and only there, up to three batches are
under way, each at a place of its own:

    stream     receive, decode, cut, apply 9; begin to follow it
    figures    finish following 8, and find which figures changed
    results    sync the journal; send those of 7

Figures and results each have a thread, which takes one batch at a time, in order. Where a device
follows the figures, the stream's own thread finishes that, after it has applied the next batch or
when there is none (`DeferredTask`). What is handed on never changes. So the results are those of a
pipeline that waits, and whatever is slow holds the stream back. `Pipeline.step` waits for both, and
so do checkpoints, the end of `run`, and a replay. Where results go to a function, the pipeline's
own thread calls it, and waits.

Invariants, beside those of `pipeline/pipeline.py`:
1. Results of a version are made after those of the version before have left.
2. An error beside the stream stops it: at the next step, and before a checkpoint is taken. Nothing
   is sent after what could not be sent.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from ..state.stream_state import StreamState
from ..timers import Stages
from .figures import Tracked
from .forms import Part
from .publisher import Publisher, of_results


class BackgroundTask:
    """Calls, one after another, in a thread of their own. After a failure no other call begins, and
    every method but `close` raises its error: what follows may depend on the call. Calls are begun
    by one thread at a time; any thread may look and wait."""

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(1, name)
        self._call: Future[None] | None = None  # the last one

    def begin(self, call: Callable[[], None]) -> None:
        """Begin a call, once the one before has ended."""
        self.wait()
        self._call = self._worker.submit(call)

    def look(self, idle: bool) -> None:
        """Raise what the last call raised, if it has ended. idle: the caller has nothing to do."""
        call = self._call
        if call is not None and call.done():
            call.result()

    def wait(self) -> None:
        """Wait until the last call has ended."""
        call = self._call
        if call is not None:
            call.result()

    def close(self) -> None:
        """End the thread, after the last call. What that raised is dropped."""
        with suppress(BaseException):
            self.wait()
        self._worker.shutdown()


class DeferredTask(BackgroundTask):
    """The same in the caller's thread: a call takes place when it is waited for, or when the caller
    is idle. For what a device does, without a thread of the host: another thread would only compete
    for the interpreter, which each gives up at every launch, and take half as long again."""

    _deferred: Callable[[], None] | None = None
    _error: BaseException | None = None

    def begin(self, call: Callable[[], None]) -> None:
        self.wait()
        self._deferred = call

    def look(self, idle: bool) -> None:
        if idle or self._error is not None:
            self.wait()

    def wait(self) -> None:
        if self._error is not None:
            raise self._error
        call, self._deferred = self._deferred, None
        if call is not None:
            try:
                call()
            except BaseException as error:
                self._error = error
                raise

    def close(self) -> None:
        self._deferred = None
        super().close()


class ResultsWorker:
    """Follows the figures of `stream` and publishes what changed. sync: makes the journal durable;
    called by any thread."""

    def __init__(self, stream: StreamState, stages: Stages, sync: Callable[[], None]) -> None:
        self.tracked: Tracked | None = None  # of the setting `track`, from the first step on
        self.publisher: Publisher | None = None  # of the setting `results`
        self.runs_on = False  # whether the stream goes on without waiting
        self._stream = stream
        self._stages = stages
        self._sync = sync
        self._figures = BackgroundTask("lpma-figures")
        self._sending = BackgroundTask("lpma-results")

    def begin(self, *, resumes: bool, anew: str = "") -> bool:
        """Let results leave from this state on; whether they start over from nothing. anew: why
        they have to; "": only if they must."""
        stream = self._stream
        if stream.settings.results is None:
            stream.update(published=None)  # a run has no gaps
            return False
        self.track()
        assert self.tracked is not None
        if self.publisher is None:
            self.publisher = of_results(stream.settings, stream.vertices, self._sync)
        begun = self.publisher.begin(
            stream.state.published, stream.state, self.tracked, resumes=resumes, anew=anew
        )
        stream.update(published=self.publisher.published)
        return begun

    def track(self) -> None:
        """Bring the tracked figures up to date; the first time, compute them."""
        graph, names = self._stream.graph, self._stream.settings.track
        if not names:
            return
        with self._stages.track:
            if self.tracked is None:
                self.tracked = Tracked(graph, names)
                if self.tracked.on_device:
                    self._figures = DeferredTask("lpma-figures")
            elif self.tracked.begun_version != graph.version:
                self.tracked.begin()
                self.tracked.update()

    def follow(self, stamp: int) -> None:
        """Track and publish what the batch just applied has changed, if one was."""
        stream, tracked, publisher = self._stream, self.tracked, self.publisher
        if tracked is None:
            self.track()
            return
        if tracked.begun_version == stream.graph.version:
            return  # nothing was applied
        stamp = max(stamp, stream.state.stamp)
        if self.runs_on and (publisher is None or publisher.sends_beside):
            self._figures.wait()
            tracked.begin()
            self._figures.begin(partial(self._update, tracked, stamp))
            return
        self.track()
        if publisher is not None:
            with self._stages.journal:
                self._sync()
            with self._stages.results:
                publisher.publish(tracked, stamp)
            stream.update(published=publisher.published)

    def _update(self, tracked: Tracked, stamp: int) -> None:
        """Beside the stream: finish following a batch, and have its results sent."""
        with self._stages.track:
            tracked.update()
        if self.publisher is None:
            return
        self._sending.wait()  # invariant 1
        with self._stages.results:
            made = self.publisher.make([(tracked, stamp)])
        if made:
            self._sending.begin(partial(self._send, self.publisher, made))

    def _send(self, publisher: Publisher, made: list[Part]) -> None:
        """In the thread of the results: the journal first (invariant 3 of the pipeline). That may
        sync what the stream has written since, too."""
        self._sync()
        with self._stages.results:
            publisher.send(made)

    def look(self, idle: bool) -> None:
        """Before a step: raise what failed since (invariant 2), and finish what was deferred until
        the stream is idle."""
        self._figures.look(idle)
        self._sending.look(idle)

    def settle(self) -> None:
        """Wait until figures and results are those of the last batch. Raises what failed."""
        self._figures.wait()
        self._sending.wait()
        if self.publisher is not None:
            self._stream.update(published=self.publisher.published)

    def close(self) -> None:
        """Finish what is under way, and release the threads and the place of the results."""
        self._figures.close()
        self._sending.close()
        if self.publisher is not None:
            self.publisher.close()
