"""Truss decomposition by peeling on the CPU: the state, the levels, and `method="incidence"`.

Source: Wang and Cheng, "Truss decomposition in massive networks", PVLDB 5, 2012; in rounds: Kabir
and Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017. A level k peels the
edges whose support is k - 2 or less. Each takes its standing triangles with it, and edges that thus
come down to k - 2 are queued. Between levels the living edges are compacted and searched for the
least support, so that levels without edges cost nothing.

Tricks: one thread goes through the queue with plain subtractions, until so much is queued that
threads pay. These take what is queued then, a *round*, with atomic subtractions. An edge is
STANDING, also while it is queued, then GOING in its round, then GONE. That changes only between
rounds, so the result does not depend on how threads interleave. A triangle with several GOING edges
is taken by the one of smallest number. An edge's truss number is written when it is queued; its
support no longer matters then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.instructions import prefetch
from lpma.cpu.jit import compiled, inlined
from lpma.cpu.pieces import row_pieces
from lpma.cpu.threads import run_all

from ..arrays import Array, starts_of
from .incidence_cpu import Incidence

STANDING, GOING, GONE = range(3)
LARGE = 1 << 20  # triangles that are worth starting threads for
AHEAD = 16  # edges whose lists are prefetched before their turn
HELD = 64  # ends of triangles that a thread collects before it subtracts
QUEUED, DONE, LEVEL, LIVING, COUNTERS = range(5)


class Peeling(NamedTuple):
    """The state of a decomposition of m edges, numbered from 0."""

    support: Array  # int32[m]: of a living edge, its standing triangles
    fate: Array  # uint8[m]: STANDING, GOING or GONE
    truss: Array  # int32[m]
    queue: Array  # int32[m]: edges as they are peeled; QUEUED so far, DONE of them gone
    living: Array  # int32[m]: LIVING edges, of which some may have been queued since
    counters: Array  # int64[COUNTERS]; LEVEL is the support that is peeled, k - 2


def start(support: Array, until: int) -> Peeling:
    """All edges living; truss numbers are `until` for those never peeled. Takes over `support`."""
    m = len(support)
    return Peeling(
        support,
        np.zeros(m, np.uint8),
        np.full(m, until, np.int32),
        np.empty(m, np.int32),
        np.arange(m, dtype=np.int32),
        np.array([0, 0, 0, m], np.int64),
    )


def by_incidence(incidence: Incidence, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then."""
    state = start(incidence.support, until)
    while next_level(until, state):
        while _peel_alone(state, *incidence):
            one_round(_peel_round, state, *incidence)
    return state.truss


def one_round(kernel: Callable[..., Any], state: Peeling, *triangles: Any) -> None:
    """Call kernel(first, last, state, *triangles) over all edges that are queued, which then are
    GONE; if they have many triangles, in threads with about the same number each."""
    first, last = int(state.counters[DONE]), int(state.counters[QUEUED])
    going = state.queue[first:last]
    state.fate[going] = GOING
    work = starts_of(state.support[going] + 1)
    pieces = [(first + low, first + high) for low, high in row_pieces(work)]
    run_all(kernel, [(*piece, state, *triangles) for piece in pieces])
    state.fate[going] = GONE
    state.counters[DONE] = last


@compiled
def next_level(until: int, state: Peeling) -> bool:
    """Queue the living edges of least support. False if there are none, or if their truss number is
    `until` or more. REQUIRES: every queued edge is GONE."""
    support, fate, truss, queue, living, counters = state
    kept, first = 0, counters[DONE]
    last = first
    least = np.int64(until) - 2
    for e in living[: counters[LIVING]]:
        if fate[e] == GONE:
            continue
        living[kept] = e
        kept += 1
        if support[e] < least:
            least = np.int64(support[e])
            last = first
        if support[e] == least:
            queue[last] = e
            last += 1
    counters[LIVING] = kept
    if least == until - 2 or kept == 0:
        return False
    counters[LEVEL] = least
    counters[QUEUED] = last
    for e in queue[first:last]:
        truss[e] = least + 2
    return True


