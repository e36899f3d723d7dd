"""Strong components on a CUDA device: two searches from a pivot, and one launch for the rest.

strong_components.cu has the encoding, the package the method. The host reads back which vertex is
the pivot, and at the end whether the graph was too deep: see `steps`.

Memory: 48 bytes a vertex and a sixteenth of a byte an entry, besides the rows and the transpose.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.cuda.work_queue import queue_room

from ..bfs import cuda as bfs
from ..views.simple import View

Array = Any  # cupy.ndarray

FILE = "algorithms/strong_components/strong_components.cu"
# strong_components.cu: State, in 64-bit words: pivot, live, least and gave_up, three records of two
PIVOT, LEAST, STATE_WORDS = 0, 2, 3 + 3 * 2  # `gave_up` is above `least`
LOW = (1 << 32) - 1
SWEEP_THREADS = 1 << 18  # for the pivot, of which each looks at several vertices
STEPS, SIZE_PER_STEP = 2048, 512


def steps(view: View) -> int:
    """How many steps a graph gets, and levels either search: as many, at some µs each, as take
    about as long as the host for the whole graph, at some ns per vertex and entry."""
    return STEPS + (view.num_rows + len(view.indices)) // SIZE_PER_STEP


def components(view: View, reverse: View) -> Array | None:
    """int32[n]: the smallest vertex of each vertex's strong component; None if the graph's steps do
    not suffice. reverse: the transpose. Waits for the device."""
    label, gave_up = within(view, reverse, steps(view))
    return None if gave_up else label


def within(view: View, reverse: View, most: int) -> tuple[Array, int]:
    """The labels; and after how many steps they were given up, 0 if they were not. most: steps, and
    levels of either search."""
    n, m = view.num_rows, len(view.indices)
    state = driver.zeros(STATE_WORDS, np.uint64)
    launch.run(FILE, "pick_pivot", min(n, SWEEP_THREADS), view.indptr, reverse.indptr, n, state)
    chosen = int(state[PIVOT])
    if chosen >> 32 == 0:  # no vertex has edges both ways
        return cupy.arange(n, dtype=np.int32), 0
    pivot = chosen & LOW
    state[LEAST] = LOW
    hops_from, _ = bfs.search(view, reverse, pivot, most)
    hops_to, _ = bfs.search(reverse, view, pivot, most)
    label, least, region, colour, live, other = (
        cupy.empty(n, dtype) for dtype in (np.int32, *5 * [np.uint32])
    )
    launch.run(
        FILE, "split", n, view.indptr, reverse.indptr, n, pivot, most, hops_from, hops_to,
        label, least, region, live, state,
    )  # fmt: skip
    queue = cupy.empty(2 * queue_room(n, m), np.uint64)
    launch.run_together(
        FILE, "refine", n, view.indptr, view.indices, reverse.indptr, reverse.indices, n, m, most,
        label, least, region, colour, hops_from, hops_to, live, other, queue, state,
    )  # fmt: skip
    launch.run(FILE, "name", n, n, pivot, least, state, label)
    return label, int(state[LEAST]) >> 32
