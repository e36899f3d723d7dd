"""Rows with changed entries merged in, on the CPU. A key is source << 32 | target.

Contiguous rows, an indptr and indices, become those of the next state of a graph by a copy: what
lies between two changed keys moves as a block. That is 8 bytes of memory traffic an entry, where
making rows anew takes several passes. Each key is searched for in the rows. Its *effect* on the
number of entries is +1, −1 or 0, and the sum of the effects before an entry is the distance by
which it moves. All threads merge, in tiles, by a few block copies each. In a small graph
(`pieces.is_small`) one compiled call does all of that, key by key.

Scattered rows lie anywhere in one memory, each between its start and its end. A changed row is
written anew behind everything that the memory holds, and gets a new start and end; all other rows
stay where they are. Readers of the earlier rows find them unchanged.

Requires sorted rows without repeats: indptr, starts and ends int64, entries uint32, C-contiguous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..pma.keys import HALF, LOW
from .instructions import prefetch
from .jit import compiled
from .pieces import is_small
from .search import first_not_below
from .threads import cuts, run_all

Memory = tuple[Array, Array]  # of which an indptr and indices are the beginnings

TILE = 1 << 19  # entries, or rows, that a thread takes at a time
KEYS = 1 << 13  # keys that a thread searches for at a time
AHEAD = 16  # keys whose rows are prefetched before their turn


def with_changes(
    indptr: Array, indices: Array, keys: Array, there: Array, n: int,
    room: Callable[[int, int], Memory],
) -> tuple[Array, Array]:  # fmt: skip
    """(indptr, indices) of n rows after a change. keys, there: as in `effects`; n, room: as in
    `merge`."""
    if not is_small(indptr):
        changed = effects(indptr, indices, keys, there)
        return merge(indptr, indices, changed, n, room)[:2]
    starts, entries = room(n + 1, len(indices) + len(keys))
    m = _merge_alone(keys, there, indptr, indices, starts, entries)
    return starts, entries[:m]


class Effects(NamedTuple):
    """The keys that change rows, and how."""

    keys: Array  # uint64, ascending
    places: Array  # int64: where each one's entry is in the rows, or would be
    shifts: Array  # int64, one more: shifts[j] is how far those before key j move what follows

    @property
    def comes(self) -> Array:
        """bool: whether each one's entry comes; else it goes."""
        rises: Array = self.shifts[1:] > self.shifts[:-1]
        return rises


def effects(indptr: Array, indices: Array, keys: Array, there: Array) -> Effects:
    """How rows change. keys: uint64, ascending; there: bool, whether each is an entry afterwards,
    alike for equal keys. A key may be of a row that the rows do not have."""
    places, effect = _searched(indptr, indices, keys, there)
    at = np.flatnonzero(effect)
    shifts = np.zeros(len(at) + 1, np.int64)
    np.cumsum(effect[at], out=shifts[1:])
    return Effects(keys[at], places[at], shifts)


def contains(indptr: Array, indices: Array, keys: Array) -> Array:
    """bool: whether each key is an entry of the rows. REQUIRES: neighbouring keys differ."""
    is_there: Array = _searched(indptr, indices, keys, np.zeros(len(keys), np.bool_))[1] != 0
    return is_there


def _searched(indptr: Array, indices: Array, keys: Array, there: Array) -> tuple[Array, Array]:
    """The places and the effects of all keys, as `_search` defines them."""
    places, effects = np.empty(len(keys), np.int64), np.empty(len(keys), np.int8)
    run_all(
        _search,
        [(*cut, keys, there, indptr, indices, places, effects) for cut in cuts(len(keys), KEYS)],
    )
    return places, effects


def merge(
    indptr: Array, indices: Array, changed: Effects, n: int, room: Callable[[int, int], Memory]
) -> tuple[Array, Array, Memory]:
    """(indptr, indices) of n rows after the changes, and the memory that they are in.

    room: gives memory for at least so many starts of rows, and so many entries. REQUIRES: the rows
    from n on have no entry afterwards."""
    m = len(indices) + int(changed.shifts[-1])
    memory = room(n + 1, m)
    new_indptr, new_indices = memory[0][: n + 1], memory[1][:m]
    keys, places, shifts = changed
    run_all(_start_rows, [(*cut, keys, shifts, indptr, new_indptr) for cut in cuts(n + 1, TILE)])
    run_all(
        _move_entries,
        [(*cut, places, shifts, indices, new_indices)
         for cut in cuts(len(indices), TILE, per_thread=8)],
    )  # fmt: skip
    comes = changed.comes
    new_indices[places[comes] + shifts[:-1][comes]] = keys[comes] & LOW
    return new_indptr, new_indices, memory


@compiled
def _merge_alone(
    keys: Array, there: Array, old: Array, old_entries: Array, indptr: Array, entries: Array
) -> np.int64:
    """All of `with_changes`, by one thread. Returns how many entries there are."""
    known, n = np.int64(len(old) - 1), np.int64(len(indptr) - 1)
    row = start = shift = np.int64(0)  # rows from `row` on are not begun, entries from `start` not
    for j in range(len(keys) + 1):
        last = j == len(keys)
        if j + 1 < len(keys) and keys[j + 1] == keys[j]:
            continue
        u = n if last else np.int64(keys[j] >> HALF)
        for r in range(row, min(u, known, n) + 1):
            indptr[r] = old[r] + shift
        for r in range(max(row, known + 1), min(u, n) + 1):
            indptr[r] = old[known] + shift
        row = max(row, min(u, n) + 1)
        place, was, v = old[known], False, np.uint32(0)
        if not last:
            v = np.uint32(keys[j] & LOW)
            end = old[min(u + 1, known)]
            place = first_not_below(old_entries, old[min(u, known)], end, v)
            was = place < end and old_entries[place] == v
        run, to = old_entries[start:place], entries[start + shift : place + shift]
        for i in range(len(run)):
            to[i] = run[i]
        start = place
        if last or was == there[j]:
            continue
        if was:
            start += 1
            shift -= 1
        else:
            entries[place + shift] = v
            shift += 1
    return start + shift


