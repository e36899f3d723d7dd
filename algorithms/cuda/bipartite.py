"""Sides of bipartite graphs on a CUDA device: their cores, and their order by degree.

See bipartite.cu. Requires arrays on the current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from . import launch

Array = Any  # cupy.ndarray

WARP = 32  # bipartite.cu: a warp a vertex of the queue


def peel(
    left_indptr: Array,
    left: Array,
    right_indptr: Array,
    right: Array,
    degrees: Array,
    of_left: int,
    of_right: int,
) -> None:
    """As `algorithms.biclique.bipartite._peel`, whose arguments these are."""
    a, b = len(left_indptr) - 1, len(right_indptr) - 1
    queue, tail = cupy.empty(a + b, np.int64), cupy.zeros(1, np.uint64)
    launch.run_together(
        "bipartite", "peel", WARP * (a + b),
        left_indptr, left, a, right_indptr, right, b, degrees, of_left, of_right, queue, tail,
    )  # fmt: skip
