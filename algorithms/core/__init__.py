"""Core numbers, and the k-core: the largest subgraph whose degrees are all at least k.

The core number of a vertex is the largest k for which the vertex is in the k-core (Seidman,
"Network structure and minimum degree", Social Networks 5, 1983). This file validates and chooses
the program; each program says in its own file where it comes from and how it works:

cpu.py           "auto" on the CPU, "owners": peeling in threads, each owning a range of vertices
cuda.py          "auto" on a CUDA device, "cooperative": the launch of
cooperative.cu     peeling, all levels in one kernel, whose state machine is in
state.cuh          what is being peeled, what a step found, and what comes next
paper/           what the k-core papers compare, chosen by `method=`:
  cpu.py           "bz", "park", "pkc", "h-index"
  cuda.py          "peel" and its eight variants (peel.cu), "h-index" (h_index.cu), "vector"

All programs give the same numbers. All read the simple undirected view (`views.simple`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of
from lpma.snapshot import Snapshot

from ..views.directed import present
from ..views.simple import View, as_snapshot, induced, simple
from . import cpu
from .paper import cpu as paper_cpu  # not `as cpu`: that would shadow ours

Array = npt.NDArray[Any]  # or cupy.ndarray
Methods = Mapping[str, Callable[[Array, Array], Array]]

_ON_CPU: Methods = {"auto": cpu.by_owners, "owners": cpu.by_owners, **paper_cpu.METHODS}


def core_numbers(s: Any, method: str = "auto") -> Array:
    """The core number of every vertex.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.
    method: on the CPU "owners" (ours), "bz", "park", "pkc", "h-index"; on a device "cooperative"
    (ours), the k-core paper's "peel", "peel-sm", "peel-vp", "peel-bc", "peel-bc-sm", "peel-bc-vp",
    "peel-ec", "peel-ec-sm", "peel-ec-vp", then "h-index" and "vector". "auto" takes ours, the
    fastest.

    Returns int32[n], on the device where s lies: 0 for a vertex without neighbours, and for a row
    that is no vertex. Raises ValueError on any other method, and `lpma.BatchError` if s is not a
    graph.

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
    return _numbers(simple(s), method)


def k_core(s: Any, k: int) -> Snapshot:
    """The k-core, as an undirected Snapshot without weights and times.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph.

    The result holds the edges among the vertices of core number k and above. Vertices keep their
    ids, so the result has as many rows as s; `present` is True for those in the core. `ids`,
    `version` and `time` are those of s, where that is a Snapshot. Raises as `core_numbers` does.

    >>> import algorithms, lpma
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1, 2], [1, 2, 2, 3])
    >>> core = algorithms.k_core(graph.snapshot(), 2)
    >>> core.num_edges, core.present.tolist()
    (3, [True, True, True, False])
    """
    view = simple(s)
    with device_of(view.indptr):
        core = induced(view, _numbers(view, "auto") >= k)
        # With k > 0 no vertex of the core is without an edge.
        return as_snapshot(core, s, _vertices(s, view) if k <= 0 else None)


def _numbers(view: View, method: str) -> Array:
    methods = _methods(view)
    if method not in methods:
        where = "on a device" if view.on_device else "on the CPU"
        raise ValueError(f"method {method!r}: choose one of {', '.join(methods)} {where}")
    with device_of(view.indptr):
        return methods[method](view.indptr, view.indices)


def _methods(view: View) -> Methods:
    """The programs for the device where the view lies, by the names of their methods."""
    if not view.on_device:
        return _ON_CPU
    from . import cuda
    from .paper import cuda as paper_cuda

    ours = cuda.cooperative
    return {"auto": ours, "cooperative": ours, **paper_cuda.METHODS}


def _vertices(s: Any, view: View) -> Array:
    """uint32, rising: the vertices of s."""
    every: Array = array_module(view.indptr).arange(view.num_vertices, dtype=np.uint32)
    vertices = present(s)
    return every if vertices is None else every[vertices]
