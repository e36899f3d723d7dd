"""Two-hop neighbours on a CUDA device: the counterpart of `two_hop_cpu`.

Each block has a table with one number per vertex (two_hop.cu), so there are as many blocks as the
device runs at once, or fewer if memory is short.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..bipartite import Bipartite

Array = Any  # cupy.ndarray

BLOCK = 256  # threads
BLOCKS_PER_SM = 8


def num_neighbors(graph: Bipartite, least: int) -> Array:
    """As `two_hop_cpu.num_neighbors`, on the device."""
    return _counted(graph, least, 0)


def num_candidates(graph: Bipartite, least: int) -> Array:
    """As `two_hop_cpu.num_candidates`, on the device."""
    return _counted(graph, least, 1)


def tables(n: int, memory: int | None = None) -> Array:
    """uint32[blocks, n] of zeros: a table for every block to be launched, at least one.

    memory: bytes that all may take; None: a quarter of what is free."""
    attributes = cupy.cuda.Device().attributes
    most = int(attributes["MultiProcessorCount"]) * BLOCKS_PER_SM
    if memory is None:
        memory = int(cupy.cuda.runtime.memGetInfo()[0]) // 4
    return driver.zeros((max(1, min(most, n, memory // (4 * max(1, n)))), max(1, n)), np.uint32)


def _counted(graph: Bipartite, least: int, later: int) -> Array:
    n = graph.num_left
    found = driver.zeros(n, np.int32)
    met, taken = tables(n), driver.zeros(1, np.uint64)
    threads = len(met) * BLOCK
    launch.run(
        "algorithms/biclique/gbc/two_hop.cu", "count_two_hop", min(n * BLOCK, threads),
        *graph.rows, n, least, later, met, taken, found, block=BLOCK,
    )  # fmt: skip
    return found
