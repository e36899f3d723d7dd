"""Core numbers on a CUDA device by the programs that the k-core papers compare.

`peel`: Ahmad, Yuan, Yan, Guo, Chen and Zhang, "Accelerating k-core decomposition by a GPU", ICDE
2023, Algorithms 1 to 3 and Section IV-C, in the nine versions of its Table II (peel.cu). As in
Algorithm 1 the host launches two kernels per level and reads back how many vertices are peeled. If
rings overflowed, it distributes the spilled vertices and launches the second kernel again.
`h_index` is `core.cuda.h_index`.
`vector`: Mehrafsa, Chester and Thomo, "Vectorising k-core decomposition for GPU acceleration",
SSDBM 2020 (VETGA): peeling by whole-array primitives alone.

Each takes indptr int64[n+1] and indices uint32[m] of a simple undirected view on the current device
and returns int32[n]; work is enqueued on the current stream.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cupy
import numpy as np

from lpma.arrays import any_of
from lpma.cuda import driver, launch

from ..cuda import h_index

Array = Any  # cupy.ndarray

BLOCK = 1024  # peel.cu
RING = 1 << 16  # vertices that a block's queue has room for
COMPACTIONS = {"": 0, "-bc": 1, "-ec": 2}  # peel.cu: Compaction, Read
READS = {"": 0, "-sm": 1, "-vp": 2}


def peel(indptr: Array, indices: Array, compaction: int, read: int) -> Array:
    """Core numbers by one of the nine versions; see COMPACTIONS and READS."""
    n = len(indptr) - 1
    blocks = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    degree = (indptr[1:] - indptr[:-1]).astype(np.int32)
    rings = (cupy.empty(blocks * RING, np.uint32), np.uint32(RING))
    ends = cupy.empty(blocks, np.uint32)
    spilled = cupy.empty(n, np.uint32)
    counts = driver.zeros(2, np.uint32)  # peeled, spilled

    def start(name: str, *args: Any) -> None:
        launch.run("algorithms/core/paper/peel.cu", name, blocks * BLOCK, *args, block=BLOCK)

    def loop(level: Any) -> tuple[int, int]:
        start(
            f"loop<{compaction}, {read}>",
            indptr, indices, level, degree, *rings, ends, spilled, counts,
        )  # fmt: skip
        peeled, waiting = driver.fetch(counts).tolist()
        return peeled, waiting

    peeled, level = 0, np.int32(0)
    while peeled < n:
        start(f"scan<{compaction}>", n, level, degree, *rings, ends, spilled, counts)
        peeled, waiting = loop(level)
        while waiting:
            taken = min(waiting, blocks * RING)
            counts[1] = waiting - taken
            start("refill", waiting - taken, taken, spilled, *rings, ends)
            peeled, waiting = loop(level)
        level += np.int32(1)
    return degree


def vector(indptr: Array, indices: Array) -> Array:
    """Core numbers by primitives: a round gathers the rows of the level's vertices, and subtracts
    how often each vertex occurs from its degree."""
    n = len(indptr) - 1
    degree = indptr[1:] - indptr[:-1]
    core = driver.zeros(n, np.int32)
    alive = degree > 0
    while any_of(alive):
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
    place = cupy.arange(driver.number(ends, -1))
    row = cupy.searchsorted(ends, place, side="right")
    return indices[place - ends[row] + indptr[rows + 1][row]]


METHODS: dict[str, Callable[[Array, Array], Array]] = {
    **{
        f"peel{by}{how}": partial(peel, compaction=compaction, read=read)
        for by, compaction in COMPACTIONS.items()
        for how, read in READS.items()
    },
    "h-index": h_index,
    "vector": vector,
}
