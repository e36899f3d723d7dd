"""Where core numbers look on the CPU: a list of each vertex's neighbours of no lower number.

Most neighbours of a hub have a lower number than it, and neither of the two counts of `core`
depends on them. All lists together have an entry for every edge, and a second one for the edges
between vertices of one number.

Two invariants more than in `core`, for all v:
    3. The list of v holds the neighbours w with c(w) ≥ c(v), each once. So support(v) is its
       length.
    4. Those with c(w) = c(v) are among the first near(v) of the list. Others may be there, too:
       a vertex that rises stays where it is in the lists of its neighbours.
A list has room for all neighbours of its vertex, so it only has to move when the degree grows; then
it leaves a hole. All lists are packed anew when the holes and the spare room have used up the
space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.instructions import prefetch
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..views.simple import View
from .types import HALF, LOW

Array = npt.NDArray[Any]

SPARE = 4  # a list has room for a quarter more neighbours than there are, and for four
BLOCK = 32  # entries that are compared without a branch
AHEAD = 16  # vertices whose lists, and edges whose ends, are prefetched before their turn


class Lists:
    """The lists of rows; the one of v is entries[starts[v] : starts[v] + support[v]]. `near`,
    int32[n], is as in invariant 4. `queues` and `marks` are room to work in: four lists of
    vertices, and a byte for each vertex, which is zero between updates."""

    def __init__(self, rows: View, numbers: Array, support: Array) -> None:
        """Make them, and fill in `support`, int32[n]."""
        self._place(rows)
        by_rows(
            _fill, rows.indptr, rows.indptr, rows.indices, numbers, support, self.starts,
            self.entries,
        )  # fmt: skip
        self.near = support.copy()
        self._make_scratch(len(support))

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
        before or after.

        REQUIRES: deleted edges are in no list any more, so that support(v) ≤ degree(v)."""
        n = len(support)
        if len(self.marks) < n:
            self._make_scratch(n)
        self._extend(n)
        self.near = _with_zeros(self.near, n)
        room = self.starts, self._room, self.entries
        self._used = _make_room(inserted, rows.indptr, support, *room, self._used)
        if self._used < 0:
            starts, entries = self.starts, self.entries
            self._place(rows)
            self._extend(n)  # by vertices that went, whose lists are not read any more
            _move(rows.indptr, support, starts, entries, self.starts, self.entries)

    def _make_scratch(self, n: int) -> None:
        # One more, for a vertex that is written but not kept.
        self.queues = np.empty((4, n + n // SPARE + 1), np.uint32)
        self.marks = np.zeros(n + n // SPARE, np.uint8)

    def _extend(self, n: int) -> None:
        self.starts, self._room = _with_zeros(self.starts, n), _with_zeros(self._room, n)


def _with_zeros(array: Array, n: int) -> Array:
    """An array with zeros appended, of at least n entries. It gets more, since in many streams n
    grows batch by batch."""
    if len(array) >= n:
        return array
    return np.concatenate((array, np.zeros(n + n // SPARE - len(array), array.dtype)))


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
def put_in(
    u: int, w: int, is_near: bool, support: Array, near: Array, starts: Array, entries: Array
) -> None:
    """Put w in the list of u. is_near: whether its number is that of u."""
    end = starts[u] + support[u]
    support[u] += 1
    if is_near:
        middle = starts[u] + near[u]
        near[u] += 1
        entries[end] = entries[middle]
        entries[middle] = w
    else:
        entries[end] = w


@compiled
def _take_out(u: int, w: int, support: Array, near: Array, starts: Array, entries: Array) -> None:
    """Take w out of the list of u. REQUIRES: it is there."""
    at, middle, last = starts[u], starts[u] + near[u], starts[u] + support[u] - 1
    while at + BLOCK <= last:
        found = np.uint32(0)
        for i in range(BLOCK):
            found |= np.uint32(entries[at + i] == np.uint32(w))
        if found:
            break
        at += BLOCK
    while at < last and entries[at] != np.uint32(w):  # the last needs no look
        at += 1
    support[u] -= 1
    if at < middle:
        near[u] -= 1
        entries[at] = entries[middle - 1]
        at = middle - 1
    entries[at] = entries[last]


@compiled
def count_deleted(
    deleted: Array, n: int, numbers: Array, layer: Array, after: Array, support: Array,
    near: Array, starts: Array, entries: Array,
) -> None:  # fmt: skip
    """Take deleted edges out of the counts and lists of their ends, by the order before the
    batch."""
    for i in range(len(deleted)):
        _fetch_ends(deleted, i, numbers, layer, near, starts, entries)
        u, v = np.int64(deleted[i] >> HALF), np.int64(deleted[i] & LOW)
        if u < n:
            after[u] -= is_after(v, u, numbers, layer)
            if numbers[v] >= numbers[u]:
                _take_out(u, v, support, near, starts, entries)


@compiled
def count_inserted(
    inserted: Array, numbers: Array, layer: Array, after: Array, support: Array, near: Array,
    starts: Array, entries: Array,
) -> None:  # fmt: skip
    """Bring inserted edges into the counts and lists of their ends, by the order before the
    batch."""
    for i in range(len(inserted)):
        _fetch_ends(inserted, i, numbers, layer, near, starts, entries)
        u, v = np.int64(inserted[i] >> HALF), np.int64(inserted[i] & LOW)
        after[u] += is_after(v, u, numbers, layer)
        if numbers[v] >= numbers[u]:
            put_in(u, v, numbers[v] == numbers[u], support, near, starts, entries)


@compiled
def _fetch_ends(
    edges: Array, i: int, numbers: Array, layer: Array, near: Array, starts: Array, entries: Array
) -> None:
    """Prefetch what is read of the ends of the edge AHEAD places after edge i."""
    edge = edges[min(i + AHEAD, len(edges) - 1)]
    u, v = np.int64(edge >> HALF), np.int64(edge & LOW)
    prefetch(numbers.ctypes.data + 4 * u)
    prefetch(numbers.ctypes.data + 4 * v)
    prefetch(layer.ctypes.data + 4 * u)
    prefetch(layer.ctypes.data + 4 * v)
    prefetch(near.ctypes.data + 4 * u)
    prefetch(starts.ctypes.data + 8 * u)
    soon = np.int64(edges[min(i + AHEAD // 2, len(edges) - 1)] >> HALF)
    prefetch(entries.ctypes.data + 4 * starts[soon])


@compiled
def fetch_list(queue: Array, i: int, last: int, near: Array, starts: Array, entries: Array) -> None:
    """Prefetch where the list of the vertex AHEAD places after queue[i] is, and the first entries
    of the one half as far ahead. last: the number of vertices in the queue."""
    far = np.int64(queue[min(i + AHEAD, last - 1)])
    prefetch(near.ctypes.data + 4 * far)
    prefetch(starts.ctypes.data + 8 * far)
    first = entries.ctypes.data + 4 * starts[queue[min(i + AHEAD // 2, last - 1)]]
    prefetch(first)
    prefetch(first + 64)


@compiled
def is_after(w: int, u: int, numbers: Array, layer: Array) -> bool:
    """Whether w comes after u in the order."""
    if numbers[w] != numbers[u]:
        return numbers[w] > numbers[u]
    return layer[w] > layer[u] or (layer[w] == layer[u] and w > u)
