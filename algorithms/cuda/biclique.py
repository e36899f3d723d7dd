"""Setting up a search on a CUDA device: roots in batches, their candidates and bitmaps, the launch.

The counterpart of `algorithms.biclique._search_cpu`. A batch is as many roots as the memory holds
candidates and bitmaps for: these are made for the whole batch at once (two_hop.cu), breadth first,
and then searched, depth first (biclique_compact.cu, biclique_truncated.cu). Requires arrays on the
current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import numpy.typing as npt

from ..biclique.budget import Prices
from ..biclique.truncated import WIDTH, truncated
from . import launch, two_hop

if TYPE_CHECKING:
    from ..biclique.anchored import Anchored
    from ..biclique.gbc import Switches

Array = Any  # cupy.ndarray
HostArray = npt.NDArray[Any]

BLOCK = 256  # threads
WARPS = BLOCK // 32
BLOCKS_PER_SM = 8
WORD = 32  # bits
LEVEL_BYTES = 40  # of Matrix and of Level, at most
# Bytes of a part: its rows and their starts both ways, the table of one block, numbers by root; of
# truncated rows also these, and what makes them. Arrays are rounded up.
VERTEX, EDGE, OTHER, WORDS = 48, 8, 8, 80
KEY_BYTES = 24  # of a candidate: its key, and what sorts it
FIXED = 1 << 16
FREE_SHARE = 2  # of the free memory half is used where no limit is given


@dataclass(frozen=True)
class Job:
    """What is to be searched, and the sizes that follow. Arrays on the host."""

    roots: HostArray  # uint32[r]
    starts: HostArray  # int64[r+1]: where a root's candidates begin among all
    cells: HostArray  # int64[r+1]: where its bitmaps begin
    lines: HostArray  # uint32[r]: words of a candidate's bitmap
    n: int
    longest: int  # words of a row
    bins: int
    depth: int
    compact: bool

    @property
    def columns(self) -> int:
        return int(np.diff(self.starts).max(initial=0))

    @property
    def most_cells(self) -> int:
        return int(np.diff(self.cells).max(initial=0))

    @property
    def level_cells(self) -> int:
        return self.most_cells if self.depth > 3 else 0

    def warp_bytes(self) -> int:
        """The space of one warp."""
        if self.compact:
            levels = max(0, self.depth - 3)
            return levels * (4 * self.level_cells + LEVEL_BYTES) + 4 * (self.columns + 1)
        return self.depth * (4 * (self.columns + 2 * self.longest) + LEVEL_BYTES)

    def root_bytes(self) -> HostArray:
        """What each root takes of its batch: keys and bitmaps."""
        cells = np.diff(self.cells) if self.compact else 0
        sizes: HostArray = KEY_BYTES * np.diff(self.starts) + 4 * cells
        return sizes


def search(
    graph: Anchored,
    later: Array,
    depth: int,
    least: int,
    bins: int,
    switches: Switches,
    memory_limit: int | None,
) -> HostArray:
    """The histogram of `gbc.histogram`, over roots with later[u] candidates; a root with none is
    not looked at. Within memory_limit bytes, the graph's among
    them, if these are what `prices` asks for. Waits for the device."""
    words = None
    if switches.rows != "compact":
        words = truncated(graph.indptr, graph.indices, WIDTH if switches.rows == "htb" else 1)
    job = _job(graph, later, depth, bins, switches)
    if memory_limit is None:
        spare = int(cupy.cuda.runtime.memGetInfo()[0]) // FREE_SHARE
    else:
        spare = memory_limit - prices(depth, bins, switches).least(
            graph.num_anchors, len(graph.indices), len(graph.back_indptr) - 1, job.columns,
            job.most_cells,
        )  # fmt: skip
    spare = max(0, spare)
    # A quarter each for tables and spaces beyond one block's, half for batches beyond one root.
    blocks = 1 + spare // 4 // max(1, WARPS * job.warp_bytes())
    met = two_hop.tables(job.n, 4 * job.n + spare // 4)
    whole = cupy.zeros(bins, np.uint64)
    searcher = _Searcher(graph, words, job, least, switches, met, whole, blocks)
    largest = int(job.root_bytes().max(initial=0)) + spare // 2
    for first, last in _batches(job.root_bytes(), largest):
        searcher.run(first, last)
    found: HostArray = whole.get()
    return found


def prices(depth: int, bins: int, switches: Switches) -> Prices:
    """What a part costs that one block searches in batches of one root."""
    if switches.rows == "compact":
        levels = max(0, depth - 3)
        fixed = 8 * bins + WARPS * (levels * LEVEL_BYTES + 4) + FIXED
        column = KEY_BYTES + 4 * WARPS
        return Prices(fixed, VERTEX, EDGE, OTHER, column, 4 + 4 * WARPS * levels)
    fixed = 8 * bins + WARPS * depth * (8 * bins + LEVEL_BYTES) + FIXED
    return Prices(fixed, VERTEX, EDGE + WORDS, OTHER, KEY_BYTES + 4 * WARPS * depth, 0)


def _job(graph: Anchored, later: Any, depth: int, bins: int, switches: Switches) -> Job:
    counts = later.get() if isinstance(later, cupy.ndarray) else later
    indptr = graph.indptr.get() if isinstance(graph.indptr, cupy.ndarray) else graph.indptr
    roots = np.flatnonzero(counts >= depth - 1)
    of_root = counts[roots].astype(np.int64)
    lines = -(-np.diff(indptr)[roots] // WORD)
    starts = np.concatenate(([0], np.cumsum(of_root)))
    cells = np.concatenate(([0], np.cumsum(of_root * lines)))
    longest = int(np.diff(indptr).max(initial=0))
    return Job(
        roots.astype(np.uint32), starts, cells, lines.astype(np.uint32), graph.num_anchors,
        longest, bins, depth, switches.rows == "compact",
    )  # fmt: skip


def _batches(sizes: HostArray, most: int) -> list[tuple[int, int]]:
    """Ranges of roots of `most` bytes or less."""
    upto = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    bounds = [0]
    while bounds[-1] < len(sizes):
        end = int(np.searchsorted(upto, upto[bounds[-1]] + most, side="right")) - 1
        bounds.append(max(bounds[-1] + 1, end))
    return list(pairwise(bounds))


class _Searcher:
    """The arrays of a search, and a batch of it."""

    def __init__(
        self,
        graph: Anchored,
        words: Any,
        job: Job,
        least: int,
        switches: Switches,
        met: Array,
        whole: Array,
        blocks: int,
    ) -> None:
        self.job, self.least, self.switches, self.words = job, least, switches, words
        self.rows, self.met, self.whole = two_hop.rows(graph), met, whole
        given = (job.roots, job.starts, job.cells, job.lines)
        self.roots, self.starts, self.cells, self.lines = map(cupy.asarray, given)
        self.file = "biclique_compact" if job.compact else "biclique_truncated"
        hybrid = str(switches.hybrid).lower()
        plain = str(switches.rows == "csr").lower()
        self.kernel = f"search<{hybrid}>" if job.compact else f"search<{plain}, {hybrid}>"
        full = BLOCKS_PER_SM * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        tasks = int(job.starts[-1]) if switches.edges else len(job.roots)
        self.blocks = max(1, min(blocks, full, -(-tasks // WARPS)))
        self._make_space(self.blocks * WARPS)

    def _make_space(self, warps: int) -> None:
        job = self.job
        if job.compact:
            levels = max(0, job.depth - 3)
            self.space = cupy.empty(max(1, warps * levels * job.level_cells), np.uint32)
            self.lists = cupy.empty(warps * (job.columns + 1), np.uint32)
        else:
            of_level = job.columns + 2 * job.longest
            levels = job.depth
            self.space = cupy.empty(max(1, warps * levels * of_level), np.uint32)
        self.levels = cupy.empty(max(1, warps * levels * LEVEL_BYTES), np.uint8)

    def run(self, first: int, last: int) -> None:
        """Roots first … last - 1."""
        job, switches = self.job, self.switches
        pairs = int(job.starts[last] - job.starts[first])
        keys = cupy.empty(pairs, np.uint64)
        taken = cupy.zeros(3, np.uint64)
        threads = min(len(self.met), last - first) * two_hop.BLOCK
        launch.run(
            "two_hop", "list_candidates", threads, *self.rows, job.n,
            self.least if switches.common else 1, self.met, taken[0:], self.roots, self.starts,
            first, last, keys, block=two_hop.BLOCK,
        )  # fmt: skip
        keys.sort()
        count = pairs if switches.edges else last - first
        tasks = (int(switches.edges), int(switches.stealing), taken[2:], job.depth, self.least)
        if job.compact:
            bitmaps = cupy.zeros(int(job.cells[last] - job.cells[first]), np.uint32)
            launch.run(
                "two_hop", "fill_matrices", threads, *self.rows, job.n, self.met, taken[1:],
                self.roots, self.starts, self.cells, first, last, keys, bitmaps,
                block=two_hop.BLOCK,
            )  # fmt: skip
            self._start(
                keys, self.starts, self.cells, self.lines, first, count, bitmaps, *tasks,
                job.level_cells, job.columns + 1, self.space, self.lists, self.levels, self.whole,
            )  # fmt: skip
        else:
            words = self.words
            self._start(
                keys, self.starts, self.roots, first, count, words.indptr, words.words, words.bits,
                *tasks, job.columns, job.longest, self.space, self.levels, self.whole,
            )  # fmt: skip

    def _start(self, *arguments: Any) -> None:
        # As many blocks as have a space, no more.
        launch.run(self.file, self.kernel, self.blocks * BLOCK, *arguments, block=BLOCK)
