"""Breadth-first search: the least number of edges from one vertex to every other.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.

A level is found *top-down*, along the frontier's edges, or *bottom-up*: each unreached vertex scans
its in-neighbours for one in the frontier and stops at the first. Bottom-up skips most edges of the
wide levels in the middle of a search; cpu.py and bfs.cu say when it pays.

Edges are followed in their direction, so bottom-up needs the transpose. An undirected snapshot is
its own. A directed one keeps its transpose, but making it costs several searches, and most
snapshots of a stream see one. So it is made only when the edges that earlier searches examined
top-down for want of it have cost as much: as when deciding to rent or to buy, that is at most twice
the best choice. On the CPU consecutive snapshots (`views/following.py`) share the count, since one
transpose serves them all. A matrix or arrays cannot keep it: all their levels are top-down.

cpu.py           levels on the CPU
cuda.py, bfs.cu  all levels in one launch on a CUDA device

Oracle: NetworkX and SciPy (tests/algorithms/test_bfs.py).
"""

from __future__ import annotations

from typing import Any

from lpma.arrays import device_of
from lpma.errors import VertexError
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
from . import cpu

# Among a snapshot's views: how many edges were examined for want of the transpose before the last
# search, and in it. To read the second on a device is to wait for that search.
EXAMINED = "examined top-down"


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
    program: Any = cpu
    if is_on_device(s):
        from . import cuda as program

        view: Any = rows(s)
        starts, ends, size = view.indptr[:-1], view.indptr[1:], len(view.indices)
    else:
        view = scattered_rows(s)
        starts, ends, size = view.starts, view.ends, view.size
    start = arguments.row(arguments.names_of(s), view.num_rows, source, "source")
    with device_of(starts):
        if not isinstance(s, Snapshot):
            found: Array = program.search(view, None, start)[0]
            return found
        # Most vertices have out-edges, which saves a look at the others' rows.
        if not int(ends[start]) > int(starts[start]) and not bool(s._present[start]):
            raise VertexError(
                f"source: there is no vertex {source} (no edge has it; nor was it added)"
            )
        examined = sum(map(int, carried(s, EXAMINED, (0, 0))))
        reverse = None
        if is_symmetric(s) or is_transposed(s) or examined >= program.TRANSPOSING * size:
            reverse = (scattered_transpose if program is cpu else transposed)(s)
        found, in_vain = program.search(view, reverse, start)
        if reverse is None:
            carry(s, EXAMINED, (examined, in_vain))
    return found
