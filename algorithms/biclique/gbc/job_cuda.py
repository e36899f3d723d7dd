"""The sizes of a search on a CUDA device: of roots, batches and workspaces, and their memory.

All arrays here are on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import to_host

from ...arrays import ranges_within, starts_of
from ..bipartite import Bipartite
from .types import Prices

HostArray = npt.NDArray[Any]

BLOCK = 256  # threads
WARPS = BLOCK // 32
WORD = 32  # bits
# Bytes of a part: its rows and their starts in both directions, the table of one block, and numbers
# for each root. Arrays are rounded up.
VERTEX, EDGE, OTHER = 48, 8, 8
KEY_BYTES = 25  # of a candidate: its key, the space to sort it, its mark
FIXED = 1 << 16
LEVEL_BYTES = 24  # of Matrix in compact.cu
LEAST_CELLS = 256  # words of a level, at least, for which fewer warps are launched


@dataclass(frozen=True)
class Job:
    """What is searched, and the sizes that follow from it."""

    roots: HostArray  # uint32[r]
    starts: HostArray  # int64[r+1]: where a root's candidates begin among all
    cells: HostArray  # int64[r+1]: where its bitmaps begin
    lines: HostArray  # uint32[r]: words of a candidate's bitmap
    n: int
    bins: int
    depth: int

    @property
    def columns(self) -> int:
        return int(np.diff(self.starts).max(initial=0))

    @property
    def most_cells(self) -> int:
        return int(np.diff(self.cells).max(initial=0))

    @property
    def levels(self) -> int:
        """How many levels a warp has space for."""
        return max(0, self.depth - 3)

    @property
    def level_cells(self) -> int:
        """The most words that a level can have."""
        return self.most_cells if self.levels else 0

    def warp_bytes(self, cells: int) -> int:
        """The workspace of a warp whose levels have so many words, in bytes."""
        return 4 * (self.columns + 1) + self.levels * (4 * cells + LEVEL_BYTES)

    def root_bytes(self) -> HostArray:
        """int64[r]: what each root takes of its batch, keys and bitmaps, in bytes."""
        sizes: HostArray = KEY_BYTES * np.diff(self.starts) + 4 * np.diff(self.cells)
        return sizes

    def batches(self, spare: int) -> list[tuple[int, int]]:
        """Ranges of roots, each of at most `spare` bytes more than the largest root takes."""
        sizes = self.root_bytes()
        return ranges_within(sizes, int(sizes.max(initial=0)) + spare)


@dataclass(frozen=True)
class Launches:
    """The blocks of two launches, the second for pairs whose levels do not fit in the first's
    space."""

    blocks: int
    cells: int  # words of a level in the first launch
    second: int  # blocks of the second launch; 0 if everything fits in the first

    @classmethod
    def of(cls, job: Job, most: int, spare: int) -> Launches:
        """For at most `most` blocks, and `spare` bytes beyond one block with levels of full
        size."""
        full = job.level_cells
        budget = spare + WARPS * job.warp_bytes(full)
        least = min(full, LEAST_CELLS)
        blocks = max(1, min(most, budget // max(1, WARPS * job.warp_bytes(least))))
        if blocks * WARPS * job.warp_bytes(full) <= budget:
            return cls(blocks, full, 0)
        of_warp = budget // (blocks * WARPS)
        cells = (of_warp - job.warp_bytes(0)) // (4 * job.levels)
        return cls(blocks, cells, budget // (WARPS * job.warp_bytes(full)))


def prices(depth: int, bins: int) -> Prices:
    """What it costs to search a part with one block, in batches of one root."""
    levels = max(0, depth - 3)
    fixed = 8 * bins + WARPS * (levels * LEVEL_BYTES + 4) + FIXED
    return Prices(fixed, VERTEX, EDGE, OTHER, KEY_BYTES + 4 * WARPS, 4 + 4 * WARPS * levels)


def job_of(graph: Bipartite, num_candidates: Any, depth: int, bins: int) -> Job:
    """The job of all roots with at least depth - 1 candidates. num_candidates: int32[n], on either
    device."""
    counts, degrees = to_host(num_candidates), to_host(graph.left_degrees)
    roots = np.flatnonzero(counts >= depth - 1)
    of_root = counts[roots].astype(np.int64)
    lines = -(-degrees[roots] // WORD)
    starts, cells = starts_of(of_root), starts_of(of_root * lines)
    return Job(
        roots.astype(np.uint32), starts, cells, lines.astype(np.uint32), graph.num_left, bins,
        depth,
    )  # fmt: skip
