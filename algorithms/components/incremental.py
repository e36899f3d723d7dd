"""Components brought from one snapshot to the next, while the graph only grows.

Labels are trees of height one. So the last snapshot's labels, with the edges linked that were
inserted since, are this one's: a pass over the vertices, which reads no row. After a deletion
components are computed anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled
from lpma.pma.keys import HALF, LOW
from lpma.snapshot.row_versions import Delta

from ..arrays import Array
from .cpu import compress, link

LABELS = "components"  # among the views of a state


def grown(before: Array, since: Delta, n: int, none: int) -> Array | None:
    """The labels of n rows from those of the last snapshot; None if something was deleted since.
    none: the label of a row that is not a vertex."""
    if not all(bool(there.all()) for _, there in since.batches):
        return None
    labels = np.full(n, none, np.int32)
    labels[: len(before)] = before
    for keys, _ in since.batches:
        _add(keys, labels)
    return labels


@compiled
def _add(keys: Array, labels: Array) -> None:
    """Add edges and vertices to labels. keys: uint64, of edges and of markers."""
    for key in keys:
        u: Any = np.int64(key >> HALF)
        v: Any = np.int64(key & LOW)
        if labels[u] < 0:
            labels[u] = u
        if key & LOW == LOW:
            continue
        if labels[v] < 0:
            labels[v] = v
        link(u, v, labels)
    compress(0, len(labels), labels)
