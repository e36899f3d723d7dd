"""Where core numbers look on the CPU: for each vertex the list of its neighbours of no lower number.

Most neighbours of a hub have a lower number than it, and neither of the two counts of `core` depends
on them. All lists together have an entry for every edge, and a second one for the edges between
vertices of one number.

Invariant 3 of `core`: the list of v holds the neighbours w with c(w) ≥ c(v), each once, in any
order. So support(v) is its length. A list has room for all neighbours of its vertex, so it only
has to move when the degree grows; then it leaves a hole. All lists are packed anew when the holes
and the spare room have used up the space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..views.simple import View
from .types import HALF, LOW

Array = npt.NDArray[Any]

SPARE = 4  # a list has room for a quarter more neighbours than there are, and for four
BLOCK = 32  # entries that are compared without a branch


class Lists:
    """The lists of rows; the one of v is entries[starts[v] : starts[v] + support[v]]."""

    def __init__(self, rows: View, numbers: Array, support: Array) -> None:
        """Make them, and fill in `support`, int32[n]."""
        self._place(rows)
        by_rows(
            _fill, rows.indptr, rows.indptr, rows.indices, numbers, support, self.starts,
            self.entries,
        )  # fmt: skip

    def _place(self, rows: View) -> None:
        degrees = np.diff(rows.indptr)
        room = degrees + degrees // SPARE + SPARE
        ends = np.cumsum(room)
        self.starts = ends - room
        self._room = room.astype(np.int32)
        self._used = int(ends[-1]) if len(ends) else 0
        self.entries = np.empty(self._used + self._used // SPARE + 1, np.uint32)

    def follow(self, rows: View, inserted: Array, support: Array) -> None:
        """Make room for the edges inserted. support: of the lists as they are, for all vertices
        before or after."""
        n = len(support)
        if n > len(self.starts):
            more = n - len(self.starts)
            self.starts = np.concatenate((self.starts, np.zeros(more, np.int64)))
            self._room = np.concatenate((self._room, np.zeros(more, np.int32)))
        held = self.starts, self._room, self.entries
        self._used = _make_room(inserted, rows.indptr, support, *held, self._used)
        if self._used < 0:
            starts, entries = self.starts, self.entries
            self._place(rows)
            if n > len(self.starts):  # vertices that went; their lists are not read any more
                self.starts = np.concatenate((self.starts, np.zeros(n - len(self.starts), np.int64)))
                self._room = np.concatenate((self._room, np.zeros(n - len(self._room), np.int32)))
            _move(rows.indptr, support, starts, entries, self.starts, self.entries)


@compiled
def _fill(
    first: int, last: int, indptr: Array, indices: Array, numbers: Array, support: Array,
    starts: Array, entries: Array,
) -> None:  # fmt: skip
    for u in range(first, last):
        support[u] = collect(u, numbers[u], indptr, indices, numbers, starts, entries)


@compiled
def collect(
    u: int, least: int, indptr: Array, indices: Array, numbers: Array, starts: Array,
    entries: Array,
) -> int:  # fmt: skip
    """Make the list of u hold its neighbours with a number of at least `least`; how many."""
    at = start = starts[u]
    for w in indices[indptr[u] : indptr[u + 1]]:
        entries[at] = w
        at += numbers[w] >= least
    return int(at - start)


@compiled
def _make_room(
    inserted: Array, indptr: Array, support: Array, starts: Array, room: Array, entries: Array,
    used: int,
) -> int:  # fmt: skip
    """Move lists that are too small behind all others. Returns the space used then; −1 if there is
    not enough."""
    for edge in inserted:
        u = np.int64(edge >> HALF)
        degree = indptr[u + 1] - indptr[u]
        if degree <= room[u]:
            continue
        # A vertex that went may have had more neighbours than it has now.
        wanted = degree + degree // SPARE + SPARE
        if used + wanted > len(entries):
            return -1
        for i in range(support[u]):
            entries[used + i] = entries[starts[u] + i]
        starts[u], room[u] = used, wanted
        used += wanted
    return used


@compiled
def _move(
    indptr: Array, support: Array, before: Array, entries: Array, after: Array, moved: Array
) -> None:
    for u in range(len(indptr) - 1):
        count = support[u]
        moved[after[u] : after[u] + count] = entries[before[u] : before[u] + count]


@compiled
def take_out(u: int, w: int, count: int, starts: Array, entries: Array) -> None:
    """Take w out of the list of u, which has `count` entries. REQUIRES: it is there."""
    start = starts[u]
    at = start
    while at + BLOCK <= start + count:
        found = np.uint32(0)
        for i in range(BLOCK):
            found |= np.uint32(entries[at + i] == np.uint32(w))
        if found:
            break
        at += BLOCK
    while entries[at] != np.uint32(w):
        at += 1
    entries[at] = entries[start + count - 1]


@compiled
def count_deleted(
    deleted: Array, n: int, numbers: Array, layer: Array, after: Array, support: Array,
    starts: Array, entries: Array,
) -> None:  # fmt: skip
    """Take deleted edges out of the counts and lists of their ends, by the order before the
    batch."""
    for edge in deleted:
        u, v = np.int64(edge >> HALF), np.int64(edge & LOW)
        if u < n:
            after[u] -= is_after(v, u, numbers, layer)
            if numbers[v] >= numbers[u]:
                take_out(u, v, support[u], starts, entries)
                support[u] -= 1


@compiled
def count_inserted(
    inserted: Array, numbers: Array, layer: Array, after: Array, support: Array, starts: Array,
    entries: Array,
) -> None:  # fmt: skip
    """Bring inserted edges into the counts and lists of their ends, by the order before the
    batch."""
    for edge in inserted:
        u, v = np.int64(edge >> HALF), np.int64(edge & LOW)
        after[u] += is_after(v, u, numbers, layer)
        if numbers[v] >= numbers[u]:
            entries[starts[u] + support[u]] = v
            support[u] += 1


@compiled
def is_after(w: int, u: int, numbers: Array, layer: Array) -> bool:
    """Whether w comes after u in the order."""
    if numbers[w] != numbers[u]:
        return numbers[w] > numbers[u]
    return layer[w] > layer[u] or (layer[w] == layer[u] and w > u)
