"""Core numbers, and the k-core: the largest subgraph whose degrees are all at least k.

The core number of a vertex is the largest k for which the vertex is in the k-core (Seidman,
"Network structure and minimum degree", Social Networks 5, 1983).

method=                          runs                                                       in
"owners", "auto" on the CPU      peeling in threads, each owning a range of vertices        cpu.py
"cooperative", "auto" on CUDA    all levels in one kernel: a small graph by h-indices       cuda.py
                                 (refine.cu), any other by peeling (cooperative.cu)
"h-index"                        estimates refined in rounds: `settle`; h_index.cu on CUDA, which
                                 diversity and shards use too
"bz", "park", "pkc"              what the k-core papers compare on the CPU                  paper/
"peel" and eight variants,       and on CUDA (peel.cu)                                      paper/
"vector"

All read the simple undirected view (`views.simple`), and give the same numbers. Ours on the CPU
takes unsorted rows of a small graph.

Oracle: NetworkX, igraph and known cores of real graphs (tests/algorithms/test_core.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of
from lpma.snapshot.snapshot import Snapshot

from .. import arguments
from ..arrays import Array, by_device
from ..options import algorithm
from ..views.directed import present
from ..views.given import Distributed
from ..views.simple import View, as_snapshot, induced, simple, unsorted

Program = Callable[[Array, Array], Array]  # core numbers from a view's indptr and indices


@algorithm
def core_numbers(s: Any, method: str = "auto") -> Array:
    """The core number of every vertex.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a
    simple undirected graph.
    method: which program runs. On the CPU "owners" (ours), "bz", "park", "pkc", "h-index"; on a
    device "cooperative" (ours), the k-core paper's "peel", "peel-sm", "peel-vp", "peel-bc",
    "peel-bc-sm", "peel-bc-vp", "peel-ec", "peel-ec-sm", "peel-ec-vp", then "h-index" and "vector".
    "auto" takes ours, the fastest. Over shards "auto" and "h-index" are the same.

    Returns int32[n], on the device where s lies: 0 for a vertex without neighbours, and for a row
    that is not a vertex. Raises `lpma.BatchError` on any other method, and if s is not a graph.

    A triangle, and a fourth vertex joined with one of its corners:

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> algorithms.core_numbers(graph.snapshot())
    array([2, 2, 2, 1], dtype=int32)
    """
    if isinstance(s, Distributed):
        return s.dispatch("core_numbers", method=method)
    ours = isinstance(method, str) and method in ("auto", "owners")
    return _numbers(unsorted(s) if ours else simple(s), method)


@algorithm
def k_core(s: Any, k: int) -> Snapshot:
    """The k-core, as an undirected Snapshot without weights and times.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.
    k: the least core number.

    The result holds the edges among the vertices of core number k and above. Vertices keep their
    ids, so the result has as many rows as s; `present` is True for those in the core. `ids`,
    `version` and `time` are those of s, if that is a Snapshot. Raises `lpma.BatchError` on a
    k below 0, and as `core_numbers` does.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> core = algorithms.k_core(graph.snapshot(), 2)
    >>> core.num_edges, core.present.tolist()
    (3, [True, True, True, False])
    """
    view = simple(s)
    with device_of(view.indptr):
        core = induced(view, _numbers(view, "auto") >= k)
        # With k > 0 no vertex of the core is without an edge.
        return as_snapshot(core, s, _vertices(s, view) if k == 0 else None)


def _numbers(view: View, method: str) -> Array:
    with device_of(view.indptr):
        program = _program(method, view.indptr)
        return program(view.indptr, view.indices)


def _program(method: str, array: Array) -> Program:
    """The program of a method on the graph's device. The papers' are imported when needed."""
    known: dict[str, Program] = by_device(array, __name__).METHODS
    if not isinstance(method, str) or method not in known:
        known = {**known, **by_device(array, f"{__name__}.paper").METHODS}
    return known[arguments.choice(method, "method", known)]


def _vertices(s: Any, view: View) -> Array:
    """uint32, ascending: the vertices of s."""
    every: Array = array_module(view.indptr).arange(view.num_rows, dtype=np.uint32)
    vertices = present(s)
    return every if vertices is None else every[vertices]
