"""Queries: edge, neighbours, membership.

Inside a mixed batch, neighbours are those at the query's place, its `limit`: see beside.py. Each
query is read-only and independent, so a chunk of queries is one thread's work.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...cpu.instructions import load_f64, load_i64, load_u64
from ...cpu.jit import ZERO, compiled, inlined
from ...pma.keys import HALF, LOW
from .addressing import (
    MARKER,
    Slot,
    View,
    advance,
    count_of,
    fence_of,
    first_at_or_after,
    lower_bound,
    move_values,
    prefetch_bytes,
    read_time,
    read_weight,
    segment_at,
    slots_until,
    write_value,
)
from .beside import BesideView, first_row, is_there, next_change, past

BLOCK = 32


@compiled
def find_edges(v: View, keys: Array, lo: int, hi: int, found: Array, to: Slot) -> None:
    """Edge queries lo … hi - 1, from what is stored: a block's walks first, their cache misses
    overlapping, its searches after. Weights and times of edges found go to the columns at `to`."""
    leaves = 1 << v.m
    p = np.empty(BLOCK, np.int64)
    for block in range(lo, hi, BLOCK):
        n = min(BLOCK, hi - block)
        p[:n] = 1
        for _ in range(v.m):
            for i in range(n):
                p[i] = 2 * p[i] + np.int64(keys[block + i] >= fence_of(v, p[i]))
        for i in range(n):
            prefetch_bytes(segment_at(v, p[i] - leaves)[0], min(8 << v.shift, 256))
        for i in range(n):
            at = segment_at(v, p[i] - leaves)
            count = count_of(v, p[i])
            position = lower_bound(v, at[0], count, keys[block + i])
            slot = advance(v, at, position)
            hit = position < count and load_u64(slot[0]) == keys[block + i]
            found[block + i] = hit
            if hit:
                weight, time = read_weight(v, slot), read_time(v, slot)
                write_value(v, advance(v, to, block + i), weight, time)


@compiled
def count_neighbors(
    v: View, firsts: Array, lo: int, hi: int, counts: Array, ranks: Array, positions: Array
) -> None:
    """How many stored neighbours queries lo … hi - 1 have, each from a key on to the end of its
    row, and where their slots begin; firsts: uint64, the keys."""
    for i in range(lo, hi):
        first = firsts[i]
        rank, position = first_at_or_after(v, first)
        ranks[i], positions[i] = rank, position
        counts[i] = slots_until(v, rank, position, first | MARKER)


@compiled
def read_neighbors(
    v: View, b: BesideView, limits: Array, firsts: Array, lo: int, hi: int, ranks: Array,
    positions: Array, indptr: Array, ids: Array, to: Slot,
) -> None:  # fmt: skip
    """Write the neighbours of queries lo … hi - 1, as many as `indptr` has room for, and their
    weights and times to the columns at `to`. In a mixed batch, `limits` has the queries' places;
    ranks and positions come from `count_neighbors`, of the same firsts."""
    leaves = 1 << v.m
    for i in range(lo, hi):
        rank, position, out, stop = ranks[i], positions[i], indptr[i], indptr[i + 1]
        limit = limits[i] if len(limits) else ZERO
        row, seen, end = first_row(b, ZERO, firsts[i], ZERO), ZERO, firsts[i] | MARKER
        while seen >= 0:
            seen, key, row = next_change(b, row, end, limit)
            while rank < leaves and out < stop:
                count, at = count_of(v, leaves + rank), segment_at(v, rank)
                here = lower_bound(v, at[0], count, key)
                n = min(here - position, stop - out)
                at = advance(v, at, position)
                for k in range(n):
                    ids[out + k] = np.uint32(load_u64(at[0] + k * 8) & LOW)
                move_values(v, advance(v, to, out), at, n)
                position, out = here, out + n
                if here < count:
                    break
                rank, position = rank + 1, 0
            if seen >= 0:
                position = past(v, rank, position, key)
                if is_there(b, seen):
                    ids[out] = np.uint32(key & LOW)
                    weight, time = load_f64(b.weight + 8 * seen), load_i64(b.time + 8 * seen)
                    write_value(v, advance(v, to, out), weight, time)
                    out += 1


@compiled
def scan_targets(
    v: View, targets: Array, first: int, last: int, found: Array, hit_query: Array,
    hit_source: Array,
) -> int:  # fmt: skip
    """Find in-edges without an in-neighbour store, by a scan of segments first … last - 1.

    targets: uint64, rising. found[i] becomes True where an edge goes into targets[i]. With room in
    hit_query and hit_source, every such edge is written there. Returns how many there are."""
    hits = ZERO
    for rank in range(first, last):
        at = segment_at(v, rank)[0]
        for position in range(count_of(v, (1 << v.m) + rank)):
            key = load_u64(at + position * 8)
            low = key & LOW
            i = np.searchsorted(targets, low)
            while i < len(targets) and targets[i] == low and low != MARKER:
                found[i] = True
                if hits < len(hit_query):
                    hit_query[hits] = i
                    hit_source[hits] = np.uint32(key >> HALF)
                hits += 1
                i += 1
    return hits


@compiled
def largest_vertex(v: View, first: int, last: int) -> int:
    """The largest vertex id in segments first … last - 1, as source or target; -1 if none."""
    leaves = 1 << v.m
    largest = np.int64(-1)
    for rank in range(first, last):
        at = segment_at(v, rank)[0]
        for position in range(count_of(v, leaves + rank)):
            key = load_u64(at + position * 8)
            target = key & LOW
            if target != MARKER:
                largest = max(largest, np.int64(target))
            largest = max(largest, np.int64(key >> HALF))
    return largest


@inlined
def _held(v: View, rank: int, before: int) -> int:
    """How many slots of a segment are older, markers included."""
    times, n = segment_at(v, rank)[2], ZERO
    for position in range(count_of(v, (1 << v.m) + rank)):
        n += np.int64(load_i64(times + position * 8) < before)
    return n


@compiled
def write_older(v: View, first: int, last: int, before: int, keys: Array, times: Array) -> int:
    """Write the keys and times of the edges of segments first … last - 1 that are older than
    `before`, markers left out. The arrays have room for one entry more than there are. Returns how
    many there are.

    A segment is looked at twice, the second time in the cache, so that those that hold none are
    skipped. No branch depends on a slot, since whether one is old enough is as good as random."""
    n = ZERO
    for rank in range(first, last):
        if not _held(v, rank, before):
            continue
        at = segment_at(v, rank)
        for position in range(count_of(v, (1 << v.m) + rank)):
            key, time = load_u64(at[0] + position * 8), load_i64(at[2] + position * 8)
            keys[n], times[n] = key, time
            n += np.int64(time < before) & np.int64((key & LOW) != MARKER)
    return n
