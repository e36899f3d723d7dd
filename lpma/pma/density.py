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

from .layout import PARTS, PERIOD, Size, is_there

UPPER_LEAF, UPPER_ROOT = 1.0, 0.9
LOWER_LEAF, LOWER_ROOT = 0.0, 0.3


@lru_cache(maxsize=128)
def bounds(m: int, segment_size: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(most, least): int64[m+1], by layer, of the windows of a store of whole levels."""
    most, least = window_bounds(Size(m), segment_size)  # where all windows of a layer are alike
    return most[:, 0].copy(), least[:, 0].copy()


@lru_cache(maxsize=128)
def window_bounds(size: Size, segment_size: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(most, least): int64[m+1, 8], the edges that window w of layer x may and must hold: entry [x,
    w mod 8]. They differ within a layer only if the last level is there in part, in layers 0 to 2
    (layout.py). A segment that is not there has room for nothing."""
    m = size.m
    held = [int(is_there(rank, size)) for rank in range(PERIOD)]
    segments = np.empty((m + 1, PERIOD), np.int64)  # that are there, of each window
    for layer in range(min(m, 3) + 1):
        segments[layer] = held
        pairs = [left + right for left, right in zip(held[::2], held[1::2], strict=True)]
        held = 2 * pairs  # the windows around those, eight again
    segments[4:] = segments[3:4] << np.arange(1, m - 2)[:, np.newaxis]
    slots = segment_size * segments
    share = (np.arange(m + 1) / max(m, 1))[:, np.newaxis]
    # The tiny nudge keeps a product that is whole in arithmetic whole in floating point.
    most = np.floor((UPPER_LEAF + (UPPER_ROOT - UPPER_LEAF) * share) * slots + 1e-9)
    least = np.ceil((LOWER_LEAF + (LOWER_ROOT - LOWER_LEAF) * share) * slots - 1e-9)
    return most.astype(np.int64), least.astype(np.int64)


@lru_cache(maxsize=128)
def root_bounds(size: Size, segment_size: int) -> tuple[int, int]:
    """(most, least): the edges that the root may and must hold."""
    most, least = window_bounds(size, segment_size)
    return int(most[-1, 1]), int(least[-1, 1])


def by_level(counts: npt.NDArray[Any], size: Size, segment_size: int) -> npt.NDArray[np.float64]:
    """float64[m+1]: the share of the slots that are filled, in the head and in each level, of those
    that are there. counts: integers [2^(m+1)] by window, on the host. Level x holds the segments
    whose rank is an odd multiple of 2^(m - x): of what is left, every other one."""
    m = size.m
    held = counts[1 << m :]
    filled = np.zeros(m + 1)
    for level in range(m, 0, -1):
        filled[level] = held[1::2].sum(dtype=np.int64)
        held = held[::2]
    filled[0] = held[0]
    slots = segment_size << np.maximum(np.arange(m + 1) - 1, 0)
    if m:
        slots[m] = slots[m] * size.parts // PARTS
    return filled / slots
