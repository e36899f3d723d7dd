"""Common neighbours of pairs of vertices, and of one vertex with all others, on a CUDA device.

similarity.cu has the method. Requires sorted rows, and fewer than 2^32 pairs.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..arrays import starts_of
from ..views.simple import View

Array = Any  # cupy.ndarray

FILE = "algorithms/similarity/similarity.cu"
TILE, BLOCK, EACH = 8, 256, 8  # similarity.cu
WARP = 32
WORK_WORDS = 3  # similarity.cu: Work


def of_pairs(
    view: View, left: Array, right: Array, values: Array | None = None
) -> tuple[Array, Array, Array]:
    """As `cpu.of_pairs`, to the bit."""
    pairs = len(left)
    common, either = cupy.empty(pairs, np.int64), cupy.empty(pairs, np.int64)
    total = driver.zeros(pairs, np.float64)
    args = (
        view.indptr, view.indices, left, right, pairs,
        np.uint64(0) if values is None else values, common, total, either,
        driver.zeros(WORK_WORDS, np.uint64), cupy.empty(pairs, np.uint32),
    )  # fmt: skip
    if pairs:
        launch.run(FILE, "in_tiles", TILE * pairs, *args)
        block = BLOCK if values is None else WARP
        launch.run_together(FILE, "in_blocks", block * pairs, *args, block=block)
        if values is None:
            launch.run_together(FILE, "by_all", len(view.indices), *args)
    return common, total, either


def with_all(view: View, vertex: int) -> Array:
    """As `cpu.with_all`. Waits for the device."""
    counts = driver.zeros(view.num_rows, np.int64)
    first, end = map(int, view.indptr[vertex : vertex + 2].tolist())
    neighbors, degree = view.indices[first:end], end - first
    if degree == 0:
        return counts
    lengths = cupy.empty(degree, np.int64)
    launch.run(FILE, "row_lengths", degree, view.indptr, neighbors, degree, lengths)
    starts = starts_of(lengths)
    launch.run_together(
        FILE, "count_paths", -(-len(view.indices) // EACH),
        view.indptr, view.indices, neighbors, degree, starts, counts, block=BLOCK,
    )  # fmt: skip
    counts[vertex] = 0
    return counts
