"""Cores of bipartite graphs, and graphs numbered in another order, on a CUDA device.

The counterpart of `cpu`; the kernel is in peel.cu.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.arrays import row_numbers
from lpma.cuda import driver, launch
from lpma.pma.keys import HALF, LOW

from ...arrays import inverse_of
from .types import Bipartite

Array = Any  # cupy.ndarray
Rows = tuple[Array, Array]  # indptr int64[n+1], indices uint32[m]

WARP = 32  # threads; peel.cu gives each queued vertex a warp


def peel(
    left_indptr: Array,
    left: Array,
    right_indptr: Array,
    right: Array,
    degrees: Array,
    of_left: int,
    of_right: int,
) -> None:
    """As `cpu.peel`, with the same arguments."""
    a, b = len(left_indptr) - 1, len(right_indptr) - 1
    queue, counts = cupy.empty(a + b, np.int64), driver.zeros(3, np.uint64)
    launch.run_together(
        "algorithms/biclique/bipartite/peel.cu", "peel", WARP * (a + b),
        left_indptr, left, a, right_indptr, right, b, degrees, of_left, of_right, queue, counts,
    )  # fmt: skip


def renumbered(b: Bipartite, left: Array, right: Array) -> Bipartite:
    """As `bipartite.renumbered`, by sorting the edges twice."""
    row = row_numbers(b.left_indptr, b.num_edges)
    ends = inverse_of(left, np.uint64)[row], inverse_of(right, np.uint64)[b.left_indices]
    return Bipartite(
        *_sorted_rows(*ends, b.num_left), *_sorted_rows(*ends[::-1], b.num_right),
        b.left_ids[left], b.right_ids[right],
    )  # fmt: skip


def by_falling_degree(indptr: Array) -> Array:
    """As `triangles.cpu.by_falling_degree`."""
    n = len(indptr) - 1
    degrees = (indptr[1:] - indptr[:-1]).astype(np.uint64)
    keys = LOW - degrees << HALF | cupy.arange(n, dtype=np.uint64)
    keys.sort()
    return (keys & LOW).astype(np.uint32)


def _sorted_rows(rows: Array, entries: Array, n: int) -> Rows:
    keys = rows << HALF | entries
    keys.sort()
    fences = cupy.arange(n + 1, dtype=np.uint64) << HALF
    return cupy.searchsorted(keys, fences).astype(np.int64), (keys & LOW).astype(np.uint32)
