"""Truss decomposition on a CUDA device: see `algorithms.truss` for the methods.

"incidence" and "intersect" are one cooperative launch each (truss.cu, peel.cuh); "affected" is the
slides' program, which launches its kernels from here and reads two numbers back.

Requires arrays on the current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

from ..triangles import cuda
from ..triangles.ranked import EdgeList, Ranked
from ..views.simple import View

Array = Any  # cupy.ndarray

PIECE = 128  # peel.cuh
EDGES_A_THREAD = 4
NO_SUPPORT = int(np.iinfo(np.int32).max)


def free_bytes() -> int:
    """What can be allocated on the current device."""
    pool = cupy.get_default_memory_pool()
    return int(cupy.cuda.Device().mem_info[0]) + int(pool.free_bytes())


def decompose(ranks: Ranked, edges: EdgeList, method: str, until: int) -> Array:
    """int32[m], in the order of the edge list: truss numbers below `until`, and `until` for the
    edges that are left then."""
    if ranks.num_edges == 0:
        return cupy.empty(0, np.int32)
    if method == "incidence":
        support = cuda.support(ranks)
        starts, pairs = cuda.incidence(ranks, support)
        items = ranks.num_edges + len(pairs) // PIECE
        return _peel("peel_listed", support, until, items, starts, pairs)[edges.slot]
    rows = edge_rows(ranks.view, edges.src, edges.dst)
    if method == "affected":
        return _affected(rows, until)
    support = cuda.support(ranks)[edges.slot]
    return by_intersection(ranks.view, rows, support, until)


def _peel(kernel: str, support: Array, until: int, items: int, *triangles: Any) -> Array:
    """Run a kernel of truss.cu; its queue never has more than `items`. Takes `support` over."""
    m = len(support)
    truss = cupy.full(m, until, np.int32)
    # peel.cuh: Control, the words of a level being how many live and the least support.
    # Filled there: what comes from the host takes pinned memory, for which devices wait.
    control = cupy.zeros(7, np.int64)
    control[1] = m
    control[2::2] = NO_SUPPORT
    launch.run_together(
        "algorithms/truss/truss.cu", kernel, m // EDGES_A_THREAD,
        support, cupy.zeros(m, np.uint8), truss, cupy.empty(items, np.uint64),
        cupy.arange(m, dtype=np.int32), cupy.empty(m, np.int32), control, until, *triangles,
    )  # fmt: skip
    return truss


def edge_rows(view: View, src: Array, dst: Array) -> tuple[Array, ...]:
    """edge_rows.cuh: EdgeRows without n; the last three may be written. src, dst: the edges of the
    simple view, sorted."""
    n, entries = view.num_vertices, len(view.indices)
    upper = cupy.searchsorted(src, cupy.arange(n + 1, dtype=np.uint32))
    number = cupy.empty(entries, np.int32)
    launch.run(
        "algorithms/truss/paper/affected.cu", "number_entries", entries,
        view.indptr, view.indices, n, entries, upper, number,
    )  # fmt: skip
    last = view.indptr[1:].copy()
    return src, dst, view.indptr, last, view.indices.copy(), number


def by_intersection(view: View, rows: tuple[Array, ...], support: Array, until: int) -> Array:
    """int32[m], as `decompose` gives them, from the view's `edge_rows`. Writes to these, and takes
    `support` over."""
    src, dst, first, last, _, _ = rows
    degree = last - first[:-1]
    shorter = cupy.minimum(degree[src], degree[dst])
    items = int(((shorter + (PIECE - 1)) // PIECE).sum())
    return _peel("peel_intersected", support, until, items, *rows, view.num_vertices, len(src))


def _affected(rows: tuple[Array, ...], until: int) -> Array:
    """The slides' two loops, without their long update."""
    m = len(rows[0])
    truss = cupy.full(m, until, np.int32)
    standing, affected, to_delete = (cupy.full(m, by, np.uint8) for by in (1, 0, 0))
    selected = cupy.empty(m, np.int32)
    k, left = 3, m
    while left and k <= until:
        _run("mark", m, m, standing, affected)
        while length := _counted("select_affected", m, standing, affected, selected):
            _run("mark_all", m, m, np.uint8(0), affected)
            _run(
                "check_affected_edges", length,
                selected, length, k - 2, *rows, standing, affected, to_delete,
            )  # fmt: skip
            _run("short_update", m, m, to_delete, k, standing, truss)
        left = _counted("count_edges", m, standing)
        k += 1
    return truss


def _run(kernel: str, items: int, *args: Any) -> None:
    launch.run("algorithms/truss/paper/affected.cu", kernel, items, *args)


def _counted(kernel: str, m: int, *args: Any) -> int:
    """Run a kernel over all edges whose last argument counts something; the count."""
    count = cupy.zeros(1, np.uint64)
    _run(kernel, m, m, *args, count)
    return int(count[0])
