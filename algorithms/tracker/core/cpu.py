"""Core numbers after a batch, on the CPU: see the package for the method and its proof.

One thread runs it, since a batch changes a small part of the graph in dependent steps. Lists of
each vertex's neighbours of no lower number are kept with the order: most neighbours of a hub have a
lower number, and neither count depends on them. Together the lists have an entry for every edge,
and a second one for edges between vertices of one number. Whole rows are read only of vertices that
fall.

Two more invariants, for all v:
    3. The list of v holds the neighbours w with c(w) ≥ c(v), each once. So support(v) is its
       length.
    4. Those with c(w) = c(v) are among the first near(v) of the list. Others may be there, too:
       a vertex that rises stays where it is in the lists of its neighbours.
A list has room for all neighbours of its vertex, so it moves, leaving a hole, only when the degree
grows. All lists are packed anew when holes and spare room have used up the space.

A round of a rise first reduces the near parts of the reached vertices' lists to those of the same
number. The following steps read only these, except for vertices that rise, whose lists are read
once. Which of two vertices of one number comes first is as good as random, so what depends on it is
computed without a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.pma.keys import HALF, LOW

from ...arrays import Array
from ...core.cpu import h_index_of
from ...views.simple import View
from ..types import Change

FALLEN = 1  # the queue of vertices that fell
QUEUED, FELL, LOOSE = 1, 2, 4  # marks
READS = 4  # entries of a row, read once, in the time of one of a list, read several times
SPARE = 4  # a list has room for a quarter more neighbours than there are, and for four
BLOCK = 32  # entries that are compared without a branch
ALIVE = np.int32(2**31 - 1)  # the layer of vertices that are reached and not evicted
SETTLED = np.int32(ALIVE - (1 << 20))  # layers from here to ALIVE: of rising vertices, temporarily
# Words of a state, int64[3]: the next layers behind and before all others; entries left to read.
BACK, FRONT, LEFT = range(3)


class Order(NamedTuple):
    """The order, and the lists: v's is entries[starts[v] : starts[v] + support[v]]."""

    numbers: Array  # int32[n], as are the next four
    layer: Array
    after: Array
    support: Array
    near: Array
    starts: Array  # int64[n]
    entries: Array  # uint32


def order(
    rows: View, numbers: Array, layer: Array, after: Array, support: Array
) -> tuple[int, Lists]:
    """Fill in `layer`, `after` and `support`, int32[n], for given core numbers. Returns the first
    layer that is not used, and what `follow` keeps."""
    lists = Lists(rows, numbers, support)
    return int(_order(lists.with_order(numbers, layer, after, support))), lists


def begin(*given: Any) -> Callable[[], bool]:
    """`follow`, to be called later."""
    return partial(follow, *given)


def follow(
    change: Change, numbers: Array, layer: Array, after: Array, support: Array, state: Array,
    lists: Lists,
) -> bool:  # fmt: skip
    """Bring all arrays from the state before to that after. False if that would read more entries
    than state[LEFT]; the arrays are then useless. state: see BACK."""
    rows, n = change.after, change.after.num_rows
    held = numbers, layer, after, support
    # First, since `lists.follow` makes no list longer than a row after the batch.
    _count_deleted(change.deleted, n, lists.with_order(*held))
    lists.follow(rows, change.inserted, support)
    order, room = lists.with_order(*held), (lists.queues, lists.marks)
    _count_inserted(change.inserted, order)
    num_fallen = _fall(change.deleted, rows.indptr, rows.indices, order, *room, state)
    _rise(lists.queues[FALLEN, :num_fallen], change.inserted, order, *room, state)
    return bool(state[LEFT] >= 0)


@compiled
def _order(order: Order) -> int:
    numbers, layer, after, support, near, starts, entries = order
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
    return _waves(evicted, last, 0, 0, order)


@compiled
def _fall(
    deleted: Array, indptr: Array, indices: Array, order: Order, queues: Array, marks: Array,
    state: Array,
) -> int:  # fmt: skip
    """Let vertices that lost support fall to new places in the order. Returns how many are then in
    queues[FALLEN]."""
    numbers, layer, after, support, near, starts, entries = order
    n = len(indptr) - 1
    queue, fallen, loose = queues[0], queues[FALLEN], queues[2]
    # Lists that vertices have fallen out of, or to the number of, are tidied at the end; until then
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
            if number < old or not _is_after(np.int64(w), u, numbers, layer):
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
    """The number that u falls to, and how many neighbours, then in its list, have no lower one."""
    new = numbers[u] - 1  # the most that it can be, and mostly is
    count = _collect(u, new, indptr, indices, numbers, starts, entries)
    if count < new:
        row = indices[indptr[u] : indptr[u + 1]]
        new, _ = h_index_of(row, numbers, new, np.empty(new + 1, np.int32))
        count = _collect(u, new, indptr, indices, numbers, starts, entries)
    return new, count


@compiled
def _tidy_all(
    loose: Array, count: int, held: Array, numbers: Array, near: Array, starts: Array,
    entries: Array,
) -> None:  # fmt: skip
    for i in range(count):
        u = np.int64(loose[i])
        _tidy(u, held[u], numbers, near, starts, entries)


@compiled
def _tidy(u: int, count: int, numbers: Array, near: Array, starts: Array, entries: Array) -> None:
    """Reduce u's list, of `count` entries, to those of no lower number, those of its own first."""
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


# Lists --------------------------------------------------------------------------------------------


