"""Core numbers after a batch, on the CPU: see `core` for the method and its proof.

One thread: what a batch changes is a small part of the graph, in steps that wait for each other.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from .figure import Change

Array = npt.NDArray[Any]

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def follow(change: Change, numbers: Array, budget: int) -> bool:
    """Bring `numbers` from before to after; False, and they are spoilt, where that would read more
    entries than the budget."""
    rows = change.after
    left = _fall(change.deleted, rows.indptr, rows.indices, numbers, budget)
    return left >= 0 and bool(_rise(change.inserted, rows.indptr, rows.indices, numbers, left))


@numba.njit(cache=True, nogil=True)
def _fall(deleted: Array, indptr: Array, indices: Array, numbers: Array, budget: int) -> int:
    """The largest supported numbers below the given ones; what is left of the budget."""
    n = len(indptr) - 1
    queue, queued = np.empty(n + 1, np.uint32), np.zeros(n, np.bool_)
    head = tail = waiting = 0
    for entry in deleted:
        u, v = np.int64(entry >> HALF), np.int64(entry & LOW)
        if u < n and numbers[u] <= numbers[v] and not queued[u]:
            queued[u] = True
            queue[tail] = u
            tail += 1
            waiting += 1
    numbers[n:] = 0
    room = np.zeros(64, np.int32)
    while waiting and budget >= 0:
        u = np.int64(queue[head])
        head = head + 1 if head < n else 0
        waiting -= 1
        queued[u] = False
        row = indices[indptr[u] : indptr[u + 1]]
        old = numbers[u]
        budget -= len(row)
        if _is_supported(row, numbers, old):
            continue
        if len(room) <= old:
            room = np.zeros(2 * old + 1, np.int32)
        new = numbers[u] = _h_index(row, numbers, old, room)
        for w in row:
            if new < numbers[w] <= old and not queued[w]:
                queued[w] = True
                queue[tail] = w
                tail = tail + 1 if tail < n else 0
                waiting += 1
    return budget


@numba.njit(cache=True, nogil=True)
def _is_supported(row: Array, numbers: Array, k: int) -> bool:
    count = 0
    for w in row:
        count += numbers[w] >= k
        if count >= k:
            return True
    return k == 0


@numba.njit(cache=True, nogil=True)
def _h_index(row: Array, numbers: Array, most: int, room: Array) -> int:
    """The largest h ≤ most of which there are h numbers of h or more. room: zeros, and left so."""
    for w in row:
        room[min(numbers[w], most)] += 1
    h, above = most, room[most]
    while above < h:
        h -= 1
        above += room[h]
    room[: most + 1] = 0
    return h


@numba.njit(cache=True, nogil=True)
def _rise(inserted: Array, indptr: Array, indices: Array, numbers: Array, budget: int) -> bool:
    """Rounds of rises, to the core numbers; False where the budget did not suffice."""
    n = len(indptr) - 1
    reached, evicted = np.empty(n, np.uint32), np.empty(n, np.uint32)
    count, seen = np.empty(n, np.int32), np.zeros(n, np.int32)  # seen: in which round, the last
    roots = 0
    for entry in inserted:
        u, v = np.int64(entry >> HALF), np.int64(entry & LOW)
        if numbers[u] <= numbers[v] and seen[u] == 0:
            seen[u] = 1
            reached[roots] = u
            roots += 1
    turn = 1
    while roots:
        total, falling, budget = _reach(
            roots, turn, indptr, indices, numbers, reached, evicted, count, seen, budget
        )
        if budget < 0:
            return False
        _evict(falling, turn, indptr, indices, numbers, evicted, count, seen)
        roots = 0
        turn += 1
        for i in range(total):
            u = reached[i]
            if count[u] > numbers[u]:
                numbers[u] += 1
                seen[u] = turn
                reached[roots] = u
                roots += 1
    return True


@numba.njit(cache=True, nogil=True)
def _reach(
    total: int, turn: int, indptr: Array, indices: Array, numbers: Array, reached: Array,
    evicted: Array, count: Array, seen: Array, budget: int,
) -> tuple[int, int, int]:  # fmt: skip
    """From the `total` roots to all that a rise may reach: how many these are, how many of them
    have too few neighbours to begin with, and what is left of the budget."""
    falling = i = 0
    while i < total and budget >= 0:
        u = reached[i]
        k = numbers[u]
        row = indices[indptr[u] : indptr[u + np.uint32(1)]]
        budget -= len(row)
        enough = np.int32(0)
        for w in row:
            enough += numbers[w] >= k
        count[u] = enough
        if enough > k:
            for w in row:
                if numbers[w] == k and seen[w] != turn:
                    seen[w] = turn
                    reached[total] = w
                    total += 1
        else:
            evicted[falling] = u
            falling += 1
        i += 1
    return total, falling, budget


@numba.njit(cache=True, nogil=True)
def _evict(
    falling: int, turn: int, indptr: Array, indices: Array, numbers: Array, evicted: Array,
    count: Array, seen: Array,
) -> None:  # fmt: skip
    """Take the evicted from the counts of their level, and evict who has too few left."""
    i = 0
    while i < falling:
        u = evicted[i]
        k = numbers[u]
        for w in indices[indptr[u] : indptr[u + np.uint32(1)]]:
            if numbers[w] == k and seen[w] == turn:
                count[w] -= 1
                if count[w] == k:
                    evicted[falling] = w
                    falling += 1
        i += 1
