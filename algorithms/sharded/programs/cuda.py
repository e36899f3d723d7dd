"""Kernels that programs run on a CUDA device besides those of one device: see sharded.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ...core import cuda as core
from ...views.simple import View
from ...views.simple_cuda import kept_rows

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


class Follower:
    """As `cores_cpu.Follower`. A row is looked at when a neighbour has ceased to support it."""

    def __init__(self, view: View, holders: View, estimate: Array) -> None:
        self._view, self._holders, self._estimate = view, holders, estimate

    def follow(self, came: list[Any]) -> None:
        holders, estimate = self._holders, self._estimate
        marked = driver.zeros(len(estimate), np.bool_)
        for rows, values in came:
            launch.run(
                FILE, "take_over", 32 * len(rows),
                rows, values, len(rows), holders.indptr, holders.indices, estimate, marked,
            )  # fmt: skip
        core.settle(self._view.indptr, self._view.indices, estimate, marked)
