"""Consecutive items in parts that keep to a budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def parts(sizes: Array, most: int, first: int = 0) -> list[tuple[int, int]]:
    """Ranges that cover the places from `first` on; the sizes, int64[q] on the host, of each sum up
    to `most` or less, or it has one place."""
    found = []
    upto = np.cumsum(sizes)
    while first < len(sizes):
        before = int(upto[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(upto, before + most, side="right")))
        found.append((first, last))
        first = last
    return found
