"""What a pipeline publishes after each batch: changes of its figures, and alerts; or what changed
of its graph, the edge feed (`ingest/feed/`). What is said of results here holds of the feed, too,
but that a run of it begins with the graph as it is.

A *run* of results starts from an empty graph: whoever has read all of it knows every current value.
Its name is in the checkpoint, and so is the place of the last result sent by then. A resume goes on
with the checkpoint's run only if all of this holds:

    a. figures and rules are the same;
    b. the newest result in the place is of this run, at or above what the checkpoint says was told;
    c. it is not above what the checkpoint and its journal make again.

Else the place is empty or another one, lost its end, has another run behind, or the checkpoint is
older than what was told; or a journal was lost, after which versions are made anew. Then another
run begins, and so it does if a file is moved away or cut while the pipeline runs. Of a function
only a and a lost journal can be looked at, and whether the run was told to one before.

Invariants:
1. Results leave after the journal is synced, so a resume makes the same batches, and so the same
   versions and results: see `changes.py`.
2. No checkpoint is taken before the results of its version have left. `published` is ahead of them
   from `make` to the end of `send`.
3. In a place that can be looked at all results behind the first of a run's last stretch are of that
   run, without a gap: a reader that starts over at another run, and drops repeats, knows the
   figures at every version.
4. A run that has nothing to tell when it begins, since all figures are 0, still says that it has
   begun where readers may know the figures of another run. So behind `begin` the newest result in
   such a place is of the run that is told, or there is none.
So after a crash a replay makes again all results that may be missing, and others that were sent;
these have the same run, version and part. Those at or below what the place of the results says it
holds are not sent again. A topic that takes only small records has a version in more parts than
were made, all of them or none: so its last part is never below the last one that was made.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from ..events import log_event
from ..state.checkpoint import NOTHING, Published
from ..timers import Delay
from .changes import Changes
from .figures import check_rules, figures_of
from .forms import RESULTS, Form, Part
from .sinks import opened

if TYPE_CHECKING:
    from lpma.names import Names

    from ..settings import Settings
    from ..state.checkpoint import State


FEED = "changes of the edge feed"


class Content(Protocol):
    """What is published: it turns the values of each version into parts."""

    @property
    def asked(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is published, and by which rules: a run is of one kind."""

    @property
    def memo(self) -> tuple[int, ...]:
        """What a checkpoint keeps beside the graph for `resume`."""

    def resume(self, values: Any, memo: tuple[int, ...], /) -> None:
        """Go on from a version with these values, of which all was made."""

    def to(self, run: str, version: int, time: int, values: Any, /) -> Sequence[Part]:
        """The parts that lead to these values."""

    def none(self, run: str, version: int, time: int, /) -> Part:
        """A part that says that a run begins, where it has nothing else to say."""

    def anew(self) -> Self:
        """The same, for a run that begins."""

    def begun_by(self, newest: Any, values: Any, /) -> tuple[int, ...] | None:
        """The memo to go on with, if the newest part in the place is all of a run that began with
        these very values: its pipeline ended before it had a checkpoint. None if not."""


class Moment(Protocol):
    """A version, and the values that belong to it."""

    @property
    def version(self) -> int: ...
    @property
    def values(self) -> Any: ...


def of_results(
    settings: Settings, names: Names | None, before_retry: Callable[[], object]
) -> Publisher:
    """What publishes the results. REQUIRES: the settings name a place for them."""
    rules, figures = check_rules(settings.alerts, settings.track), figures_of(settings.track)
    return Publisher(Changes(rules, names, figures), settings.results, RESULTS, before_retry)


