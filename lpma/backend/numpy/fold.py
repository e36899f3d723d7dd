"""A batch on its way into one store: staged, made into keys, sorted, folded.

Idea: Definition 2 for all keys of a batch at once. The first operations of all keys are applied
together, then the second ones, and so on. So a key that has very many operations is slow, but sums
are added in the order of arrival and rounded after each addition, as kernels do: every bit agrees.

A folded batch may lie beside the store while the queries of a mixed batch are answered: a query
reads the state after the last operation before its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...batch.columns import (
    MAX_OPERATIONS,
    Columns,
    Kind,
    edge_rows,
    query_rows,
)
from ...pma.counters import DELETE_ABSENT, EXPIRED, NOT_POSITIVE, REASONS, ROUNDED_OFF, UNDERFLOW
from ...pma.keys import HALF, LOW, keys_of
from ..degrees import Degrees, degrees_of
from ..values import BOTH, REVERSE, Array, Implied
from .segments import Slots


class StagedBatch(NamedTuple):
    """A batch's columns by row; one entry counts for every row."""

    kind: Array  # uint8
    given: Array  # float, the weights as they were given
    weight: Array  # float, rounded as the store keeps them; as given if it keeps none
    time: Array  # int64


class KeyRows(NamedTuple):
    """Key operations by rising place."""

    key: Array  # uint64
    place: Array  # int64

    def __len__(self) -> int:
        return len(self.key)


def key_rows(columns: Columns, direction: int, implied: Implied | None) -> KeyRows:
    kind, places = columns.kind, np.arange(len(columns))
    src, dst = columns.src.astype(np.uint64), columns.dst.astype(np.uint64)
    if not columns.edges_only:
        of_edge = edge_rows(kind) | (kind == Kind.EXPIRE)
        wanted = of_edge if direction == REVERSE else ~query_rows(kind)
        of_edge, places, src, dst = of_edge[wanted], places[wanted], src[wanted], dst[wanted]
        dst[~of_edge] = LOW
    keys = keys_of(dst, src) if direction == REVERSE else keys_of(src, dst)
    if direction == BOTH:
        back = (dst != LOW) & (src != dst)
        wanted = np.column_stack([np.ones(len(keys), np.bool_), back]).ravel()
        keys = np.column_stack([keys, keys_of(dst, src)]).ravel()[wanted]
        places = np.repeat(places, 2)[wanted]
    if implied is not None:
        keys, places = np.concatenate([keys, implied[0]]), np.concatenate([places, implied[1]])
        order = np.argsort(places, kind="stable")
        keys, places = keys[order], places[order]
    if len(keys) > MAX_OPERATIONS:
        raise MemoryError(f"{len(keys):,} key operations")
    return KeyRows(keys, places)


@dataclass(frozen=True)
class Folded:
    """n operations, by key and then by place: r *runs* of one key each, and the state of the key
    after each operation. Where `present` is False, weight and time have no meaning."""

    key: Array  # uint64[n]
    place: Array  # int64[n]
    starts: Array  # int64[r], of the runs
    at: Array  # int64[r]: where each run's key is in the store, or would be
    stored: Array  # bool[r]: whether it is there
    present: Array  # bool[n]
    weight: Array  # float[n]
    time: Array  # int64[n]
    unchanged: Array  # int64[2 * REASONS]: the counts of counters.py

    @cached_property
    def keys(self) -> Array:
        """uint64[r], rising: of the runs."""
        return self.key[self.starts]

    @cached_property
    def last(self) -> Array:
        """int64[r]: the last operation of each run."""
        return self.starts + self._lengths - 1

    @cached_property
    def _tags(self) -> Array:
        """uint64[n], rising: run << 32 | place."""
        return keys_of(np.repeat(np.arange(len(self.starts)), self._lengths), self.place)

    @property
    def _lengths(self) -> Array:
        return np.diff(self.starts, append=len(self.key))

    def seen(self, runs: Array, limits: Array) -> tuple[Array, Array]:
        """(bool, int64): whether each run has an operation before a limit, and the last one."""
        row = np.searchsorted(self._tags, keys_of(runs, limits)) - 1
        return row >= self.starts[runs], row

    def seen_of(self, keys: Array, limits: Array) -> tuple[Array, Array]:
        """The queries of any keys that see an operation, and the last one that each sees."""
        runs, known = Slots(self.keys, None, None).find(keys)
        query = np.flatnonzero(known)
        sees, row = self.seen(runs[query], limits[query])
        return query[sees], row[sees]

    @cached_property
    def degrees(self) -> Degrees:
        change = np.diff(self.present.astype(np.int64), prepend=0)
        change[self.starts] = self.present[self.starts].astype(np.int64) - self.stored
        edge = self.key & LOW != LOW  # a marker is none
        return degrees_of(self.key[edge] >> HALF, self.place[edge], change[edge])

    def slots(self, rows: Array, like: Slots) -> Slots:
        """What operations leave, as slots with the columns of `like`."""
        columns = zip((self.key, self.weight, self.time), like, strict=True)
        return Slots._make(None if of is None else column[rows] for column, of in columns)

    def merged(self, slots: Slots) -> Slots:
        """The slots of the store after the batch."""
        present, stored, at = self.present[self.last], self.stored, self.at
        comes, stays = present & ~stored, present & stored
        gone = at[stored & ~present]
        gone = gone + np.searchsorted(at[comes], gone, "right")  # once others have come
        columns = []
        for column, new in zip(slots, self.slots(self.last, slots), strict=True):
            if column is not None and new is not None:
                column = np.insert(column, at[comes], new[comes])
                column[at[stays] + np.searchsorted(at[comes], at[stays], "right")] = new[stays]
                column = np.delete(column, gone)
            columns.append(column)
        return Slots._make(columns)


