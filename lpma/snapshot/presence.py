"""Which rows of a graph are vertices: those that an edge leaves or enters, and those added alone.

A graph has a *row* for every id up to the largest present. A *vertex* is a row that is present: an
edge leaves it, an edge enters it, or it was added by itself.

Idea: a bool for each row. Out-edges show in `indptr`; the rest is one pass over the targets. If ids
are so sparse that the bools would take more memory than the keys, the ids are sorted instead or, on
the host, put into a table.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, array_module, on_device
from ..cpu import columns

SPARSE = 64  # rows per slot above which ids are sorted, on a device
SPARSE_ON_HOST = 4  # and above which they are put into a table


def of_rows(indptr: Array, indices: Array, is_symmetric: bool, added: Array) -> Array:
    """bool[n]: whether each row of a CSR is a vertex. is_symmetric: every edge is in the rows of
    both ends, so that reading one of them suffices. added: vertices that need no edge. On a device,
    REQUIRES that it is the current one."""
    present: Array = indptr[1:] > indptr[:-1]
    if not is_symmetric:
        if on_device(indices):
            present[indices] = True
        else:
            columns.mark_rows(indices, present)
    present[added] = True
    return present


def ids_of(keys: Array, rows: int) -> Array:
    """uint32, ascending: the vertices in these keys, markers included, of a graph with `rows` rows.
    On a device, REQUIRES that it is the current one."""
    xp = array_module(keys)
    if xp is np and rows > SPARSE_ON_HOST * len(keys):
        return columns.distinct_ends(keys)
    if xp is not np and rows > SPARSE * len(keys):
        return columns.sorted_ends(keys)
    present = xp.zeros(rows, np.bool_)
    mark_ends = columns.mark_ends if xp is np else columns.put_ends
    mark_ends(keys, present)
    return xp.flatnonzero(present).astype(np.uint32)
