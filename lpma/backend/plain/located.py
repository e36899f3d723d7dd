"""A batch on its way into one store: staged, made into keys, sorted, folded, located."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...batch.columns import FIRST_OTHER, FIRST_QUERY, MAX_OPERATIONS, Columns, Kind
from ...pma.keys import HALF, LOW
from ..values import BOTH, REVERSE, Array, Implied, Tally
from .fold import Operations, States, states_after, unchanged
from .segments import Segments
from .slots import Edit, Slots


class StagedBatch(NamedTuple):
    """A batch's columns by row; one entry counts for every row."""

    kind: Array  # uint8
    given: Array  # float, the weights as they were given
    weight: Array  # float, rounded as the store keeps them
    time: Array  # int64


class KeyRows(NamedTuple):
    """Key operations by rising place."""

    key: Array  # uint64
    place: Array  # int64

    def __len__(self) -> int:
        return len(self.key)


class Leaves(NamedTuple):
    """The touched leaves, by rising rank."""

    rank: Array  # int64
    delta: Array  # int64: net change in the number of slots
    deleted: Array  # bool: whether a slot is removed
    moved: Array  # bool: whether a slot is inserted or removed


@dataclass
class Located:
    """A batch as an edit of the slots of the store that it is on, with what it amounts to."""

    ranks: int  # how many the store has
    edit: Edit
    leaves: Leaves
    tally: Tally
    unchanged: Array  # int64[2 * REASONS]
    keys: Array  # uint64: the keys inserted and deleted, rising
    inserted: Array  # bool


def key_rows(
    columns: Columns, lo: int, hi: int, direction: int, implied: Implied | None
) -> KeyRows:
    """See Writing.key_rows."""
    kind, places = columns.kind[lo:hi], np.arange(lo, hi)
    src, dst = columns.src[lo:hi].astype(np.uint64), columns.dst[lo:hi].astype(np.uint64)
    if not columns.edges_only:
        of_edge = (kind < FIRST_OTHER) | (kind == Kind.EXPIRE)
        wanted = of_edge if direction == REVERSE else kind < FIRST_QUERY
        of_edge, places, src, dst = of_edge[wanted], places[wanted], src[wanted], dst[wanted]
        dst[~of_edge] = LOW
    keys = dst << HALF | src if direction == REVERSE else src << HALF | dst
    if direction == BOTH:
        back = (dst != LOW) & (src != dst)
        wanted = np.column_stack([np.ones(len(keys), np.bool_), back]).ravel()
        keys = np.column_stack([keys, dst << HALF | src]).ravel()[wanted]
        places = np.repeat(places, 2)[wanted]
    if implied is not None:
        keys, places = np.concatenate([keys, implied[0]]), np.concatenate([places, implied[1]])
        order = np.argsort(places, kind="stable")
        keys, places = keys[order], places[order]
    if len(keys) > MAX_OPERATIONS:
        raise MemoryError(f"{len(keys):,} key operations")
    return KeyRows(keys, places)


class Folded(NamedTuple):
    """Sorted key operations, folded onto what is stored."""

    key: Array  # uint64[n]
    place: Array  # int64[n]
    keys: Array  # uint64[r]: of the runs
    lengths: Array  # int64[r]
    at: Array  # int64[r]: where the keys are in the store, or would be
    stored: States  # of the r keys
    operations: Operations
    states: States  # after each operation


def folded(segments: Segments, staged: StagedBatch, rows: KeyRows) -> Folded:
    """Sort key operations, and fold those of each key."""
    order = np.argsort(rows.key, kind="stable")
    key, place = rows.key[order], rows.place[order]
    first = np.ones(len(key), np.bool_)
    first[1:] = key[1:] != key[:-1]
    starts = np.flatnonzero(first)
    keys, lengths = key[starts], np.diff(np.append(starts, len(key)))
    at = np.searchsorted(segments.slots.keys, keys)
    stored = _stored(segments.slots, keys, at)
    kind, given, weight, time = (_taken(column, place) for column in staged)
    operations = Operations(kind, given, weight, time, starts)
    states = states_after(operations, stored)
    return Folded(key, place, keys, lengths, at, stored, operations, states)


def locate(segments: Segments, batch: Folded) -> Located:
    """See Writing.locate."""
    key, _, keys, lengths, at, stored, operations, states = batch
    ends = operations.starts + lengths - 1
    present = states.present[ends]
    falling = key >> HALF > key & LOW
    counts = unchanged(operations, stored, states, falling)
    comes, goes = present & ~stored.present, stored.present & ~present
    edit = _edit(keys, at, comes, goes, stored.present & present, states, ends)
    touched = present | stored.present
    leaves = leaves_of(segments.ranks(keys[touched]), comes[touched], goes[touched])
    net = comes | goes
    keys, inserted = keys[net], comes[net]
    tally = tally_of(keys, inserted)._replace(touched=len(leaves.rank))
    return Located(len(segments.fence), edit, leaves, tally, counts, keys, inserted)


def _taken(column: Array, place: Array) -> Array:
    return column[place] if len(column) != 1 else np.full(len(place), column[0])


def _stored(slots: Slots, keys: Array, at: Array) -> States:
    """The states of keys in the store, each at slot at[i] if it is there."""
    n = len(slots.keys)
    if not n:
        weight = None if slots.weights is None else np.zeros(len(keys), slots.weights.dtype)
        return States(np.zeros(len(keys), np.bool_), weight, np.zeros(len(keys), np.int64))
    at = np.minimum(at, n - 1)
    return States(
        slots.keys[at] == keys,
        None if slots.weights is None else slots.weights[at],
        np.zeros(len(keys), np.int64) if slots.times is None else slots.times[at],
    )


def _edit(
    keys: Array, at: Array, comes: Array, goes: Array, stays: Array, states: States, ends: Array
) -> Edit:
    """The edit that leaves keys as they are after their last operations, those at `ends`."""
    new, kept = ends[comes], ends[stays]
    weights = states.weight
    put = Slots(keys[comes], None if weights is None else weights[new], states.time[new])
    return Edit(
        put, at[comes], at[goes], at[stays],
        None if weights is None else weights[kept], states.time[kept],
    )  # fmt: skip


def leaves_of(rank: Array, comes: Array, goes: Array) -> Leaves:
    """The leaves that keys of rising ranks touch; where a key comes or goes, a slot does."""
    if not len(rank):
        return Leaves(rank, rank, goes, goes)
    first = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
    delta = np.add.reduceat(comes.astype(np.int64) - goes, first)
    deleted = np.logical_or.reduceat(goes, first)
    moved = np.logical_or.reduceat(comes | goes, first)
    return Leaves(rank[first], delta, deleted, moved)


def tally_of(keys: Array, inserted: Array) -> Tally:
    """What keys that come and go amount to, but for the leaves that they touch."""
    src, dst = keys >> HALF, keys & LOW
    sign = np.where(inserted, 1, -1)
    marker = dst == LOW
    ends = np.maximum(src, np.where(marker, 0, dst))[inserted]
    return Tally(
        touched=0,
        delta=int(sign.sum()),
        markers=int(sign[marker].sum()),
        loops=int(sign[src == dst].sum()),
        largest=int(ends.max()) if len(ends) else -1,
        deletions=int(np.count_nonzero(~inserted)),
    )