def folded(slots: Slots, staged: StagedBatch, rows: KeyRows) -> Folded:
    """Sort key operations, and fold those of each key onto what is stored."""
    order = np.argsort(rows.key, kind="stable")
    key, place, n = rows.key[order], rows.place[order], len(order)
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[:n])
    at, stored = slots.find(key[starts])
    kind, given, weight, time = (
        np.broadcast_to(column, n) if len(column) == 1 else column[place] for column in staged
    )
    # Of the runs, the longest first: those with a next operation are always the first ones.
    falling = -np.diff(starts, append=n)
    order = np.argsort(falling, kind="stable")
    falling, starts_of, at_of, p = falling[order], starts[order], at[order], stored[order]
    w = np.zeros(len(p), np.float64 if slots.weights is None else slots.weights.dtype)
    t = np.zeros(len(p), np.int64)
    for values, column in ((w, slots.weights), (t, slots.times)):
        if column is not None:
            values[p] = column[at_of[p]]
    present, why = np.zeros(n, np.bool_), np.full(n, REASONS)
    weights, times = np.zeros(n, w.dtype), np.zeros(n, np.int64)
    for done in range(-int(falling.min(initial=0))):
        left = int(np.searchsorted(falling, -done))
        row = starts_of[:left] + done
        before = p[:left], w[:left], t[:left]
        what = kind[row], given[row], weight[row], time[row]
        p, w, t, why[row] = _applied(*what, *before, slots.weights is not None)
        present[row], weights[row], times[row] = p, w, t
    why += (REASONS + 1) * (key >> HALF > key & LOW)
    counts = np.bincount(why, minlength=2 * (REASONS + 1)).reshape(2, -1)[:, :REASONS].ravel()
    return Folded(key, place, starts, at, stored, present, weights, times, counts)


def _applied(
    kind: Array, given: Array, d: Array, time: Array, present: Array, weight: Array,
    was_time: Array, weighted: bool,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """(present, weight, time) of keys after one operation each, from those before; and the reason
    for which it changed nothing, REASONS if it did."""
    inserts, expires, why = kind == Kind.INSERT, kind == Kind.EXPIRE, np.full(len(kind), REASONS)
    brings = inserts | (kind == Kind.SET)
    adds = inserts & present
    if weighted:
        with np.errstate(over="ignore"):  # past the largest number is infinite, on all backends
            total = np.where(adds, weight + d, d)
        positive, idle = np.where(adds, total >= 0, d > 0), expires
        why[brings & ~present & (d <= 0)] = NOT_POSITIVE
        why[adds & (d != 0) & (total == weight)] = ROUNDED_OFF
        why[(adds | (brings & ~present)) & (given != 0) & (d == 0)] = UNDERFLOW
    else:
        total, positive, idle = weight, d > 0, expires | (inserts & (d == 0))
        why[(inserts & (d == 0)) | (brings & (d <= 0) & ~present)] = NOT_POSITIVE
    ages = expires & present & (was_time < time)
    why[(kind == Kind.DELETE) & ~present] = DELETE_ABSENT
    why[ages] = EXPIRED
    after = np.where(brings, positive, kind == Kind.ADD_VERTEX)
    return (
        np.where(idle, present & ~ages, after),
        np.where(idle, weight, np.where(brings, total, weight.dtype.type(0))),
        np.where(idle, was_time, time),
        why,
    )
