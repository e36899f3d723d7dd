"""Reading a store on the CPU: the queries of protocol.Reading, first as the backend is asked, then
their kernels. export.py copies whole stores.

`beside` is the batch whose queries they are, if it is mixed: then neighbours are those at the
query's place, its `limit` (beside.py). Each query is read-only and independent, so a chunk of
queries is one thread's work.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...cpu.instructions import load_f64, load_i64, load_u64, store_u32
from ...cpu.jit import ZERO, compiled, inlined
from ...cpu.threads import cuts, run_all
from ...pma.keys import HALF, LOW, keys_of
from . import hops
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
from .beside import (
    NOTHING_BESIDE,
    Beside,
    BesideView,
    first_row,
    is_there,
    next_change,
    past,
    put_seen,
)
from .export import SEGMENTS_PER_TASK, into, starts_of, value_columns
from .segments import Segments

QUERIES_PER_TASK = 256
BLOCK = 32
UNREAD = np.empty(0, np.int64)  # limits where there is no mixed batch


def find_edges(
    segments: Segments, beside: Beside | None, src: Array, dst: Array | None, limits: Array | None
) -> tuple[Array, Array | None, Array | None]:
    wanted = keys_of(src, LOW if dst is None else dst)
    found, *columns = find_keys(segments, wanted)
    if beside is not None:
        view, to = into(segments, None, *columns)
        seen = view, beside.view, wanted, limits
        pieces = cuts(len(wanted), 4 * QUERIES_PER_TASK, 4)
        run_all(put_seen, [(*seen, *piece, found, to) for piece in pieces])
    return found, *columns


def find_keys(segments: Segments, keys: Array) -> tuple[Array, Array | None, Array | None]:
    n = len(keys)
    found, columns = np.empty(n, np.bool_), value_columns(segments, n, make=np.zeros)
    view, to = into(segments, None, *columns)
    pieces = cuts(n, 4 * QUERIES_PER_TASK, 4)
    run_all(_find_edges, [(view, keys, *piece, found, to) for piece in pieces])
    return found, *columns


def count_neighbors(
    segments: Segments, beside: Beside | None, vertices: Array, limits: Array | None
) -> Array:
    return _find_neighbors(segments, beside, vertices.astype(np.uint64) << HALF, limits)[0]


def _find_neighbors(
    segments: Segments, beside: Beside | None, firsts: Array, limits: Array | None
) -> list[Array]:
    """(counts, ranks, positions), int64[q] each: see _count_neighbors."""
    n = len(firsts)
    found = [np.empty(n, np.int64) for _ in range(3)]
    run_all(
        _count_neighbors,
        [(segments.view, firsts, lo, hi, *found) for lo, hi in cuts(n, QUERIES_PER_TASK, 4)],
    )
    if beside is not None and limits is not None:
        found[0] += beside.degrees.since(firsts >> HALF, limits)
    return found


def neighbors(
    segments: Segments, beside: Beside | None, vertices: Array, limits: Array | None, values: bool
) -> tuple[Array, Array, Array | None, Array | None]:
    firsts = vertices.astype(np.uint64) << HALF
    found = _find_neighbors(segments, beside, firsts, limits)
    return _read(segments, beside, firsts, limits, found, values)


def neighbors_from(
    segments: Segments, vertex: int, first: int, most: int
) -> tuple[Array, Array | None, Array | None]:
    firsts = np.array([vertex << 32 | first], np.uint64)
    found = _find_neighbors(segments, None, firsts, None)
    found[0][0] = min(int(found[0][0]), most)
    return _read(segments, None, firsts, None, found, True)[1:]


def _read(
    segments: Segments, beside: Beside | None, firsts: Array, limits: Array | None,
    found: list[Array], values: bool,
) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
    """What `neighbors` gives. found: as `_find_neighbors` gives it."""
    counts, *places = found
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    n = int(indptr[-1])
    ids, columns = np.empty(n, np.uint32), value_columns(segments, n, values)
    view, to = into(segments, ids, *columns)
    of, pieces = (view, *_seen(beside, limits), firsts), cuts(len(counts), QUERIES_PER_TASK, 4)
    run_all(_read_neighbors, [(*of, *piece, *places, indptr, to) for piece in pieces])
    return indptr, ids, *columns


def reach(
    segments: Segments, beside: Beside | None, vertices: Array, steps: Array,
    limits: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    return hops.reach(segments.view, *_seen(beside, limits), vertices, steps)


def _seen(beside: Beside | None, limits: Array | None) -> tuple[BesideView, Array]:
    """What kernels get of a mixed batch, and the queries' places in it; nothing outside of one."""
    if beside is None or limits is None:
        return NOTHING_BESIDE, UNREAD
    return beside.view, limits


def has_in_edges(segments: Segments, targets: Array) -> Array:
    targets, found = targets.astype(np.uint64), np.zeros(len(targets), np.bool_)
    nothing = found, np.empty(0, np.int64), np.empty(0, np.uint32)
    pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
    run_all(_scan_targets, [(segments.view, targets, *piece, *nothing) for piece in pieces])
    return found


