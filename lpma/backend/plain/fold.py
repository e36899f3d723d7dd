"""Definition 2 for all keys of a batch: the state of its key after every operation.

Idea: a deletion, and without weights any append but of 0, makes a state that what was before has no
part in. What is left are stretches of appends, each from a known state. The first appends of all
stretches are done together, then the second ones, and so on. Once few stretches are left, each is
finished by itself: as one running sum if none of its weights is negative, else one by one. Every
way adds in the order of arrival and rounds after each addition, so that all give the same bits.

Requires: operations sorted by key, and within a key by place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...batch.columns import Kind
from ...pma.counters import DELETE_ABSENT, EXPIRED, NOT_POSITIVE, REASONS, ROUNDED_OFF, UNDERFLOW
from ..values import Array

FEW = 16  # stretches, below which each is finished by itself


class Operations(NamedTuple):
    """n operations in r runs of one key each."""

    kind: Array  # uint8[n]
    given: Array  # float[n], the weights as the batch has them
    weight: Array  # float[n], rounded as the store keeps them; `given` if it keeps none
    time: Array  # int64[n]
    starts: Array  # int64[r], of the runs


class States(NamedTuple):
    """Of keys. Where `present` is False, the rest has no meaning."""

    present: Array  # bool
    weight: Array | None  # None: the store keeps none
    time: Array  # int64


def states_after(operations: Operations, stored: States) -> States:
    """The state after each of n operations. stored: those of the r keys before the first."""
    if (operations.kind == Kind.EXPIRE).any():
        return _in_rounds(operations, stored)
    if stored.weight is None:
        return _without_weights(operations, stored)
    n = len(operations.kind)
    appends = operations.kind == Kind.INSERT
    present, weight = operations.kind == Kind.ADD_VERTEX, np.zeros(n, stored.weight.dtype)
    was_present, was_weight = np.zeros(n, np.bool_), np.zeros(n, stored.weight.dtype)
    was_present[operations.starts] = stored.present
    was_weight[operations.starts] = stored.weight
    first = np.zeros(n, np.bool_)
    first[operations.starts] = True
    first[1:] |= ~appends[:-1]
    first |= ~appends
    edges = np.append(np.flatnonzero(first), n)
    lengths = np.diff(edges)
    at, lengths = edges[:-1][appends[edges[:-1]]], lengths[appends[edges[:-1]]]
    if len(at) and lengths.max() > 1:
        order = np.argsort(-lengths, kind="stable")
        at, lengths = at[order], lengths[order]
    p, w, d = was_present[at], was_weight[at], operations.weight
    done = 0
    with np.errstate(over="ignore"):  # sums past the largest number are infinite, on all backends
        while len(at) and (len(at) > FEW or done == 0):
            p, w = _appended(p, w, d[at])
            present[at], weight[at] = p, w
            done += 1
            left = int(np.searchsorted(-lengths, -done))  # longer than what is done
            at, lengths, p, w = at[:left] + 1, lengths[:left], p[:left], w[:left]
        for row, length, there, held in zip(
            at.tolist(), lengths.tolist(), p.tolist(), w, strict=True
        ):
            end = row + length - done
            _finish(present[row:end], weight[row:end], d[row:end], there, held)
    return States(present, weight, operations.time)


def _in_rounds(operations: Operations, stored: States) -> States:
    """The first operations of all runs together, then the second ones, and so on: what an EXPIRE
    does depends on the time before it. Long runs are slow, but only of such batches."""
    kind, _, d, op_time, starts = operations
    n = len(kind)
    lengths = np.diff(np.append(starts, n))
    order = np.argsort(-lengths, kind="stable")
    at, lengths = starts[order], lengths[order]
    p, t = stored.present[order], stored.time[order]
    w = np.zeros(len(p)) if stored.weight is None else stored.weight[order]
    present, weight, time = np.zeros(n, np.bool_), np.zeros(n, w.dtype), np.zeros(n, np.int64)
    for done in range(int(lengths.max(initial=0))):
        left = int(np.searchsorted(-lengths, -done))
        p, w, t, row = p[:left], w[:left], t[:left], at[:left] + done
        appends, expires = kind[row] == Kind.INSERT, kind[row] == Kind.EXPIRE
        if stored.weight is None:
            idle = expires | (appends & (d[row] == 0))
            after, total = d[row] > 0, w
        else:
            idle = expires
            with np.errstate(over="ignore"):
                after, total = _appended(p, w, d[row])
        here = np.where(appends, after, kind[row] == Kind.ADD_VERTEX)
        kept = p & ~(expires & (t < op_time[row]))
        p = np.where(idle, kept, here)
        w = np.where(idle, w, np.where(appends, total, w.dtype.type(0)))
        t = np.where(idle, t, op_time[row])
        present[row], weight[row], time[row] = p, w, t
    return States(present, None if stored.weight is None else weight, time)


def _appended(present: Array, weight: Array, d: Array) -> tuple[Array, Array]:
    """(present, weight) after one append each."""
    total = np.where(present, weight + d, d)
    return np.where(present, total >= 0, d > 0), total


def _finish(present: Array, weight: Array, d: Array, there: bool, held: np.floating) -> None:
    """Write the states after the appends of one stretch, which starts from (there, held)."""
    if d.min() >= 0:
        sums = np.add.accumulate(np.append(held if there else d.dtype.type(0), d))
        weight[:] = sums[1:]
        present[:] = True if there else np.logical_or.accumulate(d > 0)
        return
    zero = d.dtype.type(0)
    states, totals = [], []
    for by in d:
        held = held + by if there else by
        there = bool(held >= zero if there else held > zero)
        states.append(there)
        totals.append(held)
    present[:], weight[:] = states, totals


def _without_weights(operations: Operations, stored: States) -> States:
    """A weight above 0 sets the key, one below deletes it, one of 0 does nothing."""
    kind, d, starts = operations.kind, operations.weight, operations.starts
    n = len(kind)
    appends = kind == Kind.INSERT
    present = np.where(appends, d > 0, kind == Kind.ADD_VERTEX)
    idle = appends & (d == 0)
    if not idle.any():
        return States(present, None, operations.time)
    # The last operation that did something, if it is of the same key.
    last = np.maximum.accumulate(np.where(idle, -1, np.arange(n)))
    run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n)))
    known = last >= starts[run]
    return States(
        np.where(known, present[last], stored.present[run]), None,
        np.where(known, operations.time[last], stored.time[run]),
    )  # fmt: skip


def unchanged(operations: Operations, stored: States, after: States, falling: Array) -> Array:
    """int64[2 * REASONS]: the counts of counters.py. falling: bool[n], whether the edge goes from
    a larger vertex to a smaller one."""
    kind, given, d, starts = (
        operations.kind, operations.given, operations.weight, operations.starts
    )  # fmt: skip
    before = np.empty(len(kind), np.bool_)
    before[1:] = after.present[:-1]
    before[starts] = stored.present
    appends = kind == Kind.INSERT
    why = np.full(len(kind), REASONS)
    why[(kind == Kind.DELETE) & ~before] = DELETE_ABSENT
    why[(kind == Kind.EXPIRE) & before & ~after.present] = EXPIRED
    if after.weight is None or stored.weight is None:
        why[appends & ((d == 0) | ((d < 0) & ~before))] = NOT_POSITIVE
    else:
        held = np.empty(len(kind), after.weight.dtype)
        held[1:] = after.weight[:-1]
        held[starts] = stored.weight
        why[appends & ~before & (d <= 0)] = NOT_POSITIVE
        why[appends & before & (d != 0) & (after.weight == held)] = ROUNDED_OFF
        why[appends & (given != 0) & (d == 0)] = UNDERFLOW
    counts = np.bincount(why + (REASONS + 1) * falling, minlength=2 * (REASONS + 1))
    return counts.reshape(2, REASONS + 1)[:, :REASONS].ravel()
