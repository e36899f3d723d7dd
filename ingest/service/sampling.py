"""What happens in a pipeline, as events: one reader of its figures for all who watch.

Idea: the pipeline counts and times what it does anyway; this reads the counters from another
thread, joins the batches since the last look into one event, and holds up nothing: it takes no lock
of the graph and asks for no turn.

    batch        since the last one: operations, rate, lag and its trend, latency, size
    checkpoint   one was committed
    letter       records became dead letters
    figures      what the stream keeps up to date (core numbers, triangles, …)
    alert        a rule became true, and was false before: at first all are

Versions do not fall from event to event: figures that the stream has not finished for the version
of the last batch that was told are told with a later one.

The rate is that of the last `RATE_S` seconds, latency that of the batches of the last `LATENCY_S`.
The lag grows if the slope of a line through the last `TREND_S` seconds is above 0 by three standard
errors: batches that come and go do not count.

What a rule is says `ingest/results/figures.py`. Its name is one of `NAMES`, or a figure that the
stream keeps; those are totals here: `core` is the largest core number. The alerts that leave with a
stream's results look at every vertex, after every batch. A figure that is not known, such as the
lag of a file, makes no rule true.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..events import log_event
from ..formats.replies import DeadLetter
from ..results.figures import Rule, rule_of
from ..settings import BatchStats, CheckpointFigures
from ..timers import now_ms

if TYPE_CHECKING:
    from ..pipeline.pipeline import Pipeline

Event = tuple[str, dict[str, Any]]

RATE_S, LATENCY_S, TREND_S = 3.0, 10.0, 30.0
IDLE_S = 1.0  # between two events of a stream in which nothing happens
MOST_LATENCIES = 2000
KEPT_CHECKPOINTS = 100
NEWEST_LETTERS = 5  # told with an event
KEPT_SHARE = 20
SHOWN_BYTES = 64  # of a dead letter
NAMES = (
    "lag", "lag_growing", "lag_per_s", "rate", "checkpoint_age_s", "dead_letters", "median_ms",
    "p99_ms", "edges", "density", "idle_s",
)  # fmt: skip


def parse_rule(text: str, kept: Iterable[str] = ()) -> Rule:
    """The rule that a text says. kept: names of the figures that the stream keeps. Raises
    PipelineError.

    >>> from ingest.service.sampling import parse_rule
    >>> rule = parse_rule("lag > 1000")
    >>> rule.holds({"lag": 1001}), rule.holds({"lag": None})
    (True, False)
    """
    return rule_of(text, (*NAMES, *kept), "'lag > 1000' or 'lag_growing == true'")


class Alerts:
    """Which rules are true, from look to look."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._true: frozenset[Rule] = frozenset()

    def look(self, figures: Mapping[str, Any]) -> list[Rule]:
        """The rules that have become true since the last look."""
        before, now = self._true, [rule for rule in self.rules if rule.holds(figures)]
        self._true = frozenset(now)
        return [rule for rule in now if rule not in before]

    @property
    def true(self) -> list[str]:
        """The rules that were true at the last look, as text."""
        return [str(rule) for rule in self.rules if rule in self._true]


