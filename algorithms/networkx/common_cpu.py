"""Sums over the common neighbours of pairs of vertices, on the CPU.

Idea: two sorted rows are merged; if one is much longer, the shorter one's entries are looked up in
it. Each common neighbour but the two vertices themselves adds its value.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous, rows sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.search import first_not_below

Array = npt.NDArray[Any]

MUCH_LONGER = 16


@compiled
def sums(
    first: int, last: int, indptr: Array, indices: Array, left: Array, right: Array, values: Array
) -> tuple[Array, Array, Array]:
    """For the pairs (left[i], right[i]), i = first … last - 1: int64, the number of common
    neighbours but the pair itself; float64, the sum of their values; and int64, how many entries
    both rows have together, each counted once."""
    count = np.zeros(last - first, np.int64)
    total = np.zeros(last - first, np.float64)
    union = np.zeros(last - first, np.int64)
    for pair in range(first, last):
        u, v = left[pair], right[pair]
        if indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v]:
            u, v = v, u
        i, end = indptr[u], indptr[u + 1]
        j, other_end = indptr[v], indptr[v + 1]
        both = 0
        skips = other_end - j > MUCH_LONGER * (end - i)
        while i < end and j < other_end:
            wanted = indices[i]
            if skips:
                j = first_not_below(indices, j, other_end, wanted)
            else:
                while j < other_end and indices[j] < wanted:
                    j += 1
            if j < other_end and indices[j] == wanted:
                both += 1
                if wanted != u and wanted != v:
                    count[pair - first] += 1
                    total[pair - first] += values[wanted]
            i += 1
        lengths = indptr[u + 1] - indptr[u] + indptr[v + 1] - indptr[v]
        union[pair - first] = lengths - both
    return count, total, union
