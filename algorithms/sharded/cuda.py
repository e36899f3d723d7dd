"""What programs run on a CUDA device beside the one-device kernels: see sharded.cu.

Requires arrays on the current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

from ..views.simple import View
from ..views.simple_cuda import kept_rows

Array = Any  # cupy.ndarray

LONG = 1024  # h_index.cu: entries of a row that a block refines
BLOCK = 1024  # h_index.cu: of refine_hubs
SHARDED = "algorithms/sharded/sharded.cu"
H_INDEX = "algorithms/core/paper/h_index.cu"


def pull(
    indptr: Array, places: Array, place: Array, is_vertex: Array, weights: Array | None,
    inverse: Array, shares: Array, later: Array, ranks: Array, base: float, damping: float,
) -> tuple[float, float]:  # fmt: skip
    """One round of PageRank, as `algorithms.pagerank.cpu.pull` of all rows. Waits for it."""
    n = len(indptr) - 1
    pulled = cupy.empty(n)
    is_weighted = weights is not None
    launch.run(
        SHARDED, "sum_shares", 32 * n,
        indptr, places, weights if is_weighted else shares, int(is_weighted), shares, n, pulled,
    )  # fmt: skip
    rank = cupy.where(is_vertex, base + damping * pulled, 0.0)
    change = cupy.abs(rank - ranks).sum()
    dangling = cupy.where(inverse == 0.0, rank, 0.0).sum()
    ranks[:] = rank
    own = cupy.flatnonzero(is_vertex)
    later[place[own]] = (rank * inverse)[own]
    return float(change), float(dangling)


def keep_upper(indptr: Array, indices: Array, degree: Array) -> tuple[Array, Array]:
    """indptr and indices of rows with only the entries of higher rank than their row's: see
    upper.py. degree: int64[n]."""
    n, m = len(indptr) - 1, len(indices)
    keep = cupy.empty(m, np.uint8)
    launch.run(SHARDED, "keep_upper", m, indptr, indices, n, m, degree, keep)
    return kept_rows(keep, indices, 1, indptr)


class Refiner:
    """Refines the estimates of core numbers of own rows in place: see `cores`. A change of another
    shard's row may concern any own row, so all are looked at again, which costs one count a row."""

    def __init__(self, view: View, is_owned: Array, estimate: Array) -> None:
        self._view, self._estimate = view, estimate
        self._own = is_owned.view(np.uint8)
        degree = cupy.diff(view.indptr)
        self._hubs = cupy.flatnonzero(degree > LONG)

    def refine(self, came: list[Any]) -> None:
        """Take over estimates of others' rows, [(rows, estimates)], and refine until no own
        estimate changes."""
        estimate, n = self._estimate, len(self._estimate)
        for rows, values in came:
            estimate[rows] = values
        now, later = self._own.copy(), cupy.zeros(n, np.uint8)
        changes = cupy.zeros(1, np.uint32)
        while True:
            marks = (estimate, now, later, changes)
            rows = (self._view.indptr, self._view.indices)
            launch.run(H_INDEX, "refine_rows", 32 * n, *rows, n, *marks)
            launch.run(
                H_INDEX, "refine_hubs", BLOCK * len(self._hubs), *rows, self._hubs, *marks,
                block=BLOCK,
            )  # fmt: skip
            if int(changes[0]) == 0:
                return
            changes.fill(0)
            now, later = later, now
            now *= self._own  # rows of others are empty here, and would fall to 0
            later.fill(0)
