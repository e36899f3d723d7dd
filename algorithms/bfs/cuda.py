"""Breadth-first search on a CUDA device: one cooperative launch, all levels.

bfs.cu has the method. Requires rows on the current device; work is enqueued on the current stream,
and nothing is waited for.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

from ..views.simple import View

Array = Any  # cupy.ndarray

PIECE = 256  # bfs.cu: entries of a row that a queue's item stands for
STEP_WORDS = 3 * 3  # bfs.cu: three records of three 64-bit words
ENTRIES_PER_THREAD = 8


def search(view: View, reverse: View, can_go_back: bool, source: int) -> Array:
    """int32[n]: hops from `source`, −1 for a vertex that is not reached.

    reverse: the rows of the transpose, read only if `can_go_back`."""
    n, m = view.num_vertices, len(view.indices)
    hops = cupy.full(n, -1, np.int32)
    queue = cupy.empty(n + m // PIECE, np.uint64)
    steps = cupy.zeros(STEP_WORDS, np.uint64)
    threads = max(n, m // ENTRIES_PER_THREAD)
    launch.run_together(
        "algorithms/bfs/bfs.cu", "search", threads,
        view.indptr, view.indices, reverse.indptr, reverse.indices, n, m, int(can_go_back),
        source, hops, queue, steps,
    )  # fmt: skip
    return hops
