"""Core numbers on a CUDA device: one cooperative kernel by default, and what it is compared with.

"cooperative" is ours, see core_cooperative.cu. "peel" and its eight variants are the k-core paper's
(core_peel.py), "h-index" refines estimates (h_index.cu), and "vector" is the method of Mehrafsa,
Chester and Thomo, "Vectorising k-core decomposition for GPU acceleration", SSDBM 2020 (VETGA):
peeling in terms of whole-array primitives alone.

Each takes indptr int64[n+1] and indices uint32[m] of a simple undirected view on the current
device and returns int32[n]; work is enqueued on the current stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

from .paper.cuda import VARIANTS

Array = Any  # cupy.ndarray

BLOCK = 1024  # core_cooperative.cu: BLOCK, CHUNK
CHUNK = 128
CONTROL_BYTES = 3 * 20 + 4 + 48  # three Counts, then the State on a multiple of 16 bytes
ENTRIES_PER_THREAD = (
    8  # of the whole graph: a small one gets a small grid, whose barriers are cheap
)
LONG = 1024  # h_index.cu
NO_MOST = int(np.iinfo(np.int32).max)


def cooperative(indptr: Array, indices: Array) -> Array:
    """All levels in one kernel."""
    n, m = len(indptr) - 1, len(indices)
    core = cupy.empty(n, np.int32)
    degree = cupy.empty(n, np.int32)
    queue = cupy.empty(n + m // CHUNK + 1, np.uint64)
    lists = cupy.empty(3 * n, np.uint32)
    control = cupy.zeros(CONTROL_BYTES, np.uint8)
    if n:
        launch.run_together(
            "algorithms/core/cooperative.cu", "core_cooperative", n + m // ENTRIES_PER_THREAD,
            indptr, indices, n, degree, core, queue, lists, control, control[64:],
            block=BLOCK,
        )  # fmt: skip
    return core


def h_index(indptr: Array, indices: Array, most: int = NO_MOST) -> Array:
    """Estimates, refined in rounds; the host asks after each whether anything changed. `most`
    stands for all numbers above it too: estimates then start no higher."""
    n = len(indptr) - 1
    degree = indptr[1:] - indptr[:-1]
    hubs = cupy.flatnonzero(degree > LONG)
    estimate = cupy.minimum(degree, most).astype(np.int32)
    now, later = cupy.ones(n, np.uint8), cupy.zeros(n, np.uint8)
    changes = cupy.zeros(1, np.uint32)
    while True:
        marks = (estimate, now, later, changes)
        launch.run("algorithms/core/h_index.cu", "refine_rows", 32 * n, indptr, indices, n, *marks)
        launch.run(
            "algorithms/core/h_index.cu",
            "refine_hubs",
            BLOCK * len(hubs),
            indptr,
            indices,
            hubs,
            *marks,
            block=BLOCK,
        )
        if int(changes[0]) == 0:
            return estimate
        changes.fill(0)
        now, later = later, now


def vector(indptr: Array, indices: Array) -> Array:
    """Peeling by primitives: a round gathers the rows of all vertices of the level, counts how
    often each vertex is met, and takes that from the degrees."""
    n = len(indptr) - 1
    degree = indptr[1:] - indptr[:-1]
    core = cupy.zeros(n, np.int32)
    alive = degree > 0
    while bool(alive.any()):
        level = int(degree[alive].min())
        peeled = cupy.flatnonzero(alive & (degree <= level))
        while len(peeled):
            core[peeled] = level
            alive[peeled] = False
            degree -= cupy.bincount(_targets(indptr, indices, peeled), minlength=n)
            peeled = cupy.flatnonzero(alive & (degree <= level))
    return core


def _targets(indptr: Array, indices: Array, rows: Array) -> Array:
    """The entries of the given rows, one row after the other."""
    starts = indptr[rows]
    ends = cupy.cumsum(indptr[rows + 1] - starts)
    place = cupy.arange(int(ends[-1]))
    row = cupy.searchsorted(ends, place, side="right")
    return indices[place - ends[row] + indptr[rows + 1][row]]


METHODS: dict[str, Callable[[Array, Array], Array]] = {
    "auto": cooperative,
    "cooperative": cooperative,
    **VARIANTS,
    "h-index": h_index,
    "vector": vector,
}
