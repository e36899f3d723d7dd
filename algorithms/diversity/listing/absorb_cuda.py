"""What a sure context absorbs of its owner's row, on a CUDA device: see `absorb` for the method,
and absorb.cu for the kernel, in which blocks take owners from a counter.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..model import MODELS, fewest_vertices
from .types import RankedEgos

Array = Any  # cupy.ndarray

HEAD, THREADS = 128, 256  # absorb.cu


def absorb(egos: RankedEgos, owners: Array, starts: Array, rest: Array) -> Array:
    """As `absorb_cpu.absorb`."""
    left, queue = cupy.empty(len(owners), np.int32), driver.zeros(1, np.uint64)
    launch.run_together(
        "algorithms/diversity/listing/absorb.cu", f"absorb<{MODELS.index(egos.model)}>",
        THREADS * len(owners), egos.slots.indptr, egos.slots.indices, egos.lower.indptr,
        egos.lower.indices, owners, len(owners), egos.k, fewest_vertices(egos.model, egos.k),
        starts, rest, left, queue, block=THREADS,
    )  # fmt: skip
    return left
