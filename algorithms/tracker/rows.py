"""The simple undirected rows of a graph, brought from one version to the next.

A store has no rows of the simple view: a directed graph's neighbours in are not at hand at all. So
the tracker keeps rows of its own, and merges what changed into a second copy. Every entry is read
and written once, 8 bytes, in runs that lie between two changes and move by one distance: at the
speed of memory this is 0.05 ms for 10 M edges on an H200, a thirtieth of what making the view from
a snapshot takes, and it leaves plain rows before and after, of which the figures make use.

An edge u, v of the view is there while u→v or v→u is. Whether it appeared or went is seen from
three things: whether the view had it; whether one of its directions was inserted, for then it is
there; else, with one of them deleted, whether the store still has the other.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma import Graph
from lpma.arrays import device_of, to_host
from lpma.graph import MAX_SNAPSHOT_BYTES

from .._views import View, simple
from .figure import Change

Array = npt.NDArray[Any]  # or cupy.ndarray

ATTEMPTS = 3  # at reading one version while another thread goes on


def read_rows(graph: Graph) -> tuple[View, int]:
    """The rows of the graph as it is now, from a snapshot, and its version. Raises as
    `Graph.snapshot` does."""
    s = graph.snapshot()
    return simple(s), s.version


def advance(graph: Graph, rows: View, since: int) -> tuple[Change, int] | None:
    """What happened to the rows after version `since`, and the version that led to. None where the
    graph no longer knows, has too many vertices, or changes too fast to be read piece by piece."""
    for _ in range(ATTEMPTS):
        version = graph.version
        changes = graph.changes(since)
        if changes is None:
            return None
        src, dst, there = changes.src, changes.dst, changes.inserted
        if graph.directed and not there.all():
            gone = ~there
            there = there.copy()
            there[gone] = to_host(graph.edges(dst[gone], src[gone]).found)
        n = graph.num_vertices
        if graph.version != version:
            continue
        if 8 * (n + 1) > MAX_SNAPSHOT_BYTES:
            return None
        with device_of(rows.indptr):
            return _builder(rows).changed(rows, n, _evidence(src, dst, there)), version
    return None


def _evidence(src: Array, dst: Array, there: Array) -> Array:
    """source << 33 | target << 1 | whether the edge is there now, of what is no loop: uint64. An
    edge may be named twice, once from either end; both say the same."""
    apart = src != dst
    u, v, now = (column[apart].astype(np.uint64) for column in (src, dst, there))
    return u << np.uint64(33) | v << np.uint64(1) | now


def _builder(rows: View) -> ModuleType:
    if rows.on_device:
        from ..cuda import tracker_rows as on_device

        return on_device
    from . import _rows_cpu

    return _rows_cpu
