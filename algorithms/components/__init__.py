"""Connected components: which vertices a path joins, whatever the directions of its edges.

Both devices hook trees of vertices together, edge by edge, and label each vertex with the smallest
id of its tree; a row that is not a vertex is labelled NONE.

on     when                                      runs                            in
CPU    only insertions since the last snapshot   the last labels, updated        incremental.py
CPU    else                                      Afforest                        cpu.py
CUDA   fewer than cuda.LARGE entries             ECL-CC                          components.cu
CUDA   else                                      ECL-CC, sampling as Afforest    components.cu

forest.cuh has the trees on a CUDA device, for other algorithms too.

Oracle: NetworkX and SciPy (tests/algorithms/test_components.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of
from lpma.snapshot.row_versions import scattered
from lpma.snapshot.snapshot import Snapshot

from ..arrays import Array
from ..options import algorithm
from ..views.directed import is_on_device, is_symmetric, rows, scattered_rows
from ..views.following import followed, lineage_in
from ..views.given import Distributed
from ..views.simple import View
from . import cpu
from .incremental import LABELS, grown

NONE = -1


@algorithm
def connected_components(s: Any) -> Array:
    """The smallest vertex id of each vertex's (weakly) connected component.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as an
    undirected graph.

    Returns int32[n], where s lies: −1 for a row that is not a vertex (in a Snapshot, one that is
    not `present`; in anything else every row is a vertex). Raises `lpma.BatchError` if s is not a
    graph.

    >>> graph = lpma.from_edges([0, 4], [2, 3], device="cpu")
    >>> algorithms.connected_components(graph.snapshot())
    array([ 0, -1,  0,  3,  3], dtype=int32)
    """
    if isinstance(s, Distributed):
        return s.dispatch("connected_components")
    added = s._added if isinstance(s, Snapshot) else None
    if is_on_device(s):
        view = rows(s)
        on_device = labels(view, is_symmetric(s), None)
        if added is not None:
            from . import cuda

            with device_of(view.indptr):
                cuda.leave_out(on_device, view.indptr, added, NONE)
        return on_device

    def anew() -> Array:
        scattered = scattered_rows(s)
        found = cpu.components(scattered, is_symmetric(s))
        if added is not None:
            cpu.leave_out(found, scattered.starts, scattered.ends, added, NONE)
        return found

    found = followed(s, LABELS, anew, lambda before, since: grown(before, since, s.num_rows, NONE))
    return found if lineage_in(s) is None else found.copy()


def labels(view: View, is_symmetric: bool, present: Array | None) -> Array:
    """As `connected_components`, of rows. is_symmetric: every edge is in the rows of both ends.
    present: bool[n], which rows are vertices; None: all."""
    with device_of(view.indptr):
        if view.on_device:
            from . import cuda

            found: Array = cuda.components(view.indptr, view.indices, is_symmetric)
        else:
            found = cpu.components(scattered(view.indptr, view.indices), is_symmetric)
        if present is None:
            return found
        labelled: Array = array_module(found).where(present, found, np.int32(NONE))
    return labelled
