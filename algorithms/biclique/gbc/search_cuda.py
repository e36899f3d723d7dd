"""A search on a CUDA device: batches of roots, their candidates and bitmaps, and the launches.

The counterpart of `search_cpu`. A batch has as many roots as memory holds candidates and bitmaps
of. These are made for the whole batch at once (two_hop.cu), then searched depth first (compact.cu).
Waits for the device.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..progress import report
from . import two_hop_cuda
from .job_cuda import (
    BLOCK,
    LEVEL_BYTES,
    WARPS,
    WORD,
    HostArray,
    Job,
    Launches,
    job_of,
    prices,
)  # fmt: skip
from .types import Search

__all__ = ["WORD", "prices", "search"]

Array = Any  # cupy.ndarray

BLOCKS_PER_SM = 8
FREE_SHARE = 2  # half of the free memory is used if no limit is given


def search(
    searched: Search, num_candidates: Array, bins: int, memory_limit: int | None
) -> HostArray:
    """As `search_cpu.search`; the histogram is on the host."""
    graph, depth = searched.graph, searched.depth
    job = job_of(graph, num_candidates, depth, bins)
    if memory_limit is None:
        spare = int(cupy.cuda.runtime.memGetInfo()[0]) // FREE_SHARE
    else:
        spare = memory_limit - prices(depth, bins).least(
            graph.num_left, len(graph.left_indices), graph.num_right, job.columns,
            job.most_cells,
        )  # fmt: skip
    # A quarter each for tables and for workspaces beyond those of one block; half for batches
    # beyond one root.
    spare = max(0, spare)
    searcher = _Searcher(searched, job, spare // 4)
    for first, last in job.batches(spare // 2):
        searcher.run(first, last)
        report(last, len(job.roots))
    found: HostArray = searcher.whole.get()
    return found


class _Searcher:
    """The arrays of a search, which runs batch by batch."""

    def __init__(self, searched: Search, job: Job, spare: int) -> None:
        self.job, self.least = job, searched.least
        self.rows = searched.graph.rows
        self.met = two_hop_cuda.tables(job.n, 4 * job.n + spare)
        self.whole = driver.zeros(job.bins, np.uint64)
        given = (job.roots, job.starts, job.cells, job.lines)
        self.roots, self.starts, self.cells, self.lines = map(cupy.asarray, given)
        most = BLOCKS_PER_SM * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        tasks = int(job.starts[-1])
        self.launches = launches = Launches.of(job, min(most, -(-tasks // WARPS)), spare)
        warps = WARPS * launches.blocks
        words = max(launches.blocks * launches.cells, launches.second * job.level_cells)
        self.space = cupy.empty(max(1, WARPS * job.levels * words), np.uint32)
        self.lists = cupy.empty(warps * (job.columns + 1), np.uint32)
        self.levels = cupy.empty(max(1, warps * job.levels * LEVEL_BYTES), np.uint8)

    def run(self, first: int, last: int) -> None:
        """Add the subsets of roots first … last - 1 to the histogram."""
        job = self.job
        keys = cupy.empty(int(job.starts[last] - job.starts[first]), np.uint64)
        # Counters of what is taken, by lists, bitmaps and two searches; and of the pairs marked.
        counters = driver.zeros(5, np.uint64)
        self._walk(
            "list_candidates", first, last, self.least, self.met, counters[0:], self.roots,
            self.starts, first, last, keys,
        )  # fmt: skip
        keys.sort()
        bitmaps = driver.zeros(int(job.cells[last] - job.cells[first]), np.uint32)
        self._walk(
            "fill_matrices", first, last, self.met, counters[1:], self.roots, self.starts,
            self.cells, first, last, keys, bitmaps,
        )  # fmt: skip
        marks = driver.zeros(len(keys) // 32 + 1, np.uint32)
        given = (keys, self.starts, self.cells, self.lines, first, len(keys), bitmaps)
        launches = self.launches

        def start(blocks: int, cells: int, marked: int) -> None:
            """Launch the search with exactly as many blocks as there are workspaces for."""
            launch.run(
                "algorithms/biclique/gbc/compact.cu", "search", blocks * BLOCK,
                *given, counters[2 + marked :], job.depth, self.least, cells, job.columns + 1,
                self.space, self.lists, self.levels, marks, marked, counters[4:], self.whole,
                block=BLOCK,
            )  # fmt: skip

        start(launches.blocks, launches.cells, 0)
        if launches.second and driver.number(counters, 4):
            start(launches.second, job.level_cells, 1)

    def _walk(self, name: str, first: int, last: int, *arguments: Any) -> None:
        """Launch a walk over two-hop neighbours, with a block per table, or per root if fewer."""
        threads = min(len(self.met), last - first) * two_hop_cuda.BLOCK
        launch.run(
            "algorithms/biclique/gbc/two_hop.cu", name, threads, *self.rows, self.job.n, *arguments,
            block=two_hop_cuda.BLOCK,
        )  # fmt: skip
