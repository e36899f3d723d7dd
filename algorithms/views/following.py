"""Views that follow a graph from snapshot to snapshot.

A snapshot on the CPU knows the state of the one before it and the edges touched since then
(lpma/snapshot/incremental.py). If a view of that state is there, the view of the snapshot is a copy
of it with those edges merged in: of 100 changed edges in 200,000 a tenth of the time that making it
anew takes. Views are kept with the state, so that all snapshots of a version share them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lpma.cpu import merged
from lpma.pma.keys import HALF, LOW
from lpma.snapshot.row_versions import Delta, Lineage, contiguous, lineage_of
from lpma.snapshot.row_versions import Rows as VersionRows
from lpma.snapshot.snapshot import Snapshot

from ..arrays import Array
from .simple_cpu import Rows

Changed = tuple[Array, Array]  # keys uint64, ascending, and bool: whether each is there now


def lineage_in(s: Any) -> Lineage | None:
    """How s follows an earlier snapshot; None if it has no state, or is no Snapshot."""
    return lineage_of(s) if isinstance(s, Snapshot) else None


def following(
    s: Any, name: str, build: Callable[[], Rows], changed: Callable[[Snapshot, Delta], Changed]
) -> Rows:
    """Rows of the view `name` of s: followed, or built. changed: gives the keys of the view that
    may have come or gone."""
    link = lineage_in(s)
    if link is None:
        return build()
    rows: Rows | None = link.state.views.get(name)
    if rows is not None:
        return rows
    before = None if link.since is None else link.since.before.views.get(name)
    if link.since is None or before is None:
        rows = build()
    else:
        indptr, indices = before
        keys, there = changed(s, link.since)
        rows = merged.with_changes(indptr, indices, keys, there, s.num_rows, _room)
    return link.state.views.setdefault(name, rows)


def followed_rows(s: Snapshot, name: str, build: Callable[[], Rows]) -> VersionRows:
    """The transpose of s, as a view `name`, packed or loose: followed, or built. REQUIRES: s has a
    state."""
    link = lineage_of(s)
    assert link is not None
    found: VersionRows | None = link.state.views.get(name)
    if found is not None:
        return found
    m = link.state.rows.num_entries
    before: VersionRows | None = None if link.since is None else link.since.before.views.get(name)
    if link.since is None or before is None:
        found = VersionRows(s.num_rows, m, _merged, contiguous(*build()))
    else:
        found = before.after(s.num_rows, m, [backwards(link.since)])
    kept: VersionRows = link.state.views.setdefault(name, found)
    return kept


def follows(s: Any, name: str) -> bool:
    """Whether the view need not be built: it is there, or that of the snapshot before is."""
    link = lineage_in(s)
    if link is None:
        return False
    return name in link.state.views or (link.since is not None and name in link.since.before.views)


def carried(s: Snapshot, name: str, default: Any) -> Any:
    """What `carry` noted with this snapshot, or with the one that it follows."""
    link = lineage_of(s)
    if link is None:
        return s.views.get(name, default)
    if link.since is not None:
        default = link.since.before.views.get(name, default)
    return link.state.views.get(name, default)


def carry(s: Snapshot, name: str, value: Any) -> None:
    """Note something with a snapshot for itself, and for the one that follows it."""
    link = lineage_of(s)
    (s.views if link is None else link.state.views)[name] = value


def is_followed(s: Any) -> bool:
    """Whether s follows a snapshot, as those do that are taken after each batch of a stream."""
    link = lineage_in(s)
    return link is not None and link.since is not None


def backwards(since: Delta) -> Changed:
    """The changed keys of the transpose."""
    keys, there = since.changes
    keys = keys << HALF | keys >> HALF
    order = np.argsort(keys)
    return keys[order], there[order]


def both_ways(s: Snapshot, since: Delta) -> Changed:
    """The changed keys of the simple undirected view, in both directions: an edge is there as long
    as either direction of it is."""
    keys, there = since.changes
    apart = keys >> HALF != keys & LOW
    keys, there = keys[apart], there[apart]
    if s.directed:
        gone = np.flatnonzero(~there)
        back = keys[gone] << HALF | keys[gone] >> HALF
        there[gone] = merged.contains(s._indptr, s._indices, back)
    both = np.concatenate((keys, keys << HALF | keys >> HALF))
    order = np.argsort(both, kind="stable")
    return both[order], np.concatenate((there, there))[order]


def _room(starts: int, entries: int) -> tuple[Array, Array]:
    return np.empty(starts, np.int64), np.empty(entries, np.uint32)


def _merged(
    indptr: Array, indices: Array, keys: Array, there: Array, n: int
) -> tuple[Array, Array, Array]:
    """As `rows_with` of a store's backend."""
    memory: list[Array] = []

    def room(starts: int, entries: int) -> tuple[Array, Array]:
        memory[:] = _room(starts, 2 * entries)
        return memory[0], memory[1]

    made = merged.with_changes(indptr, indices, keys, there, n, room)
    return *made, memory[1]
