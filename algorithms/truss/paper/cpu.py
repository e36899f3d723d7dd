"""Truss numbers by the slides' program on the CPU, its steps shared by threads: see the package."""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ...arrays import Array, starts_of
from ..intersect_cpu import EdgeRows, next_common, shorter_first


def by_affected(rows: EdgeRows, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then."""
    m, length = len(rows.src), rows.last - rows.first
    truss = np.full(m, until, np.int32)
    standing, deleted, affected = np.ones((3, m), np.uint8)
    deleted[:] = 0
    k = 3
    while k <= until and standing.any():
        affected[:] = standing
        while len(checked := np.flatnonzero(affected)):
            affected[:] = 0
            work = starts_of(length[rows.src[checked]] + length[rows.dst[checked]])
            by_rows(_check, work, checked, k - 2, standing, *rows, deleted, affected)
            truss[deleted != 0] = k - 1
            standing[deleted != 0] = 0
            deleted[:] = 0
            affected &= standing
        k += 1
    return truss


@compiled
def _check(
    begin: int, end: int, checked: Array, least: int, standing: Array, src: Array, dst: Array,
    first: Array, last: Array, indices: Array, edge: Array, deleted: Array, affected: Array,
) -> None:  # fmt: skip
    """Mark as deleted each edge with fewer than `least` standing triangles, and as affected the
    other edges of these."""
    for e in checked[begin:end]:
        start_i, end_i, start_j, end_j = shorter_first(src[e], dst[e], first, last)
        found = 0
        i, j = next_common(start_i, end_i, start_j, end_j, indices)
        while i < end_i and found < least:
            found += standing[edge[i]] & standing[edge[j]]
            i, j = next_common(i + 1, end_i, j + 1, end_j, indices)
        if found >= least:
            continue
        deleted[e] = 1
        i, j = next_common(start_i, end_i, start_j, end_j, indices)
        while i < end_i:
            if standing[edge[i]] and standing[edge[j]]:
                affected[edge[i]] = affected[edge[j]] = 1
            i, j = next_common(i + 1, end_i, j + 1, end_j, indices)
