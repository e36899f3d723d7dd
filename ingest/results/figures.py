"""Figures that a pipeline keeps up to date after every batch, and rules that compare them.

Idea: after each batch an `algorithms.Tracker` follows the change. What it returns never changes
afterwards, so other threads get the newest values as they are, and whoever wants a total computes
it there: the stream pays for the update alone. `begin` asks the graph what changed; `update` does
not need the graph, so it may run beside the next batch (`worker.py`).

    track        total                                       in results
    core         the largest core number                     core, of every vertex, and max_core
    triangles    how many                                    triangles
    components   how many with two vertices or more          components
    butterflies  how many, in a bipartite graph              butterflies
    pagerank     the largest rank                            none: values there are whole numbers

All but the ranks are exact; `algorithms.tracker.pagerank` states their error.

    rule := NAME OP NUMBER
    OP   := > | >= | < | <= | == | !=        NUMBER: a number, true or false

Rules are read in two places, each with its own names: by whoever watches a service
(`service/sampling.py`), and by the alerts that leave a stream with its results.
"""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of
from lpma.errors import SnapshotTooLarge

from ..errors import PipelineError
from ..formats.results import Result
from ..types import Sink

FIGURES = ("core", "triangles", "components", "butterflies", "pagerank")
Values = dict[str, Any]  # by figure: an int, or an array that never changes
ResultSink = Sink | tuple[Sink, str] | str | os.PathLike[str] | Callable[[Result], object] | None

OF_VERTICES = ("core",)  # the others are totals
UNTOLD = ("pagerank",)  # tracked, and in no result
_TOTALS = {"core": "max_core"}
_OF_CORES = ("core", "max_core")
_MOST_OF_VERTICES, _MOST = 2**31 - 1, 2**64 - 1  # a value of a vertex is an int32
_TEXTS = "some texts, as ['core >= 20']"

