"""Truss numbers by the slides' program on a CUDA device: see the package, and affected.cu.

The host launches the kernels in the slides' order, and reads back how many edges are affected and
how many stand. The slides' long update is left out: edges stay in their rows.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..intersect_cpu import EdgeRows

Array = Any  # cupy.ndarray


def by_affected(rows: EdgeRows, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then."""
    m = len(rows.src)
    truss = cupy.full(m, until, np.int32)
    standing, affected, to_delete = (cupy.full(m, by, np.uint8) for by in (1, 0, 0))
    selected = cupy.empty(m, np.int32)
    k, left = 3, m
    while left and k <= until:
        _run("mark", m, m, standing, affected)
        while length := _counted("select_affected", m, standing, affected, selected):
            _run("mark_all", m, m, np.uint8(0), affected)
            _run(
                "check_affected_edges", length,
                selected, length, k - 2, *rows, standing, affected, to_delete,
            )  # fmt: skip
            _run("short_update", m, m, to_delete, k, standing, truss)
        left = _counted("count_edges", m, standing)
        k += 1
    return truss


def _run(kernel: str, items: int, *args: Any) -> None:
    launch.run("algorithms/truss/paper/affected.cu", kernel, items, *args)


def _counted(kernel: str, m: int, *args: Any) -> int:
    """Run a kernel over all edges whose last argument counts something. Returns the count."""
    count = driver.zeros(1, np.uint64)
    _run(kernel, m, m, *args, count)
    return driver.number(count)
