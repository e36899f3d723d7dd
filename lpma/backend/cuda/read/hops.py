"""Hops by frontiers, on the device: hops.cu.

A round is a listing of neighbours, a launch, and a look at how many pairs go on. Queries that would
need too many bits at once take their turns.

Requires: no batch beside the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.driver import Array
from ....cuda.launch import blocks_for
from ..launch.kernels import launch_on
from ..store.segments import Segments
from .neighbors import Neighbors

MOST_BYTES = 1 << 28  # of bits


class Hops:
    """Of one store."""

    def __init__(self, neighbors: Neighbors) -> None:
        self._neighbors = neighbors

    def reach(
        self, segments: Segments, staged: Any, vertices: Array, steps: Array,
        limits: Array | None, largest_vertex: Callable[[], int],
    ) -> tuple[Array, Array] | None:  # fmt: skip
        if staged is not None:
            return None
        words = max(1, -(-(largest_vertex() + 1) // 32))
        most = MOST_BYTES // (4 * words)
        if not most:
            return None
        vertices = cupy.asarray(vertices)
        parts = [
            self._reach(segments, vertices[lo : lo + most], steps[lo : lo + most], words)
            for lo in range(0, len(vertices), most)
        ]
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(ids) for _, ids in parts)]).tolist()
        ends = [indptr[1:] + first for (indptr, _), first in zip(parts, before, strict=False)]
        indptr = cupy.concatenate([cupy.zeros(1, np.int64), *ends])
        return indptr, cupy.concatenate([cupy.empty(0, np.uint32), *(ids for _, ids in parts)])

    def _reach(
        self, segments: Segments, vertices: Array, steps: Array, words: int
    ) -> tuple[Array, Array]:
        """Of queries whose bits there is room for, at least one."""
        q, found, rounds = len(vertices), 0, int(np.max(steps))
        bits, limits = driver.zeros(q * words, np.uint32), cupy.asarray(steps, np.int64)
        asked: Any = 0
        for step in range(1, rounds + 1):
            indptr, ids, _, _ = self._neighbors.neighbors(segments, None, vertices, None, False)
            if not len(ids):
                break
            room = len(ids) if step < rounds else 0
            pairs = cupy.empty((2, room), np.uint32)
            counters = driver.zeros(2, np.uint64)
            launch_on(
                segments, "hops", "reach", len(ids),
                indptr, len(vertices), ids, len(ids), asked, limits, step, bits, words,
                pairs[0], pairs[1], counters,
            )  # fmt: skip
            following, reached = driver.fetch(counters).tolist()
            found += reached
            asked, vertices = pairs[:, :following]
            if not len(vertices):
                break
        indptr, ids = cupy.empty(q + 1, np.int64), cupy.empty(found, np.uint32)
        status = driver.zeros(1 + blocks_for(q * words + 1), np.uint64)
        launch_on(
            segments, "hops", "list_reached", q * words + 1,
            bits, words, q, indptr, ids, status,
        )  # fmt: skip
        return indptr, ids
