"""The butterflies that have one of the listed edges, counted on a CUDA device: see butterflies.cu.

The counterpart of `butterflies_cpu`. Requires arrays on the current device.
"""

from __future__ import annotations

import numpy as np

from lpma.cuda import driver, launch

from .types import Change

BLOCK = 256  # threads


def difference(change: Change) -> int:
    """As `butterflies_cpu.difference`. Waits for the device."""
    totals = driver.zeros(2, np.uint64)
    for rows, edges, total in (
        (change.after, change.inserted, totals[:1]),
        (change.before, change.deleted, totals[1:]),
    ):
        launch.run(
            "algorithms/tracker/butterflies.cu", "count_butterflies", BLOCK * len(edges),
            edges, len(edges), rows.indptr, rows.indices, total, block=BLOCK,
        )  # fmt: skip
    won, lost = totals.tolist()
    return int(won) - int(lost)