@compiled
def _peel_alone(
    state: Peeling, indptr: Array, indices: Array, found_starts: Array, found: Array,
    starts: Array, middle: Array, slot: Array, apart: Array,
) -> bool:  # fmt: skip
    """Go through the queue. False at its end; True if so much is queued that threads should take
    over."""
    support, fate, truss, queue, _, counters = state
    level = counters[LEVEL]
    place, queued = counters[DONE], counters[QUEUED]
    last = place
    while place < queued:
        if place == last:
            last = queued
            if _is_large(queue[place:last], support):
                break
        far = queue[min(place + AHEAD, queued - 1)]
        prefetch(found_starts.ctypes.data + 8 * far)
        prefetch(starts.ctypes.data + 8 * far)
        prefetch(middle.ctypes.data + 8 * far)
        prefetch(indices.ctypes.data + 4 * far)
        prefetch(support.ctypes.data + 4 * far)
        soon = queue[min(place + AHEAD // 2, queued - 1)]
        prefetch(found.ctypes.data + 4 * found_starts[soon])
        prefetch(slot.ctypes.data + 4 * starts[soon])
        prefetch(apart.ctypes.data + 2 * starts[soon])
        prefetch(indptr.ctypes.data + 8 * np.int64(indices[soon]))
        e = np.int64(queue[place])
        left = np.int64(support[e])  # triangles of e that stand; the lists have others, too
        row, of_uv = indptr[indices[e]], found_starts[e + 1] - found_starts[e]
        listed = of_uv + starts[e + 1] - starts[e]
        for k in range(listed if left > 0 else 0):
            f, g = _others(
                e, k, of_uv, row, found_starts[e], found, starts[e], middle[e], slot, apart
            )
            if fate[f] == GONE or fate[g] == GONE:
                continue
            for loser in (f, g):
                support[loser] -= 1
                if support[loser] == level:
                    truss[loser] = level + 2
                    queue[queued] = loser
                    queued += 1
            left -= 1
            if left == 0:
                break
        fate[e] = GONE
        place += 1
    counters[DONE], counters[QUEUED] = place, queued
    return place < queued


@inlined
def _others(
    e: int, k: int, of_uv: int, row: int, first_found: int, found: Array, start: int, middle: int,
    slot: Array, apart: Array,
) -> tuple[Any, Any]:  # fmt: skip
    """The two other edges of e's k-th triangle: see `incidence_cpu`. of_uv: in how many e is uv;
    row: where the row of v starts."""
    if k < of_uv:
        i = first_found + k
        return e - np.int64(found[i, 0]), row + np.int64(found[i, 1])
    i = start + k - of_uv
    other, distance = np.int64(slot[i]), np.int64(apart[i])
    return other, e + distance if i < middle else other - distance


@compiled
def _is_large(edges: Array, support: Array) -> bool:
    work = 0
    for e in edges[:LARGE]:
        work += support[e] + 1
    return work >= LARGE


@compiled
def _peel_round(
    first: int, last: int, state: Peeling, indptr: Array, indices: Array, found_starts: Array,
    found: Array, starts: Array, middle: Array, slot: Array, apart: Array,
) -> None:  # fmt: skip
    """Peel queue[first:last], a part of a round that many threads share."""
    support, fate, truss, queue, _, counters = state
    held = np.empty(HELD, np.int32)
    for place in range(first, last):
        e = np.int64(queue[place])
        count = 0
        row, of_uv = indptr[indices[e]], found_starts[e + 1] - found_starts[e]
        for k in range(of_uv + starts[e + 1] - starts[e]):
            f, g = _others(
                e, k, of_uv, row, found_starts[e], found, starts[e], middle[e], slot, apart
            )
            if takes(e, f, g, fate):
                if count > HELD - 2:
                    lose(held[:count], support, truss, queue, counters)
                    count = 0
                count = hold(f, fate, held, count)
                count = hold(g, fate, held, count)
        lose(held[:count], support, truss, queue, counters)


# These take the arrays one by one: passing the state would count references to all of them, in
# memory that threads share, for every triangle.


@compiled
def takes(e: int, f: int, g: int, fate: Array) -> bool:
    """Whether e, which is GOING, takes the triangle e, f, g with it: the triangle stands, and of
    its edges that are GOING e has the smallest number."""
    of_f, of_g = fate[f], fate[g]
    if of_f == GONE or of_g == GONE:
        return False
    return (of_f == STANDING or e < f) and (of_g == STANDING or e < g)


@compiled
def hold(e: int, fate: Array, held: Array, count: int) -> int:
    """Add an edge that is STANDING to those that lose a triangle, together, since an atomic
    operation waits for all writes before it. Returns how many there are."""
    if fate[e] == STANDING:
        held[count] = e
        count += 1
    return count


@compiled
def lose(edges: Array, support: Array, truss: Array, queue: Array, counters: Array) -> None:
    """Take a triangle from each of the edges, and queue those that come down to the level. Many
    threads may call at once."""
    level = counters[LEVEL]
    for e in edges:
        if fetch_add(support, e, -1) == level + 1:
            truss[e] = level + 2
            queue[fetch_add(counters, QUEUED, 1)] = e
