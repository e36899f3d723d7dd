"""Figures of the graph that a pipeline keeps exact after every batch: `Pipeline(track=…)`.

Idea: after each batch an `algorithms.Tracker` follows the change, in the pipeline's thread. What it
returns never changes afterwards, so the newest values are handed to other threads as they are, and
whoever wants a total makes it there: the stream pays for the update alone.

    core         the largest core number
    triangles    how many
    components   how many with two vertices or more
    butterflies  how many, in a graph of two sides
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from lpma.arrays import to_host

from .errors import PipelineError

FIGURES = ("core", "triangles", "components", "butterflies")


class Tracked:
    """The figures `names` of `graph`. Raises PipelineError on an unknown one; errors of the tracker
    otherwise. All but `figures` and `version` are for the pipeline's thread."""

    def __init__(self, graph: Any, names: tuple[str, ...]) -> None:
        from algorithms import Tracker

        self._names = check_figures(names)
        self._tracker = Tracker(graph, names)
        self._newest = self._read()

    def update(self) -> None:
        """Follow the graph's last batches."""
        self._tracker.update()
        self._newest = self._read()

    def _read(self) -> tuple[int, dict[str, Any]]:
        tracker = self._tracker
        values = {
            "core": lambda: tracker.core_numbers,
            "triangles": lambda: tracker.triangle_count,
            "components": lambda: tracker.components,
            "butterflies": lambda: tracker.butterfly_count,
        }
        return tracker.version, {name: values[name]() for name in self._names}

    @property
    def version(self) -> int:
        """Of the graph, to which `figures` belong."""
        return self._newest[0]

    def figures(self) -> dict[str, int]:
        """The newest totals by name. May be called from any thread."""
        _, values = self._newest
        return {name: _total(name, value) for name, value in values.items()}


def _total(name: str, value: Any) -> int:
    if name == "core":
        return int(value.max()) if len(value) else 0
    if name == "components":
        sizes = np.bincount(to_host(value)) if len(value) else np.zeros(0, int)
        return int((sizes > 1).sum())
    return int(value)


def check_figures(names: Any) -> tuple[str, ...]:
    """The same names. Raises PipelineError on one that is no figure."""
    several = isinstance(names, Collection) and not isinstance(names, str)
    if not several or not all(name in FIGURES for name in names):
        raise PipelineError(f"track is {names!r}: expected some of {', '.join(FIGURES)}")
    return tuple(names)