class Lists:
    """The lists. `near`, int32[n], is as in invariant 4. `queues` and `marks` are scratch: four
    lists of vertices, and a byte for each vertex, zero between updates."""

    def __init__(self, rows: View, numbers: Array, support: Array) -> None:
        """Make them, and fill in `support`, int32[n]."""
        self._place(rows)
        by_rows(
            _fill, rows.indptr, rows.indptr, rows.indices, numbers, support, self.starts,
            self.entries,
        )  # fmt: skip
        self.near = support.copy()
        self._make_scratch(len(support))

    def with_order(self, numbers: Array, layer: Array, after: Array, support: Array) -> Order:
        """The order of the vertices, and where the lists are now."""
        return Order(numbers, layer, after, support, self.near, self.starts, self.entries)

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
    """An array with zeros appended, of n entries or more, since n often grows batch by batch."""
    if len(array) >= n:
        return array
    return np.concatenate((array, np.zeros(n + n // SPARE - len(array), array.dtype)))


@compiled
def _fill(
    first: int, last: int, indptr: Array, indices: Array, numbers: Array, support: Array,
    starts: Array, entries: Array,
) -> None:  # fmt: skip
    for u in range(first, last):
        support[u] = _collect(u, numbers[u], indptr, indices, numbers, starts, entries)


@compiled
def _collect(
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
    """Move lists that are too small behind all others. Returns the space then used; −1 if there is
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
def _put_in(
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
def _count_deleted(deleted: Array, n: int, order: Order) -> None:
    """Remove deleted edges from the counts and lists of their ends, by the order before."""
    numbers, layer, after, support, near, starts, entries = order
    for i in range(len(deleted)):
        u, v = np.int64(deleted[i] >> HALF), np.int64(deleted[i] & LOW)
        if u < n:
            after[u] -= _is_after(v, u, numbers, layer)
            if numbers[v] >= numbers[u]:
                _take_out(u, v, support, near, starts, entries)


@compiled
def _count_inserted(inserted: Array, order: Order) -> None:
    """Add inserted edges to the counts and lists of their ends, by the order before."""
    numbers, layer, after, support, near, starts, entries = order
    for i in range(len(inserted)):
        u, v = np.int64(inserted[i] >> HALF), np.int64(inserted[i] & LOW)
        after[u] += _is_after(v, u, numbers, layer)
        if numbers[v] >= numbers[u]:
            _put_in(u, v, numbers[v] == numbers[u], support, near, starts, entries)


@compiled
def _is_after(w: int, u: int, numbers: Array, layer: Array) -> bool:
    """Whether w comes after u in the order."""
    if numbers[w] != numbers[u]:
        return numbers[w] > numbers[u]
    return layer[w] > layer[u] or (layer[w] == layer[u] and w > u)


# Rising -------------------------------------------------------------------------------------------


@compiled
def _rise(
    fallen: Array, inserted: Array, order: Order, queues: Array, marks: Array, state: Array
) -> None:
    """Rounds of rises, until no vertex has more after it than its number."""
    numbers, after = order.numbers, order.after
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
        total = _reach(reached, total, order, state)
        if state[LEFT] < 0:
            return
        last = _count(reached, total, evicted, order, state)
        state[BACK] = _waves(evicted, last, state[BACK], 0, order)
        total = _raise(reached, total, evicted, order, state)


@compiled
def _reach(reached: Array, total: int, order: Order, state: Array) -> int:
    """Let the `total` reached vertices pass all others of their number, and add those that then
    have more than their number after them. Returns the new total."""
    numbers, layer, after, _, near, starts, entries = order
    i = 0
    while i < total and state[LEFT] >= 0:
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
def _count(reached: Array, total: int, evicted: Array, order: Order, state: Array) -> int:
    """Put all reached vertices behind the others of their number. Lists those with no more than
    their number after them, to be evicted; returns how many."""
    numbers, layer, after, support, near, starts, entries = order
    for u in reached[:total]:
        layer[u] = ALIVE
    last = 0
    for i in range(total):
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
def _raise(reached: Array, total: int, queue: Array, order: Order, state: Array) -> int:
    """Raise the vertices that were not evicted to before all others of their new number. Those that
    still have too many after them remain in `reached`; returns how many."""
    numbers, layer, _, support, near, starts, entries = order
    rising = 0
    for u in reached[:total]:
        if layer[u] == ALIVE:
            reached[rising] = u
            rising += 1
    depth = _settle(reached[:rising], queue, order)
    for i in range(rising):
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
    """Bring the rising vertex u's list to its new number, and add u to the lists of those that have
    it already. Numbers are those before the round; rising vertices have layers from SETTLED on."""
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
            _put_in(np.int64(w), u, True, support, near, starts, entries)
    near[u] = to - start


@compiled
def _settle(rising: Array, queue: Array, order: Order) -> int:
    """Order the rising vertices so that each has at most its new number after it, on layers from
    SETTLED on, or stays ALIVE if that fails. Returns the number of layers."""
    numbers, layer, after = order.numbers, order.layer, order.after
    last = 0
    for u in rising:
        if after[u] <= numbers[u] + 1:
            layer[u] = SETTLED
            queue[last] = u
            last += 1
    return _waves(queue, last, SETTLED, 1, order) - SETTLED


@compiled
def _waves(queue: Array, last: int, wave: int, more: int, order: Order) -> int:
    """Place the `last` queued vertices, whose layer is `wave`, then ALIVE vertices with at most
    their number, and `more`, after them, each wave on a layer of its own. Each vertex passes those
    of its number that are later or not placed. Returns the first unused layer."""
    numbers, layer, after, _, near, starts, entries = order
    first = 0
    while first < last and wave < ALIVE - 1:
        end = last
        for i in range(first, end):
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
