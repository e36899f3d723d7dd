"""Incremental snapshots: the rows of the last one, with the changed keys merged in.

Most streams take a snapshot after every batch, and a batch changes few of the edges. So a graph
keeps the rows of its last snapshot (`RowVersion`), and makes the next ones from them and the keys
that changed since, instead of by a pass over the whole store. They are made when they are first
read, in the form that the reader chooses (row_versions.py). What algorithms derive from rows can be
updated in the same way (algorithms/views): a snapshot knows the version of its rows, and how it
follows from an earlier one (`Lineage`).

The rule. Rows are kept while they take no more than KEPT_BYTES. They are updated if the history
knows what happened since, and that is at most one key for every SHARE entries; otherwise rows are
made anew.

Invariants:
1. The rows of a version never change: snapshots share them.
2. A graph keeps the rows of its last snapshot alone, and a snapshot those of at most one version
   beside its own. So no chain of versions grows.

Source: our own; Dhulipala et al., "Low-latency graph streaming using compressed purely-functional
trees", PLDI 2019, share what did not change between versions by trees instead.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array
from ..engine.stores import Stores
from . import row_versions
from .row_versions import Batches, Delta, Lineage, Rows, RowVersion, contiguous

KEPT_BYTES = 1 << 26


def next_rows(stores: Stores, n: int, m: int, make: Callable[[], tuple[Array, Array]]) -> Lineage:
    """The rows of the graph's present version: n, with m entries in all. make: makes indptr
    int64[n+1] and indices uint32[m] from the store. REQUIRES: the caller holds the graph's lock;
    the backend `merges_rows`."""
    last = stores.last
    if last is not None and last.version == stores.version and last.rows.num_rows == n:
        return Lineage(last, None)
    backend = stores.out.backend
    batches = None if last is None else _since(stores, last)
    if last is None or batches is None:
        since, now = None, Rows(n, m, backend.rows_with, contiguous(*make()))
    else:
        since, now = Delta(last, batches), last.rows.after(n, m, batches)
    state = RowVersion(stores.version, now)
    stores.last = state if 8 * (n + 1) + 4 * m <= KEPT_BYTES else None
    return Lineage(state, since)


def _since(stores: Stores, state: RowVersion) -> Batches | None:
    """What changed since a version; None if that is unknown, or too much to merge."""
    batches = stores.history.since(state.version)
    if batches is None:
        return None
    keys = sum([len(keys) for keys, _ in batches])
    return None if keys * row_versions.SHARE > state.rows.num_entries else batches
