"""Truss numbers: the largest k for which an edge is in the k-truss, and the k-truss itself.

The k-truss is the largest subgraph of which every edge is in at least k - 2 triangles of it (Cohen,
"Trusses: cohesive subgraphs for social network analysis", 2008). An edge in no triangle has truss
number 2. Three methods:

incidence   Every triangle is listed once, and kept under each of its edges as the two others, 24
            bytes in all. Edges are peeled by support; no row is looked at again.
intersect   The same peeling, where an edge's triangles are found by intersecting the rows of its
            ends when it is peeled: for graphs whose incidence is too large for the memory.
affected    The algorithm of Ding, Duan and Liu ("K-truss decomposition", ECE508): count again the
            triangles of the edges that lost one, level by level.

"auto" takes incidence where it needs at most half of the memory that is free where the graph lies:
TRIANGLE_BYTES a triangle, of which the CPU needs a quarter only while it makes the incidence, and
CUDA needs none of that quarter. Else it takes intersect.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of
from lpma.errors import BatchError
from lpma.optional import available_memory_bytes
from lpma.snapshot import Snapshot

from ..triangles import cpu
from ..triangles.ranked import EdgeList, Ranked, lister, ranked
from ..views.simple import View, simple
from . import peel_cpu, rows_cpu
from .incidence_cpu import incidence

Array = npt.NDArray[Any]  # or cupy.ndarray

METHODS = ("incidence", "intersect", "affected")
TRIANGLE_BYTES = 32
NO_LIMIT = int(np.iinfo(np.int32).max)


class Truss(NamedTuple):
    """Every edge of the simple undirected graph once, sorted by (src, dst)."""

    src: Array  # uint32[m], each smaller than its dst
    dst: Array  # uint32[m]
    truss: Array  # int32[m], 2 or more


def truss_numbers(s: Any, method: str = "auto") -> Truss:
    """The truss number of every edge.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph. method: "incidence", "intersect", "affected", or "auto". Raises ValueError on another
    method and `lpma.BatchError` on an s that is no graph, or one of 2^31 edges."""
    return _decompose(s, method, NO_LIMIT)


def k_truss(s: Any, k: int) -> Snapshot:
    """The k-truss as an undirected Snapshot without weights and times: the edges of truss number k
    and above, whose ends are its vertices. These keep their ids, so that it has as many rows as s,
    most of them empty perhaps; `ids`, `version` and `time` are s's, where that is a Snapshot.

    Peels no further than k. Raises BatchError on a k that is not 2 or more, and as `truss_numbers`
    does."""
    if not 2 <= k < NO_LIMIT:
        raise BatchError(f"k = {k}: every edge is in the 2-truss, so k goes from 2 on")
    src, dst, truss = _decompose(s, "auto", k)
    n = simple(s).num_vertices
    with device_of(src):
        xp = array_module(src)
        kept = truss >= k
        src, dst = src[kept], dst[kept]
        upper = xp.searchsorted(src, xp.arange(n + 1, dtype=np.uint32)).astype(np.int64)
        view = simple((upper, dst))
        nobody = xp.empty(0, np.uint32)
    about = s if isinstance(s, Snapshot) else None
    return Snapshot(
        indptr=view.indptr,
        indices=view.indices,
        weights=None,
        times=None,
        num_edges=len(src),
        version=about.version if about else 0,
        time=about.time if about else 0,
        directed=False,
        ids=about.ids if about else None,
        added=nobody,
    )


def _decompose(s: Any, method: str, until: int) -> Truss:
    """Truss numbers below `until`, and `until` for the edges that are left then."""
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method {method!r}: choose one of auto, {', '.join(METHODS)}")
    ranks = ranked(s)
    with device_of(ranks.indptr):
        tools = lister(ranks.view)
        if method == "auto":
            needed = TRIANGLE_BYTES * tools.count(ranks)
            method = "incidence" if 2 * needed <= _free_bytes(ranks.view) else "intersect"
        edges = tools.edge_list(ranks)
        decompose = _decompose_on_device if ranks.view.on_device else _decompose_on_host
        return Truss(edges.src, edges.dst, decompose(ranks, edges, method, until))


def _free_bytes(view: View) -> float:
    """Memory that is free where the view lies; without end where the system does not say."""
    if not view.on_device:
        return available_memory_bytes() or float("inf")
    from . import cuda as on_device

    return on_device.free_bytes()


def _decompose_on_host(ranks: Ranked, edges: EdgeList, method: str, until: int) -> Array:
    """int32[m], in the order of the edge list."""
    if method == "incidence":
        return peel_cpu.by_incidence(incidence(ranks), until)[edges.slot]
    rows = rows_cpu.edge_rows(ranks.view, edges)
    if method == "affected":
        return rows_cpu.by_affected(rows, until)
    support = cpu.support(ranks)[edges.slot]
    return rows_cpu.by_intersection(rows, support, until)


def _decompose_on_device(ranks: Ranked, edges: EdgeList, method: str, until: int) -> Array:
    """The same on CUDA."""
    from . import cuda as on_device

    return on_device.decompose(ranks, edges, method, until)
