"""The rise of core numbers after a batch, on the CPU: see `core` for the method and its proof.

A round first reads the near parts of the lists of the reached vertices (`core_lists_cpu`), and
leaves in them no others than those of the same number. All that follows reads these alone, but for
the vertices that rise, whose lists are read once.

Tricks: which of two vertices of one number comes first is as good as random, so what depends on it
is computed without a branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from .core_lists_cpu import fetch_list, put_in
from .types import HALF

Array = npt.NDArray[Any]

ALIVE = np.int32(2**31 - 1)  # the layer of vertices that are reached and not evicted
SETTLED = np.int32(ALIVE - (1 << 20))  # layers from here to ALIVE: of rising vertices, temporarily
# Words of a state, int64[3]: the next layers behind and before all others; entries left to read.
BACK, FRONT, LEFT = range(3)


@compiled
def rise(
    fallen: Array, inserted: Array, numbers: Array, layer: Array, after: Array, support: Array,
    near: Array, starts: Array, entries: Array, queues: Array, marks: Array, state: Array,
) -> None:  # fmt: skip
    """Rounds of rises, until no vertex has more after it than its number."""
    reached, evicted = queues[0], queues[2]
    total = 0
    for i in range(len(fallen) + len(inserted)):
        u = np.int64(fallen[i]) if i < len(fallen) else np.int64(inserted[i - len(fallen)] >> HALF)
        if after[u] > numbers[u] and not marks[u]:
            marks[u] = 1
            reached[total] = u
            total += 1
    for u in reached[:total]:
        marks[u] = 0
    while total:
        total = _reach(reached, total, numbers, layer, after, near, starts, entries, state)
        if state[LEFT] < 0:
            return
        last = _count(
            reached, total, evicted, numbers, layer, after, support, near, starts, entries, state
        )
        state[BACK] = evict(
            evicted, last, state[BACK], numbers, layer, after, near, starts, entries
        )
        total = _raise(
            reached, total, evicted, numbers, layer, after, support, near, starts, entries, state
        )


@compiled
def _reach(
    reached: Array, total: int, numbers: Array, layer: Array, after: Array, near: Array,
    starts: Array, entries: Array, state: Array,
) -> int:  # fmt: skip
    """Let the `total` reached vertices pass all others of their number, and add to them those that
    then have more than their number after them. Returns the new total."""
    i = 0
    while i < total and state[LEFT] >= 0:
        fetch_list(reached, i, total, near, starts, entries)
        u = np.int64(reached[i])
        i += 1
        k, here = numbers[u], layer[u]
        state[LEFT] -= near[u]
        start = to = starts[u]
        for at in range(start, start + near[u]):
            w = entries[at]
            is_near = numbers[w] == k
            # From `to` on all are above: any of them may take the place of another.
            entries[at] = entries[to]
            entries[to] = w
            to += is_near
            is_passed = is_near & ((layer[w] > here) | ((layer[w] == here) & (w > u)))
            now_after = after[w] + is_passed
            after[w] = now_after
            reached[total] = w
            total += is_passed & (now_after == k + 1)
        near[u] = to - start
    return total


@compiled
def _count(
    reached: Array, total: int, evicted: Array, numbers: Array, layer: Array, after: Array,
    support: Array, near: Array, starts: Array, entries: Array, state: Array,
) -> int:  # fmt: skip
    """Put all reached vertices behind the others of their number. List those of them with no more
    than their number after them, to be evicted; returns how many there are."""
    for u in reached[:total]:
        layer[u] = ALIVE
    last = 0
    for i in range(total):
        fetch_list(reached, i, total, near, starts, entries)
        u = np.int64(reached[i])
        count = support[u] - near[u]
        for w in entries[starts[u] : starts[u] + near[u]]:
            count += layer[w] == ALIVE
        after[u] = count
        if count <= numbers[u]:
            evicted[last] = u
            last += 1
    for u in evicted[:last]:
        layer[u] = state[BACK]
    return last


@compiled
def _raise(
    reached: Array, total: int, queue: Array, numbers: Array, layer: Array, after: Array,
    support: Array, near: Array, starts: Array, entries: Array, state: Array,
) -> int:  # fmt: skip
    """Raise the vertices that were not evicted, to before all others of their new number. Those
    that still have too many after them are left in `reached`; returns how many there are."""
    rising = 0
    for u in reached[:total]:
        if layer[u] == ALIVE:
            reached[rising] = u
            rising += 1
    depth = _settle(reached[:rising], queue, numbers, layer, after, near, starts, entries)
    for i in range(rising):
        fetch_list(reached, i, rising, near, starts, entries)
        u = reached[i]
        _relist(np.int64(u), numbers, layer, support, near, starts, entries)
    again = 0
    for i in range(rising):
        u = reached[i]
        numbers[u] += 1
        if layer[u] == ALIVE:
            layer[u] = state[FRONT]
            reached[again] = u
            again += 1
        else:
            layer[u] += state[FRONT] - depth - SETTLED
    state[FRONT] -= depth + 1
    return again


@compiled
def _relist(
    u: int, numbers: Array, layer: Array, support: Array, near: Array, starts: Array, entries: Array
) -> None:
    """Bring the list of the rising vertex u to its new number, and put u in the lists of those that
    have it already. Numbers are those before the round; rising vertices have layers from SETTLED
    on."""
    start, k = starts[u], numbers[u]
    middle, end = start + near[u], start + support[u]
    to = start
    for at in range(start, middle):
        w = entries[at]
        entries[to] = w
        to += layer[w] >= SETTLED
    gone = middle - to  # they stay behind; their places go to the last ones
    for i in range(min(gone, end - middle)):
        entries[to + i] = entries[end - 1 - i]
    support[u] -= gone
    for at in range(to, end - gone):
        w = entries[at]
        if numbers[w] == k + 1 and layer[w] < SETTLED:
            entries[at] = entries[to]
            entries[to] = w
            to += 1
            put_in(np.int64(w), u, True, support, near, starts, entries)
    near[u] = to - start


@compiled
def _settle(
    rising: Array, queue: Array, numbers: Array, layer: Array, after: Array, near: Array,
    starts: Array, entries: Array,
) -> int:  # fmt: skip
    """Order the rising vertices so that each has at most its new number after it, on layers from
    SETTLED on. A vertex without such a place stays ALIVE. Returns how many layers there are."""
    last = 0
    for u in rising:
        if after[u] <= numbers[u] + 1:
            layer[u] = SETTLED
            queue[last] = u
            last += 1
    return _waves(queue, last, SETTLED, 1, numbers, layer, after, near, starts, entries) - SETTLED


@compiled
def evict(
    evicted: Array, last: int, wave: int, numbers: Array, layer: Array, after: Array, near: Array,
    starts: Array, entries: Array,
) -> int:  # fmt: skip
    """Evict the `last` listed vertices, whose layer is `wave`, and then those that have too few
    after them, wave by wave, each on a layer of its own. Returns the first layer that is not
    used."""
    return _waves(evicted, last, wave, 0, numbers, layer, after, near, starts, entries)


@compiled
def _waves(
    queue: Array, last: int, wave: int, more: int, numbers: Array, layer: Array, after: Array,
    near: Array, starts: Array, entries: Array,
) -> int:  # fmt: skip
    """Place the `last` queued vertices, whose layer is `wave`, and then the ALIVE vertices that
    have at most their number, and `more`, after them. Each passes those of its number that are not
    placed, or later. Returns the first layer that is not used."""
    first = 0
    while first < last and wave < ALIVE - 1:
        end = last
        for i in range(first, end):
            fetch_list(queue, i, end, near, starts, entries)
            u = np.int64(queue[i])
            most = numbers[u] + more
            for w in entries[starts[u] : starts[u] + near[u]]:
                here = layer[w]
                left = after[w] - ((here > wave) | ((here == wave) & (w > u)))
                after[w] = left
                if here == ALIVE and left <= most:
                    layer[w] = wave + 1
                    queue[last] = w
                    last += 1
        first = end
        wave += 1
    return int(wave)
