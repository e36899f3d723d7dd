"""Cutting a batch into chunks for the threads, joining what they found, and listing its changes."""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...cpu.instructions import move_bytes
from ...cpu.jit import ZERO, compiled, inlined
from ..values import DELETE, INSERT
from .batch_view import Leaves, Rows, get, put, row_action, row_key
from .resolve import LARGEST

ROWS_PER_TASK = 1024


@compiled
def join_leaves(leaves: Leaves, starts: Array, lengths: Array) -> int:
    """Bring the chunks' touched leaves together at the front, those of the first being there; a
    leaf cut by a chunk's edge becomes one again. Returns how many there are."""
    n = lengths[0]
    for chunk in range(1, len(lengths)):
        first, more = starts[chunk], lengths[chunk]
        if n and more and get(leaves.rank, n - 1) == get(leaves.rank, first):
            put(leaves.hi, n - 1, get(leaves.hi, first))
            put(leaves.delta, n - 1, get(leaves.delta, n - 1) + get(leaves.delta, first))
            put(leaves.flags, n - 1, get(leaves.flags, n - 1) | get(leaves.flags, first))
            first += 1
            more -= 1
        for column in (leaves.rank, leaves.lo, leaves.hi, leaves.delta, leaves.flags):
            move_bytes(column + 4 * n, column + 4 * first, 4 * more)
        n += more
    return n


@inlined
def write_changes(rows: Rows, keys: Array, inserted: Array) -> int:
    """Write the keys of the rows that insert or delete an edge or a marker, and which of them are
    inserted. Returns how many there are; the arrays have room for one more, if for fewer than rows.
    Every row is written, without a branch on its action, and the next one may overwrite it."""
    found = ZERO
    for row in range(rows.n):
        action = row_action(rows, row)
        keys[found] = row_key(rows, row)
        inserted[found] = action == INSERT
        found += np.int64((action == INSERT) | (action == DELETE))
    return found


@compiled
def changes(rows: Rows, most: int) -> tuple[Array, Array]:
    """(keys, inserted) of `write_changes`, at most `most` of them."""
    keys = np.empty(most + 1, np.uint64)
    inserted = np.empty(most + 1, np.bool_)
    found = write_changes(rows, keys, inserted)
    return keys[:found], inserted[:found]


def run_edges(key: Array, ranges: list[tuple[int, int]]) -> list[int]:
    """The edges of these ranges of rows, moved on so that no run of equal keys is cut."""
    *inner, end = (hi for _, hi in ranges)
    before = key[np.array(inner, np.int64) - 1]
    return [0, *np.searchsorted(key, before, "right").tolist(), end]


def joined(tallies: list[Array]) -> Array:
    if len(tallies) == 1:
        return tallies[0]
    joined: Array = np.sum(tallies, axis=0)
    joined[LARGEST] = max(tally[LARGEST] for tally in tallies)
    return joined
