"""A search on a CUDA device: batches of roots, their candidates and bitmaps, and the launches.

The counterpart of `search_cpu`. A batch has as many roots as memory holds candidates and bitmaps
of. These are made for the whole batch at once (two_hop.cu), then searched depth first (compact.cu,
paper/truncated.cu). Requires arrays on the current device; work is enqueued on the current stream.
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
from .types import GbcOptions, Search

__all__ = ["WORD", "prices", "search"]

Array = Any  # cupy.ndarray

BLOCKS_PER_SM = 8
FREE_SHARE = 2  # half of the free memory is used if no limit is given


def search(
    searched: Search,
    num_candidates: Array,
    bins: int,
    options: GbcOptions,
    memory_limit: int | None,
) -> HostArray:
    """As `search_cpu.search`; the histogram is on the host. Waits for the device."""
    graph, depth = searched.graph, searched.depth
    job = job_of(graph, num_candidates, depth, bins, options)
    if memory_limit is None:
        spare = int(cupy.cuda.runtime.memGetInfo()[0]) // FREE_SHARE
    else:
        spare = memory_limit - prices(depth, bins, options).least(
            graph.num_anchors, len(graph.indices), len(graph.back_indptr) - 1, job.columns,
            job.most_cells,
        )  # fmt: skip
    # A quarter each for tables and for workspaces beyond those of one block; half for batches
    # beyond one root.
    spare = max(0, spare)
    searcher = _Searcher(searched, job, options, spare // 4)
    for first, last in job.batches(spare // 2):
        searcher.run(first, last)
        report(last, len(job.roots))
    found: HostArray = searcher.whole.get()
    return found


class _Searcher:
    """The arrays of a search, which runs batch by batch."""

    def __init__(self, searched: Search, job: Job, options: GbcOptions, spare: int) -> None:
        graph = searched.graph
        self.job, self.least, self.options = job, searched.least, options
        self.rows = graph.rows
        self.met = two_hop_cuda.tables(job.n, 4 * job.n + spare)
        self.whole = driver.zeros(job.bins, np.uint64)
        given = (job.roots, job.starts, job.cells, job.lines)
        self.roots, self.starts, self.cells, self.lines = map(cupy.asarray, given)
        hybrid, plain = (str(x).lower() for x in (options.hybrid, options.rows == "csr"))
        if job.compact:
            self.kernel = ("algorithms/biclique/gbc/compact.cu", f"search<{hybrid}>")
        else:
            self.kernel = ("algorithms/biclique/paper/truncated.cu", f"search<{plain}, {hybrid}>")
            from ..paper.truncated import truncated_rows

            self.words = truncated_rows(graph.indptr, graph.indices, options.rows)
        tasks = int(job.starts[-1]) if options.edges else len(job.roots)
        most = BLOCKS_PER_SM * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        self.launches = Launches.of(job, min(most, -(-tasks // WARPS)), spare)
        self._make_space()

    def _make_space(self) -> None:
        job, launches = self.job, self.launches
        warps = WARPS * launches.blocks
        words = max(launches.blocks * launches.cells, launches.second * job.level_cells)
        self.space = cupy.empty(max(1, WARPS * job.levels * words), np.uint32)
        self.lists = cupy.empty(warps * (job.columns + 1) if job.compact else 1, np.uint32)
        self.levels = cupy.empty(max(1, warps * job.levels * LEVEL_BYTES), np.uint8)

    def run(self, first: int, last: int) -> None:
        """Add the subsets of roots first … last - 1 to the histogram."""
        job = self.job
        pairs = int(job.starts[last] - job.starts[first])
        keys = cupy.empty(pairs, np.uint64)
        # Counters of tasks taken: by lists, bitmaps and two searches; and of the pairs marked.
        counters = driver.zeros(5, np.uint64)
        least = self.least if self.options.common else 1
        self._walk(
            "list_candidates", first, last, least, self.met, counters[0:], self.roots, self.starts,
            first, last, keys,
        )  # fmt: skip
        keys.sort()
        if not job.compact:
            words = self.words
            rows = (words.indptr, words.words, words.bits)
            of_levels = (job.columns, job.longest, self.space, self.levels, self.whole)
            task = self._tasks(pairs, first, last, counters)
            self._start(self.launches.blocks, keys, self.starts, self.roots, first, task[0], *rows,
                        *task[1:], *of_levels)  # fmt: skip
            return
        bitmaps = driver.zeros(int(job.cells[last] - job.cells[first]), np.uint32)
        self._walk(
            "fill_matrices", first, last, self.met, counters[1:], self.roots, self.starts,
            self.cells, first, last, keys, bitmaps,
        )  # fmt: skip
        self._search_bitmaps(keys, bitmaps, first, last, counters)

    def _search_bitmaps(
        self, keys: Array, bitmaps: Array, first: int, last: int, counters: Array
    ) -> None:
        job, launches = self.job, self.launches
        marks = driver.zeros(len(keys) // 32 + 1, np.uint32)

        def start(blocks: int, cells: int, marked: int, count: int, *task: Any) -> None:
            self._start(
                blocks, keys, self.starts, self.cells, self.lines, first, count, bitmaps, *task,
                cells, job.columns + 1, self.space, self.lists, self.levels, marks, marked,
                counters[4:], self.whole,
            )  # fmt: skip

        task = self._tasks(len(keys), first, last, counters)
        start(launches.blocks, launches.cells, 0, *task)
        if launches.second and driver.number(counters, 4):
            again = (len(keys), 1, 1, counters[3:], job.depth, self.least)
            start(launches.second, job.level_cells, 1, *again)

    def _tasks(self, pairs: int, first: int, last: int, counters: Array) -> tuple[Any, ...]:
        """How many tasks there are, and the arguments by which a kernel takes them."""
        edges, stealing = self.options.edges, self.options.stealing
        count = pairs if edges else last - first
        return count, int(edges), int(stealing), counters[2:], self.job.depth, self.least

    def _walk(self, name: str, first: int, last: int, *arguments: Any) -> None:
        """Launch a walk over two-hop neighbours, with a block per table, or per root if fewer."""
        threads = min(len(self.met), last - first) * two_hop_cuda.BLOCK
        launch.run(
            "algorithms/biclique/gbc/two_hop.cu", name, threads, *self.rows, self.job.n, *arguments,
            block=two_hop_cuda.BLOCK,
        )  # fmt: skip

    def _start(self, blocks: int, *arguments: Any) -> None:
        """Launch the search with exactly as many blocks as there are workspaces for."""
        launch.run(*self.kernel, blocks * BLOCK, *arguments, block=BLOCK)
