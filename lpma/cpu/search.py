"""Binary search in a part of a sorted array, for Numba's kernels.

`np.searchsorted` searches a whole array: to search a part, a view of it would have to be made each
time.
"""

from __future__ import annotations

from ..arrays import Array
from .jit import compiled


@compiled
def first_not_below(rising: Array, first: int, end: int, wanted: int) -> int:
    """The first place of first … end - 1 whose entry is not below `wanted`; `end` if none is."""
    while first < end:
        middle = (first + end) >> 1
        if rising[middle] < wanted:
            first = middle + 1
        else:
            end = middle
    return first