@compiled
def _search(
    first: int, last: int, keys: Array, there: Array, indptr: Array, indices: Array, places: Array,
    effects: Array,
) -> None:  # fmt: skip
    """places[j]: where key j's entry is in the rows, or would be. Of equal keys only the last has
    an effect; it is then also the last key at its place."""
    n = np.int64(len(indptr) - 1)
    starts, places_of = indptr.ctypes.data, indices.ctypes.data
    for j in range(first, last):
        far = np.int64(keys[min(j + AHEAD, last - 1)] >> HALF)
        prefetch(starts + 8 * min(far, n))
        soon = min(np.int64(keys[min(j + AHEAD // 2, last - 1)] >> HALF), n)
        prefetch(places_of + 2 * (indptr[soon] + indptr[min(soon + 1, n)]))  # its middle
        u, v = np.int64(keys[j] >> HALF), np.uint32(keys[j] & LOW)
        end = indptr[min(u + 1, n)]
        at = first_not_below(indices, indptr[min(u, n)], end, v)
        places[j] = at
        was = at < end and indices[at] == v
        is_last = j + 1 == len(keys) or keys[j + 1] != keys[j]
        effects[j] = (np.int8(there[j]) - np.int8(was)) if is_last else 0


@compiled
def _start_rows(
    first: int, last: int, keys: Array, shifts: Array, old: Array, indptr: Array
) -> None:
    """Fill in indptr[first:last]: the old starts, moved by the effects of smaller sources."""
    j = np.searchsorted(keys, np.uint64(first) << HALF)
    at, known = first, len(old) - 1
    while at < last:
        source: Any = np.int64(last - 1)
        if j < len(keys) and keys[j] >> HALF < np.uint64(last):
            source = np.int64(keys[j] >> HALF)
        shift = shifts[j]
        for u in range(at, min(source + 1, known)):
            indptr[u] = old[u] + shift
        for u in range(max(at, known), source + 1):
            indptr[u] = old[known] + shift
        at = source + 1
        while j < len(keys) and keys[j] >> HALF < np.uint64(at):
            j += 1


@compiled
def _move_entries(
    first: int, last: int, places: Array, shifts: Array, old: Array, new: Array
) -> None:
    """Copy old[first:last] to their new places, one run between two changes at a time."""
    j = np.searchsorted(places, first)
    at = first
    while at < last:
        while j < len(places) and places[j] == at:
            j += 1
        if j > 0 and places[j - 1] == at and shifts[j] < shifts[j - 1]:
            at += 1  # deleted
            continue
        end = min(last, places[j]) if j < len(places) else last
        # With indices that may be negative, Numba's loop moves one entry at a time.
        run, to = old[at:end], new[at + shifts[j] : end + shifts[j]]
        for i in range(len(run)):
            to[i] = run[i]
        at = end


@compiled
def room_for(keys: Array, starts: Array, ends: Array) -> np.int64:
    """How many entries `write_changed` writes at most; −1 if the keys are not each once and
    ascending, or one is a vertex's marker."""
    entries, row = np.int64(0), np.int64(-1)
    for j in range(len(keys)):
        if keys[j] & LOW == LOW or (j > 0 and keys[j] <= keys[j - 1]):
            return np.int64(-1)
        u = np.int64(keys[j] >> HALF)
        if u != row and u < len(starts):
            entries += ends[u] - starts[u]
        row = u
        entries += 1
    return entries


@compiled
def write_changed(
    keys: Array, there: Array, old_starts: Array, old_ends: Array, entries: Array, free: int,
    starts: Array, ends: Array,
) -> None:  # fmt: skip
    """Fill in the starts and ends of the rows after a change. there: bool, whether each key is an
    entry then; free: from where on the memory `entries` may be written. Rows from len(starts) on
    have no entry afterwards."""
    n, known = len(starts), len(old_starts)
    common = min(n, known)
    starts[:common] = old_starts[:common]
    ends[:common] = old_ends[:common]
    starts[common:] = ends[common:] = 0
    j, to = 0, free
    while j < len(keys):
        u = np.int64(keys[j] >> HALF)
        at, end = (old_starts[u], old_ends[u]) if u < known else (np.int64(0), np.int64(0))
        start = to
        while j < len(keys) and np.int64(keys[j] >> HALF) == u:
            v = np.uint32(keys[j] & LOW)
            place = first_not_below(entries, at, end, v)
            to = _copy(entries, at, place, to)
            at = place
            if at < end and entries[at] == v:
                at += 1
            if there[j]:
                entries[to] = v
                to += 1
            j += 1
        to = _copy(entries, at, end, to)
        if u < n:
            starts[u], ends[u] = start, to


@compiled
def _copy(entries: Array, first: int, end: int, to: int) -> np.int64:
    """Copy entries[first:end] to a place behind them. Returns where that ends."""
    run, there = entries[first:end], entries[to : to + end - first]
    for i in range(len(run)):
        there[i] = run[i]
    return np.int64(to + end - first)
