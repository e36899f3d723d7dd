"""The edges that batches touched since a version: what `Graph.touched` answers from.

Nothing here looks at the whole graph, if it can be helped: whoever follows the graph in small
batches asks after each. So the largest vertex, which a store no longer knows after a deletion, is
told from the one known at version `since`, unless an edge of that one went.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import query
from .arrays import all_of, any_of, array_module, finish, on_device
from .history import joined, newest
from .keys import LOW, ends_of
from .results import TouchedEdges
from .stores import Stores

Array = npt.NDArray[Any]  # or cupy.ndarray


def touched(stores: Stores, since: int) -> TouchedEdges | None:
    """As `Graph.touched`. The caller holds the graph's lock."""
    out = stores.out
    out.backend.wait()
    batches = stores.history.since(since)
    if batches is None:
        return None
    on_a_device = on_device(out.segments.counts)
    keys, there = (_of_device if on_a_device else _of_host)(stores, batches, since)
    finish(keys)  # the history may drop what was read, and the store reuse its memory
    largest = out.largest_vertex()
    stores.largest_at = stores.version, largest
    return TouchedEdges(keys, there, stores.version, largest + 1)


def _of_device(stores: Stores, batches: list[tuple[Array, Array]], _: int) -> tuple[Array, Array]:
    """The keys that batches touched, perhaps repeated, and whether each is there now. In few steps,
    none of which the host waits for: so all are looked for, whether anything was deleted or not."""
    xp = array_module(stores.out.segments.counts)
    keys = xp.concatenate([xp.empty(0, np.uint64), *[xp.asarray(keys) for keys, _ in batches]])
    src, dst = ends_of(keys)
    if len(batches) == 1 and on_device(batches[0][0]):
        there = batches[0][1].copy()  # of one batch, which lists each key once
    else:
        there = query.edges(stores.out, None, src, dst, None).found
    if stores.directed:  # an edge that went may still be there the other way
        there |= query.edges(stores.out, None, dst, src, None).found
    return keys, there


def _of_host(stores: Stores, batches: list[tuple[Array, Array]], since: int) -> tuple[Array, Array]:
    """The same on the host; unless all were inserted, each key is listed once."""
    keys, there = joined(batches)
    if not all_of(there):  # else each was inserted, and none deleted
        keys, there = newest(keys, there)
        _note_largest(stores, keys, there, since)
        if stores.directed:  # an edge that went may still be there the other way
            gone = np.flatnonzero(~there)
            src, dst = ends_of(keys[gone])
            there[gone] = query.edges(stores.out, None, dst, src, None).found
    return keys, there


def _note_largest(stores: Stores, keys: Array, there: Array, since: int) -> None:
    """Tell the out-store its largest vertex, if it does not know it, but it was known at version
    `since` and nothing went there. On a device a scan is faster than these steps. keys, there: all
    changes since, as they are now."""
    version, largest = stores.largest_at
    if stores.out.largest is not None or version != since:
        return
    src, dst = ends_of(keys)
    dst = np.where(dst == LOW, src, dst)  # a marker has one end
    ends = np.maximum(src, dst)
    if not any_of(ends[~there] == largest):
        stores.out.largest = max(largest, int(ends[there].max(initial=0)) if there.any() else -1)
