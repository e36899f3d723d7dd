"""Core numbers, and the k-core: the largest subgraph whose degrees are all at least k.

The core number of a vertex is the largest k for which it is in the k-core. All methods give the
same numbers; each says in its module where it comes from and how it works.

on the CPU   auto (owners), bz, park, pkc, h-index       `_core_peel`, `_core_cpu`
on a device  auto (cooperative), peel and its eight variants, h-index, vector    `cuda.core`

Requires the simple undirected view, which is built where the graph lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of
from lpma.snapshot import Snapshot

from ..views.directed import present
from ..views.simple import View, induced, simple
from .cpu import by_owners
from .paper import cpu as paper

Array = npt.NDArray[Any]  # or cupy.ndarray
Methods = Mapping[str, Callable[[Array, Array], Array]]

_ON_CPU: Methods = {
    "auto": by_owners,
    "owners": by_owners,
    "bz": paper.bz,
    "park": paper.park,
    "pkc": paper.pkc,
    "h-index": paper.h_index,
}


def core_numbers(s: Any, method: str = "auto") -> Array:
    """The core number of every vertex: int32[n]; 0 for a vertex without neighbours, and for a row
    that is no vertex.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph; the result lies where s does.
    method: on the CPU "owners" (ours), "bz", "park", "pkc", "h-index"; on a device "cooperative"
    (ours), the k-core paper's "peel", "peel-sm", "peel-vp", "peel-bc", "peel-bc-sm", "peel-bc-vp",
    "peel-ec", "peel-ec-sm", "peel-ec-vp", then "h-index" and "vector"; "auto" takes ours, the
    fastest. Raises ValueError on another method and `lpma.BatchError` on an s that is no graph."""
    return _numbers(simple(s), method)


def _numbers(view: View, method: str) -> Array:
    methods = _methods(view)
    if method not in methods:
        where = "on a device" if view.on_device else "on the CPU"
        raise ValueError(f"method {method!r}: choose one of {', '.join(methods)} {where}")
    with device_of(view.indptr):
        return methods[method](view.indptr, view.indices)


def _methods(view: View) -> Methods:
    if not view.on_device:
        return _ON_CPU
    from .cuda import METHODS

    return METHODS


def k_core(s: Any, k: int) -> Snapshot:
    """The k-core as an undirected Snapshot without weights and times: the edges among the
    vertices of core number k and above, loops and repeats left out. Vertices keep their ids, so
    that it has as many rows as s, most of them empty perhaps, which are `present` where they are
    in the core; `ids`, `version` and `time` are s's, where that is a Snapshot. Raises as
    `core_numbers` does."""
    view = simple(s)
    with device_of(view.indptr):
        xp = array_module(view.indptr)
        core = induced(view, _numbers(view, "auto") >= k)
        alone = xp.empty(0, np.uint32)  # with k > 0, no vertex of a core is without an edge
        if k <= 0:
            vertices = present(s)
            every = xp.arange(view.num_vertices, dtype=np.uint32)
            alone = every if vertices is None else every[vertices]
    about = s if isinstance(s, Snapshot) else None
    return Snapshot(
        indptr=core.indptr,
        indices=core.indices,
        weights=None,
        times=None,
        num_edges=len(core.indices) // 2,
        version=about.version if about else 0,
        time=about.time if about else 0,
        directed=False,
        ids=about.ids if about else None,
        added=alone,
    )
