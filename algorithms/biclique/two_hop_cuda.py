"""Two-hop neighbours on a CUDA device: the counterpart of `algorithms.biclique._two_hop_cpu`.

A block has a table of one number a vertex (two_hop.cu), so that there are as many blocks as the
device holds, or as there is memory for. Requires arrays on the current device; work is enqueued on
the current stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

from .anchored import Anchored

Array = Any  # cupy.ndarray

BLOCK = 256  # threads
BLOCKS_PER_SM = 8
LOW, HALF = np.uint64(2**32 - 1), np.uint64(32)


def neighbors(graph: Anchored, least: int) -> Array:
    """int32[n]: how many other vertices share at least `least` neighbours with each."""
    return _counted(graph, least, 0)


def candidates(graph: Anchored, least: int) -> Array:
    """int32[n]: as `neighbors`, of those of larger rank."""
    return _counted(graph, least, 1)


def rows(graph: Anchored) -> tuple[Array, ...]:
    """The arrays that every kernel begins with."""
    return graph.indptr, graph.indices, graph.back_indptr, graph.back


def tables(n: int, memory: int | None = None) -> Array:
    """uint32[blocks, n] of zeros: a table for every block to be launched, within `memory` bytes
    but at least one, and at most a quarter of what is free."""
    attributes = cupy.cuda.Device().attributes
    most = int(attributes["MultiProcessorCount"]) * BLOCKS_PER_SM
    if memory is None:
        memory = int(cupy.cuda.runtime.memGetInfo()[0]) // 4
    return cupy.zeros((max(1, min(most, n, memory // (4 * max(1, n)))), max(1, n)), np.uint32)


def _counted(graph: Anchored, least: int, later: int) -> Array:
    n = graph.num_anchors
    found = cupy.zeros(n, np.int32)
    met, taken = tables(n), cupy.zeros(1, np.uint64)
    threads = len(met) * BLOCK
    launch.run(
        "algorithms/biclique/two_hop.cu", "count_two_hop", min(n * BLOCK, threads),
        *rows(graph), n, least, later, met, taken, found, block=BLOCK,
    )  # fmt: skip
    return found


def renumbered(graph: Anchored, order: Array) -> Anchored:
    """The graph whose anchor of rank r is order[r]: two sorts of the edges."""
    n, m = graph.num_anchors, len(graph.indices)
    rank = cupy.empty(n, np.uint64)
    rank[order] = cupy.arange(n, dtype=np.uint64)
    indptr = cupy.zeros(n + 1, np.int64)
    cupy.cumsum((graph.indptr[1:] - graph.indptr[:-1])[order], out=indptr[1:])
    row = cupy.searchsorted(graph.indptr[1:], cupy.arange(m), side="right")
    of_anchor = (rank[row] << HALF) | graph.indices
    of_other = (graph.indices.astype(np.uint64) << HALF) | rank[row]
    of_anchor.sort()
    of_other.sort()
    return Anchored(
        indptr,
        (of_anchor & LOW).astype(np.uint32),
        graph.back_indptr,
        (of_other & LOW).astype(np.uint32),
    )
