"""Core numbers, and the k-core: the largest subgraph whose degrees are all at least k.

The core number of a vertex is the largest k for which the vertex is in the k-core (Seidman,
"Network structure and minimum degree", Social Networks 5, 1983). This file validates and chooses
the program; each program says in its own file where it comes from and how it works:

cpu.py           "auto" on the CPU, "owners": peeling in threads, each owning a range of vertices
cuda.py          "auto" on a CUDA device, "cooperative": all levels in one kernel; chooses it
  refine.cu        a small graph, by h-indices
  cooperative.cu   any other graph, by peeling, by the whole grid or one block
  state.cuh        its state: what is being peeled, what a step found, and what comes next
paper/           what the k-core papers compare, chosen by `method=`:
  cpu.py           "bz", "park", "pkc", "h-index"
  cuda.py          "peel" and its eight variants (peel.cu), "h-index" (h_index.cu), "vector"

All programs give the same numbers. All read the simple undirected view (`views.simple`); ours on
the CPU does with unsorted rows where the graph is small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of
from lpma.snapshot.snapshot import Snapshot

from .. import arguments
from ..views.directed import present
from ..views.simple import View, as_snapshot, induced, simple, unsorted
from ..views.spread import Spread
from . import cpu

Array = npt.NDArray[Any]  # or cupy.ndarray
Program = Callable[[Array, Array], Array]  # core numbers from a view's indptr and indices


def core_numbers(s: Any, method: str = "auto") -> Array:
    """The core number of every vertex.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a
    simple undirected graph.
    method: on the CPU "owners" (ours), "bz", "park", "pkc", "h-index"; on a device "cooperative"
    (ours), the k-core paper's "peel", "peel-sm", "peel-vp", "peel-bc", "peel-bc-sm", "peel-bc-vp",
    "peel-ec", "peel-ec-sm", "peel-ec-vp", then "h-index" and "vector". "auto" takes ours, the
    fastest. Over shards "auto" and "h-index" are the same.

    Returns int32[n], on the device where s lies: 0 for a vertex without neighbours, and for a row
    that is not a vertex. Raises `lpma.BatchError` on any other method, and if s is not a graph.

    Sources: Batagelj and Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003;
    Ahmad et al., "Accelerating k-core decomposition by a GPU", ICDE 2023; the others are named in
    `algorithms.core.paper`.

    A triangle, and a fourth vertex joined with one of its corners:

    >>> import algorithms, lpma
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1, 2], [1, 2, 2, 3])
    >>> algorithms.core_numbers(graph.snapshot())
    array([2, 2, 2, 1], dtype=int32)
    """
    if isinstance(s, Spread):
        return s.computed("core_numbers", method=method)
    ours = isinstance(method, str) and method in ("auto", "owners")
    return _numbers(unsorted(s) if ours else simple(s), method)


def k_core(s: Any, k: int) -> Snapshot:
    """The k-core, as an undirected Snapshot without weights and times.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.

    The result holds the edges among the vertices of core number k and above. Vertices keep their
    ids, so the result has as many rows as s; `present` is True for those in the core. `ids`,
    `version` and `time` are those of s, if that is a Snapshot. Raises `lpma.BatchError` on a
    k below 0, and as `core_numbers` does.

    >>> import algorithms, lpma
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1, 2], [1, 2, 2, 3])
    >>> core = algorithms.k_core(graph.snapshot(), 2)
    >>> core.num_edges, core.present.tolist()
    (3, [True, True, True, False])
    """
    k = arguments.limit(k, "k", 0, arguments.MOST)
    view = simple(s)
    with device_of(view.indptr):
        core = induced(view, _numbers(view, "auto") >= k)
        # With k > 0 no vertex of the core is without an edge.
        return as_snapshot(core, s, _vertices(s, view) if k == 0 else None)


def _numbers(view: View, method: str) -> Array:
    program = _program(method, view.on_device)
    with device_of(view.indptr):
        return program(view.indptr, view.indices)


def _program(method: str, on_device: bool) -> Program:
    """What a method runs where the graph lies. The papers' programs are imported when needed."""
    if on_device:
        from . import cuda

        name, ours = "cooperative", cuda.cooperative
    else:
        name, ours = "owners", cpu.by_owners
    if isinstance(method, str) and method in ("auto", name):
        return ours
    papers = _papers(on_device)
    return papers[arguments.choice(method, "method", ["auto", name, *papers])]


def _papers(on_device: bool) -> Mapping[str, Program]:
    if on_device:
        from .paper import cuda as paper_cuda

        return paper_cuda.METHODS
    from .paper import cpu as paper_cpu

    return paper_cpu.METHODS


def _vertices(s: Any, view: View) -> Array:
    """uint32, ascending: the vertices of s."""
    every: Array = array_module(view.indptr).arange(view.num_rows, dtype=np.uint32)
    vertices = present(s)
    return every if vertices is None else every[vertices]
