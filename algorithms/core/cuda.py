"""Core numbers on a CUDA device, `method="cooperative"`: all levels in one kernel.

refine.cu has the method for small graphs, by h-indices, and cooperative.cu that for all others, by
peeling.

A graph is small if it has at most MOST_VERTICES and MOST_ENTRIES: in larger ones reading rows again
and again costs more than peeling them once. A small graph that takes more than MOST_ROUNDS, with a
long path or the like, is peeled after all; the second kernel decides that, so that the host does
not wait for the first.

Requires indptr int64[n+1] and indices uint32[m] of a simple undirected view on the current device,
with n + m / CHUNK < 2^32. Work is enqueued on the current stream.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import cupy
import numpy as np

from lpma.arrays import any_of
from lpma.cuda import driver, launch
from lpma.cuda.work_queue import queue_room

Array = Any  # cupy.ndarray

BLOCK = 1024  # cooperative.cu: BLOCK, CHUNK; refine.cu: BLOCK; h_index.cu
CHUNK = 128
COUNTS_BYTES = 3 * 16  # cooperative.cu: Counts
# Of the whole graph. A small one gets a small grid, whose barriers are cheap.
ENTRIES_PER_THREAD = 8

MOST_VERTICES, MOST_ENTRIES = 400_000, 1 << 23
MOST_ROUNDS = 1000
LONG = 256  # refine.cu
BINS = BLOCK // 32 * (LONG + 1)  # of a block; more than any core number in so many entries

H_INDEX = "algorithms/core/h_index.cu"
HUB = 1024  # h_index.cu: entries of a row that a block refines
SPARSE = 4  # a share of 1/SPARSE of the rows, below which they are listed
NO_MOST = int(np.iinfo(np.int32).max)


def cooperative(indptr: Array, indices: Array) -> Array:
    """int32[n]: core numbers."""
    n, m = len(indptr) - 1, len(indices)
    core = cupy.empty(n, np.int32)
    last = None
    if n <= MOST_VERTICES and m <= MOST_ENTRIES:
        last = _refine(indptr, indices, core)
    _peel(indptr, indices, None, core, last)
    return core


def peeled(indptr: Array, indices: Array, degree: Array | None) -> Array:
    """As `core.cpu.peeled`; `degree` None: the lengths of the rows."""
    core = cupy.empty(len(indptr) - 1, np.int32)
    _peel(indptr, indices, degree, core, None)
    return core


def _refine(indptr: Array, indices: Array, core: Array) -> Array:
    """Write core numbers to `core`. Returns uint32[1], the last round with work; beyond MOST_ROUNDS
    the numbers may be too high."""
    n, m = len(core), len(indices)
    state = cupy.empty(n, np.uint32)
    control = driver.zeros(2 + m // LONG, np.uint32)  # the last round; long rows: how many, which
    launch.run_together(
        "algorithms/core/refine.cu", "core_refine", n + m // ENTRIES_PER_THREAD, indptr, indices, n,
        isqrt(m), MOST_ROUNDS, core, state, control, control[1:], block=BLOCK, shared=4 * BINS,
    )  # fmt: skip
    return control[:1]


def _peel(
    indptr: Array, indices: Array, degree: Array | None, core: Array, last: Array | None
) -> None:
    """Write to `core` what `peeled` returns, unless `last`, by _refine, says that it is right."""
    n, m = len(core), len(indices)
    is_given = int(degree is not None)
    degree = cupy.empty(n, np.int32) if degree is None else degree
    queue = cupy.empty(queue_room(n, m, CHUNK), np.uint64)
    lists = cupy.empty(3 * n, np.uint32)
    counts = driver.zeros(COUNTS_BYTES, np.uint8)
    if n:
        launch.run_together(
            "algorithms/core/cooperative.cu", "core_cooperative", n + m // ENTRIES_PER_THREAD,
            indptr, indices, n, is_given, MOST_ROUNDS, 0 if last is None else last, degree, core,
            queue, lists, counts, block=BLOCK,
        )  # fmt: skip


def h_index(indptr: Array, indices: Array, most: int = NO_MOST) -> Array:
    """The smaller of `most` and the core numbers, by h-indices."""
    estimate = cupy.minimum(indptr[1:] - indptr[:-1], most).astype(np.int32)
    settle(indptr, indices, estimate, cupy.ones(len(estimate), np.bool_))
    return estimate


def settle(indptr: Array, indices: Array, estimate: Array, marked: Array) -> None:
    """As `cpu.settle`. Waits for the device in each round. Rows are listed, if few of them are
    marked at first: then finding these takes longer than refining them."""
    n = len(estimate)
    hubs = cupy.flatnonzero(indptr[1:] - indptr[:-1] > HUB)
    later, rows = driver.zeros(n, np.bool_), cupy.flatnonzero(marked)
    is_sparse = SPARSE * len(rows) < n
    if not is_sparse:
        rows = cupy.arange(n)
    while len(rows) if is_sparse else any_of(marked):
        graph, marks = (indptr, indices), (estimate, marked, later)
        launch.run(H_INDEX, "refine_rows", 32 * len(rows), *graph, rows, len(rows), *marks)
        launch.run(H_INDEX, "refine_hubs", BLOCK * len(hubs), *graph, hubs, *marks, block=BLOCK)
        marked, later = later, marked
        if is_sparse:
            rows = cupy.flatnonzero(marked)


METHODS = {"auto": cooperative, "cooperative": cooperative}
