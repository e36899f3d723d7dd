"""The transpose of a graph on a CUDA device: its entries as keys, target above source, sorted.

A radix sort of 64-bit keys runs at the speed of the memory and needs no special treatment of
vertices with many in-edges, where the atomic counters of a counting sort would contend.

Requires indptr int64[n+1] and indices uint32[m] on the current device. Work is enqueued on the
current stream and waited for, since a view may be used from any stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.arrays import row_numbers

Array = Any  # cupy.ndarray


def transpose(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """indptr int64[n+1] and indices uint32[m] of the transpose, rows sorted, repeats kept."""
    n = len(indptr) - 1
    keys = _keys(indptr, indices)
    keys.sort()
    starts = cupy.searchsorted(keys, cupy.arange(n + 1, dtype=np.uint64) << np.uint64(32))
    sources = keys.astype(np.uint32)  # the low half
    cupy.cuda.get_current_stream().synchronize()
    return starts.astype(np.int64, copy=False), sources


def move_weights(indptr: Array, indices: Array, weights: Array) -> Array:
    """weights[m] in the order of the transpose's entries; repeats of an entry in any order."""
    moved = weights[cupy.argsort(_keys(indptr, indices))]
    cupy.cuda.get_current_stream().synchronize()
    return moved


def _keys(indptr: Array, indices: Array) -> Array:
    """uint64[m]: target << 32 | source."""
    sources = row_numbers(indptr, len(indices)).astype(np.uint64)
    return indices.astype(np.uint64) << np.uint64(32) | sources
