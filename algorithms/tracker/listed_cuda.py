"""Counting what has a listed edge on a CUDA device: what triangles and butterflies share."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cuda import driver, launch

from ..views.simple import View

Array = Any  # cupy.ndarray

BLOCK = 256  # threads


def count(file: str, kernel: str, threads: int, rows: View, edges: Array) -> Array:
    """uint64: the count by a kernel with so many threads for each edge. edges: as in Change."""
    total, items = driver.zeros(1, np.uint64), len(edges)
    arguments = edges, items, rows.indptr, rows.indices, total
    launch.run(file, kernel, threads * items, *arguments, block=BLOCK)
    return total[0]
