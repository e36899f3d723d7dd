"""Runs of equal keys, and the leaves that they touch: how locating takes a sorted batch apart.

Requires: operations sorted by key, arrival order within a key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...cpu.jit import ZERO, inlined
from .rebalance import DELETED, MOVED
from .rows import DELETE, SKIP, WRITE, Leaves, Rows, get, put, row_key, set_action

Array = npt.NDArray[Any]


@inlined
def cut_runs(rows: Rows, row: int, hi: int, most: int, starts: Array) -> int:
    """Write where each of the next runs starts, `most` of them at most, and where the last one
    ends; mark their rows. Returns how many there are. No branch depends on where a run ends."""
    if row == hi:
        starts[0] = row
        return 0
    n, start, before = ZERO, row, row_key(rows, row)
    starts[0] = row
    row += 1
    while row < hi and n < most:
        set_action(rows, row, SKIP)  # settling overwrites it where a run starts
        key = row_key(rows, row)
        differs = key != before
        start = row if differs else start
        n += np.int64(differs)
        starts[n] = start
        before = key
        row += 1
    if n < most:
        n += 1
        starts[n] = hi
    return n


@inlined
def mark_run(rows: Rows, row: int, hi: int) -> int:
    """The end of the run that starts at `row`; its rows after the first are marked."""
    key = row_key(rows, row)
    row += 1
    while row < hi and row_key(rows, row) == key:
        set_action(rows, row, SKIP)
        row += 1
    return row


@inlined
def flags_of(action: int) -> int:
    return (0 if action == WRITE else MOVED) | (DELETED if action == DELETE else 0)


@inlined
def write_leaf(leaves: Leaves, t: int, rank: int, lo: int, hi: int, delta: int, flags: int) -> None:
    put(leaves.rank, t, rank)
    put(leaves.lo, t, lo)
    put(leaves.hi, t, hi)
    put(leaves.delta, t, delta)
    put(leaves.flags, t, flags)


@inlined
def touch(leaves: Leaves, t: int, rank: int, lo: int, hi: int, delta: int, flags: int) -> int:
    """Add a run to touched leaf t, or to a new one if it belongs to another rank. Returns which."""
    if t < 0 or get(leaves.rank, t) != rank:
        t += 1
        write_leaf(leaves, t, rank, lo, hi, delta, flags)
        return t
    put(leaves.hi, t, hi)
    put(leaves.delta, t, get(leaves.delta, t) + delta)
    put(leaves.flags, t, get(leaves.flags, t) | flags)
    return t
