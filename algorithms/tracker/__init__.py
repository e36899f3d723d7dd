"""Figures of a changing graph that are exact after every batch, without starting over.

Idea: `Tracker.update` asks the graph which edges were touched since the version last seen
(`Graph.touched`). It merges them into simple undirected rows that the tracker keeps (`rows`), and
gives both states and the changed edges to the figures. Each figure updates its value from the
changed edges, or recomputes it from the rows where that is cheaper. The module of each figure
states its rule. If the graph no longer knows its changes, rows and figures start over from a
snapshot.

    core        tracker.core_numbers    int32[n]   `core`: falls and rises of core numbers
    triangles   tracker.triangle_count  int        `triangles`: counted at the changed edges
    components  tracker.components      int32[n]   `components`: unions, and edges that cut nothing
    butterflies tracker.butterfly_count int        `butterflies`: counted at the changed edges

The graph is read as the other algorithms read it: undirected, without loops and repeated edges,
with a row for every id up to the largest present.

Threads: only one thread at a time may use a tracker. Others may write to the graph meanwhile. An
update is of one version of the graph, which its record names. Arrays that a tracker has returned
never change. An update has two halves: `read` asks the graph, and `update` needs it no longer. So
whoever writes to the graph may read in between, and let another thread update while it goes on.

The files: `types` is the seam between the tracker and its figures, `rows` makes the rows, and each
figure has a file of its own. Each of these has a CPU and a CUDA counterpart, named after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from lpma import BatchError, Graph, Snapshot
from lpma.arrays import all_of, device_of, finish
from lpma.cpu.threads import run_all
from lpma.results import TouchedEdges

from .butterflies import ButterflyCount
from .components import Components
from .core import CoreNumbers
from .rows import advance, read, rows_of
from .triangles import TriangleCount
from .types import Change, Figure, Memory, TrackedRows

Array = npt.NDArray[Any]  # or cupy.ndarray

FIGURES: dict[str, Callable[[], Figure]] = {
    "core": CoreNumbers,
    "triangles": TriangleCount,
    "components": Components,
    "butterflies": ButterflyCount,
}


__all__ = ["Tracker", "Update", "UpdatedFigure"]

# On the CPU figures are updated side by side if all but the longest took so many seconds in the
# update before. Below that, handing one over may take longer: on a busy machine, milliseconds.
WORTH_SHARING_S = 0.2e-3


@dataclass(frozen=True)
class UpdatedFigure:
    """How one figure got its value."""

    name: str
    how: str  # "unchanged", "updated" or "recomputed"
    seconds: float


@dataclass(frozen=True)
class Update:
    """What one update did. Edges are those of the simple undirected graph.

    `update["core"]` is the record of one figure."""

    version: int  # of the graph, and now of the figures
    inserted: int | None  # edges; None if the graph no longer knew its changes
    deleted: int | None  # edges; None likewise
    rows_seconds: float  # to read and merge the changes, or to make rows from a snapshot
    figures: tuple[UpdatedFigure, ...]
    seconds: float  # in all; on the CPU figures may be updated side by side

    def __getitem__(self, name: str) -> UpdatedFigure:
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise KeyError(name)


class Tracker:
    """Keeps figures of a graph: some of "core", "triangles", "components" and "butterflies".

    They are computed when the tracker is made, and brought up to date by `update`. In between they
    stay those of `version`. Raises `lpma.BatchError` on an unknown name, or if "butterflies" are to
    be counted in a graph that is not bipartite, and as `Graph.snapshot` does if the ids are too
    large for one.

    >>> import lpma, algorithms
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 1, 2], [1, 2, 0])
    >>> tracker = algorithms.Tracker(graph, ["core", "triangles"])
    >>> tracker.core_numbers, tracker.triangle_count
    (array([2, 2, 2], dtype=int32), 1)
    >>> graph.delete([0], [1])
    >>> record = tracker.update()
    >>> record.deleted, tracker.core_numbers, tracker.triangle_count
    (1, array([1, 1, 1], dtype=int32), 0)
    """

    def __init__(self, graph: Graph, figures: Iterable[str]) -> None:
        names = tuple(dict.fromkeys([figures] if isinstance(figures, str) else figures))
        unknown = [name for name in names if name not in FIGURES]
        if unknown or not names:
            wanted = ", ".join(map(repr, FIGURES))
            raise BatchError(f"figures: some of {wanted}, not {unknown or 'none'}")
        self._graph = graph
        self._figures = {name: FIGURES[name]() for name in names}
        self._rows: TrackedRows | None = None  # None: start over from a snapshot
        self._spare: Memory | None = None  # of the rows before these
        self._shared_s = WORTH_SHARING_S  # what all figures but the longest took
        self._version = 0
        self._read_version: int | None = None  # since which changes are known; None: start over
        self.update()

    # -- figures ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the graph to which the figures belong."""
        return self._version

    @property
    def core_numbers(self) -> Array:
        """int32[n]: the core number of every vertex, as by `algorithms.core_numbers`."""
        return self._value("core")

    @property
    def triangle_count(self) -> int:
        """The number of triangles, as by `algorithms.triangle_count`."""
        return int(self._value("triangles"))

    @property
    def components(self) -> Array:
        """int32[n]: for every vertex the smallest one of its component, as by
        `algorithms.connected_components`; −1 for a row that is no vertex."""
        return self._value("components")

    @property
    def butterfly_count(self) -> int:
        """The number of (2, 2)-bicliques, as by `algorithms.count_bicliques(s, 2, 2)`."""
        return int(self._value("butterflies"))

    def _value(self, name: str) -> Any:
        if name not in self._figures:
            tracked = ", ".join(map(repr, self._figures))
            raise BatchError(f"{name!r} is not tracked here, only {tracked}: name it at the start")
        return self._figures[name].value

    # -- updating -----------------------------------------------------------------------------

    def read(self) -> TouchedEdges | Snapshot:
        """Ask the graph what `update` needs to know, for one call of it: its changes since the last
        `read`, or a snapshot. Raises as `Graph.snapshot` does."""
        found = read(self._graph, self._read_version)
        self._read_version = found.version
        return found

    def update(self, found: TouchedEdges | Snapshot | None = None) -> Update:
        """Bring all figures up to the version of the graph that was `found` by `read`; None: to the
        present one. What was read is given in order, each once, and by any thread.

        Raises as `Graph.snapshot` does, and `lpma.BatchError` if butterflies are tracked and the
        graph is not bipartite. After an error the next update starts over from a snapshot."""
        start = time.perf_counter()
        try:
            return self._update(self.read() if found is None else found, start)
        except BaseException:
            self._read_version = None
            raise

    def _update(self, found: TouchedEdges | Snapshot, start: float) -> Update:
        # Rows are kept only after all figures are up to date, so that an error leaves none.
        rows, self._rows = self._rows, None
        change = None
        if isinstance(found, TouchedEdges):
            assert rows is not None, "an update failed: read again"
            change = advance(rows, found, self._spare)
            rows = change.after
        else:
            rows = rows_of(found)
        with device_of(rows.indptr):
            finish(rows.indptr)
            rows_seconds = time.perf_counter() - start
            calls = [(name, figure, change, rows) for name, figure in self._figures.items()]
            if rows.on_device or self._shared_s < WORTH_SHARING_S:
                figures = [_bring_up_to_date(*call) for call in calls]
            else:
                figures = run_all(_bring_up_to_date, calls)
        if change is not None and change.before.indices is not rows.indices:
            self._spare = change.before.memory
        self._rows, self._version = rows, found.version
        seconds = [figure.seconds for figure in figures]
        self._shared_s = sum(seconds) - max(seconds)
        return Update(
            found.version,
            None if change is None else change.num_inserted,
            None if change is None else change.num_deleted,
            rows_seconds,
            tuple(figures),
            time.perf_counter() - start,
        )


def _bring_up_to_date(
    name: str, figure: Figure, change: Change | None, rows: TrackedRows
) -> UpdatedFigure:
    """Update or recompute a figure. change: None if the changes are not known."""
    start = time.perf_counter()
    if change is not None and _is_nothing(change):
        how = "unchanged"
    elif change is not None and figure.update(change):
        how = "updated"
    else:
        figure.recompute(rows)
        how = "recomputed"
    finish(rows.indptr)  # the caller may use the value on any stream
    return UpdatedFigure(name, how, time.perf_counter() - start)


def _is_nothing(change: Change) -> bool:
    """Whether no edge and no vertex came or went."""
    before, after = change.before, change.after
    if change.num_changed or before.num_vertices != after.num_vertices:
        return False
    return before is after or all_of(before.present == after.present)
