"""Breadth-first search: the least number of edges from one vertex to every other.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.

A level is found *top-down*, along the frontier's edges, or *bottom-up*: each unreached vertex scans
its in-neighbours for one in the frontier and stops at the first. Bottom-up skips most edges of the
wide levels in the middle of a search; cpu.py and bfs.cu say when it pays.

Edges are followed in their direction, so bottom-up needs the transpose. An undirected snapshot is
its own. A directed one keeps its transpose, but making it costs several searches, and most
snapshots of a stream see one. So it is made only when the edges examined top-down for want of it
have cost as much: as when deciding to rent or to buy, that is at most twice the best choice. On the
CPU consecutive snapshots (`views/following.py`) share the count, since a transpose serves them all.
On a device the choice is made before a search, from the counts of earlier ones. A matrix or arrays
cannot keep a transpose: all their levels are top-down.

cpu.py           levels on the CPU
cuda.py, bfs.cu  all levels in one launch on a CUDA device

Oracle: NetworkX and SciPy (tests/algorithms/test_bfs.py).
"""

from __future__ import annotations

from typing import Any

from lpma.arrays import device_of
from lpma.errors import VertexError
from lpma.snapshot.row_versions import ScatteredRows
from lpma.snapshot.snapshot import Snapshot

from .. import arguments
from ..arrays import Array
from ..options import Vertex, algorithm
from ..views.directed import (
    is_on_device,
    is_symmetric,
    is_transposed,
    rows,
    scattered_rows,
    scattered_transpose,
    transposed,
)
from ..views.following import carried, carry
from ..views.given import Distributed
from ..views.simple import View
from . import cpu

# Edges examined top-down in the time that transposing takes per edge.
TRANSPOSING = 4
TRANSPOSING_ON_DEVICE = 2
EXAMINED = "examined top-down"  # among a snapshot's views: how many edges
COUNT_OF_LAST = "examined top-down in the last search"  # still on the device


@algorithm
def bfs(s: Any, source: Vertex) -> Array:
    """The least number of edges on a path from `source` to each vertex.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read with
    its directions.
    source: the vertex to start from. A row; in a Snapshot with names, a name.

    Returns int32[n], where s lies: 0 at the source itself, −1 where no path leads from it. Raises
    `lpma.BatchError` if s is not a graph, and `lpma.VertexError` if `source` is not one of its
    vertices (in a Snapshot, one of the rows that are `present`).

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> algorithms.bfs(graph.snapshot(), 1)
    array([-1,  0,  1,  2], dtype=int32)
    """
    if isinstance(s, Distributed):
        return s.dispatch("bfs", source=source)
    if not is_on_device(s):
        return _on_cpu(s, source)
    view = rows(s)
    start = arguments.row(arguments.names_of(s), view.num_rows, source, "source")
    if isinstance(s, Snapshot):
        _check_vertex(s, start, int(s._indptr[start + 1]) > int(s._indptr[start]), source)
    can_go_back = isinstance(s, Snapshot)
    from . import cuda

    with device_of(view.indptr):
        reverse = _transpose_on_device(s) if can_go_back else None
        hops, edges_examined = cuda.search(view, reverse, start)
        if can_go_back and reverse is None:
            s.views[COUNT_OF_LAST] = edges_examined
        found: Array = hops
        return found


def _on_cpu(s: Any, source: Any) -> Array:
    scattered = scattered_rows(s)
    start = arguments.row(arguments.names_of(s), scattered.num_rows, source, "source")
    if not isinstance(s, Snapshot):
        return cpu.search(scattered, None, start)
    _check_vertex(s, start, int(scattered.ends[start]) > int(scattered.starts[start]), source)
    return cpu.search(scattered, _transpose_source(s, scattered), start)


def _transpose_source(s: Snapshot, scattered: ScatteredRows) -> cpu.TransposeSource:
    """A function that returns the transpose once it exists or pays for itself, given how many edges
    a search has examined for want of it."""

    def transpose_source(edges: int) -> ScatteredRows | None:
        if is_symmetric(s):
            return scattered
        if not is_transposed(s):
            edges_examined = carried(s, EXAMINED, 0)
            if edges_examined < TRANSPOSING * scattered.size:
                carry(s, EXAMINED, edges_examined + edges)
                return None
        return scattered_transpose(s)

    return transpose_source


def _transpose_on_device(s: Snapshot) -> View | None:
    """The transpose, once it exists or pays. Waits for the last search if that ran without it."""
    if not is_symmetric(s) and not is_transposed(s):
        last = s.views.pop(COUNT_OF_LAST, None)
        before = 0 if last is None else int(last[0])
        edges_examined = s.views[EXAMINED] = s.views.get(EXAMINED, 0) + before
        if edges_examined < TRANSPOSING_ON_DEVICE * len(s._indices):
            return None
    return transposed(s)


def _check_vertex(s: Snapshot, row: int, has_edges: bool, source: Any) -> None:
    """Raise VertexError unless a row is a vertex. Most have out-edges, which saves a look at the
    others' rows."""
    if not has_edges and not bool(s._present[row]):
        raise VertexError(f"source: there is no vertex {source} (no edge has it; nor was it added)")
