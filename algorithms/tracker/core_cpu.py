"""Core numbers after a batch, on the CPU: see `core` for the method and its proof.

One thread runs it, since a batch changes a small part of the graph, in steps that depend on each
other. It reads the lists of `core_lists_cpu`, and whole rows only of vertices that fall.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from ..views.simple import View
from .core_lists_cpu import Lists, collect, count_deleted, count_inserted, fetch_list, is_after
from .core_rise_cpu import ALIVE, BACK, LEFT, evict, rise
from .types import HALF, Change

Array = npt.NDArray[Any]

FALLEN = 1  # the queue of vertices that fell
QUEUED, FELL, LOOSE = 1, 2, 4  # marks
READS = 4  # entries of a row, read once, in the time of one of a list, read several times


def order(
    rows: View, numbers: Array, layer: Array, after: Array, support: Array
) -> tuple[int, Lists]:
    """Fill in `layer`, `after` and `support`, int32[n], for given core numbers. Returns the first
    layer that is not used, and what `follow` keeps."""
    lists = Lists(rows, numbers, support)
    of = lists.near, lists.starts, lists.entries
    return int(_order(numbers, layer, after, support, *of)), lists


def begin(*given: Any) -> Callable[[], bool]:
    """What follows a change, and says whether it could: `follow`, with what that is given."""
    return partial(follow, *given)


def follow(
    change: Change, numbers: Array, layer: Array, after: Array, support: Array, state: Array,
    lists: Lists,
) -> bool:  # fmt: skip
    """Bring all arrays from the state before to that after. False if that would read more entries
    than state[LEFT]; the arrays are then useless. state: see `core_rise_cpu`."""
    rows, n = change.after, change.after.num_rows
    held = numbers, layer, after, support
    of = lists.near, lists.starts, lists.entries
    # First, since `lists.follow` makes no list longer than a row after the batch.
    count_deleted(change.deleted, n, *held, *of)
    lists.follow(rows, change.inserted, support)
    of = lists.near, lists.starts, lists.entries
    count_inserted(change.inserted, *held, *of)
    room = lists.queues, lists.marks
    num_fallen = _fall(change.deleted, rows.indptr, rows.indices, *held, *of, *room, state)
    fallen = lists.queues[FALLEN, :num_fallen]
    rise(fallen, change.inserted, *held, *of, *room, state)
    return bool(state[LEFT] >= 0)


@compiled
def _order(
    numbers: Array, layer: Array, after: Array, support: Array, near: Array, starts: Array,
    entries: Array,
) -> int:  # fmt: skip
    n = len(numbers)
    evicted = np.empty(n, np.uint32)
    last = 0
    for u in range(n):
        _tidy(u, support[u], numbers, near, starts, entries)
        after[u] = support[u]
        layer[u] = ALIVE
        if after[u] <= numbers[u]:
            layer[u] = 0
            evicted[last] = u
            last += 1
    return evict(evicted, last, 0, numbers, layer, after, near, starts, entries)


@compiled
def _fall(
    deleted: Array, indptr: Array, indices: Array, numbers: Array, layer: Array, after: Array,
    support: Array, near: Array, starts: Array, entries: Array, queues: Array, marks: Array,
    state: Array,
) -> int:  # fmt: skip
    """Let vertices that lost support fall to new places in the order. Returns how many, which are
    then in queues[FALLEN]."""
    n = len(indptr) - 1
    queue, fallen, loose = queues[0], queues[FALLEN], queues[2]
    # Lists that some have fallen out of, or to the number of, are tidied up at the end. Until then
    # held[v] is their length.
    held = queues[3]
    head = tail = waiting = 0
    for edge in deleted:
        u = np.int64(edge >> HALF)
        if u < n and support[u] < numbers[u] and not marks[u]:
            marks[u] = QUEUED
            queue[tail] = u
            tail += 1
            waiting += 1
    numbers[n:] = 0
    support[n:] = 0
    near[n:] = 0
    total = num_loose = 0
    while waiting and state[LEFT] >= 0:
        u = np.int64(queue[head])
        head = head + 1 if head < n else 0
        waiting -= 1
        marks[u] ^= QUEUED
        state[LEFT] -= (indptr[u + 1] - indptr[u]) // READS
        old = numbers[u]
        new, count = _lower(u, indptr, indices, numbers, starts, entries)
        if not marks[u] & FELL:
            marks[u] |= FELL
            fallen[total] = u
            total += 1
        above = 0
        for at in range(starts[u], starts[u] + count):
            w = entries[at]
            number = numbers[w]
            above += number > new
            if number > old:
                continue
            if not marks[w] & LOOSE:
                marks[w] |= LOOSE
                held[w] = support[w]
                loose[num_loose] = w
                num_loose += 1
            if number == new:  # u is near now
                continue
            if number < old or not is_after(np.int64(w), u, numbers, layer):
                after[w] -= 1
            support[w] -= 1
            if support[w] < number and not marks[w] & QUEUED:
                marks[w] |= QUEUED
                queue[tail] = w
                tail = tail + 1 if tail < n else 0
                waiting += 1
        numbers[u] = new
        layer[u] = state[BACK]
        state[BACK] += 1
        # It is the last of its number.
        after[u], support[u], near[u], held[u] = above, count, count, count
    _tidy_all(loose, num_loose, held, numbers, near, starts, entries)
    for u in loose[:num_loose]:
        marks[u] = 0
    for u in fallen[:total]:
        marks[u] = 0
    return total


@compiled
def _lower(
    u: int, indptr: Array, indices: Array, numbers: Array, starts: Array, entries: Array
) -> tuple[int, int]:
    """The number that u falls to, and how many neighbours have no lower one, which are then its
    list."""
    new = numbers[u] - 1  # the most that it can be, and mostly is
    count = collect(u, new, indptr, indices, numbers, starts, entries)
    if count < new:
        new = _h_index(indices[indptr[u] : indptr[u + 1]], numbers, new)
        count = collect(u, new, indptr, indices, numbers, starts, entries)
    return new, count


@compiled
def _tidy_all(
    loose: Array, count: int, held: Array, numbers: Array, near: Array, starts: Array,
    entries: Array,
) -> None:  # fmt: skip
    for i in range(count):
        fetch_list(loose, i, count, near, starts, entries)
        u = np.int64(loose[i])
        _tidy(u, held[u], numbers, near, starts, entries)


@compiled
def _tidy(u: int, count: int, numbers: Array, near: Array, starts: Array, entries: Array) -> None:
    """Leave in the list of u, of `count` entries, only those of no lower number, those of its own
    number first."""
    k = numbers[u]
    start = to = middle = starts[u]
    for at in range(start, start + count):
        w = entries[at]
        other = entries[middle] if middle < to else w
        is_near = numbers[w] == k
        entries[to] = other if is_near else w
        entries[middle] = w if is_near else other
        middle += is_near
        to += numbers[w] >= k
    near[u] = middle - start


@compiled
def _h_index(row: Array, numbers: Array, most: int) -> int:
    """The largest h ≤ most such that at least h of the row's vertices have numbers of at least
    h."""
    room = np.zeros(most + 1, np.int32)
    for w in row:
        room[min(numbers[w], most)] += 1
    h, above = most, room[most]
    while above < h:
        h -= 1
        above += room[h]
    return h