_OPERATORS: dict[str, Callable[[Any, float], Any]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_RULE = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*")
_WORDS = {"true": 1.0, "false": 0.0}


class Tracked:
    """The figures `names` of `graph`. Raises PipelineError on an unknown one; errors of the tracker
    otherwise. All but `figures` and `version` are for one thread at a time."""

    def __init__(self, graph: Any, names: Sequence[str]) -> None:
        from algorithms import Tracker

        self._names = check_figures(names)
        self._graph = graph
        with self._rows_for_all_ids():
            self._tracker = Tracker(graph, self._names)
        self._newest = self._values()
        self.begun_version = self.version  # of the graph, when an update was last begun

    def begin(self) -> None:
        """Begin to follow the graph's last batches: `update` comes next, by any thread."""
        with self._rows_for_all_ids():
            self.begun_version = self._tracker.begin()

    def update(self) -> None:
        """Follow what was begun."""
        with self._rows_for_all_ids():
            self._tracker.update()
        self._newest = self._values()

    @contextmanager
    def _rows_for_all_ids(self) -> Iterator[None]:
        """Say in the stream's words that one id is too large for what is tracked."""
        try:
            yield
        except SnapshotTooLarge:
            raise SnapshotTooLarge(
                f"track: figures have a row for each id up to the largest, and that is now "
                f"{self._graph.num_rows - 1:,}: go on without track, or read the stream anew with "
                "names=True"
            ) from None

    @property
    def on_device(self) -> bool:
        """Whether a device follows the graph, from `begin` on."""
        return self._tracker.on_device

    def _values(self) -> tuple[int, Values]:
        tracker = self._tracker
        return tracker.version, {name: tracker._value(name) for name in self._names}

    @property
    def version(self) -> int:
        """Of the graph, to which `figures` belong."""
        return self._newest[0]

    @property
    def values(self) -> Values:
        """The newest values by name, as the tracker has them."""
        return self._newest[1]

    def figures(self) -> dict[str, int | float]:
        """The newest totals by name. May be called from any thread."""
        return {
            name: float(_largest(value)) if name == "pagerank" else total_of(name, value)
            for name, value in self.values.items()
        }


def _largest(values: Any) -> Any:
    """The largest of an array, 0 if it is empty."""
    with device_of(values):
        return values.max().item() if len(values) else 0


def total_of(name: str, value: Any) -> int:
    """The total that a value of figure `name` comes to, which is a whole number."""
    if name == "core":
        return int(_largest(value))
    if name == "components":
        return _num_connected(value)
    return int(value)


def _num_connected(labels: Any) -> int:
    """How many components have two vertices or more: those that some vertex other than its label
    belongs to."""
    xp = array_module(labels)
    with device_of(labels):
        others = labels[(labels != xp.arange(len(labels), dtype=labels.dtype)) & (labels >= 0)]
        is_label = xp.zeros(len(labels), np.uint8)
        is_label[others] = 1
        return int(is_label.sum(dtype=np.int64))


def check_figures(names: Any) -> tuple[str, ...]:
    """The same names, each once, in the order of `FIGURES`: in what order they were given makes no
    difference. Raises PipelineError on one that is no figure.

    >>> from ingest.results.figures import check_figures
    >>> check_figures({"triangles", "core"})
    ('core', 'triangles')
    """
    expected = f"some of {', '.join(FIGURES)}"
    given = taken("track", names, expected)
    for name in given:
        if name not in FIGURES:
            near = get_close_matches(name, FIGURES, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise PipelineError(f"track: {name!r} is no figure: {hint}expected {expected}")
    return tuple(name for name in FIGURES if name in given)


def taken(name: str, given: Any, expected: str) -> tuple[str, ...]:
    """The texts of an iterable, which is gone through once. Raises PipelineError, which says the
    setting's name and what is expected, if it is something else."""
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if found is None or not all(isinstance(text, str) for text in found):
        raise PipelineError(f"{name} is {given if found is None else found!r}: expected {expected}")
    return found


# Rules --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    operator: str
    bound: float

    def __str__(self) -> str:
        """One way of writing it: figure, operator and bound, to 15 digits."""
        return f"{self.name} {self.operator} {self.bound:.15g}"

    def holds_of(self, value: Any) -> Any:
        """Whether it is true of a value; of each value, if this is an array."""
        return _OPERATORS[self.operator](value, self.bound)

    def holds(self, figures: Mapping[str, Any]) -> bool:
        """Whether it is true of these figures. One that is not known makes no rule true."""
        value = figures.get(self.name)
        return value is not None and bool(self.holds_of(float(value)))


def rule_of(text: str, known: Iterable[str], examples: str) -> Rule:
    """The rule that a text says, of one of the `known` names. Raises PipelineError, which gives the
    `examples`.

    >>> from ingest.results.figures import rule_of
    >>> rule = rule_of("core >= 20", ["core"], "'core >= 20'")
    >>> rule.holds_of(20), rule.holds({"core": 19})
    (True, False)
    """
    names = tuple(known)
    match = _RULE.fullmatch(text)
    if match is None or match[1] not in names:
        raise PipelineError(
            f"alert {text!r}: write NAME OP NUMBER, as {examples}; names are "
            f"{', '.join(names) or 'those of tracked figures, but none is tracked'}"
        )
    try:
        bound = _WORDS[match[3]] if match[3] in _WORDS else float(match[3])
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise PipelineError(f"alert {text!r}: {match[3]!r} is not a number, true or false")
    bound = float(f"{bound + 0.0:.15g}")  # as the rule's text has it; 0 for -0
    return Rule(match[1], match[2], bound)


# Settings -----------------------------------------------------------------------------------


def total_name(tracked: str) -> str:
    """What the total of a tracked figure is called in results."""
    return _TOTALS.get(tracked, tracked)


def figures_of(track: Iterable[str]) -> tuple[str, ...]:
    """The figures that results have if these are tracked.

    >>> from ingest.results.figures import figures_of
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


def check_place(name: str, given: Any) -> None:
    """Raise PipelineError if the setting `name` can be no place for what leaves in parts."""
    pair = isinstance(given, tuple) and len(given) == 2
    sink, topic = given if pair else (given, "")
    is_place = isinstance(sink, Sink) and isinstance(topic, str)
    if not is_place and (pair or not (isinstance(sink, str | os.PathLike) or callable(sink))):
        raise PipelineError(
            f"{name} is {given!r}: expected a log, a (log, topic) pair, a path or a function"
        )
    if "" in (sink, topic if pair else None):
        raise PipelineError(f"{name} is {given!r}: a name is missing")


def checked_alerts(results: Any, alerts: Any, track: Sequence[str]) -> tuple[str, ...]:
    """The rules of `alerts` as text. Raises PipelineError if `results` can be no place, or the
    three do not go together."""
    alerts = taken("alerts", alerts, _TEXTS)
    if results is None:
        if alerts:
            raise PipelineError("alerts leave with the results: say where to, as results=log")
        return ()
    check_place("results", results)
    if not figures_of(track):
        raise PipelineError("results are of tracked figures: name some, as track=['core']")
    return tuple(map(str, check_rules(alerts, track)))
