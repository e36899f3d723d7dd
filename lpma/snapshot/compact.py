"""Snapshots in which every row is a vertex: those present are renumbered 0 … n - 1.

Idea: the copy, for which the graph is locked, and what is computed from it are two steps, so that a
stream waits for the first only. If rows do not outnumber slots by much, the copy is an ordinary
snapshot, and a table gives each row its new number. If ids are so far apart that such rows would
take more memory than the edges, the keys are copied: their sorted ends are the vertices, and each
target is looked up in a table of them (on a device, by a binary search).

Trick: sources need no search, since both rows and keys rise. Passes that look up the targets are
cut into pieces, between which `threads.stopped_by` may end them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array, array_module, device_of
from ..cpu import columns
from ..cpu.threads import run_all
from ..errors import LpmaError, OutOfMemory
from ..pma.keys import HALF, LOW
from ..time_view import TimeView, decayed
from . import deferred, presence
from .columns import facts_of
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..names import Names


ROWS_PER_SLOT = 4  # up to which the copy is one of rows, which then take some 50 bytes a slot
PIECE = 1 << 20  # edges that a thread renumbers per turn


def of_rows(s: Snapshot, names: Names | None) -> Snapshot:
    """The same with a row for each vertex, in the order of their ids, which are `ids`. Weights and
    times are copied as late as those of `s`. REQUIRES: `s` has a row for every id."""
    assert s._ids is None, "the rows have been renumbered"
    xp = array_module(s._indptr)
    with device_of(s._indptr), _raising_out_of_memory():
        present, indptr, indices = s._present, s._indptr, s._indices
        ids = xp.flatnonzero(present).astype(np.uint32)
        if len(ids) < s.num_rows:
            row_of = xp.cumsum(present, dtype=np.uint32) - np.uint32(1)
            indices = _in_pieces(xp, lambda part: row_of[part], indices)
            # Rows that are left out are empty, so that each row ends where the next one begins.
            indptr = xp.concatenate([indptr[:-1][present], indptr[-1:]])
    frozen = None if names is None else names.frozen(ids)
    given = facts_of(s) | deferred.shared(s)
    return Snapshot._trusted(indptr, indices, **given, ids=ids, names=frozen)


def of_keys(
    keys: Array, weights: Array | None, times: Array | None, rows: int, facts: dict[str, Any],
    names: Names | None, view: TimeView | None = None,
) -> Snapshot:  # fmt: skip
    """The same of all slots of a graph with `rows` rows, by rising key, markers included. facts:
    those fields of the snapshot that are no arrays. view: of the edges; None: all."""
    xp = array_module(keys)
    with device_of(keys), _raising_out_of_memory():
        if view is not None:
            keys, weights, times, edges = _in_view(view, keys, weights, times, facts["directed"])
            facts = facts | {"num_edges": edges}
        ids = presence.ids_of(keys, rows)
        edge = keys & LOW != LOW
        if not edge.all():
            keys = keys[edge]
            weights, times = (None if c is None else c[edge] for c in (weights, times))
        rows_by = columns.rows_by if xp is np else columns.searched_rows
        indptr, indices = rows_by(keys, ids)
    frozen = None if names is None else names.frozen(ids)
    return Snapshot._trusted(indptr, indices, weights, times, ids=ids, names=frozen, **facts)


def _in_view(
    view: TimeView, keys: Array, weights: Array | None, times: Array | None, directed: bool
) -> tuple[Array, Array | None, Array, int]:
    """The markers and the edges in a view, and how many edges these are."""
    assert times is not None, "a view is of edges with times"
    xp = array_module(keys)
    is_edge = keys & LOW != LOW
    held = view.holds(times) & is_edge
    newest = int(times[held].max()) if held.any() else 0
    stays = held | ~is_edge
    keys, times = keys[stays], times[stays]
    weights, decay = None if weights is None else weights[stays], view.decay(newest)
    if decay is not None:
        weights = decayed(weights, times, decay)
    entries = int(xp.count_nonzero(held))
    if directed:
        return keys, weights, times, entries
    loops = int(xp.count_nonzero(keys >> HALF == keys & LOW))  # no marker is one
    return keys, weights, times, (entries + loops) // 2


@contextmanager
def _raising_out_of_memory() -> Iterator[None]:
    """Raise OutOfMemory where memory runs out."""
    try:
        yield
    except MemoryError as error:
        if isinstance(error, LpmaError):
            raise
        raise OutOfMemory(
            f"{error}: the graph is as it was; free memory on its device, or take a snapshot "
            "without compact"
        ) from error


def _in_pieces(xp: Any, new: Callable[[Array], Array], of: Array) -> Array:
    """uint32: new(of); on the host piece by piece, on all threads."""
    if xp is not np:
        return new(of).astype(np.uint32)
    found = np.empty(len(of), np.uint32)

    def write(start: int) -> None:
        found[start : start + PIECE] = new(of[start : start + PIECE])

    run_all(write, [(start,) for start in range(0, len(of), PIECE)])
    return found
