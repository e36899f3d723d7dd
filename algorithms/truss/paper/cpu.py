"""Truss numbers by the slides' program on the CPU, its steps shared by threads: see the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..edge_rows_cpu import next_common, shorter_first
from ..types import EdgeRows

Array = npt.NDArray[Any]


def by_affected(rows: EdgeRows, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then."""
    m = len(rows.src)
    truss = np.full(m, until, np.int32)
    standing, deleted, affected = np.ones((3, m), np.uint8)
    deleted[:] = 0
    k = 3
    while k <= until and standing.any():
        affected[:] = standing
        while len(checked := np.flatnonzero(affected)):
            affected[:] = 0
            work = _work(rows, checked)
            by_rows(_check, work, checked, k - 2, standing, *rows, deleted, affected)
            truss[deleted != 0] = k - 1
            standing[deleted != 0] = 0
            deleted[:] = 0
            affected &= standing
        k += 1
    return truss


def _work(rows: EdgeRows, edges: Array) -> Array:
    """int64[edges + 1]: the running sum of the lengths of the edges' rows."""
    length = rows.last - rows.first
    work = np.zeros(len(edges) + 1, np.int64)
    np.cumsum(length[rows.src[edges]] + length[rows.dst[edges]], out=work[1:])
    return work


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
