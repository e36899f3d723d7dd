"""What of a snapshot is in a view in time (lpma/time_view.py), where the graph is a file or
elsewhere. `Graph.snapshot` finds it in the pass that copies.
"""

from __future__ import annotations

from typing import TypeVar

from ..arrays import Array, device_of, row_numbers
from ..time_view import TimeView, rows_in_view
from .csr import Csr

Rows = TypeVar("Rows", bound=Csr)


def in_view(s: Rows, view: TimeView) -> Rows:
    """The same rows with the edges in the view alone. REQUIRES: the snapshot has times."""
    assert s._times is not None, "a view is of edges with times"
    with device_of(s._indptr):
        indptr, indices, weights, times = rows_in_view(
            view, s._indptr, s._indices, s._weights, s._times
        )
        edges = edges_of(indptr, indices, s.directed)
    return s._trusted(
        indptr, indices, weights, times, edges, s.version, s.time, s.directed,
        ids=s._ids, added=s._added, names=s.names, left=s.left,
    )  # fmt: skip


def edges_of(indptr: Array, indices: Array, directed: bool) -> int:
    """How many edges the entries of a CSR are. On a device, REQUIRES that it is the current one."""
    entries = len(indices)
    if directed:
        return entries
    return (entries + int((row_numbers(indptr, entries) == indices).sum())) // 2
