"""Density bounds by layer (paper, Section II-B, after Bender and Hu's packed-memory array).

A window may be filled up to `upper(layer)`, and after deletions must not fall below `lower(layer)`.
The leaf may be packed full; the bounds narrow linearly towards the root, so that a window just
rebalanced leaves room in each of its halves, and a store just expanded (density 0.45) or shrunk (at
most 0.6) is far from doing either again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

UPPER_LEAF, UPPER_ROOT = 1.0, 0.9
LOWER_LEAF, LOWER_ROOT = 0.0, 0.3


@lru_cache(maxsize=128)
def bounds(m: int, segment_size: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(most, least): int64[m+1], the edges a window of each layer 0 … m may and must hold."""
    layer = np.arange(m + 1)
    slots = segment_size << layer
    share = layer / max(m, 1)
    # The tiny nudge keeps a product that is whole in arithmetic whole in floating point.
    most = np.floor((UPPER_LEAF + (UPPER_ROOT - UPPER_LEAF) * share) * slots + 1e-9)
    least = np.ceil((LOWER_LEAF + (LOWER_ROOT - LOWER_LEAF) * share) * slots - 1e-9)
    return most.astype(np.int64), least.astype(np.int64)
