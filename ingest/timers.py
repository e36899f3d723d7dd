"""Where a pipeline's time goes: a clock for each stage of a batch, always on.

Idea: every passage through a stage is counted where it falls among fixed bounds, so that totals,
means and quantiles can be read at any time, by any thread, and nothing has to be kept or fed.
Timing a passage takes under a microsecond; a batch passes each stage a few times.

    poll         waiting for records, and reading them       once a poll
    buffer       decoding, admitting, cutting into batches   once a poll, once a batch
    journal      writing down, syncing                       once a poll, twice a batch
    apply        the graph's own time                        once a batch that asks it anything
    track        figures that are kept exact                 once a batch, if there are any
    results      what changed, found and sent             twice a batch, if asked for
    reply        queries answered, dead letters sent         if there are any
    checkpoint   the time the stream stood still for one     once a checkpoint

Tracking and results may go on beside the stream (`results/worker.py`): then the stream does not
spend all of their time.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

SLOW_S = 5.0  # from which on a delay is told

# Upper bounds of a passage in seconds, the last one open: a histogram of a factor 2 to 2.5.
BOUNDS_S = (
    1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip


def now_ms() -> int:
    """The wall clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


class Stage:
    """The passages through one stage: `with stage:` times one. One thread at a time writes, any may
    read.

    An exception counts as a passage too: its time was spent. A stage does not nest in itself."""

    __slots__ = ("_started", "counts", "last", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0  # in all passages
        self.last = 0.0  # seconds of the newest passage
        self.counts = [0] * (len(BOUNDS_S) + 1)  # passages by the first bound they do not exceed
        self._started = 0.0

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.add(time.perf_counter() - self._started)

    def add(self, seconds: float) -> None:
        """Count a passage that took so long."""
        self.last = seconds
        self.seconds += seconds
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1

    @property
    def passages(self) -> int:
        return sum(self.counts)


class Stages:
    """The stages of one pipeline, since it was made or resumed."""

    def __init__(self) -> None:
        self.poll = Stage()
        self.buffer = Stage()
        self.journal = Stage()
        self.apply = Stage()
        self.track = Stage()
        self.results = Stage()
        self.feed = Stage()
        self.reply = Stage()
        self.checkpoint = Stage()

    def __iter__(self) -> Iterator[tuple[str, Stage]]:
        """(name, stage), in the order a batch passes them."""
        return iter(vars(self).items())

    def seconds(self) -> dict[str, float]:
        """Stage → seconds spent in it."""
        return {name: stage.seconds for name, stage in self}


class Delay:
    """Something that is done again and again, one at a time. clock: in seconds.

    >>> from ingest.timers import Delay
    >>> now = 100.0
    >>> writing = Delay("results are not written", lambda: now)
    >>> with writing.under_way():
    ...     now += 7
    ...     print(writing.said("no broker answers"))
    results are not written for 7 s: no broker answers
    >>> print(writing.said())
    None
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._since: float | None = None

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Within, it is done. What an error ends stays undone, and is told so."""
        self._since = self._clock()
        yield
        self._since = None

    def said(self, why: str | None = None) -> str | None:
        """That it takes long, and why; None if it does not. May be called from any thread."""
        since = self._since
        if since is None or (lasted := self._clock() - since) < SLOW_S:
            return None
        return f"{self._what} for {lasted:.0f} s: {why or 'no answer from where they go'}"
