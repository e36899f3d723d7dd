"""Figures of a changing graph, brought up to date after every batch without starting over.

Idea: `Tracker.update` asks the graph which edges were touched since the last version
(`Graph.touched`), merges them into simple undirected rows that it keeps (`rows`), and passes both
states and the changed edges to the figures. Each updates its value from these, or recomputes it
from the rows where that is cheaper, by a rule in its module. If the graph no longer knows its
changes, rows and figures start over from a snapshot.

    core        tracker.core_numbers    int32[n]   `core`: falls and rises of core numbers
    triangles   tracker.triangle_count  int        `triangles`: counted at the changed edges
    components  tracker.components      int32[n]   `components`: unions, and edges that cut nothing
    butterflies tracker.butterfly_count int        `butterflies`: counted at the changed edges
    pagerank    tracker.ranks          float64[n]  `pagerank`: conjugate gradients from the last

All but the ranks are exact; these have a stated error. The graph is read as undirected, without
loops and repeated edges, with a row for every id up to the largest present.

Threads: only one thread at a time may use a tracker; others may write to the graph meanwhile. An
update is of one version of the graph, which its record names. Returned arrays never change. An
update has two halves: `begin` reads the graph, and `update` no longer does. So a writer may begin,
go on, and let another thread finish. On a device `begin` launches all that need not wait, so that
the other thread hardly needs the interpreter.

`types` is the interface between the tracker and its figures; each figure has a folder, with a
program for each device. listed_cpu.py, listed_cuda.py and listed.cuh serve those that count at the
changed edges.

Oracle: NetworkX and igraph on graphs that a state machine grows and tears, and recomputation on
larger ones (tests/algorithms/test_tracker.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpma import BatchError, Graph, Snapshot
from lpma.arrays import all_of, device_of, finish, on_device, stream_of
from lpma.cpu.threads import run_all
from lpma.results import TouchedEdges
from lpma.snapshot.read_only import hand_out
from lpma.snapshot.vertices import go_by, vertices_of

from .. import arguments
from ..arrays import Array
from .butterflies import ButterflyCount
from .components import Components
from .core import CoreNumbers
from .pagerank import PageRank
from .rows import advance, read, rows_of
from .triangles import TriangleCount
from .types import Change, Figure, Memory, TrackedRows

FIGURES: dict[str, Callable[[], Figure]] = {
    "core": CoreNumbers,
    "triangles": TriangleCount,
    "components": Components,
    "butterflies": ButterflyCount,
    "pagerank": PageRank,
}


__all__ = ["Tracker", "Update", "UpdatedFigure"]

# On the CPU figures are updated side by side if all but the longest took this long in the last
# update: handing one over may take milliseconds on a busy machine.
WORTH_SHARING_S = 0.2e-3


@dataclass(frozen=True)
class UpdatedFigure:
    """How one figure got its value."""

    name: str
    how: str  # "unchanged", "updated" or "recomputed"
    seconds: float  # on a device: of the host's waiting


@dataclass(frozen=True)
class Update:
    """What one update did. Edges are those of the simple undirected graph. `update["core"]` is the
    record of one figure."""

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
    """Keeps figures of a graph: some of "core", "triangles", "components", "butterflies" and
    "pagerank".

    They are computed when the tracker is made, and brought up to date by `update`; in between they
    are those of `version`. Their arrays are read-only; on a device they are copies.

    Raises `lpma.BatchError` on an unknown name, or if "butterflies" are to be counted in a graph
    that is not bipartite, and as `Graph.snapshot` does if the ids are too large for one.

    >>> graph = lpma.from_edges([0, 1, 2], [1, 2, 0], device="cpu")
    >>> tracker = algorithms.Tracker(graph, ["core", "triangles"])
    >>> tracker.core_numbers, tracker.triangle_count
    (array([2, 2, 2], dtype=int32), 1)
    >>> graph.delete([0], [1])
    >>> record = tracker.update()
    >>> record.deleted, tracker.core_numbers, tracker.triangle_count
    (1, array([1, 1, 1], dtype=int32), 0)
    """

    def __init__(self, graph: Graph, figures: Iterable[str]) -> None:
        if not isinstance(graph, Graph):
            raise BatchError(f"graph: an lpma.Graph, not {arguments.shown(graph)}")
        names = arguments.choices(figures, "figures", FIGURES)
        self._graph = graph
        self._figures = {name: FIGURES[name]() for name in names}
        self._rows: TrackedRows | None = None  # None: start over from a snapshot
        self._spare: Memory | None = None  # of the rows before these
        self._shared_s = WORTH_SHARING_S  # what all figures but the longest took
        self._version = self._num_rows = 0
        self._read_version: int | None = None  # since which changes are known; None: start over
        self._begun: _Begun | None = None
        self._on_device = False
        self.update()

    # -- figures ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the graph to which the figures belong."""
        return self._version

    @property
    def core_numbers(self) -> Array:
        """int32[n]: the core number of every vertex, as by `algorithms.core_numbers`."""
        return hand_out(self._value("core"))

    @property
    def triangle_count(self) -> int:
        """The number of triangles, as by `algorithms.triangle_count`."""
        return int(self._value("triangles"))

    @property
    def components(self) -> Array:
        """int32[n]: for every vertex the smallest one of its component, as by
        `algorithms.connected_components`; −1 for a row that is no vertex."""
        return hand_out(self._value("components"))

    @property
    def butterfly_count(self) -> int:
        """The number of (2, 2)-bicliques, as by `algorithms.count_bicliques(s, 2, 2)`."""
        return int(self._value("butterflies"))

    @property
    def ranks(self) -> Array:
        """float64[n], of sum 1: the PageRank of every vertex in the simple undirected graph; 0 for
        a row that is no vertex. As by `algorithms.pagerank` with its defaults: wrong by less than
        tol · d/(1 − d) in all, here 5.7e-6."""
        return hand_out(self._value("pagerank"))

    @property
    def vertices(self) -> Array:
        """What each row of these arrays goes by: its name, NumPy's on every device, or its id."""
        return vertices_of(go_by(self._graph), np.arange(self._num_rows))

    @property
    def on_device(self) -> bool:
        """Whether figures are updated on a device, where `begin` launches what need not wait."""
        return self._on_device

    def _value(self, name: str) -> Any:
        if name not in self._figures:
            tracked = ", ".join(map(repr, self._figures))
            raise BatchError(f"{name!r} is not tracked here, only {tracked}: name it at the start")
        return self._figures[name].value

    # -- updating -----------------------------------------------------------------------------

    def begin(self) -> int:
        """Read from the graph what `update` needs, which must follow, in this thread or another,
        before the next `begin`. Returns the version read. Raises as `Graph.snapshot` does."""
        start = time.perf_counter()
        try:
            found = read(self._graph, self._read_version)
            self._read_version = found.version
            array = found.keys if isinstance(found, TouchedEdges) else found._indptr
            self._on_device = on_device(array)
            seconds = time.perf_counter() - start
            self._begun = begun = _Begun(found, array, stream_of(array), seconds)
            if isinstance(found, TouchedEdges) and self._on_device:
                self._advance(begun)
            begun.seconds = time.perf_counter() - start
            return found.version
        except BaseException:
            self._read_version = None
            raise

    def update(self) -> Update:
        """Bring all figures up to the version of the graph at `begin`, or without that to the
        present one. Raises as `Graph.snapshot` does, and `lpma.BatchError` if butterflies are
        tracked and the graph is not bipartite. After an error the next update starts over from a
        snapshot."""
        if self._begun is None:
            self.begin()
        begun, self._begun = self._begun, None
        assert begun is not None
        try:
            with device_of(begun.array), begun.stream:
                return self._end(begun)
        except BaseException:
            self._read_version = None
            raise

    def _advance(self, begun: _Begun) -> None:
        """Make the rows, and begin to update the figures."""
        start = time.perf_counter()
        # Kept again only after all figures are up to date, so that an error leaves no rows.
        rows, self._rows = self._rows, None
        if isinstance(begun.found, TouchedEdges):
            assert rows is not None, "rows are kept for as long as changes are read"
            begun.change = advance(rows, begun.found, self._spare)
            begun.rows = begun.change.after
        else:
            begun.rows = rows_of(begun.found)
            finish(begun.rows.indptr)
        begun.rows_seconds += time.perf_counter() - start
        if begun.rows.on_device and begun.change is not None and not _is_nothing(begun.change):
            with device_of(begun.array):
                for figure in self._figures.values():
                    figure.begin(begun.change)

    def _end(self, begun: _Begun) -> Update:
        start = time.perf_counter()
        if begun.rows is None:
            self._advance(begun)
        rows, change = begun.rows, begun.change
        assert rows is not None
        calls = [(name, figure, change, rows) for name, figure in self._figures.items()]
        if rows.on_device or self._shared_s < WORTH_SHARING_S:
            figures = [_bring_up_to_date(*call) for call in calls]
        else:
            figures = run_all(_bring_up_to_date, calls)
        if change is not None and change.before.indices is not rows.indices:
            self._spare = change.before.memory
        self._rows, self._version, self._num_rows = rows, begun.found.version, rows.num_rows
        seconds = [figure.seconds for figure in figures]
        self._shared_s = sum(seconds) - max(seconds)
        return Update(
            begun.found.version,
            None if change is None else change.num_inserted,
            None if change is None else change.num_deleted,
            begun.rows_seconds,
            tuple(figures),
            begun.seconds + time.perf_counter() - start,
        )


@dataclass
class _Begun:
    """An update that was begun: what was read from the graph, and made of it."""

    found: TouchedEdges | Snapshot
    array: Array  # of what was found
    stream: AbstractContextManager[Any]  # of a device, that it is worked on
    rows_seconds: float  # to read and to make the rows
    seconds: float = 0.0  # that `begin` took
    change: Change | None = None
    rows: TrackedRows | None = None  # None: neither is made yet


def _bring_up_to_date(
    name: str, figure: Figure, change: Change | None, rows: TrackedRows
) -> UpdatedFigure:
    """Update or recompute a figure. change: None if the changes are not known."""
    start = time.perf_counter()
    nothing = change is not None and _is_nothing(change)
    if change is not None and not nothing and not rows.on_device:
        figure.begin(change)
    if nothing:
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
    if change.num_changed or before.num_rows != after.num_rows:
        return False
    return before is after or all_of(before.present == after.present)
