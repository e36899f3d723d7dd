"""The paper's search on a CUDA device: batches of roots, their candidates, and the launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from algorithms.biclique.gbc import two_hop_cuda
from algorithms.biclique.gbc.job_cuda import BLOCK, WARPS, HostArray, job_of
from algorithms.biclique.gbc.types import Search
from lpma.cuda import driver, launch

from .truncated import Truncated

if TYPE_CHECKING:
    from . import Program

Array = Any  # cupy.ndarray

FILE = "benchmarks/papers/gbc/truncated.cu"
BLOCKS_PER_SM = 8
SHARE = 8  # of the free memory, for each of tables and levels; twice that for batches
LEVEL_BYTES = 40  # of Level in truncated.cu


def search(searched: Search, num_candidates: Array, rows: Truncated, program: Program) -> HostArray:
    """As `search_cpu.search`; the histogram is on the host."""
    graph, depth = searched.graph, searched.depth
    bins = int((graph.left_indptr[1:] - graph.left_indptr[:-1]).max()) + 1 if graph.num_left else 1
    job = job_of(graph, num_candidates, depth, bins)
    spare = int(cupy.cuda.runtime.memGetInfo()[0]) // SHARE
    met = two_hop_cuda.tables(job.n, spare)
    longest = int((rows.indptr[1:] - rows.indptr[:-1]).max()) if job.n else 0
    level = job.columns + 2 * longest  # words
    tasks = int(job.starts[-1]) if program.edges else len(job.roots)
    most = BLOCKS_PER_SM * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    room = spare // (WARPS * depth * (4 * level + LEVEL_BYTES))
    blocks = max(1, min(most, -(-tasks // WARPS), room))
    levels = WARPS * blocks * depth
    space = (
        cupy.empty(max(1, levels * level), np.uint32),
        cupy.empty(levels * LEVEL_BYTES, np.uint8),
    )
    roots, starts = cupy.asarray(job.roots), cupy.asarray(job.starts)
    plain, hybrid = (str(x).lower() for x in (not program.truncated, program.hybrid))
    whole = driver.zeros(bins, np.uint64)
    for first, last in job.batches(2 * spare):
        keys = cupy.empty(int(job.starts[last] - job.starts[first]), np.uint64)
        taken = driver.zeros(2, np.uint64)
        launch.run(
            "algorithms/biclique/gbc/two_hop.cu", "list_candidates",
            min(len(met), last - first) * two_hop_cuda.BLOCK, *graph.rows, job.n,
            searched.least if program.common else 1, met, taken, roots, starts, first, last, keys,
            block=two_hop_cuda.BLOCK,
        )  # fmt: skip
        keys.sort()
        launch.run(
            FILE, f"search<{plain}, {hybrid}>", blocks * BLOCK, keys, starts, roots, first,
            len(keys) if program.edges else last - first, *rows, int(program.edges),
            int(program.stealing), taken[1:], depth, searched.least, job.columns, longest, *space,
            whole, block=BLOCK,
        )  # fmt: skip
    found: HostArray = whole.get()
    return found
