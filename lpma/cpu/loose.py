"""Scattered rows, which lie anywhere in one memory, with changed entries merged in, on the CPU.

A changed row is written anew behind everything that the memory holds, and gets a new start and end;
all other rows stay where they are. Readers of the earlier rows find them unchanged.

A key is source << 32 | target. Requires starts and ends int64[n] and entries uint32, C-contiguous,
each row sorted and without repeats, and keys uint64, ascending, each once.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..pma.keys import HALF, LOW
from .jit import compiled
from .search import first_not_below


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
