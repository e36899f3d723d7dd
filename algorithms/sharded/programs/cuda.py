"""Kernels that programs run on a CUDA device besides those of one device: see sharded.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ...core import cuda as core
from ...views.simple import View
from ...views.simple_cuda import kept_rows
from .cores_cpu import RefinerBase

Array = Any  # cupy.ndarray

FILE = "algorithms/sharded/programs/sharded.cu"


def pull(
    indptr: Array, places: Array, place: Array, is_vertex: Array, weights: Array | None,
    inverse: Array, shares: Array, later: Array, ranks: Array, base: float, damping: float,
) -> tuple[float, float]:  # fmt: skip
    """One round of PageRank, as `algorithms.pagerank.cpu.pull` of all rows. Waits for it."""
    n = len(indptr) - 1
    pulled = cupy.empty(n)
    is_weighted = weights is not None
    launch.run(
        FILE, "sum_shares", 32 * n,
        indptr, places, weights if is_weighted else shares, int(is_weighted), shares, n, pulled,
    )  # fmt: skip
    rank = cupy.where(is_vertex, base + damping * pulled, 0.0)
    change = cupy.abs(rank - ranks).sum()
    dangling = cupy.where(inverse == 0.0, rank, 0.0).sum()
    ranks[:] = rank
    own = cupy.flatnonzero(is_vertex)
    later[place[own]] = (rank * inverse)[own]
    return float(change), float(dangling)


def keep_oriented(indptr: Array, indices: Array, degree: Array) -> tuple[Array, Array]:
    """indptr and indices of oriented rows: see oriented.py. degree: int64[n]."""
    n, m = len(indptr) - 1, len(indices)
    keep = cupy.empty(m, np.uint8)
    launch.run(FILE, "keep_upper", m, indptr, indices, n, m, degree, keep)
    return kept_rows(keep, indices, indptr)


class Refiner(RefinerBase):
    """See `cores_cpu.RefinerBase`."""

    def __init__(self, view: View, holders: View, is_owned: Array, estimate: Array) -> None:
        super().__init__(view, holders, estimate)
        self._is_owned = is_owned.view(np.uint8)
        self._hubs = cupy.flatnonzero(self._lengths > core.HUB)

    def _peel(self) -> None:
        holders, estimate = self._holders, self._estimate
        estimate[:] = core.peeled(holders.indptr, holders.indices, estimate.copy())

    def _follow(self, came: list[Any]) -> None:
        """A row is looked at when a neighbour has ceased to support it."""
        estimate, holders = self._estimate, self._holders
        now, later = driver.zeros((2, len(estimate)), np.uint8)
        for rows, values in came:
            launch.run(
                FILE, "take_over", 32 * len(rows),
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
            core.H_INDEX, "refine_listed", 32 * len(rows),
            *graph, rows, len(rows), self._estimate, later, changes,
        )  # fmt: skip
        launch.run(
            core.H_INDEX, "refine_hubs", core.BLOCK * len(self._hubs),
            *graph, self._hubs, self._estimate, now, later, changes, block=core.BLOCK,
        )  # fmt: skip
