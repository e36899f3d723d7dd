"""The simple undirected view of a graph on the CPU: see `simple`.

Idea, in O(n + m): each row is merged with that of the transpose (`transpose_cpu`), whose rows are
sorted; transposing twice sorts the graph's own rows if need be.

A row is written where all of its entries would have room, and the rows are then moved together,
which costs less than reading them twice to know how many entries each keeps.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import pass_over
from lpma.cpu.search import first_not_below

from ..arrays import Array
from .transpose_cpu import transpose

Rows = tuple[Array, Array]  # indptr int64[n+1], indices uint32[m]


def of_sorted(indptr: Array, indices: Array) -> Rows:
    """As `simple`. REQUIRES: sorted rows."""
    return united(indptr, indices, *transpose(indptr, indices))


def simple(indptr: Array, indices: Array) -> Rows:
    """Rows of the union with the transpose, without loops or repeats."""
    is_sorted = all(pass_over(_rows_rise, indptr, indptr, indices))
    reverse_indptr, reverse = transpose(indptr, indices)
    if not is_sorted:
        indptr, indices = transpose(reverse_indptr, reverse)
    return united(indptr, indices, reverse_indptr, reverse)


def united(indptr: Array, indices: Array, other_indptr: Array, other: Array) -> Rows:
    """The union of the rows of two graphs, without loops or repeats. REQUIRES: sorted rows, as many
    in both."""
    room = indptr + other_indptr
    union, lengths = np.empty(int(room[-1]), np.uint32), np.zeros(len(indptr), np.int64)
    pass_over(_unite, room, room, indptr, indices, other_indptr, other, union, lengths)
    return packed(room, union, lengths)


def without_loops(indptr: Array, indices: Array) -> Rows:
    """The same rows without loops; the same arrays if there are none. REQUIRES: sorted rows
    without repeats."""
    if not looped(indptr, indices).any():
        return indptr, indices
    return chosen(_drop_loops, indptr, indices)


def looped(indptr: Array, indices: Array) -> Array:
    """bool[n]: which rows have a loop. REQUIRES: sorted rows."""
    found = np.empty(len(indptr) - 1, np.bool_)
    pass_over(_find_loops, indptr, indptr, indices, found)
    return found


def induced(indptr: Array, indices: Array, is_row: Array, is_entry: Array) -> Rows:
    """The entries that `is_entry` selects in the rows that `is_row` selects, both bool[n]."""
    return chosen(_keep_inside, indptr, indices, is_row, is_entry)


def chosen(kernel: Any, indptr: Array, indices: Array, *arguments: Array) -> Rows:
    """The entries that a kernel writes at the beginning of each row, whose lengths it counts."""
    kept, lengths = np.empty(len(indices), np.uint32), np.zeros(len(indptr), np.int64)
    pass_over(kernel, indptr, indptr, indices, *arguments, kept, lengths)
    return packed(indptr, kept, lengths)


def packed(room: Array, entries: Array, lengths: Array) -> Rows:
    """Contiguous rows: of each the first lengths[u + 1] entries from room[u] on; lengths[0] = 0."""
    indptr = np.cumsum(lengths)
    packed = np.empty(int(indptr[-1]), np.uint32)
    pass_over(_move, room, room, entries, indptr, packed)
    return indptr, packed


@compiled
def _move(first: int, last: int, room: Array, entries: Array, indptr: Array, packed: Array) -> None:
    for u in range(first, last):
        start, to = room[u], indptr[u]
        for i in range(indptr[u + 1] - to):
            packed[to + i] = entries[start + i]


@compiled
def _rows_rise(first: int, last: int, indptr: Array, indices: Array) -> bool:
    """Whether every row is sorted (repeats are allowed)."""
    for u in range(first, last):
        for i in range(indptr[u] + 1, indptr[u + 1]):
            if indices[i] < indices[i - 1]:
                return False
    return True


@compiled
def _unite(
    first: int,
    last: int,
    room: Array,
    a_indptr: Array,
    a: Array,
    b_indptr: Array,
    b: Array,
    out: Array,
    lengths: Array,
) -> None:
    """The union of each pair of sorted rows, without the row's own number and repeats. Steps have
    no branch, which would be mispredicted half of the time."""
    for u in range(first, last):
        i, end_a, j, end_b = a_indptr[u], a_indptr[u + 1], b_indptr[u], b_indptr[u + 1]
        start = place = room[u]
        last_kept = np.int64(-1)
        while i < end_a and j < end_b:
            x, y = np.int64(a[i]), np.int64(b[j])
            v = min(x, y)
            out[place] = v
            i += x <= y
            j += y <= x
            fresh = (v != last_kept) & (v != u)
            place += fresh
            last_kept = v
        if i == end_a:
            i, end_a = j, end_b
            rest = b
        else:
            rest = a
        while i < end_a:
            v = np.int64(rest[i])
            out[place] = v
            i += 1
            place += (v != last_kept) & (v != u)
            last_kept = v
        lengths[u + 1] = place - start


@compiled
def _find_loops(first: int, last: int, indptr: Array, indices: Array, found: Array) -> None:
    for u in range(first, last):
        at = first_not_below(indices, indptr[u], indptr[u + 1], u)
        found[u] = at < indptr[u + 1] and indices[at] == u


@compiled
def _drop_loops(
    first: int, last: int, indptr: Array, indices: Array, kept: Array, lengths: Array
) -> None:
    for u in range(first, last):
        place = indptr[u]
        for i in range(indptr[u], indptr[u + 1]):
            kept[place] = indices[i]
            place += indices[i] != u
        lengths[u + 1] = place - indptr[u]


@compiled
def _keep_inside(
    first: int, last: int, indptr: Array, indices: Array, is_row: Array, is_entry: Array,
    kept: Array, lengths: Array,
) -> None:  # fmt: skip
    for u in range(first, last):
        if is_row[u]:
            place = indptr[u]
            for i in range(indptr[u], indptr[u + 1]):
                kept[place] = indices[i]
                place += is_entry[indices[i]]
            lengths[u + 1] = place - indptr[u]
