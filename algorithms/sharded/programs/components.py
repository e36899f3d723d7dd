"""Connected components over shards: local forests, contracted together.

Each shard first joins what its own entries join, by the one-device program: a forest over all rows.
Passing labels along edges might take as many supersteps as paths are long, since hashing spreads a
path over all shards. So what is left, one *link* (row, root) per row of a local tree, is contracted
as a smaller graph (Borůvka's steps, with the hooking and the pointer jumping of Shiloach and
Vishkin, "An O(log n) parallel connectivity algorithm", J. Algorithms 3, 1982):

hook    every link offers its larger end the smaller one; the larger end's owner takes the smallest
        offer as its parent
jump    an owner asks for the parents of its rows' parents, until all of these are roots
relabel a shard asks for the roots of its links' ends, and drops links whose ends are the same

Every larger end of a link hooks, so on all graphs we know links end after a logarithm of the
vertices, on most after two or three rounds. Labels are the smallest rows, since parents are smaller
than their children. Ids and parents take four bytes each.

Invariants: 1. parent[v] <= v. 2. parent[v] is right at the owner of v; elsewhere it is what the
owner said last. 3. At the end of jump no row's parent has another parent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpma.arrays import array_module, to_host

from ...arrays import Array
from ...components import NONE, labels
from ...views.simple import View
from ..runtime.state import ShardState
from ..runtime.types import Messages, Steps
from .views import exchanged, halo_of, present_rows


class Links(NamedTuple):
    """Pairs of rows of one component."""

    high: Array  # uint32
    low: Array  # uint32, each smaller than its partner


def components(state: ShardState) -> Steps:
    """int32: the smallest row of each owned row's component; NONE if it is not a vertex."""
    present = yield from present_rows(state)
    xp = state.xp
    # The smallest row that this shard's entries join with each row.
    local = labels(View(state.part.indptr, state.part.indices), is_symmetric=False, present=None)
    rows = xp.flatnonzero(local != xp.arange(state.num_rows, dtype=np.int32)).astype(np.uint32)
    links = Links(rows, local[rows].astype(np.uint32))
    del local
    parent = xp.arange(state.num_rows, dtype=np.uint32)
    hooked = rows[:0]
    while True:
        is_over, fresh = yield from _hook(state, parent, links)
        if is_over:
            break
        hooked = xp.concatenate((hooked, fresh))
        yield from _jump(state, parent, fresh)
        links = yield from _relabelled(state, parent, links)
    yield from _jump(state, parent, hooked)
    own = state.owned
    found = parent[own].astype(np.int32)
    found[~present[own]] = NONE
    return to_host(found)


def _hook(state: ShardState, parent: Array, links: Links) -> Steps:
    """(whether no links are left; the owned rows that now have a parent)."""
    offers = _least(links)
    ends = (state.by_owner(offers.high, end) for end in offers)
    outbox: Messages = [of if len(of[0]) else None for of in zip(*ends, strict=True)]
    inbox, said = yield outbox, len(links.high)
    if not any(said):
        return True, links.high
    xp = state.xp
    came = [Links(*message) for message in inbox if message is not None]
    if not came:
        return False, links.high[:0]
    taken = _least(Links(*(xp.concatenate(ends) for ends in zip(*came, strict=True))))
    parent[taken.high] = taken.low
    return False, taken.high


def _least(links: Links) -> Links:
    """For each larger end, rising, the link with the smallest partner."""
    xp = array_module(links.high)
    keys = xp.sort(links.high.astype(np.uint64) << np.uint64(32) | links.low, kind="stable")
    high = (keys >> np.uint64(32)).astype(np.uint32)
    first = xp.ones(len(high), np.bool_)
    first[1:] = high[1:] != high[:-1]
    return Links(high[first], keys[first].astype(np.uint32))


def _jump(state: ShardState, parent: Array, hooked: Array) -> Steps:
    """Hang the owned rows that are `hooked` under roots (invariant 3)."""
    waiting = hooked
    while True:
        is_over = yield from _asked(state, parent, parent[waiting], len(waiting))
        if is_over:
            return
        above = parent[parent[waiting]]
        moved = above != parent[waiting]
        waiting, above = waiting[moved], above[moved]
        parent[waiting] = above


def _relabelled(state: ShardState, parent: Array, links: Links) -> Steps:
    """The links between the roots of their ends, each once."""
    xp = state.xp
    ends = xp.concatenate(links)
    yield from _asked(state, parent, ends, 1)
    one, other = parent[links.high], parent[links.low]
    kept = one != other
    one, other = one[kept], other[kept]
    return Links(xp.maximum(one, other), xp.minimum(one, other))


def _asked(state: ShardState, parent: Array, rows: Array, value: int) -> Steps:
    """Bring the parents of these rows here. Returns whether all shards passed value 0, so that
    nothing was brought."""
    across, said = yield from halo_of(state, rows, value)
    if any(said):
        yield from exchanged(state, across, parent)
    return not any(said)
