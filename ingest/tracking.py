"""Figures of the graph that a pipeline keeps up to date after every batch: `Pipeline(track=…)`.

Idea: after each batch an `algorithms.Tracker` follows the change. What it returns never changes
afterwards, so the newest values are handed to other threads as they are, and whoever wants a total
makes it there: the stream pays for the update alone. `begin` asks the graph what changed, and
`update` needs it no longer, so that may go on beside the next batch (`following.py`).

    core         the largest core number
    triangles    how many
    components   how many with two vertices or more
    butterflies  how many, in a graph of two sides
    pagerank     the largest rank

All but the ranks are exact; `algorithms.tracker.pagerank` states the error of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of

from .errors import PipelineError

FIGURES = ("core", "triangles", "components", "butterflies", "pagerank")
Values = dict[str, Any]  # by figure: an int, or an array that never changes


class Tracked:
    """The figures `names` of `graph`. Raises PipelineError on an unknown one; errors of the tracker
    otherwise. All but `figures` and `version` are for one thread at a time."""

    def __init__(self, graph: Any, names: Sequence[str]) -> None:
        from algorithms import Tracker

        self._names = check_figures(names)
        self._tracker = Tracker(graph, self._names)
        self._newest = self._values()
        self.begun_version = self.version  # of the graph, when an update was last begun

    def begin(self) -> None:
        """Begin to follow the graph's last batches: `update` comes next, by any thread."""
        self.begun_version = self._tracker.begin()

    def update(self) -> None:
        """Follow what was begun."""
        self._tracker.update()
        self._newest = self._values()

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

    >>> from ingest.tracking import check_figures
    >>> check_figures({"triangles", "core"})
    ('core', 'triangles')
    """
    expected = f"some of {', '.join(FIGURES)}"
    given = taken("track", names, expected)
    if not set(given) <= set(FIGURES):
        raise PipelineError(f"track is {given!r}: expected {expected}")
    return tuple(name for name in FIGURES if name in given)


def taken(name: str, given: Any, expected: str) -> tuple[str, ...]:
    """The texts of an iterable, which is gone through once. Raises PipelineError, which says the
    setting's name and what is expected, if it is something else."""
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if found is None or not all(isinstance(text, str) for text in found):
        raise PipelineError(f"{name} is {given if found is None else found!r}: expected {expected}")
    return found
