"""Queries: edge, neighbours, membership, each answered as of its place in the batch.

The slots of one key are a *run*: at most one stored edge and, inside a mixed batch, its versions
by rising seq. `run_state` folds the versions whose place is before the query's `limit`; outside
a mixed batch every run is one slot and there is nothing to fold. Each query is read-only and
independent, so a chunk of queries is one thread's work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...cpu.addresses import data_if_any
from ...cpu.instructions import load_u32, load_u64, move_bytes
from ...cpu.jit import compiled, inlined
from .export import write_values
from .fold import apply_operation
from .memory import (
    HALF,
    LOW,
    MARKER,
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
from .rows import BatchView

Array = npt.NDArray[Any]
BLOCK = 32


@inlined
def run_state(
    v: View, batch: BatchView, rank: int, position: int, limit: int
) -> tuple[bool, float, int, int, int]:
    """The state, before place `limit`, of the key whose run starts at (rank, position):
    (present, weight, time) and where the next run starts."""
    leaves = 1 << v.m
    slot = advance(v, segment_at(v, rank), position)
    if v.seq_bytes == 0:
        position += 1
        while rank < leaves and position >= count_of(v, leaves + rank):
            rank, position = rank + 1, 0
        return True, read_weight(v, slot), read_time(v, slot), rank, position
    key = load_u64(slot[0])
    marker = (key & LOW) == MARKER
    present, weight, time = False, 0.0, 0
    while True:
        slot = advance(v, segment_at(v, rank), position)
        if load_u64(slot[0]) != key:
            break
        seq = np.int64(load_u32(slot[3]))
        if seq == 0:
            present, weight, time = True, read_weight(v, slot), read_time(v, slot)
        elif seq <= limit:
            present, weight, time, _ = apply_operation(
                v, batch, seq - 1, marker, present, weight, time
            )
        position += 1
        while rank < leaves and position >= count_of(v, leaves + rank):
            rank, position = rank + 1, 0
        if rank == leaves:
            break
    return present, weight, time, rank, position


@compiled
def find_edges(
    v: View,
    batch: BatchView,
    keys: Array,
    limits: Array,
    lo: int,
    hi: int,
    found: Array,
    weights: int,
    times: int,
) -> None:
    """Edge queries lo … hi - 1 of a mixed batch. Of those found, weights and times are written to
    columns given by id(), 0 for none."""
    leaves = 1 << v.m
    weights, times = data_if_any(weights), data_if_any(times)
    for i in range(lo, hi):
        found[i] = False
        rank, position = first_at_or_after(v, keys[i])
        if rank == leaves or load_u64(segment_at(v, rank)[0] + position * 8) != keys[i]:
            continue
        present, weight, time, _, _ = run_state(v, batch, rank, position, limits[i])
        if present:
            found[i] = True
            write_values(v, weights, times, i, weight, time)


@compiled
def find_stored_edges(
    v: View, keys: Array, lo: int, hi: int, found: Array, weights: int, times: int
) -> None:
    """Edge queries lo … hi - 1 outside a mixed batch: a block's walks first, their cache
    misses overlapping, its searches after."""
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
    v: View,
    batch: BatchView,
    vertices: Array,
    limits: Array,
    lo: int,
    hi: int,
    counts: Array,
    ranks: Array,
    positions: Array,
) -> None:
    """How many neighbours queries lo … hi - 1 will answer, and where the first slot of each
    vertex is; vertices: uint64."""
    leaves = 1 << v.m
    for i in range(lo, hi):
        first = vertices[i] << HALF
        rank, position = first_at_or_after(v, first)
        ranks[i], positions[i] = rank, position
        if v.seq_bytes == 0:
            counts[i] = slots_until(v, rank, position, first | MARKER)
            continue
        n = 0
        while rank < leaves:
            key = load_u64(segment_at(v, rank)[0] + position * 8)
            if key >= first | MARKER:
                break
            present, _, _, rank, position = run_state(v, batch, rank, position, limits[i])
            n += 1 if present else 0
        counts[i] = n


@compiled
def count_neighbors_from(
    v: View, first: int, most: int, counts: Array, ranks: Array, positions: Array
) -> None:
    """Outside a mixed batch: how many slots, `most` at the most, a row has from the key `first` on,
    and where they begin: element 0 of each array, as `count_neighbors` writes them."""
    rank, position = first_at_or_after(v, np.uint64(first))
    ranks[0], positions[0] = rank, position
    counts[0] = min(slots_until(v, rank, position, np.uint64(first) | MARKER), most)


@compiled
def read_neighbors(
    v: View,
    batch: BatchView,
    limits: Array,
    lo: int,
    hi: int,
    ranks: Array,
    positions: Array,
    indptr: Array,
    ids: Array,
    weights: int,
    times: int,
) -> None:
    """Write the neighbours of queries lo … hi - 1, and their weights and times to columns given by
    id(), 0 for none. ranks and positions come from `count_neighbors`."""
    weights, times = data_if_any(weights), data_if_any(times)
    for i in range(lo, hi):
        rank, position = ranks[i], positions[i]
        out = indptr[i]
        if v.seq_bytes == 0:
            _copy_slots(v, rank, position, out, indptr[i + 1], ids, weights, times)
            continue
        while out < indptr[i + 1]:
            key = load_u64(segment_at(v, rank)[0] + position * 8)
            present, weight, time, rank, position = run_state(v, batch, rank, position, limits[i])
            if not present:
                continue
            ids[out] = np.uint32(key & LOW)
            write_values(v, weights, times, out, weight, time)
            out += 1


@inlined
def _copy_slots(
    v: View, rank: int, position: int, out: int, stop: int, ids: Array, weights: int, times: int
) -> None:
    """Outside a mixed batch every slot is an edge: copy those from (rank, position) on to rows
    out … stop - 1."""
    while out < stop:
        at = advance(v, segment_at(v, rank), position)
        n = min(count_of(v, (1 << v.m) + rank) - position, stop - out)
        for k in range(n):
            ids[out + k] = np.uint32(load_u64(at[0] + k * 8) & LOW)
        if weights:
            move_bytes(weights + out * v.weight_bytes, at[1], n * v.weight_bytes)
        if times:
            move_bytes(times + out * 8, at[2], n * 8)
        out += n
        rank, position = rank + 1, 0


@compiled
def scan_targets(
    v: View,
    batch: BatchView,
    targets: Array,
    limits: Array,
    first: int,
    last: int,
    found: Array,
    hit_query: Array,
    hit_source: Array,
) -> int:
    """Find in-edges without an in-neighbour store, by a scan of segments first … last - 1.

    targets: uint64, rising. found[i] becomes True where an edge into targets[i] is present
    before limits[i]. With room in hit_query and hit_source, every such edge is written there.
    Returns how many there are."""
    leaves = 1 << v.m
    hits = 0
    before = np.uint64(0)
    known = False
    for rank in range(first - 1, -1, -1):  # the key just before this range, if any
        if count_of(v, leaves + rank):
            before = load_u64(segment_at(v, rank)[0] + (count_of(v, leaves + rank) - 1) * 8)
            known = True
            break
    for rank in range(first, last):
        at = segment_at(v, rank)[0]
        for position in range(count_of(v, leaves + rank)):
            key = load_u64(at + position * 8)
            if known and key == before:
                continue
            before, known = key, True
            low = key & LOW
            i = np.searchsorted(targets, low)
            while i < len(targets) and targets[i] == low and low != MARKER:
                if run_state(v, batch, rank, position, limits[i])[0]:
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
