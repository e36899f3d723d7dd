"""Breadth-first search on a CUDA device: one cooperative launch, all levels.

bfs.cu has the method.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.cuda.work_queue import queue_room

from ..views.simple import View

Array = Any  # cupy.ndarray

STEP_WORDS = 3 * 3  # bfs.cu: three records of three 64-bit words
ENTRIES_PER_THREAD = 8
TRANSPOSING = 2  # as in cpu.py
ALL_LEVELS = np.iinfo(np.int32).max


def search(
    view: View, reverse: View | None, source: int, levels: int = ALL_LEVELS
) -> tuple[Array, Array]:
    """int32[n]: hops from `source`, −1 for a vertex that is not reached; and uint64: how many edges
    leave the vertices reached.

    reverse: the rows of the transpose; None: all levels are top-down, so these edges are the ones
    examined. levels: vertices further away count as unreached."""
    n, m = view.num_rows, len(view.indices)
    hops = cupy.full(n, -1, np.int32)
    reached = driver.zeros(-(-n // 32), np.uint32)
    queue = cupy.empty(queue_room(n, m), np.uint64)
    steps = driver.zeros(STEP_WORDS + 1, np.uint64)
    back = reverse or view
    threads = max(n, m // ENTRIES_PER_THREAD)
    launch.run_together(
        "algorithms/bfs/bfs.cu", "search", threads,
        view.indptr, view.indices, back.indptr, back.indices, n, m, int(reverse is not None),
        source, levels, hops, reached, queue, steps, steps[STEP_WORDS:],
    )  # fmt: skip
    return hops, steps[STEP_WORDS]
