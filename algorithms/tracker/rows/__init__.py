"""The simple undirected rows of a graph, brought from one version to the next.

A store has no simple view; of a directed graph it has no in-neighbours at all. So the tracker keeps
rows of its own, and merges changes into a second copy. Every entry is read and written once, in
runs between two changes that move by one distance: at the speed of memory 0.05 ms for 10 M edges on
an H200, a thirtieth of the time to make the view from a snapshot. Figures then have contiguous rows
before and after.

The rows also know which of them are vertices, by what the simple view omits: loops, and vertices
that were added by themselves (`types.TrackedRows`).

The view has an edge u, v as long as the graph has u→v or v→u. `Graph.touched` lists the edges that
batches touched and whether either direction exists now; the rows say whether it existed before.

Oracle: the simple view of a snapshot (tests/algorithms/test_tracker_parts.py).
"""

from __future__ import annotations

import numpy as np

from lpma import Graph, Snapshot
from lpma.arrays import array_module, device_of
from lpma.results import TouchedEdges
from lpma.snapshot.capture import MAX_SNAPSHOT_BYTES

from ...arrays import by_device
from ...views.simple import device_module, simple
from ..types import Change, Memory, TrackedRows


def read(graph: Graph, since: int | None) -> TouchedEdges | Snapshot:
    """What has changed in the graph since a version: the edges touched, or a snapshot if `since` is
    None, the graph no longer knows, or it has too many vertices. Raises as `Graph.snapshot` does.
    """
    touched = None if since is None else graph.touched(since)
    if touched is None or 8 * (touched.num_rows + 1) > MAX_SNAPSHOT_BYTES:
        return graph.snapshot()
    return touched


def rows_of(s: Snapshot) -> TrackedRows:
    """The rows of a snapshot."""
    view = simple(s)
    with device_of(s._indptr):
        alone = array_module(s._indptr).zeros((2, s.num_rows), np.bool_)
        alone[0] = device_module(view.indptr).looped(s._indptr, s._indices)
        alone[1][s._added] = True
        return TrackedRows(view.indptr, view.indices, alone, s._present)


def advance(rows: TrackedRows, touched: TouchedEdges, spare: Memory | None) -> Change:
    """How the rows changed. spare: the memory of rows no longer read. REQUIRES: `rows` are those of
    the version since which the edges were touched."""
    with device_of(rows.indptr):
        change: Change = by_device(rows.indptr, __name__).changed(rows, touched, spare)
        return change
