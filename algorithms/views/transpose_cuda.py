"""The transpose of a graph on a CUDA device: its entries, sorted by target.

A radix sort (transpose.cu) runs at the speed of memory, however many in-edges a vertex has; the
atomic counters of a counting sort would contend.

Requires indptr int64[n+1] and indices uint32[m] on the current device. Work is enqueued on the
current stream and waited for, since a view may be used from any stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

Array = Any  # cupy.ndarray


FILE = "algorithms/views/transpose.cu"
DIGITS, DIGIT_BITS, BLOCK, TILE = 256, 8, 512, 6144  # transpose.cu
POOL_BYTES = 8 * TILE + 12 * DIGITS  # transpose.cu: Pool
COUNTED_BY_BLOCK = 1 << 15  # entries, whose digits a block counts in its shared memory


def transpose(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """indptr int64[n+1] and indices uint32[m] of the transpose, rows sorted, repeats kept."""
    n, m = len(indptr) - 1, len(indices)
    sources, targets = cupy.empty(m, np.uint32), cupy.empty(m, np.uint32)
    if m:
        _sort(indptr, indices, sources, targets)
    starts = cupy.empty(n + 1, np.int64)
    launch.run(FILE, "find_starts", m + 1, targets, n, m, starts)
    driver.await_stream(cupy.cuda.get_current_stream())
    return starts, sources


def _sort(indptr: Array, indices: Array, sources: Array, targets: Array) -> None:
    """Write the sources and the targets of all entries, by target and then by source."""
    n, m = len(indptr) - 1, len(indices)
    tiles, passes = -(-m // TILE), max(1, -(-(n - 1).bit_length() // DIGIT_BITS))
    counts = driver.zeros((passes, DIGITS), np.uint64)
    count_blocks = -(-m // COUNTED_BY_BLOCK)
    launch.run(FILE, "count_digits", BLOCK * count_blocks, indices, m, passes, counts, block=BLOCK)
    launch.resident_blocks(FILE, "sort_pass", BLOCK, POOL_BYTES, cooperative=False)  # allows it
    kernel = launch.compiled(FILE, "sort_pass")
    pairs: Array = None
    for number in range(passes):
        status = driver.zeros(1 + tiles * DIGITS, np.uint64)
        sorted_pairs = cupy.empty(m, np.uint64) if number + 1 < passes else None
        args = (
            indptr, indices, n, m, DIGIT_BITS * number, counts[number], status,
            _address(pairs), _address(sorted_pairs), sources, targets,
        )  # fmt: skip
        launch.start("sort_pass", kernel, tiles, BLOCK, args, POOL_BYTES)
        pairs = sorted_pairs


def _address(array: Array | None) -> int:
    """Where an array is, for a kernel; 0 for None."""
    return 0 if array is None else int(array.data.ptr)


def move_weights(indices: Array, transposed_indptr: Array, weights: Array) -> Array:
    """As `transpose_cpu.move_weights`."""
    moved = weights[cupy.argsort(indices, kind="stable")]
    driver.await_stream(cupy.cuda.get_current_stream())
    return moved
