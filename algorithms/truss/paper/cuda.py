"""Truss numbers by the slides' program on a CUDA device: see the package, and affected.cu.

The host launches the kernels in the slides' order, and reads back how many edges are affected and
whether any stands. The slides' long update is left out: edges stay in their rows.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.arrays import any_of
from lpma.cuda import driver, launch

from ..intersect_cpu import EdgeRows

Array = Any  # cupy.ndarray

FILE = "algorithms/truss/paper/affected.cu"


def by_affected(rows: EdgeRows, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then."""
    m = len(rows.src)
    truss = cupy.full(m, until, np.int32)
    standing, to_delete = (cupy.full(m, by, np.uint8) for by in (1, 0))
    selected = cupy.empty(m, np.int32)
    k = 3
    while k <= until and any_of(standing):
        affected = standing.copy()
        while length := _select(standing, affected, selected):
            affected.fill(0)
            launch.run(
                FILE, "check_affected_edges", length,
                selected, length, k - 2, *rows, standing, affected, to_delete,
            )  # fmt: skip
            launch.run(FILE, "short_update", m, m, to_delete, k, standing, truss)
        k += 1
    return truss


def _select(standing: Array, affected: Array, selected: Array) -> int:
    """List the edges that are affected and stand. Returns how many there are."""
    m, count = len(selected), driver.zeros(1, np.uint64)
    launch.run(FILE, "select_affected", m, m, standing, affected, selected, count)
    return driver.number(count)
