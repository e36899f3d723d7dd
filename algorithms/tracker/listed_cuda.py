"""Counting at the edges of a change on a CUDA device: what triangles and butterflies share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lpma.cuda import driver, launch

from .types import Change

BLOCK = 256  # threads


def difference(file: str, kernel: str, threads: int, change: Change) -> Callable[[], int]:
    """A function that waits for the count after the change less that before, by a kernel that
    counts what has a listed edge, with so many threads for each."""
    totals = driver.zeros(2, np.uint64)
    for rows, edges, total in (
        (change.after, change.inserted, totals[:1]),
        (change.before, change.deleted, totals[1:]),
    ):
        items, count = threads * len(edges), len(edges)
        launch.run(file, kernel, items, edges, count, rows.indptr, rows.indices, total, block=BLOCK)

    def end() -> int:
        won, lost = totals.tolist()
        return int(won) - int(lost)

    return end