class Publisher:
    """Publishes the content of one pipeline. Counters are since this start, and may be read from
    any thread. Raises SourceError if the place cannot be used."""

    def __init__(
        self,
        content: Content,
        place: Any,
        form: Form,
        before_retry: Callable[[], object] = lambda: None,
    ) -> None:
        """before_retry: called before results that were not taken are sent again; what it raises,
        `send` raises."""
        self._content = content
        self._what = form.what
        self.named = (
            form.what if form.what == RESULTS.what else FEED
        )  # what is published, in messages
        self._sink = opened(place, form, before_retry)
        self._sending = Delay(f"{form.what} are not written")
        self._held = NOTHING  # the place up to which the sink holds this run's results
        self._replaces = False  # whether a run begins that readers must hear of (invariant 4)
        self.figures = content.asked[0]
        self.published: Published | None = None  # what a checkpoint keeps
        self.records = 0  # sent
        self.rows = 0  # changes and alerts in them
        self.alerts = 0  # rows of alerts
        self.repeats = 0  # records not sent again, because they were there
        self.waiting = 0  # records that the sink was given and has not taken yet
        self.begun = ""  # why a run began anew; "": it did not

    def begin(
        self,
        before: Published | None,
        state: State,
        tracked: Moment,
        *,
        resumes: bool,
        anew: str = "",
    ) -> bool:
        """Go on with the run that was published `before`, or begin one (`anew`: in any case, and
        why), which tells all that the graph holds; whether one was begun. REQUIRES: state and
        tracked are of one version. After a replay `is_behind` says whether one must begin after
        all."""
        why: str | None = anew
        newest = None if anew else self._sink.newest()
        if before is not None and not anew:
            why = self._why_not(before, newest)
            if why is None:
                self.published = before
                self._held = NOTHING if newest is None else newest.place
                self._content.resume(tracked.values, before.memo)
                return False
        if newest is None and not anew:
            self._sink.check_alike()
        memo = None
        if newest is not None and before is None:
            why = f"the newest {self._what} in the place are of another stream"
            memo = self._content.begun_by(newest, tracked.values)
        if newest is not None and memo is not None:
            asked, visible = self._content.asked, self._sink.visible
            self.published = Published(newest.run, *asked, visible, 1, newest.place, memo)
            self._held = newest.place
            self._content.resume(tracked.values, memo)
            return True
        # Whoever reads what a function takes can drop what a repeated resume tells it again.
        again = resumes and not self._sink.visible
        name = _next_run(before, state, self._content.asked) if again else os.urandom(8).hex()
        known = self._is_known(before, resumes)
        self._begin_run(name, tracked.version, why or "", replaces=known)
        self.publish(tracked, state.stamp)
        return True

    def _why_not(self, before: Published, newest: Part | None) -> str | None:
        """Why the run cannot be gone on with, as far as it is known before a replay; "" if that
        loses nothing; None if it can."""
        if (before.figures, before.rules) != self._content.asked:
            return "other figures or alerts are asked for"
        if not self._sink.visible:
            return "the place is another one" if before.visible else None
        if newest is not None and newest.run == before.run:
            lost = newest.place < before.last_sent
            return f"the place has lost its newest {self.named}, or was altered" if lost else None
        if before.last_sent == NOTHING:
            return ""
        if newest is None:
            return (
                f"the place holds no {self.named}, but some were sent: was it emptied or altered?"
            )
        newest_are = f"the newest {self.named} in the place are"
        return f"{newest_are} of another run: do two pipelines write there?"

    def _is_known(self, before: Published | None, resumes: bool) -> bool:
        """Whether readers may know figures of a run that was told before."""
        if not self._sink.visible:
            return resumes
        told = before is not None and before.last_sent != NOTHING
        return told or self._sink.newest() is not None

    def _begin_run(self, name: str, version: int, why: str, *, replaces: bool) -> None:
        """Begin a run. replaces: readers may know another one."""
        if why:
            log_event(
                f"{self._what} begin anew", logging.WARNING, why=why, run=name, version=version
            )
        self.begun = why or self.begun
        self.published = Published(name, *self._content.asked, self._sink.visible)
        self._held = NOTHING
        self._replaces = replaces
        self._content = self._content.anew()

    def publish(self, tracked: Moment, time: int) -> None:
        """Send what has changed since the last call. Raises what the sink raises."""
        self.send(self.make([(tracked, time)]))

    def is_behind(self) -> bool:
        """Whether the place holds more of the run than was made: after a replay, that the
        checkpoint is older than what was told."""
        return self.published is not None and self.published.last_sent[0] < self._held[0]

    def make(self, moments: Iterable[tuple[Moment, int]]) -> list[Part]:
        """What has changed since the last call and is not in the place yet, to be sent. moments:
        versions in order, each with its time. REQUIRES: what was made before has left."""
        results: list[Part] = []
        for number, (tracked, time) in enumerate(moments):
            if not number and self._sink.made_anew():
                name = os.urandom(8).hex()
                why = "the file was moved away, or cut"
                self._begin_run(name, tracked.version, why, replaces=True)
            results += self._made(tracked, time)
        self.waiting = len(results)
        return results

    def _made(self, tracked: Moment, time: int) -> list[Part]:
        """What one version changed."""
        published = self.published
        assert published is not None, "begin comes first"
        made = self._content.to(published.run, tracked.version, time, tracked.values)
        if self._replaces and not made:
            made = [self._content.none(published.run, tracked.version, time)]
        self._replaces = False
        results = [result for result in made if result.place > self._held]
        self.repeats += len(made) - len(results)
        told = made[-1].place if made else published.last_sent
        self.published = replace(
            published, records=published.records + len(made), last_sent=told,
            memo=self._content.memo,
        )  # fmt: skip
        return results

    def send(self, results: Sequence[Part]) -> None:
        """Send what `make` made; it is durable when this returns. Raises what the sink raises."""
        if results:
            with self._sending.under_way():
                self._sink.send(results)
            self._count(results)
        self.waiting = 0

    def trouble(self) -> str | None:
        """That results wait to be taken, and why, if they do for long; None if not. May be called
        from any thread."""
        return self._sending.said(self._sink.problem)

    @property
    def sends_beside(self) -> bool:
        """Whether another thread than the pipeline's may send."""
        return self._sink.beside

    def _count(self, results: Sequence[Part]) -> None:
        self.records += len(results)
        self.rows += sum(result.rows for result in results)
        self.alerts += sum(result.rows for result in results if result.alert is not None)

    def close(self) -> None:
        """Close what was opened here."""
        self._sink.close()


def _next_run(
    before: Published | None, state: State, asked: tuple[tuple[str, ...], tuple[str, ...]]
) -> str:
    """The name of a run that begins at this state."""
    parts = (
        before and before.run, *asked, state.identity.cluster, state.version, state.stamp,
        state.operations, len(state.accepted),
    )  # fmt: skip
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
