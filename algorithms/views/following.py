"""Views brought from one snapshot to the next.

A snapshot on the CPU knows the state of the last one and the edges touched since
(lpma/snapshot/row_versions.py). If that state has a view, the snapshot's is a copy with those edges
merged in: with 100 changed edges in 200,000, a tenth of the time of making it anew. Views are kept
with the state, so that all snapshots of a version share them; so are labels of components.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lpma.cpu import merged
from lpma.pma.keys import HALF, LOW
from lpma.snapshot.row_versions import Delta, Lineage, contiguous, lineage_of
from lpma.snapshot.row_versions import Rows as VersionRows
from lpma.snapshot.snapshot import Snapshot

from ..arrays import Array
from .simple_cpu import Rows

T = TypeVar("T")

Changed = tuple[Array, Array]  # keys uint64, ascending, and bool: whether each is there now


def lineage_in(s: Any) -> Lineage | None:
    """How s follows an earlier snapshot; None if it does not."""
    return lineage_of(s) if isinstance(s, Snapshot) else None


def followed(s: Any, name: str, build: Callable[[], T], after: Callable[[T, Delta], T | None]) -> T:
    """What is derived from s, under a name: brought up to date by `after` from what there was of
    the last snapshot, or built, if s follows none or `after` returns None."""
    lineage = lineage_in(s)
    if lineage is None:
        return build()
    state, since = lineage.state, lineage.since
    found: T | None = state.views.get(name)
    if found is not None:
        return found
    before: T | None = None if since is None else since.before.views.get(name)
    if since is not None and before is not None:
        found = after(before, since)
    kept: T = state.views.setdefault(name, build() if found is None else found)
    return kept


def merged_rows(before: Rows, changes: Changed, n: int) -> Rows:
    """n rows, with what has changed in those before."""
    return merged.with_changes(*before, *changes, n, _room)


def version_rows(rows: Rows, n: int, m: int) -> VersionRows:
    """n rows of m entries, from which those of later versions are made."""
    return VersionRows(n, m, _merged, contiguous(*rows))


def follows(s: Any, name: str) -> bool:
    """Whether the view need not be built: it exists, or that of the last snapshot does."""
    lineage = lineage_in(s)
    if lineage is None:
        return False
    since = lineage.since
    return name in lineage.state.views or (since is not None and name in since.before.views)


def carried(s: Snapshot, name: str, default: Any) -> Any:
    """What `carry` noted with this snapshot, or with the last one."""
    lineage = lineage_of(s)
    if lineage is None:
        return s.views.get(name, default)
    if lineage.since is not None:
        default = lineage.since.before.views.get(name, default)
    return lineage.state.views.get(name, default)


def carry(s: Snapshot, name: str, value: Any) -> None:
    """Note something with a snapshot, for itself and the next one."""
    lineage = lineage_of(s)
    (s.views if lineage is None else lineage.state.views)[name] = value


def is_followed(s: Any) -> bool:
    """Whether s follows a snapshot, as after each batch of a stream."""
    lineage = lineage_in(s)
    return lineage is not None and lineage.since is not None


def backwards(since: Delta) -> Changed:
    """The changed keys of the transpose."""
    keys, there = since.changes
    keys = keys << HALF | keys >> HALF
    order = np.argsort(keys)
    return keys[order], there[order]


def both_ways(s: Snapshot, since: Delta) -> Changed:
    """The changed keys of the simple undirected view, which has an edge as long as the graph has
    either direction."""
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
