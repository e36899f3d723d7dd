"""Core numbers on a CUDA device, `method="cooperative"`: all levels in one kernel.

cluster.cu has the method for small graphs, by one cluster of blocks, and cooperative.cu that for
all others. This file decides, allocates what the kernels need and launches them.

Requires indptr int64[n+1] and indices uint32[m] of a simple undirected view on the current device,
with n + m / CHUNK < 2^32. Work is enqueued on the current stream.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

Array = Any  # cupy.ndarray

BLOCK = 1024  # state.cuh: BLOCK, CHUNK
CHUNK = 128
CONTROL_BYTES = 3 * 20 + 4 + 48  # three Counts, then the State on a multiple of 16 bytes
# Of the whole graph. A small one gets a small grid, whose barriers are cheap.
ENTRIES_PER_THREAD = 8


# Graphs for a cluster: cluster.cu has CLUSTER, its BLOCK and PLACES.
CLUSTER, CLUSTER_BLOCK, PLACES = 8, 1024, 4096
MOST_DEGREES = 50_000  # of a block, in its shared memory
MOST_ENTRIES = 1 << 23


def cooperative(indptr: Array, indices: Array) -> Array:
    """int32[n]: core numbers."""
    n, m = len(indptr) - 1, len(indices)
    if n > CLUSTER * MOST_DEGREES or m > MOST_ENTRIES or not _has_clusters(indptr.device.id):
        return peeled(indptr, indices, None)
    core = cupy.empty(n, np.int32)
    file, name, block = "algorithms/core/cluster.cu", "core_cluster", CLUSTER_BLOCK
    launch.resident_blocks(file, name, block, 4 * MOST_DEGREES, cooperative=False)  # allows so much
    launch.start(
        name, launch.compiled(file, name), CLUSTER, block,
        (indptr, indices, n, core, PLACES), 4 * -(-n // CLUSTER),
    )  # fmt: skip
    return core


@lru_cache
def _has_clusters(device: int) -> bool:
    return int(cupy.cuda.Device(device).compute_capability) >= 90


def peeled(indptr: Array, indices: Array, degree: Array | None) -> Array:
    """int32[n]: the level at which each vertex is peeled, by `degree`, int32[n], which is written
    over; None: by the lengths of the rows. See `core.cpu.peeled`."""
    n, m = len(indptr) - 1, len(indices)
    core = cupy.empty(n, np.int32)
    is_given = int(degree is not None)
    degree = cupy.empty(n, np.int32) if degree is None else degree
    queue = cupy.empty(n + m // CHUNK + 1, np.uint64)
    lists = cupy.empty(3 * n, np.uint32)
    control = cupy.zeros(CONTROL_BYTES, np.uint8)
    if n:
        launch.run_together(
            "algorithms/core/cooperative.cu", "core_cooperative", n + m // ENTRIES_PER_THREAD,
            indptr, indices, n, is_given, degree, core, queue, lists, control, control[64:],
            block=BLOCK,
        )  # fmt: skip
    return core
