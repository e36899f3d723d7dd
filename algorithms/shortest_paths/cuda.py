"""Shortest paths on a CUDA device: distances in one cooperative launch, predecessors in another.

paths.cu has the methods. Only `measure` waits for the device.

The bound of the near pile moves by delta, at first DELTA times the mean weight over the mean
degree: with evenly spread weights, a vertex has about DELTA neighbours within it. The kernel adapts
it.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.cuda.work_queue import queue_room

from ..views.simple import View
from .cpu import Lengths

Array = Any  # cupy.ndarray

FILE = "algorithms/shortest_paths/paths.cu"
STEP_WORDS = 3 * 3  # paths.cu: three records of three 64-bit words
ENTRIES_PER_THREAD = 8
DELTA = 0.5
NONE = np.iinfo(np.uint64).max  # paths.cu
C_NAMES = {"float32": "float", "float64": "double"}


def measure(weights: Array) -> tuple[int, float]:
    """As `cpu.first_refused`; and the mean of all weights."""
    m = len(weights)
    seen = cupy.asarray(np.array([NONE, 0], np.uint64))  # the first, and the sum
    launch.run_together(
        FILE, f"measure<{_kind(weights)}>", m // ENTRIES_PER_THREAD, weights, m, seen, seen[1:]
    )
    first, total = driver.fetch(seen)
    return (int(first) if first < m else -1), float(total.view(np.float64)) / max(m, 1)


def distances(view: View, lengths: Lengths, source: int) -> Array:
    """As `cpu.distances`."""
    n, m = view.num_rows, len(view.indices)
    found = cupy.empty(n, np.float64)
    items = queue_room(n, m)
    launch.run_together(
        FILE, f"distances<{_kind(lengths.weights)}>", _threads(n, m), view.indptr, view.indices,
        lengths.weights, n, source, np.float64(DELTA * lengths.mean * n / max(m, 1)), found,
        cupy.empty(2 * items, np.uint64), items, cupy.empty(2 * n, np.uint32),
        cupy.empty(2 * n, np.uint32), cupy.empty(STEP_WORDS, np.uint64),
    )  # fmt: skip
    return found


def predecessors(view: View, lengths: Lengths, source: int, found: Array) -> Array:
    """As `cpu.predecessors`."""
    n, m = view.num_rows, len(view.indices)
    before = cupy.empty(n, np.int32)
    launch.run_together(
        FILE, f"tree<{_kind(lengths.weights)}>", _threads(n, m), view.indptr, view.indices,
        lengths.weights, n, source, found, cupy.empty(n, np.uint64),
        cupy.empty(queue_room(n, m), np.uint64), cupy.empty(3, np.uint64), before,
    )  # fmt: skip
    return before


def _kind(weights: Array) -> str:
    return C_NAMES[str(weights.dtype)]


def _threads(n: int, m: int) -> int:
    return max(n, m // ENTRIES_PER_THREAD)
