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


def by_level(counts: npt.NDArray[Any], m: int, segment_size: int) -> npt.NDArray[np.float64]:
    """float64[m+1]: the share of the slots that are filled, in the head and in each level. counts:
    integers [2^(m+1)] by window (backend/values.py), on the host.

    Level x holds the segments whose rank is an odd multiple of 2^(m - x) (backend/layout.py): of
    what is left, every other one."""
    held = counts[1 << m :]
    filled = np.zeros(m + 1)
    for level in range(m, 0, -1):
        filled[level] = held[1::2].sum(dtype=np.int64)
        held = held[::2]
    filled[0] = held[0]
    levels = np.arange(m + 1)
    return filled / (segment_size << np.maximum(levels - 1, 0))
