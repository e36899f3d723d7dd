"""The k-core paper's peeling on a CUDA device, in its nine versions: see core_peel.cu.

Source: Ahmad, Yuan, Yan, Guo, Chen and Zhang, "Accelerating k-core decomposition by a GPU", ICDE
2023, Algorithms 1 to 3 and Section IV-C; names as in Table II. As in Algorithm 1 the host launches
two kernels a level and reads back how many vertices are peeled; where rings overflowed, it deals
out what was spilled and launches the second again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

Array = Any  # cupy.ndarray

BLOCK = 1024  # core_peel.cu
RING = 1 << 16  # vertices a block's queue has room for
COMPACTIONS = {"": 0, "-bc": 1, "-ec": 2}  # core_peel.cu: Compaction, Read
READS = {"": 0, "-sm": 1, "-vp": 2}


def peel(indptr: Array, indices: Array, compaction: int, read: int) -> Array:
    """int32[n]: core numbers, by one of the versions."""
    n = len(indptr) - 1
    blocks = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    degree = (indptr[1:] - indptr[:-1]).astype(np.int32)
    rings = (cupy.empty(blocks * RING, np.uint32), np.uint32(RING))
    ends = cupy.empty(blocks, np.uint32)
    spilled = cupy.empty(n, np.uint32)
    counts = cupy.zeros(2, np.uint32)  # peeled, spilled

    def start(name: str, *args: Any) -> None:
        launch.run("algorithms/core/paper/peel.cu", name, blocks * BLOCK, *args, block=BLOCK)

    def loop(level: Any) -> tuple[int, int]:
        start(
            f"loop<{compaction}, {read}>",
            indptr, indices, level, degree, *rings, ends, spilled, counts,
        )  # fmt: skip
        peeled, waiting = counts.get().tolist()
        return peeled, waiting

    peeled, level = 0, np.int32(0)
    while peeled < n:
        start(f"scan<{compaction}>", n, level, degree, *rings, ends, spilled, counts)
        peeled, waiting = loop(level)
        while waiting:
            taken = min(waiting, blocks * RING)
            counts[1] = waiting - taken
            start("refill", waiting - taken, taken, spilled, *rings, ends)
            peeled, waiting = loop(level)
        level += np.int32(1)
    return degree


VARIANTS: dict[str, Callable[[Array, Array], Array]] = {
    f"peel{by}{how}": partial(peel, compaction=compaction, read=read)
    for by, compaction in COMPACTIONS.items()
    for how, read in READS.items()
}
