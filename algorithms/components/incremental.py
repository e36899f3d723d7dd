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
from lpma.snapshot.row_versions import Batches

from ..arrays import Array
from ..views.following import lineage_in
from .cpu import compress, link

LABELS = "components"  # among the views of a state


def incremental(s: Any, none: int) -> Array | None:
    """As `connected_components`, of a Snapshot on the CPU; None if the labels do not follow from
    those of the last snapshot. none: the label of a row that is not a vertex."""
    followed = lineage_in(s)
    if followed is None:
        return None
    kept: Array | None = followed.state.views.get(LABELS)
    if kept is not None:
        return kept.copy()
    since = followed.since
    before: Array | None = None if since is None else since.before.views.get(LABELS)
    if since is None or before is None or not _only_came(since.batches):
        return None
    labels = np.full(s.num_rows, none, np.int32)
    labels[: len(before)] = before
    for keys, _ in since.batches:
        _add(keys, labels)
    keep(s, labels)
    return labels


def keep(s: Any, labels: Array) -> None:
    """Keep the labels of s for the next snapshot."""
    followed = lineage_in(s)
    if followed is not None:
        followed.state.views[LABELS] = labels.copy()


def _only_came(batches: Batches) -> bool:
    return all(bool(there.all()) for _, there in batches)


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
