"""Tracked figures and their results, beside the batches that come after.

`run` waits for neither before it goes on. So there, and only there, up to three batches are under
way, each in a place of its own:

    stream     receive, decode, cut, apply 9; begin to follow it
    figures    end following 8, and find which figures changed
    results    sync the journal; send those of 7

Figures and results have a thread each, which takes one batch at a time, in order; but where a
device follows the figures, the stream's own thread ends that, after it has applied the next batch,
or when there is none (`background.py`). What is handed on never changes. So the results are those
of a pipeline that waits, and whatever is slow holds the stream back. `step` waits for both, and so
do checkpoints, the end of `run`, and a replay. Where results go to a function, the pipeline's own
thread calls it, and waits.

Invariants, beside those of `steps.py`:
1. Results of a version are made after those of the version before have left.
2. An error beside the stream stops it: at the next step, and before a checkpoint is taken. Nothing
   is sent after what could not be sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..pipeline.stats import Progress
from .background import Lane, Later
from .figures import Tracked
from .publisher import Publisher

if TYPE_CHECKING:
    from lpma.names import Names

    from ..formats.results import Result


class Following(Progress):
    """The part of a pipeline that follows its figures and lets out what changed."""

    vertices: Names | None
    _usable: bool
    _runs_on = False  # whether the stream goes on without waiting

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._figures, self._sending = Lane("lpma-figures"), Lane("lpma-results")

    def _stopped_by_errors(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    # Of one batch ----------------------------------------------------------------------------

    def _track(self) -> None:
        """Bring the tracked figures up to date; the first time, compute them."""
        if not self.settings.track:
            return
        with self.stages.track:
            if self.tracked is None:
                self.tracked = Tracked(self.graph, self.settings.track)
                if self.tracked.on_device:
                    self._figures = Later("lpma-figures")
            elif self.tracked.begun_version != self.graph.version:
                self.tracked.begin()
                self.tracked.update()

    def _follow(self, stamp: int) -> None:
        """7: of the batch that was applied, if there was one."""
        tracked, results = self.tracked, self.results
        if tracked is None:
            self._track()
            return
        if tracked.begun_version == self.graph.version:
            return  # nothing was applied
        stamp = max(stamp, self._state.stamp)
        if self._runs_on and (results is None or results.sends_beside):
            self._figures.wait()
            tracked.begin()
            self._figures.begin(partial(self._follow_beside, tracked, stamp))
            return
        self._track()
        if results is not None:
            with self.stages.journal:
                self._sync_journal()
            with self.stages.results:
                results.publish(tracked, stamp)
            self._state = replace(self._state, published=results.published)

    def _follow_beside(self, tracked: Tracked, stamp: int) -> None:
        """Where figures are followed."""
        with self.stages.track:
            tracked.update()
        if self.results is None:
            return
        self._sending.wait()  # invariant 1
        with self.stages.results:
            made = self.results.make(tracked, stamp)
        if made:
            self._sending.begin(partial(self._send, self.results, made))

    def _send(self, results: Publisher, made: list[Result]) -> None:
        """In the thread of the results: the journal first (invariant 3 of steps.py). It may sync
        what the stream has written since, too."""
        self._sync_journal()
        with self.stages.results:
            results.send(made)

    def _sync_journal(self) -> None:
        if self._feed.journal is not None:
            self._feed.journal.sync()

    # Of the stream ---------------------------------------------------------------------------

    @contextmanager
    def _running_on(self) -> Iterator[None]:
        """Within, the stream need not wait; at the end all has left."""
        self._runs_on = True
        try:
            yield
        finally:
            self._runs_on = False
            if self._usable:
                with self._stopped_by_errors():
                    self._settle()

    def _settle(self) -> None:
        """Wait until figures and results are those of the last batch. Raises what failed."""
        self._figures.wait()
        self._sending.wait()
        if self.results is not None:
            self._state = replace(self._state, published=self.results.published)

    def _look_beside(self) -> None:
        """Before a step: raise what failed since (invariant 2), and end what waits for a moment in
        which nothing comes."""
        idle = not self._feed.flows
        self._figures.look(idle)
        self._sending.look(idle)

    def _begin_results(self, *, resumes: bool, anew: str = "") -> bool:
        """Let results leave from this state on; whether they start over from nothing. `anew`: in
        any case, and why."""
        if self.settings.results is None:
            self._state = replace(self._state, published=None)  # a run has no gaps
            return False
        self._track()
        assert self.tracked is not None
        if self.results is None:
            self.results = Publisher(self.settings, self.vertices, self._sync_journal)
        begun = self.results.begin(self._state, self.tracked, resumes=resumes, anew=anew)
        self._state = replace(self._state, published=self.results.published)
        return begun

    def _close_results(self) -> None:
        """Let go of the threads and of the place, after what is under way."""
        self._figures.close()
        self._sending.close()
        if self.results is not None:
            self.results.close()
