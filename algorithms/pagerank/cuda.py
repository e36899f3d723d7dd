"""PageRank on a CUDA device: one cooperative launch, all rounds.

pagerank.cu has the method. Requires arrays on the current device; work is enqueued on the current
stream, and waited for, to return whether the ranks converged.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..views.simple import View
from .layout_cuda import Layout

Array = Any  # cupy.ndarray

FILE = "algorithms/pagerank/pagerank.cu"
BLOCK = 1024  # pull.cuh: threads
HOT_BYTES = 196_608  # of shares, at most, that a block copies to its shared memory
STATIC = 2048  # bytes of shared memory besides


def pulling(rows: int, share_bytes: int) -> tuple[np.uint32, dict[str, Any]]:
    """How many shares a block copies, and the launch parameters of a kernel that includes pull.cuh
    and pulls along so many rows."""
    attributes = cupy.cuda.Device().attributes
    most = int(attributes.get("MaxSharedMemoryPerBlockOptin", launch.OPT_IN_BYTES))
    room = max(0, min(HOT_BYTES, most - STATIC, share_bytes * rows))
    return np.uint32(room // share_bytes), {"block": BLOCK, "shared": room}


def weight_leaving(view: View, weights: Array) -> Array:
    """float64[n]: the weight of the edges that leave each vertex."""
    n = view.num_rows
    leaving = cupy.empty(n)
    launch.run(FILE, "sum_rows", 32 * n, view.indptr, weights, n, leaving)
    return leaving


def iterate(
    layout: Layout,
    n: int,
    teleport: Array | None,
    start: Array | None,
    damping: float,
    tol: float,
    max_iter: int,
    symmetric: bool,
) -> tuple[Array, bool]:
    """As `cpu.iterate`."""
    out, rows = driver.zeros(n), layout.rows
    if rows == 0:
        return out, True
    name = f"power_iteration<{str(layout.values is not None).lower()}>"
    hot, how = pulling(rows, 8)  # twice as many while shares are float
    blocks = launch.resident_blocks(FILE, name, **how)
    ranks, shares = cupy.empty((2, rows)), cupy.empty((2, rows + 1))
    of_piece, partial = cupy.empty(layout.pieces), cupy.empty((2, blocks, 3))
    rounds = driver.zeros(1, np.int64)  # how many it took, or −1 if max_iter is too few
    towards, first = (
        (ranks, 0) if given is None else (given[layout.vertex], 1) for given in (teleport, start)
    )
    launch.run_together(
        FILE, name, 32 * layout.tasks, *layout.shape, hot, layout.places,
        ranks if layout.values is None else layout.values, layout.inner, layout.vertex,
        layout.place, layout.inverse, *towards, *first, int(symmetric), np.float64(damping),
        np.float64(tol), max_iter, ranks, shares, of_piece, partial, out, rounds, **how,
    )  # fmt: skip
    return out, driver.number(rounds) >= 0
