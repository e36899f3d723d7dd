"""The rise of core numbers after a batch, on the CPU: see `core` for the method and its proof."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from .types import HALF

Array = npt.NDArray[Any]

ALIVE = np.int32(2**31 - 1)  # the layer of vertices that are reached and not evicted
SETTLED = np.int32(ALIVE - (1 << 20))  # layers from here to ALIVE: of rising vertices, temporarily
# Words of a state, int64[3]: the next layers behind and before all others; entries left to read.
BACK, FRONT, LEFT = range(3)


@compiled
def rise(
    fallen: Array, inserted: Array, indptr: Array, indices: Array, numbers: Array, layer: Array,
    after: Array, support: Array, state: Array,
) -> None:  # fmt: skip
    """Rounds of rises, until no vertex has more after it than its number."""
    n = len(indptr) - 1
    reached, evicted = np.empty(n, np.uint32), np.empty(n, np.uint32)
    listed = np.zeros(n, np.bool_)
    total = 0
    for i in range(len(fallen) + len(inserted)):
        u = np.int64(fallen[i]) if i < len(fallen) else np.int64(inserted[i - len(fallen)] >> HALF)
        if after[u] > numbers[u] and not listed[u]:
            listed[u] = True
            reached[total] = u
            total += 1
    while total:
        total = _reach(reached, total, indptr, indices, numbers, layer, after, state)
        if state[LEFT] < 0:
            return
        last = _count(reached, total, evicted, indptr, indices, numbers, layer, after, state)
        state[BACK] = evict(evicted, last, state[BACK], indptr, indices, numbers, layer, after)
        total = _raise(
            reached, total, evicted, indptr, indices, numbers, layer, after, support, state
        )


@compiled
def _reach(
    reached: Array, total: int, indptr: Array, indices: Array, numbers: Array, layer: Array,
    after: Array, state: Array,
) -> int:  # fmt: skip
    """Let the `total` reached vertices pass all others of their number, and add to them those that
    then have more than their number after them. Returns the new total."""
    i = 0
    while i < total and state[LEFT] >= 0:
        u = np.int64(reached[i])
        row = indices[indptr[u] : indptr[u + 1]]
        state[LEFT] -= 3 * len(row)
        for w in row:
            if numbers[w] == numbers[u] and (
                layer[w] > layer[u] or (layer[w] == layer[u] and w > u)
            ):
                after[w] += 1
                if after[w] == numbers[w] + 1:
                    reached[total] = w
                    total += 1
        i += 1
    return total


@compiled
def _count(
    reached: Array, total: int, evicted: Array, indptr: Array, indices: Array, numbers: Array,
    layer: Array, after: Array, state: Array,
) -> int:  # fmt: skip
    """Put all reached vertices behind the others of their number. List those of them with no more
    than their number after them, to be evicted; returns how many there are."""
    for u in reached[:total]:
        layer[u] = ALIVE
    last = 0
    for u in reached[:total]:
        k = numbers[u]
        count = np.int32(0)
        for w in indices[indptr[u] : indptr[u + np.uint32(1)]]:
            count += numbers[w] > k or (numbers[w] == k and layer[w] == ALIVE)
        after[u] = count
        if count <= k:
            evicted[last] = u
            last += 1
    for u in evicted[:last]:
        layer[u] = state[BACK]
    return last


@compiled
def _raise(
    reached: Array, total: int, queue: Array, indptr: Array, indices: Array, numbers: Array,
    layer: Array, after: Array, support: Array, state: Array,
) -> int:  # fmt: skip
    """Raise the vertices that were not evicted, to before all others of their new number. Those
    that still have too many after them are left in `reached`; returns how many there are."""
    rising = 0
    for u in reached[:total]:
        if layer[u] == ALIVE:
            reached[rising] = u
            rising += 1
    gained = after[reached[:rising]]  # the support of the rising vertices
    depth = _settle(reached[:rising], queue, indptr, indices, numbers, layer, after, support)
    again = 0
    for i in range(rising):
        u = reached[i]
        numbers[u] += 1
        support[u] = gained[i]
        if layer[u] == ALIVE:
            layer[u] = state[FRONT]
            reached[again] = u
            again += 1
        else:
            layer[u] += state[FRONT] - depth - SETTLED
    state[FRONT] -= depth + 1
    return again


@compiled
def _settle(
    rising: Array, queue: Array, indptr: Array, indices: Array, numbers: Array, layer: Array,
    after: Array, support: Array,
) -> int:  # fmt: skip
    """Order the rising vertices so that each has at most its new number after it, on layers from
    SETTLED on. A vertex without such a place stays ALIVE. Returns how many layers there are."""
    first = last = 0
    for u in rising:
        if after[u] <= numbers[u] + 1:
            layer[u] = SETTLED
            queue[last] = u
            last += 1
    wave = SETTLED
    while first < last and wave < ALIVE - 1:
        end = last
        for i in range(first, end):
            u = queue[i]
            k = numbers[u]
            for w in indices[indptr[u] : indptr[u + np.uint32(1)]]:
                if (
                    numbers[w] == k
                    and layer[w] >= SETTLED
                    and (layer[w] > wave or (layer[w] == wave and w > u))
                ):
                    after[w] -= 1
                    if layer[w] == ALIVE and after[w] <= k + 1:
                        layer[w] = wave + 1
                        queue[last] = w
                        last += 1
        first = end
        wave += 1
    for u in rising:
        for w in indices[indptr[u] : indptr[u + np.uint32(1)]]:
            support[w] += numbers[w] == numbers[u] + 1
    return int(wave - SETTLED)


@compiled
def evict(
    evicted: Array, last: int, wave: int, indptr: Array, indices: Array, numbers: Array,
    layer: Array, after: Array,
) -> int:  # fmt: skip
    """Evict the `last` listed vertices, whose layer is `wave`, and then those that have too few
    after them, wave by wave, each on a layer of its own. Returns the first layer that is not
    used."""
    first = 0
    while first < last:
        end = last
        for i in range(first, end):
            u = evicted[i]
            k = numbers[u]
            for w in indices[indptr[u] : indptr[u + np.uint32(1)]]:
                if numbers[w] == k and (layer[w] > wave or (layer[w] == wave and w > u)):
                    after[w] -= 1
                    if layer[w] == ALIVE and after[w] <= k:
                        layer[w] = wave + 1
                        evicted[last] = w
                        last += 1
        first = end
        wave += 1
    return wave
