"""Connected components over shards: local forests, contracted together.

Each shard first joins what its own entries join, by the one-device program: a forest over all rows.
Hashing spreads a path over all shards, so passing labels along edges might take as many supersteps
as the path is long. What is left is therefore a smaller graph, one *link* (row, root) for every row
of a local tree, and that is contracted (Borůvka's steps, with the hooking and the pointer jumping
of Shiloach and Vishkin, "An O(log n) parallel connectivity algorithm", J. Algorithms 3, 1982):

hook    every link offers its larger end the smaller one; the owner of the larger end takes the
        smallest that it is offered as the end's parent
jump    an owner asks for the parents of its rows' parents, until all of these are roots
relabel a shard asks for the roots of its links' ends, and drops links whose ends are the same

Every larger end of a link hooks, so links end after a logarithm of the vertices on all graphs we
know, two or three rounds on most. Labels are the smallest rows, since parents are smaller than
their children. Ids and parents take four bytes each.

Invariants: 1. parent[v] <= v. 2. parent[v] is right at the owner of v; elsewhere it is what the
owner said last. 3. At the end of jump no row's parent has another parent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpma.arrays import array_module, on_device, to_host
from lpma.snapshot.row_versions import scattered

from ..components import NONE
from ..components.cpu import components as on_cpu
from .held import Held
from .types import Array, Messages, Steps
from .views import marked, present_rows


class Links(NamedTuple):
    """Pairs of rows of one component."""

    high: Array  # uint32
    low: Array  # uint32, each smaller than its partner


def components(held: Held) -> Steps:
    """int32: the smallest row of each owned row's component; NONE for a row that is no vertex."""
    present = yield from present_rows(held)
    xp = held.xp
    local = _local_forest(held)
    rows = xp.flatnonzero(local != xp.arange(held.num_rows, dtype=np.int32)).astype(np.uint32)
    links = Links(rows, local[rows].astype(np.uint32))
    del local
    parent = xp.arange(held.num_rows, dtype=np.uint32)
    hooked = rows[:0]
    while True:
        is_over, fresh = yield from _hook(held, parent, links)
        if is_over:
            break
        hooked = xp.concatenate((hooked, fresh))
        yield from _jump(held, parent, fresh)
        links = yield from _relabelled(held, parent, links)
    yield from _jump(held, parent, hooked)
    own = held.owned
    labels = parent[own].astype(np.int32)
    labels[~present[own]] = NONE
    return to_host(labels)


def _local_forest(held: Held) -> Array:
    """int32[n]: the smallest row that this shard's entries join with each row."""
    indptr, indices = held.part.indptr, held.part.indices
    if not on_device(indptr):
        return on_cpu(scattered(indptr, indices), False)
    from ..components.cuda import components as on_cuda

    forest: Array = on_cuda(indptr, indices, False)
    return forest


def _hook(held: Held, parent: Array, links: Links) -> Steps:
    """(whether there are no links any more; which owned rows have a parent now)."""
    offers = _least(links)
    of = _apart(held, offers)
    outbox: Messages = [tuple(one) if len(one.high) else None for one in of]
    inbox, said = yield outbox, len(links.high)
    if not any(said):
        return True, links.high
    xp = held.xp
    came = [Links(*message) for message in inbox if message is not None]
    if not came:
        return False, links.high[:0]
    taken = _least(Links(*(xp.concatenate(ends) for ends in zip(*came, strict=True))))
    parent[taken.high] = taken.low
    return False, taken.high


def _least(links: Links) -> Links:
    """Of each larger end the link with the smallest partner, in the order of the larger ends."""
    xp = array_module(links.high)
    keys = xp.sort(links.high.astype(np.uint64) << np.uint64(32) | links.low, kind="stable")
    high = (keys >> np.uint64(32)).astype(np.uint32)
    first = xp.ones(len(high), np.bool_)
    first[1:] = high[1:] != high[:-1]
    return Links(high[first], keys[first].astype(np.uint32))


def _apart(held: Held, links: Links) -> list[Links]:
    """The links of each owner of the larger ends. REQUIRES: each larger end once, rising."""
    partner = links.low
    return [
        Links(rows, partner[held.xp.searchsorted(links.high, rows)])
        for rows in held.by_owner(links.high)
    ]


def _jump(held: Held, parent: Array, hooked: Array) -> Steps:
    """Hang the owned rows that are `hooked` under roots (invariant 3)."""
    waiting = hooked
    while True:
        is_over = yield from _asked(held, parent, parent[waiting], len(waiting))
        if is_over:
            return
        above = parent[parent[waiting]]
        moved = above != parent[waiting]
        waiting, above = waiting[moved], above[moved]
        parent[waiting] = above


def _relabelled(held: Held, parent: Array, links: Links) -> Steps:
    """The links between the roots of their ends, each once."""
    xp = held.xp
    ends = xp.concatenate(links)
    yield from _asked(held, parent, ends, 1)
    one, other = parent[links.high], parent[links.low]
    kept = one != other
    one, other = one[kept], other[kept]
    return Links(xp.maximum(one, other), xp.minimum(one, other))


def _asked(held: Held, parent: Array, rows: Array, value: int) -> Steps:
    """Bring the parents of these rows here. Returns whether all shards said 0 along with it, and
    nothing was brought."""
    mask = marked(held.num_rows, rows)
    mask &= ~held.is_owned
    wanted = held.by_owner(held.rows_where(mask))
    inbox, said = yield [(of,) if len(of) else None for of in wanted], value
    if not any(said):
        return True
    answers: Messages = [None if one is None else (parent[one[0]],) for one in inbox]
    inbox, _ = yield answers, None
    for of, message in zip(wanted, inbox, strict=True):
        if message is not None:
            parent[of] = message[0]
    return False
