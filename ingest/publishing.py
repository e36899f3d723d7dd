"""What may be asked of a pipeline's results: the settings `track`, `results` and `alerts`.

track        figures of results
core         core, of every vertex, and max_core, the largest
triangles    triangles
components   components, of two vertices or more
butterflies  butterflies
pagerank     none: values in results are whole numbers
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import PipelineError
from .formats.results import Result
from .rules import Rule, rule_of
from .tracking import taken
from .types import Sink

ResultSink = Sink | tuple[Sink, str] | str | os.PathLike[str] | Callable[[Result], object] | None

_TEXTS = "some texts, as ['core >= 20']"
OF_VERTICES = ("core",)  # the others are totals
UNTOLD = ("pagerank",)  # tracked, and in no result
_TOTALS = {"core": "max_core"}
_OF_CORES = ("core", "max_core")
_MOST_OF_VERTICES, _MOST = 2**31 - 1, 2**64 - 1  # a value of a vertex is an int32


def total_name(tracked: str) -> str:
    """What the total of a tracked figure is called in results."""
    return _TOTALS.get(tracked, tracked)


def figures_of(track: Iterable[str]) -> tuple[str, ...]:
    """The figures that results have if these are tracked.

    >>> from ingest.publishing import figures_of
    >>> figures_of(["core", "triangles"])
    ('core', 'max_core', 'triangles')
    """
    found = []
    for name in track:
        if name in UNTOLD:
            continue
        found += [name] * (name in OF_VERTICES) + [total_name(name)]
    return tuple(found)


def check_rules(texts: Any, track: Sequence[str]) -> tuple[Rule, ...]:
    """The rules that alerts are, each once, in the one order in which alerts leave: that of the
    figures, then of operators and bounds. Raises PipelineError on one that is none, or that can
    never become true."""
    given = taken("alerts", texts, _TEXTS)
    known, examples = figures_of(track), "'core >= 20' or 'triangles > 1e6'"
    rules = {rule_of(text, known, examples) for text in given}
    for rule in rules:
        if not _can_become_true(rule):
            raise PipelineError(
                f"alert '{rule}': it can never become true, for {rule.name} is a whole number from "
                f"0 on, and 0 at first: compare it with another number, as '{rule.name} >= 1'"
            )
    return tuple(sorted(rules, key=lambda r: (known.index(r.name), r.operator, r.bound)))


def _can_become_true(rule: Rule) -> bool:
    """Whether it is true of some values that a figure may have, and false of others. A rule is of
    one mind below its bound, and above: one value of each is asked, and the whole one at it."""
    most = _MOST_OF_VERTICES if rule.name in _OF_CORES else _MOST
    at_bound = min(max(math.floor(rule.bound), 0), most)
    return len({bool(rule.holds_of(value)) for value in (0, at_bound, most)}) == 2


def checked_alerts(results: Any, alerts: Any, track: Sequence[str]) -> tuple[str, ...]:
    """The rules of `alerts` as text. Raises PipelineError if `results` can be no place, or the
    three do not go together."""
    alerts = taken("alerts", alerts, _TEXTS)
    if results is None:
        if alerts:
            raise PipelineError("alerts leave with the results: say where to, as results=log")
        return ()
    pair = isinstance(results, tuple) and len(results) == 2
    sink, topic = results if pair else (results, "")
    is_place = isinstance(sink, Sink) and isinstance(topic, str)
    if not is_place and (pair or not (isinstance(sink, str | os.PathLike) or callable(sink))):
        raise PipelineError(
            f"results is {results!r}: expected a log, a (log, topic) pair, a path or a function"
        )
    if "" in (sink, topic if pair else None):
        raise PipelineError(f"results is {results!r}: a name is missing")
    if not figures_of(track):
        raise PipelineError("results are of tracked figures: name some, as track=['core']")
    return tuple(map(str, check_rules(alerts, track)))
