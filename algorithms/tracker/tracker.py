"""Figures of a changing graph, exact after every batch, without starting over.

Idea: `update` asks the graph what changed since the version last seen (`Graph.changes`), merges it
into simple undirected rows that the tracker keeps (`rows`), and hands both states and the changed
edges to the figures. Each brings its value up to date from the changed edges, or recomputes it from
the rows where that is cheaper, by the rule that its module states. Where the graph no longer knows
its changes, rows and figures start over from a snapshot.

    core        tracker.core_numbers    int32[n]   `core`: falls and rises of h-indices
    triangles   tracker.triangle_count  int        `triangles`: counted at the changed edges
    components  tracker.components      int32[n]   `components`: unions, and edges that cut nothing
    butterflies tracker.butterfly_count int        `butterflies`: counted at the changed edges

The graph is read as `connected_components` and the others read a snapshot: undirected, without
loops and repeats, a row for every id up to the largest present.

Threads: one at a time may use a tracker. Others may write to the graph meanwhile: an update
is of one version, that in its record. What a tracker handed out never changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from lpma import BatchError, Graph
from lpma.arrays import device_of, finish

from .butterflies import ButterflyCount
from .components import Components
from .core import CoreNumbers
from .figure import Change, Figure, TrackedRows
from .rows import advance, read_rows
from .triangles import TriangleCount

Array = npt.NDArray[Any]  # or cupy.ndarray

FIGURES: dict[str, Callable[[], Figure]] = {
    "core": CoreNumbers,
    "triangles": TriangleCount,
    "components": Components,
    "butterflies": ButterflyCount,
}


@dataclass(frozen=True)
class UpdatedFigure:
    """How one figure came to its value."""

    name: str
    how: str  # "unchanged", "updated" or "recomputed"
    seconds: float


@dataclass(frozen=True)
class Update:
    """What one update did. Edges are those of the simple undirected graph."""

    version: int  # of the graph, which the figures now are of
    inserted: int | None  # edges; None, as below, where the graph no longer knew
    deleted: int | None
    rows_seconds: float  # reading the changes and merging them, or making rows from a snapshot
    figures: tuple[UpdatedFigure, ...]

    def __getitem__(self, name: str) -> UpdatedFigure:
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise KeyError(name)

    @property
    def seconds(self) -> float:
        return self.rows_seconds + sum(figure.seconds for figure in self.figures)


class Tracker:
    """Keeps figures of a graph: names of "core", "triangles", "components", "butterflies".

    They are computed once at the start, and brought up to date by `update`; in between they stay
    those of `version`. Raises `lpma.BatchError` on a name that is none, and as `Graph.snapshot`
    does where the ids are too large for one."""

    def __init__(self, graph: Graph, figures: Iterable[str]) -> None:
        names = tuple(dict.fromkeys([figures] if isinstance(figures, str) else figures))
        unknown = [name for name in names if name not in FIGURES]
        if unknown or not names:
            wanted = ", ".join(map(repr, FIGURES))
            raise BatchError(f"figures: some of {wanted}, not {unknown or 'none'}")
        self._graph = graph
        self._figures = {name: FIGURES[name]() for name in names}
        self._rows: TrackedRows | None = None  # None: nothing known of an earlier version counts
        self._version = 0
        self.update()

    # -- figures ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the graph that the figures are of."""
        return self._version

    @property
    def core_numbers(self) -> Array:
        """int32[n]: the core number of every vertex, as `algorithms.core_numbers`."""
        return self._value("core")

    @property
    def triangle_count(self) -> int:
        """As `algorithms.triangle_count`."""
        return int(self._value("triangles"))

    @property
    def components(self) -> Array:
        """int32[n]: the smallest vertex of each one's component, −1 for a row that is no vertex, as
        `algorithms.connected_components`."""
        return self._value("components")

    @property
    def butterfly_count(self) -> int:
        """The number of (2, 2)-bicliques, as `algorithms.count_bicliques(s, 2, 2)`."""
        return int(self._value("butterflies"))

    def _value(self, name: str) -> Any:
        if name not in self._figures:
            tracked = ", ".join(map(repr, self._figures))
            raise BatchError(f"{name!r} is not tracked here, only {tracked}: name it at the start")
        return self._figures[name].value

    # -- updating -----------------------------------------------------------------------------

    def update(self) -> Update:
        """Bring all figures to the graph's version now. Raises as `Graph.snapshot` does; after an
        error the next update starts over from a snapshot."""
        start = time.perf_counter()
        # Until all figures have followed, none of what is kept counts: an error leaves it so.
        rows, self._rows = self._rows, None
        known = None if rows is None else advance(self._graph, rows, self._version)
        change = None
        if known is not None:
            change, version = known
            rows = change.after
        else:
            rows, version = read_rows(self._graph)
        with device_of(rows.indptr):
            finish(rows.indptr)
            rows_seconds = time.perf_counter() - start
            figures = tuple(
                _follow(name, figure, change, rows) for name, figure in self._figures.items()
            )
        self._rows, self._version = rows, version
        return Update(
            version,
            None if change is None else change.num_inserted,
            None if change is None else change.num_deleted,
            rows_seconds,
            figures,
        )


def _follow(name: str, figure: Figure, change: Change | None, rows: TrackedRows) -> UpdatedFigure:
    start = time.perf_counter()
    if change is not None and _same(change):
        how = "unchanged"
    elif change is not None and figure.update(change):
        how = "updated"
    else:
        figure.recompute(rows)
        how = "recomputed"
    finish(rows.indptr)  # a result is used from any stream, so it is whole when it is handed out
    return UpdatedFigure(name, how, time.perf_counter() - start)


def _same(change: Change) -> bool:
    before, after = change.before, change.after
    if change.num_changed or before.num_vertices != after.num_vertices:
        return False
    return before is after or bool((before.present == after.present).all())
