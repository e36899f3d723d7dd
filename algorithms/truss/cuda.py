"""Truss decomposition on a CUDA device: each method with what it needs.

"incidence" and "intersect" are one cooperative launch each (truss.cu, peel.cuh); "affected" is the
slides' program (`paper`). Each takes a ranked view.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.cuda.driver import free_bytes
from lpma.cuda.work_queue import queue_room

from ..triangles import cuda as triangles
from ..triangles.ranked import EdgeList, Ranked
from ..views.simple import View
from .intersect_cpu import EdgeRows

__all__ = ["by_intersection", "decompose", "edge_rows", "free_bytes"]

Array = Any  # cupy.ndarray

FILE = "algorithms/truss/truss.cu"
PIECE = 128  # listed.cuh
BITS, LONG = 16, 4096  # intersect.cuh
LIVING, CONTROL_WORDS = 1, 2 + 3 * 3  # peel.cuh: Control, of three windows of three words
EDGES_PER_THREAD = 4
TRIANGLE_BYTES = 32  # 24 of the incidence, and some to spare
LISTED_MOST = 1 << 28  # triangles; with more, intersecting is faster, too


def chosen(count: int) -> str:
    """The method that "auto" takes for so many triangles."""
    fits = 2 * TRIANGLE_BYTES * count <= free_bytes()
    return "incidence" if fits and count <= LISTED_MOST else "intersect"


def decompose(ranks: Ranked, method: str, until: int) -> tuple[EdgeList, Array]:
    """The edges, and int32[m] of them: truss numbers below `until`, and `until` for the edges that
    are left then."""
    if method == "affected" and ranks.num_edges:
        from .paper.cuda import by_affected  # when needed, as on the CPU

        edges = triangles.edge_list(ranks)
        return edges, by_affected(edge_rows(ranks.view, edges.src, edges.dst), until)
    of_slots = _by_peeling(ranks, method, until)
    edges = triangles.edge_list(ranks)  # in the memory that peeling has left
    return edges, of_slots[edges.slot]


def _by_peeling(ranks: Ranked, method: str, until: int) -> Array:
    """int32[m]: the number of each slot's edge."""
    support = triangles.support(ranks)
    if len(support) == 0:
        return support
    if method == "auto":
        method = chosen(int(support.sum(dtype=np.int64)) // 3)
    if method == "incidence":
        return peel("peel_listed", support, until, *listing(ranks, support))
    return by_intersection(ranked_rows(ranks), support, until)


def edge_rows(view: View, src: Array, dst: Array) -> EdgeRows:
    """src, dst: the edges of the simple view, sorted."""
    n, entries = view.num_rows, len(view.indices)
    upper = cupy.searchsorted(src, cupy.arange(n + 1, dtype=np.uint32))
    number = cupy.empty(entries, np.int32)
    launch.run(
        "algorithms/truss/edge_rows.cu", "number_entries", entries,
        view.indptr, view.indices, n, entries, upper, number,
    )  # fmt: skip
    last = view.indptr[1:].copy()
    return EdgeRows(src, dst, view.indptr, last, view.indices.copy(), number)


def ranked_rows(ranks: Ranked) -> EdgeRows:
    """Both directions of the edges under ranks, numbered by slot: hubs come first in every row."""
    n, m = ranks.view.num_rows, ranks.num_edges
    row = cupy.empty(m, np.uint32)
    launch.run("algorithms/truss/edge_rows.cu", "rows_of_slots", m, ranks.indptr, n, m, row)
    indices, edge = cupy.empty(2 * m, np.uint32), cupy.empty(2 * m, np.int32)
    launch.run(
        "algorithms/truss/edge_rows.cu", "join_ranked", m,
        ranks.indptr, ranks.indices, ranks.in_indptr, ranks.in_slot, m, row, indices, edge,
    )  # fmt: skip
    first = ranks.indptr + ranks.in_indptr
    return EdgeRows(row, ranks.indices, first, first[1:].copy(), indices, edge)


def by_intersection(rows: EdgeRows, support: Array, until: int) -> Array:
    """int32[m] in the order of the edges' numbers, as `decompose` returns. Takes over `rows` and
    `support`. Waits for the device."""
    return peel("peel_intersected", support, until, *intersecting(rows, support))


def listing(ranks: Ranked, support: Array) -> tuple[int, tuple[Any, ...]]:
    """`peel`'s arguments to read an incidence: the most items of its queue; the kernel's own."""
    starts, pairs = triangles.incidence(ranks, support)
    return queue_room(len(support), len(pairs), PIECE), (starts, pairs)


def intersecting(rows: EdgeRows, support: Array) -> tuple[int, tuple[Any, ...]]:
    """`peel`'s arguments to intersect rows."""
    n, m = len(rows.last), len(support)
    items = driver.zeros(1, np.uint64)
    launch.run(FILE, "count_items", m // EDGES_PER_THREAD + 1, *rows, n, m, support, items)
    longs = cupy.flatnonzero(cupy.diff(rows.first) >= LONG).astype(np.uint32)
    filters = cupy.empty(len(rows.indices) * BITS // 32 + 1, np.uint32)
    return driver.number(items), (*rows, n, m, filters, longs, len(longs))


def peel(kernel: str, support: Array, until: int, items: int, triangles: tuple[Any, ...]) -> Array:
    """Run a kernel of truss.cu, whose queue has at most `items`. Takes over `support`."""
    m = len(support)
    truss = cupy.full(m, until, np.int32)
    # It is filled on the device: a copy from the host would take pinned memory, whose allocation
    # makes devices wait.
    control = driver.zeros(CONTROL_WORDS, np.int64)
    control[LIVING] = m
    launch.run_together(
        FILE, kernel, m // EDGES_PER_THREAD,
        support, driver.zeros(m, np.uint8), truss, cupy.empty(items, np.uint64),
        cupy.arange(m, dtype=np.int32), cupy.empty(m, np.int32), control, until, *triangles,
    )  # fmt: skip
    return truss
