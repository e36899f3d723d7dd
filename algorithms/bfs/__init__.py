"""Breadth-first search: the least number of edges from one vertex to every other.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012. A
level is found *top-down*, from the frontier along its edges, or *bottom-up*: each vertex not yet
reached looks among its in-neighbours for one of the frontier and stops at the first. Bottom-up
saves most edges of the wide levels in the middle of a search. When it begins and ends is told in
cpu.py and bfs.cu.

Edges are followed in their direction. Bottom-up needs the transpose. An undirected snapshot is its
own; a directed one keeps its transpose. Making it costs several searches, and most snapshots of a
stream see one. So a search makes it only when the edges that searches looked at top-down, for want
of it, have cost as much (the rule for whether to rent or to buy: at most twice the cost of the best
choice). On the CPU snapshots that follow each other (`views/following.py`) count them together,
since what one of them makes is of use to all. On a device a search starts with or without the
transpose, and leaves its count for the next one. For a matrix or arrays, which cannot keep it, all
levels are top-down.

cpu.py           the search on the CPU
cuda.py, bfs.cu  the search on a CUDA device, all levels in one launch

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
    loose_rows,
    loose_transposed,
    rows,
    transposed,
)
from ..views.following import carried, carry
from ..views.given import Distributed
from ..views.simple import View
from . import cpu

# Edges looked at top-down in the time that transposing takes for one.
TRANSPOSING = 4
TRANSPOSING_ON_DEVICE = 2
EXAMINED = "examined top-down"  # among a snapshot's views: how many edges, for want of it
COUNT_OF_LAST = "examined top-down in the last search"  # the same, still on the device


@algorithm
def bfs(s: Any, source: Vertex) -> Array:
    """The least number of edges on a path from `source` to each vertex.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read with
    its directions.
    source: the vertex to start from. A row; in a Snapshot with names, a name.

    Returns int32[n], where s lies: 0 at the source itself, −1 where no path leads from it. Raises
    `lpma.BatchError` if s is not a graph, and `lpma.VertexError` if `source` is not one of its
    vertices (in a Snapshot, one of the rows that are `present`).

    Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.

    >>> import algorithms, lpma
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1, 2], [1, 2, 2, 3])
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
    loose = loose_rows(s)
    start = arguments.row(arguments.names_of(s), loose.num_rows, source, "source")
    if not isinstance(s, Snapshot):
        return cpu.search(loose, None, start)
    _check_vertex(s, start, int(loose.ends[start]) > int(loose.starts[start]), source)
    return cpu.search(loose, _transpose_source(s, loose), start)


def _transpose_source(s: Snapshot, loose: ScatteredRows) -> cpu.TransposeSource:
    """Gives the transpose, once it is there or pays, to a search that looked at so many edges for
    want of it."""

    def transpose_source(edges: int) -> ScatteredRows | None:
        if is_symmetric(s):
            return loose
        if not is_transposed(s):
            edges_examined = carried(s, EXAMINED, 0)
            if edges_examined < TRANSPOSING * loose.size:
                carry(s, EXAMINED, edges_examined + edges)
                return None
        return loose_transposed(s)

    return transpose_source


def _transpose_on_device(s: Snapshot) -> View | None:
    """The transpose, once it is there or pays. Waits for the search before, if that did without."""
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
