"""What programs run on a CUDA device beside the one-device kernels: see sharded.cu.

Requires arrays on the current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..core import cuda as core
from ..views.simple import View
from ..views.simple_cuda import kept_rows
from . import refining

Array = Any  # cupy.ndarray

LONG = 1024  # h_index.cu: entries of a row that a block refines
BLOCK = 1024  # h_index.cu: of refine_hubs


def pull(
    indptr: Array, places: Array, place: Array, is_vertex: Array, weights: Array | None,
    inverse: Array, shares: Array, later: Array, ranks: Array, base: float, damping: float,
) -> tuple[float, float]:  # fmt: skip
    """One round of PageRank, as `algorithms.pagerank.cpu.pull` of all rows. Waits for it."""
    n = len(indptr) - 1
    pulled = cupy.empty(n)
    is_weighted = weights is not None
    launch.run(
        "algorithms/sharded/sharded.cu", "sum_shares", 32 * n,
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
    launch.run(
        "algorithms/sharded/sharded.cu", "keep_upper", m, indptr, indices, n, m, degree, keep
    )
    return kept_rows(keep, indices, indptr)


class Refiner(refining.Refiner):
    """See `refining.Refiner`."""

    def __init__(self, view: View, holders: View, is_owned: Array, estimate: Array) -> None:
        super().__init__(view, holders, estimate)
        self._is_owned = is_owned.view(np.uint8)
        self._hubs = cupy.flatnonzero(self._lengths > LONG)

    def _peel(self) -> None:
        holders, estimate = self._holders, self._estimate
        estimate[:] = core.peeled(holders.indptr, holders.indices, estimate.copy())

    def _follow(self, came: list[Any]) -> None:
        """A row is looked at when a neighbour has ceased to support it."""
        estimate, holders = self._estimate, self._holders
        now, later = driver.zeros((2, len(estimate)), np.uint8)
        for rows, values in came:
            launch.run(
                "algorithms/sharded/sharded.cu", "take_over", 32 * len(rows),
                rows, values, len(rows), holders.indptr, holders.indices, estimate, now,
            )  # fmt: skip
        while len(rows := cupy.flatnonzero(now)):
            self._round(rows, now, later)
            now, later = later, now
            now *= self._is_owned  # rows of others are empty here, and would fall to 0
            later.fill(0)

    def _round(self, rows: Array, now: Array, later: Array) -> None:
        """Refine these rows, which are marked `now`, and mark whom this concerns."""
        graph = (self._view.indptr, self._view.indices)
        changes = driver.zeros(1, np.uint32)
        launch.run(
            "algorithms/core/paper/h_index.cu", "refine_listed", 32 * len(rows),
            *graph, rows, len(rows), self._estimate, later, changes,
        )  # fmt: skip
        launch.run(
            "algorithms/core/paper/h_index.cu", "refine_hubs", BLOCK * len(self._hubs),
            *graph, self._hubs, self._estimate, now, later, changes, block=BLOCK,
        )  # fmt: skip
