"""Breadth-first search over shards, level by level, and the vertices within some steps.

A shard expands its own part of the frontier, and sends each row of others that it reaches to the
row's owner, once in a search: it marks rows of others like its own, with their level or a later
one. A level costs four bytes per row sent. All levels are top-down; bottom-up would need the
frontier on every shard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, distinct, on_device, row_numbers, to_host
from lpma.pma.keys import HALF, LOW
from lpma.snapshot.row_versions import scattered

from ...arrays import Array
from ...bfs.cpu import top_down
from ...views.simple import View
from ..runtime.rows import places_of
from ..runtime.state import ShardState
from ..runtime.types import Messages, Steps
from .views import present_rows


def bfs(state: ShardState, source: int) -> Steps:
    """(int32: hops from the source to each owned row, −1 if it is not reached; whether the source
    is a vertex)."""
    present = yield from present_rows(state)
    is_own = bool(state.owner[source] == state.part.shard)
    _, said = yield state.nothing(), is_own and bool(present[source])
    hops = state.xp.full(state.num_rows, -1, np.int32)
    if any(said):
        start = state.xp.full(int(is_own), source, np.uint32)
        yield from _levels(state, hops, start)
    return to_host(hops[state.owned]), any(said)


def _levels(state: ShardState, hops: Array, frontier: Array) -> Steps:
    hops[frontier] = level = 0
    view = View(state.part.indptr, state.part.indices)
    while True:
        level += 1
        found = _expanded(view, hops, frontier, level)
        of = state.by_owner(found)
        frontier = of[state.part.shard]
        outbox: Messages = [(rows,) if len(rows) else None for rows in of]
        outbox[state.part.shard] = None
        inbox, said = yield outbox, len(found)
        if not any(said):
            return
        frontier = state.xp.concatenate([frontier, *_arrived(hops, inbox, level)])


def _arrived(hops: Array, inbox: Messages, level: int) -> list[Array]:
    """The rows of each message that were not yet reached."""
    fresh = []
    for message in inbox:
        if message is not None:
            rows = message[0][hops[message[0]] < 0]
            hops[rows] = level
            fresh.append(rows)
    return fresh


def _expanded(view: View, hops: Array, frontier: Array, level: int) -> Array:
    """uint32, each once: the unreached rows that the frontier's edges lead to, now at `level`."""
    if not len(frontier):
        return frontier
    if not on_device(hops):
        return distinct(top_down(scattered(view.indptr, view.indices), hops, frontier, level))
    return expanded_by_places(view, hops, frontier, level)


def expanded_by_places(view: View, hops: Array, frontier: Array, level: int) -> Array:
    """The same by array operations."""
    targets = view.indices[places_of(view.indptr, frontier)[1]]
    found = distinct(targets[hops[targets] < 0])
    hops[found] = level
    return found


def hops(state: ShardState, sources: Any, steps: Any) -> Steps:
    """[uint32 of each query, rising: the owned rows within 1 … steps[q] steps of sources[q], itself
    only if it is reached again]. sources, steps: of each query, integers; a source that is not a
    row reaches nothing. Queries run together, as keys (query above row) in sorted arrays."""
    xp = state.xp
    rounds = max(steps, default=0)
    most = xp.asarray(np.asarray(steps, np.int64))
    start = _keys_of(xp.asarray(np.asarray(sources, np.int64)), state.num_rows)
    frontier = start[_is_own(state, start)]
    met = xp.empty(0, np.uint64)  # each key goes to its owner once
    for step in range(rounds):
        frontier = frontier[most[(frontier >> HALF).astype(np.int64)] > step]
        starts, places = places_of(state.part.indptr, (frontier & LOW).astype(np.uint32))
        query = (frontier >> HALF)[row_numbers(starts, len(places))]
        found = _not_in(met, distinct(query << HALF | state.part.indices[places].astype(np.uint64)))
        met = xp.sort(xp.concatenate((met, found)), kind="stable")
        of = state.by_owner((found & LOW).astype(np.int64), found)
        outbox: Messages = [(keys,) if len(keys) else None for keys in of]
        outbox[state.part.shard] = None
        inbox, said = yield outbox, len(found)
        if not any(said):
            break
        came = [message[0] for message in inbox if message is not None]
        if came:
            fresh = _not_in(met, distinct(xp.concatenate(came)))
            met = xp.sort(xp.concatenate((met, fresh)), kind="stable")
            came = [fresh]
        frontier = xp.concatenate((of[state.part.shard], *came))
    own = met[_is_own(state, met)]
    ends = xp.searchsorted(own, xp.arange(len(steps) + 1, dtype=np.uint64) << HALF).tolist()
    rows = to_host((own & LOW).astype(np.uint32))
    return [rows[ends[i] : ends[i + 1]] for i in range(len(steps))]


def _keys_of(sources: Array, n: int) -> Array:
    """uint64: a key for each source that is a row."""
    xp = array_module(sources)
    there = (sources >= 0) & (sources < n)
    keys: Array = xp.arange(len(sources)).astype(np.uint64) << HALF | sources.astype(np.uint64)
    return keys[there]


def _is_own(state: ShardState, keys: Array) -> Array:
    return state.is_owned[(keys & LOW).astype(np.int64)]


def _not_in(met: Array, keys: Array) -> Array:
    """The keys that are not among those met. Both sorted."""
    if not len(met) or not len(keys):
        return keys
    at = array_module(met).searchsorted(met, keys)
    at[at == len(met)] = 0
    return keys[met[at] != keys]
