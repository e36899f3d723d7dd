"""PageRank on a CUDA device: one cooperative launch, all rounds.

pagerank.cu has the method. Requires rows on the current device; work is enqueued on the current
stream, and waited for, because the caller is told whether the ranks converged.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.arrays import count_true
from lpma.cuda import launch

from ..views.simple import View

Array = Any  # cupy.ndarray

HUB = 4096  # pagerank.cu: a row of at least this many entries is pulled by a whole block
NARROW, WIDE = 4, 32  # lanes per row
NARROW_MEAN = 8  # rows get the narrow width if they have fewer entries on average


def iterate(
    view: View,
    reverse: View,
    vertices: Array | None,
    weights: Array | None,
    reverse_weights: Array | None,
    damping: float,
    tol: float,
    max_iter: int,
) -> tuple[Array, bool]:
    """float64[n]: the ranks; and whether they changed by less than tol in the last round.

    vertices: bool[n], which rows are vertices; None: all. weights, reverse_weights: float64[m], of
    the entries of the view and of the transpose; None: 1 each."""
    n, m = view.num_vertices, len(view.indices)
    is_vertex = cupy.ones(n, np.bool_) if vertices is None else vertices
    num_vertices = n if vertices is None else count_true(vertices)
    if num_vertices == 0:
        return cupy.zeros(n), True
    leaving = cupy.diff(view.indptr).astype(np.float64)
    if weights is not None:
        launch.run(
            "algorithms/pagerank/pagerank.cu", "sum_rows", 32 * n, view.indptr, weights, n, leaving
        )
    hubs = cupy.flatnonzero(cupy.diff(reverse.indptr) >= HUB)
    ranks, shares = cupy.empty(n), cupy.empty((2, n))
    rounds = cupy.zeros(1, np.int64)  # how many it took, or −1 if max_iter is too few
    width = NARROW if m < NARROW_MEAN * n else WIDE
    is_weighted = reverse_weights is not None
    name = f"power_iteration<{width}, {str(is_weighted).lower()}>"
    threads = n * width
    blocks = launch.resident_blocks("algorithms/pagerank/pagerank.cu", name)
    partial = cupy.empty((2, blocks, 2))
    launch.run_together(
        "algorithms/pagerank/pagerank.cu", name, threads, reverse.indptr, reverse.indices,
        reverse_weights if is_weighted else leaving, leaving, is_vertex, hubs, len(hubs), n,
        num_vertices, np.float64(damping), np.float64(tol), max_iter, ranks, shares, partial,
        rounds,
    )  # fmt: skip
    return ranks, int(rounds[0]) >= 0