class Sampler:
    """Reads one pipeline. For one thread at a time."""

    def __init__(self, pipeline: Pipeline, rules: Iterable[Rule] = ()) -> None:
        self._pipeline = pipeline
        self.alerts = Alerts(rules)
        self.checkpoints: deque[CheckpointFigures] = deque(maxlen=KEPT_CHECKPOINTS)
        self._seen = pipeline.stats.operations
        self._letters = 0
        self._kept: dict[str, int | float] = {}
        self._kept_version = -1
        self._told_version = -1  # in the last event of batches
        self._kept_due = 0.0
        self._told_at = -math.inf
        self._moved_at = time.monotonic()
        self._lag = Trend()
        self._totals: deque[tuple[float, int]] = deque([(self._moved_at, self._seen)])
        self._latencies: deque[tuple[float, float]] = deque(maxlen=MOST_LATENCIES)

    def look(self) -> list[Event]:
        """What has happened since the last look."""
        now = time.monotonic()
        batches = self._new_batches()
        events = [*self._checkpoint(), *self._dead_letters(), *self._kept_figures()]
        if batches or events or now - self._told_at >= IDLE_S:
            self._told_at = now
            figures = self._figures(now, batches)
            flat = figures | figures["ms"] | self._kept
            flat |= {"median_ms": flat["median"], "p99_ms": flat["p99"]}
            for rule in self.alerts.look(flat):
                value = flat[rule.name]
                log_event("alert", logging.WARNING, rule=str(rule), value=value)
                events.append(("alert", {"rule": str(rule), "value": value, "at": figures["at"]}))
            self._told_version = figures["version"]
            events.append(("batch", figures | {"alerts": self.alerts.true}))
        return events

    def _new_batches(self) -> list[BatchStats]:
        """The batches since the last look, newest first. The pipeline may add some meanwhile: then
        places from the end move on, and a batch is met twice."""
        history, found, place = self._pipeline.stats.history, list[BatchStats](), 1
        before = math.inf
        while place <= len(history):
            batch = history[-place]
            place += 1
            if batch.total_operations <= self._seen:
                break
            if batch.total_operations < before:
                found.append(batch)
                before = batch.total_operations
        if found:
            self._seen = found[0].total_operations
        return found

    def _figures(self, now: float, batches: Sequence[BatchStats]) -> dict[str, Any]:
        """The data of a batch event."""
        pipeline = self._pipeline
        if batches:
            self._moved_at = now
            self._latencies.extend((now, 1000 * batch.seconds) for batch in reversed(batches))
        lags = pipeline.stats.lag()
        lag = sum(lags.values()) if lags else None
        self._lag.add(now, lag)
        history = pipeline.stats.history
        last = batches[0] if batches else history[-1] if history else None
        age = pipeline.stats.checkpoint_age
        return {
            "at": now_ms(),
            "version": pipeline.graph.version if last is None else last.version,
            "time": 0 if last is None else last.time,
            "operations": sum(batch.operations for batch in batches),
            "queries": sum(batch.queries for batch in batches),
            "batches": len(batches),
            "total_operations": pipeline.stats.operations,
            "ms": self._latency(now),
            "edges": None if last is None else last.num_edges,
            "density": None if last is None else round(last.density, 4),
            "lag": lag,
            "lag_growing": self._lag.grows,
            "lag_per_s": round(self._lag.per_s, 1),
            "rate": round(self._rate(now), 1),
            "idle_s": round(now - self._moved_at, 1),
            "checkpoint_age_s": None if age is None else round(age, 1),
            "dead_letters": pipeline.outputs.rejected,
            "ended": pipeline.requests.ended,
        }

    def _rate(self, now: float) -> float:
        totals, total = self._totals, self._pipeline.stats.operations
        totals.append((now, total))
        while len(totals) > 2 and totals[1][0] <= now - RATE_S:
            totals.popleft()
        return (total - totals[0][1]) / max(now - totals[0][0], 0.05)

    def _latency(self, now: float) -> dict[str, float | None]:
        while self._latencies and self._latencies[0][0] < now - LATENCY_S:
            self._latencies.popleft()
        ms = sorted(value for _, value in self._latencies)
        if not ms:
            return {"median": None, "p99": None, "max": None}
        at = {"median": len(ms) // 2, "p99": math.ceil(0.99 * len(ms)) - 1, "max": -1}
        return {name: round(ms[place], 3) for name, place in at.items()}

    def _checkpoint(self) -> list[Event]:
        figures = self._pipeline.stats.checkpoint_figures
        if figures is None or (self.checkpoints and self.checkpoints[-1] == figures):
            return []
        self.checkpoints.append(figures)
        return [("checkpoint", vars(figures))]

    def _dead_letters(self) -> list[Event]:
        outputs = self._pipeline.outputs
        new = outputs.rejected - self._letters
        if not new:
            return []
        self._letters += new
        newest = newest_letters(outputs.kept, min(new, NEWEST_LETTERS))
        reasons = dict(outputs.rejected_by.copy())
        return [("letter", {"count": new, "total": self._letters, "reasons": reasons,
                            "newest": newest, "at": now_ms()})]  # fmt: skip

    def _kept_figures(self) -> list[Event]:
        """What the stream keeps, if that has changed. Totals take a pass over the vertices: not
        before `KEPT_SHARE` times what the last ones took."""
        tracked, now = self._pipeline.tracked, time.monotonic()
        if tracked is None or tracked.version == self._kept_version or now < self._kept_due:
            return []
        if tracked.version < self._told_version:
            return []
        self._kept_version, kept = tracked.version, tracked.figures()
        done = time.monotonic()
        self._kept_due = done + KEPT_SHARE * (done - now)
        if kept == self._kept:
            return []
        self._kept = kept
        return [("figures", {"version": self._kept_version, "figures": kept, "at": now_ms()})]


def newest_letters(kept: deque[DeadLetter], most: int) -> list[dict[str, Any]]:
    """The newest dead letters, the newest first, as JSON. The pipeline may add some meanwhile."""
    found = []
    for place in range(1, most + 1):
        if place > len(kept):
            break
        letter = kept[-place]
        found.append({
            "topic": letter.topic, "partition": letter.partition, "offset": letter.offset,
            "reason": letter.reason, "bytes": letter.size,
            "starts": printable(letter.value[:SHOWN_BYTES]),
        })  # fmt: skip
    return found


def printable(data: bytes) -> str:
    """Bytes as one line of printable characters; others are written as \\x.. or \\u...."""
    text = data.decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class Trend:
    """Whether a figure rises: a line of least squares through its last `TREND_S` seconds."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float]] = deque()
        self.per_s = 0.0
        self.grows = False

    def add(self, now: float, value: float | None) -> None:
        """One more value; at most one for each half second counts."""
        points = self._points
        if value is None or (points and now - points[-1][0] < 0.5):
            return
        points.append((now, float(value)))
        while points[0][0] < now - TREND_S:
            points.popleft()
        self.per_s, error = _slope(points)
        self.grows = len(points) >= 6 and self.per_s > 3 * error and value > 0


def _slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(slope, its standard error); an error beyond all bounds where there are too few points."""
    n = len(points)
    if n < 3:
        return 0.0, math.inf
    mean_x, mean_y = (sum(column) / n for column in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return slope, math.sqrt(rest / (n - 2) / spread)
