"""Queries: edge, neighbours, membership.

Inside a mixed batch, neighbours are those at the query's place, its `limit`: see beside.py. Each
query is read-only and independent, so a chunk of queries is one thread's work.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...cpu.addresses import data_if_any
from ...cpu.instructions import load_f64, load_i64, load_u64, move_bytes, store_u32
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
    prefetch_bytes,
    read_time,
    read_weight,
    segment_at,
    slots_until,
)
from .beside import BesideView, first_row, is_there, next_change, past
from .export import write_values

BLOCK = 32


@compiled
def find_edges(
    v: View, keys: Array, lo: int, hi: int, found: Array, weights: int, times: int
) -> None:
    """Edge queries lo … hi - 1, from what is stored: a block's walks first, their cache misses
    overlapping, its searches after. Of edges found, weights and times are written to columns given
    by id(), 0 for none."""
    leaves = 1 << v.m
    weights, times = data_if_any(weights), data_if_any(times)
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
                write_values(v, weights, times, block + i, weight, time)


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
    v: View, lo: int, hi: int, ranks: Array, positions: Array, indptr: Array, ids: Array,
    weights: int, times: int,
) -> None:  # fmt: skip
    """Write the stored neighbours of queries lo … hi - 1, and their weights and times to columns
    given by id(), 0 for none. ranks and positions come from `count_neighbors`."""
    to = (ids.ctypes.data, data_if_any(weights), data_if_any(times))
    for i in range(lo, hi):
        rank, position, out = ranks[i], positions[i], indptr[i]
        while out < indptr[i + 1]:
            n = min(count_of(v, (1 << v.m) + rank) - position, indptr[i + 1] - out)
            _copy_slots(v, rank, position, n, to, out)
            out += n
            rank, position = rank + 1, 0


@compiled
def read_seen(
    v: View, b: BesideView, firsts: Array, limits: Array, lo: int, hi: int, ranks: Array,
    positions: Array, indptr: Array, ids: Array, weights: int, times: int,
) -> None:  # fmt: skip
    """As `read_neighbors`, of neighbours at the queries' limits; firsts: as in
    `count_neighbors`."""
    leaves = 1 << v.m
    to = (ids.ctypes.data, data_if_any(weights), data_if_any(times))
    for i in range(lo, hi):
        first, rank, position, out = firsts[i], ranks[i], positions[i], indptr[i]
        row, seen, end = first_row(b, ZERO, first, ZERO), ZERO, first | MARKER
        while seen >= 0:
            seen, key, row = next_change(b, row, end, limits[i])
            while rank < leaves:
                count = count_of(v, leaves + rank)
                here = lower_bound(v, segment_at(v, rank)[0], count, key)
                _copy_slots(v, rank, position, here - position, to, out)
                position, out = here, out + here - position
                if here < count:
                    break
                rank, position = rank + 1, 0
            if seen >= 0:
                position = past(v, rank, position, key)
                if is_there(b, seen):
                    store_u32(to[0] + 4 * out, np.uint32(key & LOW))
                    weight, time = load_f64(b.weight + 8 * seen), load_i64(b.time + 8 * seen)
                    write_values(v, to[1], to[2], out, weight, time)
                    out += 1


@inlined
def _copy_slots(v: View, rank: int, position: int, n: int, to: Slot, out: int) -> None:
    """Copy n slots of a segment from a position on, to rows from `out` on of columns by address:
    ids, weights, times, 0 for none."""
    at = advance(v, segment_at(v, rank), position)
    for k in range(n):
        store_u32(to[0] + 4 * (out + k), np.uint32(load_u64(at[0] + k * 8) & LOW))
    if to[1]:
        move_bytes(to[1] + out * v.weight_bytes, at[1], n * v.weight_bytes)
    if to[2]:
        move_bytes(to[2] + out * 8, at[2], n * 8)


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
