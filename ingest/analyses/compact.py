"""A snapshot without the rows that are no vertices, made of one that has them.

`Graph.snapshot(compact=True)` does the same, but searches for each end of each edge while the graph
is locked; a copy as it lies takes a few percent of that, so whoever must not hold up a stream takes
the copy, and renumbers it here.
"""

from __future__ import annotations

import numpy as np

from lpma import Snapshot
from lpma.arrays import array_module, device_of


def compacted(s: Snapshot) -> Snapshot:
    """The snapshot with a row for each vertex, in the order of their ids, which are `ids`; nothing
    says what they go by. REQUIRES: s has a row for every id.

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert([1, 5], [5, 1])
    >>> s = compacted(g.snapshot())
    >>> s.ids, s.indptr, s.indices
    (array([1, 5], dtype=uint32), array([0, 1, 2]), array([1, 0], dtype=uint32))
    """
    assert s._ids is None, "the rows have been renumbered"
    xp = array_module(s._indptr)
    with device_of(s._indptr):
        present = s._present
        ids = xp.flatnonzero(present).astype(np.uint32)
        indptr, indices = s._indptr, s._indices
        if len(ids) < s.num_rows:
            row_of = xp.cumsum(present, dtype=np.uint32) - np.uint32(1)
            indices = row_of[indices]
            # Rows that are left out are empty, so that each row ends where the next one begins.
            indptr = xp.concatenate([indptr[:-1][present], indptr[-1:]])
    return s._with(indptr=indptr, indices=indices, ids=ids, added=None, names=None)
