"""Snapshots that follow the store: the rows of the last one, with the changed keys merged in.

A stream is mostly asked for its state after every batch, and a batch changes few of the edges. So
the rows of a graph's last snapshot are kept (`State`), and those of the next are a copy of them in
which the keys that changed since then are merged (`lpma/cpu/merged.py`), instead of a pass over the
whole store. What algorithms derive from rows may follow in the same way (`algorithms/views`): a
snapshot knows its predecessor's state, and the keys between the two (`Since`).

The rule. Rows are kept while they take no more than KEPT_BYTES. They are followed if the history
knows what happened since, and that is at most one key for every SHARE entries; otherwise rows are
made anew.

Invariants:
1. A state is that of a whole version, and its arrays never change: snapshots share them.
2. The graph keeps the state of its last snapshot alone, and a snapshot at most one state beside its
   own. So no chain of them grows.

Source: our own; Dhulipala et al., "Low-latency graph streaming using compressed purely-functional
trees", PLDI 2019, share what did not change between versions by trees instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from .history import joined, newest
from .keys import LOW
from .states import Link, Since, State
from .stores import Stores

Array = npt.NDArray[Any]
Rows = tuple[Array, Array]  # indptr int64[n+1], indices uint32[m]

KEPT_BYTES = 1 << 26
SHARE = 16


def rows(stores: Stores, n: int, make: Callable[[], Rows]) -> Link:
    """The graph's present version, in n rows. make: makes the rows from the store. The caller holds
    the graph's lock. REQUIRES: a backend that MergesRows."""
    last, since = stores.last, None
    if last is not None:
        if last.version == stores.version and len(last.indptr) == n + 1:
            return Link(last, None)
        since = _since(stores, last)
    if since is None:
        made = make()
    else:
        before, keys, there = since
        backend: Any = stores.out.backend
        made = backend.rows_with(before.indptr, before.indices, keys, there, n)
    state = State(stores.version, *made)
    stores.last = state if state.nbytes <= KEPT_BYTES else None
    return Link(state, since)


def _since(stores: Stores, state: State) -> Since | None:
    """What happened since a state, or None if that is unknown, or too much to follow."""
    batches = stores.history.since(state.version)
    if batches is None or sum([len(keys) for keys, _ in batches]) * SHARE > len(state.indices):
        return None
    keys, there = newest(*joined(batches))
    is_marker = (keys & LOW) == LOW
    if is_marker.any():
        keys, there = keys[~is_marker], there[~is_marker]
    return Since(state, keys, there)
