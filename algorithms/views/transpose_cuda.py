"""The transpose of a graph on a CUDA device: its entries sorted by target, by radix.

transpose.cu has the method: it runs at the speed of the memory and needs no special treatment of
vertices with many in-edges, where the atomic counters of a counting sort would contend. A pass
moves 8 bytes an entry; 2^24 vertices take three.

Requires indptr int64[n+1] and indices uint32[m] on the current device. Work is enqueued on the
current stream and waited for, since a view may be used from any stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.arrays import row_numbers
from lpma.cuda import launch

Array = Any  # cupy.ndarray


TILE, DIGITS, DIGIT_BITS = 4096, 256, 8  # as in transpose.cu
BLOCK = 256  # threads, of a tile
FILE = "algorithms/views/transpose.cu"


def transpose(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """indptr int64[n+1] and indices uint32[m] of the transpose, rows sorted, repeats kept."""
    n, m = len(indptr) - 1, len(indices)
    targets, sources = cupy.empty(m, np.uint32), cupy.empty(m, np.uint32)
    if m:
        _sort(indptr, indices, targets, sources)
    starts = cupy.searchsorted(targets, cupy.arange(n + 1, dtype=np.uint32))
    cupy.cuda.get_current_stream().synchronize()
    return starts.astype(np.int64, copy=False), sources


def _sort(indptr: Array, indices: Array, targets: Array, sources: Array) -> None:
    """Write the entries' targets and sources, in the order of the transpose."""
    n, m = len(indptr) - 1, len(indices)
    tiles = -(-m // TILE)
    shifts = range(0, max((n - 1).bit_length(), 1), DIGIT_BITS)
    words, moved = (cupy.empty(m if len(shifts) > least else 0, np.uint64) for least in (2, 1))
    counts = cupy.empty(DIGITS * tiles, np.uint32)
    for shift in shifts:
        is_first, is_last = shift == 0, shift == shifts[-1]
        launch.run(
            FILE, "count_digits", BLOCK * tiles,
            indices, words, int(is_first), m, shift, counts, block=BLOCK,
        )  # fmt: skip
        name = f"move_entries<{str(is_first).lower()}, {str(is_last).lower()}>"
        launch.run(
            FILE, name, BLOCK * tiles,
            indptr, indices, n, words, m, shift, counts, cupy.cumsum(counts, dtype=np.int64),
            moved, targets, sources, block=BLOCK,
        )  # fmt: skip
        words, moved = moved, words


def move_weights(indptr: Array, indices: Array, weights: Array) -> Array:
    """weights[m] in the order of the transpose's entries; repeats of an entry in any order."""
    moved = weights[cupy.argsort(_keys(indptr, indices))]
    cupy.cuda.get_current_stream().synchronize()
    return moved


def _keys(indptr: Array, indices: Array) -> Array:
    """uint64[m]: target << 32 | source."""
    sources = row_numbers(indptr, len(indices)).astype(np.uint64)
    return indices.astype(np.uint64) << np.uint64(32) | sources