def scan_targets(segments: Segments, targets: Array) -> tuple[Array, Array]:
    """Room is made for every slot, of which untouched pages take no memory."""
    targets, starts = targets.astype(np.uint64), starts_of(segments)
    found = np.zeros(len(targets), np.bool_)

    def piece(first: int, last: int) -> tuple[Array, Array]:
        room = int(starts[last] - starts[first])
        which, source = np.empty(room, np.int64), np.empty(room, np.uint32)
        n = _scan_targets(segments.view, targets, first, last, found, which, source)
        return which[:n], source[:n]

    which, source = zip(*run_all(piece, cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)), strict=True)
    return np.concatenate(which), np.concatenate(source)


def largest_vertex(segments: Segments) -> int:
    pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
    return max(run_all(_largest_vertex, [(segments.view, *piece) for piece in pieces]))


def older(segments: Segments, before: int) -> tuple[Array, Array]:
    """(keys, times) of the edges older than a time. Room is made as in `scan_targets`: counting
    first took longer."""
    starts = starts_of(segments)

    def piece(first: int, last: int) -> tuple[Array, Array]:
        room = int(starts[last] - starts[first]) + 1
        keys, times = np.empty(room, np.uint64), np.empty(room, np.int64)
        n = _write_older(segments.view, first, last, before, keys, times)
        return keys[:n], times[:n]

    pieces = run_all(piece, cuts(1 << segments.m, SEGMENTS_PER_TASK, 4))
    keys, times = zip(*pieces, strict=True)
    return np.concatenate(keys), np.concatenate(times)


@compiled
def _find_edges(v: View, keys: Array, lo: int, hi: int, found: Array, to: Slot) -> None:
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
def _count_neighbors(
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
def _read_neighbors(
    v: View, b: BesideView, limits: Array, firsts: Array, lo: int, hi: int, ranks: Array,
    positions: Array, indptr: Array, to: Slot,
) -> None:  # fmt: skip
    """Write the neighbours of queries lo … hi - 1, as many as `indptr` has room for, with their
    weights and times, to the columns at `to`, of which the first is of uint32. In a mixed batch,
    `limits` has the queries' places; ranks and positions come from `_count_neighbors`, of the same
    firsts."""
    leaves = 1 << v.m
    for i in range(lo, hi):
        rank, position, out, stop = ranks[i], positions[i], indptr[i], indptr[i + 1]
        limit = limits[i] if len(limits) else ZERO
        row, seen, end = first_row(b, ZERO, firsts[i], ZERO), ZERO, firsts[i] | MARKER
        while seen >= 0:
            seen, key, row = next_change(b, row, end, limit)
            while rank < leaves and out < stop:
                count, at = count_of(v, leaves + rank), segment_at(v, rank)
                here = min(count, position + stop - out)
                if seen >= 0:
                    here = lower_bound(v, at[0], count, key)
                n = here - position
                at = advance(v, at, position)
                for k in range(n):
                    store_u32(to[0] + 4 * (out + k), np.uint32(load_u64(at[0] + k * 8) & LOW))
                move_values(v, advance(v, to, out), at, n)
                position, out = here, out + n
                if here < count:
                    break
                rank, position = rank + 1, 0
            if seen >= 0:
                position = past(v, rank, position, key)
                if is_there(b, seen):
                    store_u32(to[0] + 4 * out, np.uint32(key & LOW))
                    weight, time = load_f64(b.weight + 8 * seen), load_i64(b.time + 8 * seen)
                    write_value(v, advance(v, to, out), weight, time)
                    out += 1


@compiled
def _scan_targets(
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
def _largest_vertex(v: View, first: int, last: int) -> int:
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
def _count_older(v: View, rank: int, before: int) -> int:
    """How many slots of a segment are older, markers included."""
    times, n = segment_at(v, rank)[2], ZERO
    for position in range(count_of(v, (1 << v.m) + rank)):
        n += np.int64(load_i64(times + position * 8) < before)
    return n


@compiled
def _write_older(v: View, first: int, last: int, before: int, keys: Array, times: Array) -> int:
    """Write the keys and times of the edges of segments first … last - 1 that are older than
    `before`, markers left out. The arrays have room for one entry more than there are. Returns how
    many there are.

    A segment is looked at twice, the second time in the cache, so that those that hold none are
    skipped. No branch depends on a slot, since whether one is old enough is as good as random."""
    n = ZERO
    for rank in range(first, last):
        if not _count_older(v, rank, before):
            continue
        at = segment_at(v, rank)
        for position in range(count_of(v, (1 << v.m) + rank)):
            key, time = load_u64(at[0] + position * 8), load_i64(at[2] + position * 8)
            keys[n], times[n] = key, time
            n += np.int64(time < before) & np.int64((key & LOW) != MARKER)
    return n
