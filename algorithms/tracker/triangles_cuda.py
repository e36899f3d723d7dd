"""The triangles that have one of the listed edges, counted on a CUDA device: see triangles.cu.

The counterpart of `triangles_cpu`. Requires arrays on the current device.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lpma.cuda import driver, launch

from .types import Change

BLOCK = 256  # threads: 32 for each of WARPS in triangles.cu


def begin(change: Change) -> Callable[[], int]:
    """As `triangles_cpu.begin`. What is returned waits for the device."""
    totals = driver.zeros(2, np.uint64)
    for rows, edges, total in (
        (change.after, change.inserted, totals[:1]),
        (change.before, change.deleted, totals[1:]),
    ):
        launch.run(
            "algorithms/tracker/triangles.cu", "count_touching", 32 * len(edges),
            edges, len(edges), rows.indptr, rows.indices, total, block=BLOCK,
        )  # fmt: skip

    def end() -> int:
        won, lost = totals.tolist()
        return int(won) - int(lost)

    return end
