"""Connected components on a CUDA device: a few kernels, with nothing read back between them.

components.cu has the method. Requires indptr int64[n+1] and indices uint32[m].
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

Array = Any  # cupy.ndarray

FILE = "algorithms/components/components.cu"
SAMPLE, BLOCK, TILE = 256, 256, 2048  # components.cu
# Entries from which finding the largest tree pays; its kernels take 40 µs.
LARGE = 1 << 22


def components(indptr: Array, indices: Array, is_symmetric: bool) -> Array:
    """int32[n]: the smallest vertex of each vertex's component. is_symmetric: every edge is in the
    rows of both ends, so that reading one of them suffices."""
    n, m = len(indptr) - 1, len(indices)
    parent = cupy.empty(n, np.int32)
    launch.run(FILE, "hang", n, indptr, indices, n, parent)
    if m < LARGE:
        launch.run(FILE, "flatten", n, n, parent)
        launch.run(FILE, "hook", m, indptr, indices, n, m, int(is_symmetric), parent)
    else:
        _join_largest_first(indptr, indices, is_symmetric, parent)
    launch.run(FILE, "flatten", n, n, parent)
    return parent


def leave_out(label: Array, indptr: Array, added: Array, none: int) -> None:
    """As `cpu.leave_out`."""
    n = len(label)
    is_vertex = driver.zeros(n, np.bool_)
    launch.run(FILE, "mark_vertices", n, indptr, n, label, is_vertex)
    is_vertex[added] = True
    launch.run(FILE, "leave_out", n, n, is_vertex, none, label)


def _join_largest_first(indptr: Array, indices: Array, is_symmetric: bool, parent: Array) -> None:
    """Hook all trees together, edges outside the largest one alone."""
    n, m = len(parent), len(indices)
    largest = cupy.empty(1, np.int32)
    inside, settled = cupy.empty((2, -(-n // 32)), np.uint32)
    launch.run(FILE, "join_last", n, indptr, indices, n, parent)
    launch.run(FILE, "find_largest", SAMPLE, n, parent, largest, block=SAMPLE)
    launch.run(FILE, "flatten_and_mark", n, indptr, n, parent, largest, inside, settled)
    launch.run(
        FILE, "hook_outside", -(-m // TILE) * BLOCK,
        indptr, indices, n, m, int(is_symmetric), inside, settled, parent, block=BLOCK,
    )  # fmt: skip
