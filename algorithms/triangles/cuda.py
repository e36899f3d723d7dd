"""Triangles on a CUDA device: the ranked view, and listing triangles over it (list.cu).

The ranked view (rank.cu) comes from two radix sorts of the edges, which run at the speed of the
memory: by (row, entry), and by (entry, slot), which tells each vertex which rows hold it.

Requires arrays on the current device. Work is enqueued on the current stream; `rank` waits for it,
since a view may be used from any stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.pma.keys import HALF, LOW

from ..arrays import starts_of
from ..views.simple import View
from .ranked import EdgeList, Ranked

Array = Any  # cupy.ndarray

FILE = "algorithms/triangles/rank.cu"
LIST = "algorithms/triangles/list.cu"
HEAVY_THREADS = 512  # list.cu: HEAVY_THREADS, TILE
TILE = 8


def rank(view: View) -> Ranked:
    """The ranked view of a simple view."""
    n, entries = view.num_rows, len(view.indices)
    m = entries // 2
    if m == 0:
        return _without_edges(view)
    by_degree = cupy.empty(n, np.uint64)
    launch.run(FILE, "degree_keys", n, view.indptr, n, by_degree)
    by_degree.sort()
    order, rank_of = cupy.empty(n, np.uint32), cupy.empty(n, np.uint32)
    degree = driver.zeros(n + 1, np.int64)
    launch.run(FILE, "number_vertices", n, by_degree, n, order, rank_of, degree)

    keys = keys_of(view, rank_of, m)
    indptr, indices, _, in_slot, in_length = rows_of_keys(n, keys)
    in_indptr = cupy.cumsum(degree) - indptr
    driver.await_stream(cupy.cuda.get_current_stream())
    return Ranked(view, order, indptr, indices, in_indptr, in_slot, in_length)


def keys_of(view: View, rank_of: Array, count: int) -> Array:
    """uint64[count], in no order: the view's entries of smaller rank than their row's, row above
    entry, by ranks."""
    n, entries = view.num_rows, len(view.indices)
    keys, counter = cupy.empty(count, np.uint64), driver.zeros(1, np.uint64)
    launch.run(
        FILE, "edge_keys", entries, view.indptr, view.indices, n, entries, rank_of, counter, keys
    )
    return keys


def rows_of_keys(n: int, keys: Array) -> tuple[Array, Array, Array, Array, Array]:
    """(indptr, indices, by_entry, in_slot, in_length) of entries among n ranks, uint64, row above
    rank, which are sorted in place. by_entry, uint64, rising: rank above slot."""
    m = len(keys)
    keys.sort()
    indptr = cupy.searchsorted(keys, cupy.arange(n + 1, dtype=np.uint64) << HALF)
    indices, by_entry = cupy.empty(m, np.uint32), cupy.empty(m, np.uint64)
    launch.run(FILE, "entries", m, keys, m, indices, by_entry)
    by_entry.sort()
    in_slot, in_length = cupy.empty(m, np.int32), cupy.empty(m, np.int32)
    launch.run(FILE, "rows_of_entries", m, keys, by_entry, m, indptr, in_slot, in_length)
    return indptr, indices, by_entry, in_slot, in_length


def _without_edges(view: View) -> Ranked:
    none = driver.zeros(view.num_rows + 1, np.int64)
    order = cupy.arange(view.num_rows, dtype=np.uint32)
    entries, slots = cupy.empty(0, np.uint32), cupy.empty(0, np.int32)
    return Ranked(view, order, none, entries, none, slots, slots)


def edge_list(ranks: Ranked) -> EdgeList:
    """As `cpu.edge_list`."""
    n, m = ranks.view.num_rows, ranks.num_edges
    if m == 0:
        return EdgeList(ranks.indices, ranks.indices, ranks.in_slot)
    keys = cupy.empty(m, np.uint64)
    launch.run(FILE, "id_keys", m, ranks.indptr, ranks.indices, n, m, ranks.order, keys)
    slot = cupy.argsort(keys)
    keys = keys[slot]
    src, dst = (keys >> HALF).astype(np.uint32), (keys & LOW).astype(np.uint32)
    return EdgeList(src, dst, slot.astype(np.int32))


def count(ranks: Ranked) -> int:
    """How many triangles there are. Waits for the device."""
    total = driver.zeros(1, np.uint64)
    _list("count", ranks, total)
    return driver.number(total)


def support(ranks: Ranked) -> Array:
    """How many triangles each slot's edge is in: int32[m]."""
    found = driver.zeros(ranks.num_edges, np.int32)
    _list("support", ranks, found)
    return found


def incidence(ranks: Ranked, supports: Array) -> tuple[Array, Array]:
    """Each slot's triangles as pairs of the two other slots, in no order: (starts int64[m+1], pairs
    int32[sum of supports, 2]). Waits for the device."""
    starts = starts_of(supports)
    pairs = cupy.empty((driver.number(starts, -1), 2), np.int32)
    _list("pairs", ranks, starts[:-1].copy(), pairs)
    return starts, pairs


def _list(visit: str, ranks: Ranked, *results: Array) -> None:
    """Call both kernels of a visit ("count", "support" or "pairs") over all triangles."""
    n, m = ranks.view.num_rows, len(ranks.in_slot)
    if m == 0:
        return
    work = cupy.empty(2, np.uint64)
    launch.run(LIST, "split", 1, ranks.indptr, ranks.in_indptr, n, work)
    rows = (
        ranks.indptr, ranks.indices, ranks.in_indptr, ranks.in_slot, ranks.in_length, m, work
    )  # fmt: skip
    vertices = HEAVY_THREADS * n  # a block each, or as many blocks as there is room for
    launch.run_together(LIST, f"{visit}_heavy", vertices, *rows, *results, block=HEAVY_THREADS)
    launch.run_together(LIST, f"{visit}_light", TILE * m, *rows, *results)
