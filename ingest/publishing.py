"""What may be asked of a pipeline's results: the settings `track`, `results` and `alerts`.

track        figures of results
core         core, of every vertex, and max_core, the largest
triangles    triangles
components   components, of two vertices or more
butterflies  butterflies
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import PipelineError
from .formats.results import Result
from .rules import Rule, rule_of
from .types import Sink

ResultSink = Sink | tuple[Sink, str] | str | os.PathLike[str] | Callable[[Result], object] | None

OF_VERTICES = ("core",)  # the others are totals
_TOTALS = {"core": "max_core"}


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
        found += [name] * (name in OF_VERTICES) + [total_name(name)]
    return tuple(found)


def check_rules(texts: Any, track: Sequence[str]) -> tuple[Rule, ...]:
    """The rules that alerts are, each once. Raises PipelineError on one that is none."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise PipelineError(f"alerts is {texts!r}: expected some texts, as ['core >= 20']")
    known, examples = figures_of(track), "'core >= 20' or 'triangles > 1e6'"
    return tuple(dict.fromkeys(rule_of(text, known, examples) for text in texts))


def checked_alerts(results: Any, alerts: Any, track: Sequence[str]) -> tuple[str, ...]:
    """The rules of `alerts` as text. Raises PipelineError if `results` can be no place, or the
    three do not go together."""
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
    if not track:
        raise PipelineError("results are of tracked figures: name some, as track=['core']")
    return tuple(map(str, check_rules(alerts, track)))
