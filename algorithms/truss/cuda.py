"""Truss decomposition on a CUDA device: each method with what it needs.

"incidence" and "intersect" are one cooperative launch each (truss.cu, peel.cuh); "affected" is the
slides' program (`paper`).

Requires a ranked view in arrays on the current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch
from lpma.cuda.memory import free_bytes

from ..triangles import cuda as triangles
from ..triangles.types import EdgeList, Ranked
from ..views.simple import View
from .types import EdgeRows

__all__ = ["by_intersection", "decompose", "edge_rows", "free_bytes"]

Array = Any  # cupy.ndarray

PIECE = 128  # peel.cuh: PIECE, NO_SUPPORT
NO_SUPPORT = int(np.iinfo(np.int32).max)
EDGES_PER_THREAD = 4
TRIANGLE_BYTES = 32  # 24 of the incidence, and some to spare


def decompose(ranks: Ranked, edges: EdgeList, method: str, until: int) -> Array:
    """int32[m], in the order of the edge list: truss numbers below `until`, and `until` for the
    edges that are left then."""
    if ranks.num_edges == 0:
        return cupy.empty(0, np.int32)
    if method == "incidence":
        support = triangles.support(ranks)
        starts, pairs = triangles.incidence(ranks, support)
        items = ranks.num_edges + len(pairs) // PIECE
        return _peel("peel_listed", support, until, items, starts, pairs)[edges.slot]
    rows = edge_rows(ranks.view, edges.src, edges.dst)
    if method == "affected":
        from .paper.cuda import by_affected  # when needed, as on the CPU

        return by_affected(rows, until)
    support = triangles.support(ranks)[edges.slot]
    return by_intersection(ranks.view, rows, support, until)


def edge_rows(view: View, src: Array, dst: Array) -> EdgeRows:
    """src, dst: the edges of the simple view, sorted."""
    n, entries = view.num_vertices, len(view.indices)
    upper = cupy.searchsorted(src, cupy.arange(n + 1, dtype=np.uint32))
    number = cupy.empty(entries, np.int32)
    launch.run(
        "algorithms/truss/edge_rows.cu", "number_entries", entries,
        view.indptr, view.indices, n, entries, upper, number,
    )  # fmt: skip
    last = view.indptr[1:].copy()
    return EdgeRows(src, dst, view.indptr, last, view.indices.copy(), number)


def by_intersection(view: View, rows: EdgeRows, support: Array, until: int) -> Array:
    """int32[m], as `decompose` returns, from the view's `edge_rows`. Takes over `rows` and
    `support`."""
    src, dst, first, last, _, _ = rows
    degree = last - first[:-1]
    shorter = cupy.minimum(degree[src], degree[dst])
    items = int(((shorter + (PIECE - 1)) // PIECE).sum())
    return _peel("peel_intersected", support, until, items, *rows, view.num_vertices, len(src))


def _peel(kernel: str, support: Array, until: int, items: int, *triangles: Any) -> Array:
    """Run a kernel of truss.cu, whose queue never has more than `items`. Takes over `support`."""
    m = len(support)
    truss = cupy.full(m, until, np.int32)
    # peel.cuh: Control. Each of its levels is a word for how many live and one for the least
    # support. It is filled on the device: a copy from the host would take pinned memory, whose
    # allocation makes devices wait.
    control = cupy.zeros(7, np.int64)
    control[1] = m
    control[2::2] = NO_SUPPORT
    launch.run_together(
        "algorithms/truss/truss.cu", kernel, m // EDGES_PER_THREAD,
        support, cupy.zeros(m, np.uint8), truss, cupy.empty(items, np.uint64),
        cupy.arange(m, dtype=np.int32), cupy.empty(m, np.int32), control, until, *triangles,
    )  # fmt: skip
    return truss
