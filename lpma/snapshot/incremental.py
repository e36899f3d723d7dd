"""Snapshots that follow the store: the rows of the last one, with the changed keys merged in.

A stream is mostly asked for its state after every batch, and a batch changes few of the edges. So
the rows of a graph's last snapshot are kept (`State`), and those of the next are made from them and
the keys that changed since then, instead of a pass over the whole store; and not before somebody
reads them, who may choose between two forms (`row_versions.py`). What algorithms derive from rows may
follow in the same way (`algorithms/views`): a snapshot knows its predecessor's state, and the keys
between the two (`Since`).

The rule. Rows are kept while they take no more than KEPT_BYTES. They are followed if the history
knows what happened since, and that is at most one key for every SHARE entries; otherwise rows are
made anew.

Invariants:
1. A state is that of a whole version, and its rows never change: snapshots share them.
2. The graph keeps the state of its last snapshot alone, and a snapshot at most one state beside its
   own. So no chain of them grows.

Source: our own; Dhulipala et al., "Low-latency graph streaming using compressed purely-functional
trees", PLDI 2019, share what did not change between versions by trees instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from ..engine.stores import Stores
from . import row_versions as forms
from .row_versions import Batches, Link, Rows, Since, State, packed_of

Array = npt.NDArray[Any]

KEPT_BYTES = 1 << 26


def rows(stores: Stores, n: int, m: int, make: Callable[[], tuple[Array, Array]]) -> Link:
    """The graph's present version, in n rows of m entries in all. make: makes indptr int64[n+1] and
    indices uint32[m] from the store. The caller holds the graph's lock. REQUIRES: a backend that
    `merges_rows`."""
    last = stores.last
    if last is not None and last.version == stores.version and last.rows.num_rows == n:
        return Link(last, None)
    backend = stores.out.backend
    batches = None if last is None else _since(stores, last)
    if last is None or batches is None:
        since, now = None, Rows(n, m, backend.rows_with, packed_of(*make()))
    else:
        since, now = Since(last, batches), last.rows.after(n, m, batches)
    state = State(stores.version, now)
    stores.last = state if 8 * (n + 1) + 4 * m <= KEPT_BYTES else None
    return Link(state, since)


def _since(stores: Stores, state: State) -> Batches | None:
    """What happened since a state, or None if that is unknown, or too much to follow."""
    batches = stores.history.since(state.version)
    if batches is None:
        return None
    keys = sum([len(keys) for keys, _ in batches])
    return None if keys * forms.SHARE > state.rows.num_entries else batches
