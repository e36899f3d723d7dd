"""Core numbers after a batch, on the CPU: see `core` for the method and its proof.

One thread runs it, since a batch changes a small part of the graph, in steps that depend on each
other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from ..views.simple import View
from .core_rise_cpu import ALIVE, BACK, LEFT, evict, rise
from .types import HALF, LOW, Change

Array = npt.NDArray[Any]


def order(rows: View, numbers: Array, layer: Array, after: Array, support: Array) -> int:
    """Fill in `layer`, `after` and `support`, int32[n], for given core numbers. Returns the first
    layer that is not used."""
    return int(_order(rows.indptr, rows.indices, numbers, layer, after, support))


def follow(
    change: Change, numbers: Array, layer: Array, after: Array, support: Array, state: Array
) -> bool:
    """Bring all four arrays from the state before to that after. False if that would read more
    entries than state[LEFT]; the arrays are then useless. state: see `core_rise_cpu`."""
    rows, n = change.after, change.after.num_vertices
    held = numbers, layer, after, support
    _count_changes(change.deleted, -1, n, *held)
    _count_changes(change.inserted, 1, n, *held)
    fallen = _fall(change.deleted, rows.indptr, rows.indices, *held, state)
    rise(fallen, change.inserted, rows.indptr, rows.indices, *held, state)
    return bool(state[LEFT] >= 0)


@compiled
def _is_after(w: int, u: int, numbers: Array, layer: Array) -> bool:
    """Whether w comes after u in the order."""
    if numbers[w] != numbers[u]:
        return numbers[w] > numbers[u]
    return layer[w] > layer[u] or (layer[w] == layer[u] and w > u)


@compiled
def _count_changes(
    edges: Array, step: int, n: int, numbers: Array, layer: Array, after: Array, support: Array
) -> None:
    """Add `step` to the counts of the ends of edges, by the order before the batch."""
    for edge in edges:
        u, v = np.int64(edge >> HALF), np.int64(edge & LOW)
        if u < n:
            after[u] += step * _is_after(v, u, numbers, layer)
            support[u] += step * (numbers[v] >= numbers[u])


@compiled
def _order(
    indptr: Array, indices: Array, numbers: Array, layer: Array, after: Array, support: Array
) -> int:
    n = len(indptr) - 1
    evicted = np.empty(n, np.uint32)
    last = 0
    for u in range(n):
        enough = np.int32(0)
        for w in indices[indptr[u] : indptr[u + 1]]:
            enough += numbers[w] >= numbers[u]
        after[u] = support[u] = enough
        layer[u] = ALIVE
    for u in range(n):
        if after[u] <= numbers[u]:
            layer[u] = 0
            evicted[last] = u
            last += 1
    return evict(evicted, last, 0, indptr, indices, numbers, layer, after)


@compiled
def _fall(
    deleted: Array, indptr: Array, indices: Array, numbers: Array, layer: Array, after: Array,
    support: Array, state: Array,
) -> Array:  # fmt: skip
    """Let vertices that lost support fall to new places in the order. Returns those vertices."""
    n = len(indptr) - 1
    queue, queued, fell = np.empty(n + 1, np.uint32), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    head = tail = waiting = 0
    for edge in deleted:
        u = np.int64(edge >> HALF)
        if u < n and support[u] < numbers[u] and not queued[u]:
            queued[u] = True
            queue[tail] = u
            tail += 1
            waiting += 1
    numbers[n:] = 0
    room = np.zeros(64, np.int32)
    fallen = np.empty(n, np.uint32)
    total = 0
    while waiting and state[LEFT] >= 0:
        u = np.int64(queue[head])
        head = head + 1 if head < n else 0
        waiting -= 1
        queued[u] = False
        row = indices[indptr[u] : indptr[u + 1]]
        state[LEFT] -= 2 * len(row)
        old = numbers[u]
        if len(room) <= old:
            room = np.zeros(2 * old + 1, np.int32)
        new, support[u] = _h_index(row, numbers, old, room)
        if not fell[u]:
            fell[u] = True
            fallen[total] = u
            total += 1
        for w in row:
            if new < numbers[w] <= old:
                support[w] -= 1
                if support[w] < numbers[w] and not queued[w]:
                    queued[w] = True
                    queue[tail] = w
                    tail = tail + 1 if tail < n else 0
                    waiting += 1
            if _is_between(np.int64(w), u, new, numbers, layer):
                after[w] -= 1
        numbers[u] = new
        layer[u] = state[BACK]
        state[BACK] += 1
        count = np.int32(0)
        for w in row:
            count += _is_after(np.int64(w), u, numbers, layer)
        after[u] = count
    return fallen[:total]


@compiled
def _is_between(w: int, u: int, new: int, numbers: Array, layer: Array) -> bool:
    """Whether u, which came after w, comes before it once it has fallen to the number `new`."""
    return numbers[w] > new and _is_after(u, w, numbers, layer)


@compiled
def _h_index(row: Array, numbers: Array, most: int, room: Array) -> tuple[int, int]:
    """The largest h ≤ most such that at least h of the row's vertices have numbers of at least h,
    and how many have. room: zeros, before and after."""
    for w in row:
        room[min(numbers[w], most)] += 1
    h, above = most, room[most]
    while above < h:
        h -= 1
        above += room[h]
    room[: most + 1] = 0
    return h, above
