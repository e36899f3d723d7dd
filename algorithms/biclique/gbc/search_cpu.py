"""A search on the CPU: its tasks, and a workspace for every thread."""

from __future__ import annotations

from functools import partial

import numpy as np

from lpma.cpu.threads import THREADS

from ...arrays import Array, starts_of
from ..progress import stoppable, watched
from . import compact_cpu
from .compact_cpu import STOP, WORD, Workspace
from .types import Prices, Search

__all__ = ["WORD", "prices", "search"]


PAIRS, MOST_PAIRS = 32, 1 << 14  # that a thread takes at a time, at least and at most
RUNS = 64  # times that a thread takes some
SMALL_WORK = 512  # pairs below which one thread is used
# Bytes of a part: its rows and their starts in both directions, the table of one thread, and
# numbers for each root and vertex.
VERTEX, EDGE, OTHER = 80, 8, 8
FIXED = 1 << 14


def search(searched: Search, num_candidates: Array, bins: int, memory_limit: int | None) -> Array:
    """uint64[bins]: the histogram of a search, as by `gbc.histogram`.

    num_candidates: int32[n], 0 for a vertex that is not a root. memory_limit: bytes within which
    the search stays, its graph included. REQUIRES: memory_limit is at least what `prices` gives."""
    graph, depth = searched.graph, searched.depth
    roots = np.flatnonzero(num_candidates >= depth - 1)
    starts = starts_of(num_candidates[roots])
    of_root = num_candidates.astype(np.int64)
    columns = int(of_root.max(initial=0))
    cells = int((of_root * -(-np.diff(graph.left_indptr) // WORD)).max(initial=0))
    sizes = graph.num_left, _levels(depth), columns + 1, cells + 1, bins
    threads = THREADS if starts[-1] >= SMALL_WORK else 1
    if memory_limit is not None:
        held = graph.num_left, len(graph.left_indices), graph.num_right, columns, cells
        spare = memory_limit - prices(depth, bins).least(*held)
        threads = max(1, min(threads, 1 + spare // Workspace.bytes_of(*sizes)))
    # A thread makes the bitmaps of each root that it takes pairs of, so it should take long runs.
    tasks = int(starts[-1])
    grain = min(MOST_PAIRS, max(PAIRS, tasks // (threads * RUNS)))
    queue = np.array([0, tasks, 0], np.int64)
    given = (queue, grain, graph.rows, roots, starts, depth, searched.least)
    calls = [(*given, Workspace.of(*sizes)) for _ in range(threads)]
    stop = partial(queue.__setitem__, STOP, 1)
    with watched(queue, tasks, stop):
        stoppable(compact_cpu.search, calls, stop)
    return sum((call[-1].histogram for call in calls), np.zeros(bins, np.uint64))


def prices(depth: int, bins: int) -> Prices:
    """What it costs to search a part with one thread."""
    levels = _levels(depth)
    return Prices(8 * bins + 24 * levels + FIXED, VERTEX, EDGE, OTHER, 12, 8 * levels)


def _levels(depth: int) -> int:
    return max(1, depth - 2)
