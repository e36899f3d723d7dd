"""The mover: carries out a plan's windows, and nothing else moves an edge between segments.

A leaf window is merged in place with the operations that fall into it. A larger window is
gathered: its segments, merged with its operations in key order, go to a scratch buffer; then they
are spread evenly over those of its segments that are there (layout.py), number k of n getting
elements k*T//n … (k+1)*T//n - 1 of T.
Fences inside the window become the first keys of their segments; an empty segment takes the fence
of its successor, so nothing is located into it. The first fence of a window never changes: its
neighbours rely on it.

Windows of a round are disjoint and run on any thread. One too large for a thread is gathered
and spread in pieces, whose places in the buffer follow from the counts alone.

Requires: scratch for every window (`NumbaBackend.reserve`), allocated before the first write.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ...arrays import Array
from ...cpu.calls import ByAddress, record_type
from ...cpu.instructions import GROUP, load_u64, ones, prefetch, trailing_zeros
from ...cpu.jit import ZERO, compiled, inlined
from ..values import DELETE, INSERT, SKIP, WRITE
from .addressing import (
    EVERY,
    Slot,
    View,
    advance,
    copy_slot,
    copy_slots,
    count_of,
    expand_slots,
    fence_of,
    heap_number,
    move_slots,
    prefetch_bytes,
    prefetch_values,
    segment_at,
    set_count,
    set_fence,
)
from .batch_view import (
    BatchView,
    Leaves,
    Rows,
    brings_columns,
    get,
    prefetch_operation,
    row_action,
    row_place,
    row_position,
)
from .fold import append_plain, insert_run, is_plain, write_run
from .rebalance import DELETED, HI, LAYER, LO, MEMBERS, ROLLED, WINDOW
from .segments import LAST_FENCE

MASKED = 64  # slots of a leaf, a bit each in an integer, at most
AHEAD = 6  # windows between prefetching a leaf and moving it
SPARSE = 4  # from this many segments per touched leaf on, leaves take in few operations
WINDOWS_AHEAD, FEW_LAYERS = 2, 3
PREFETCHED = 64  # slots of a leaf, at most
COUNTS_AHEAD = 24  # windows between asking for a count and writing it
MANY = 16  # segments per touched leaf up to which all windows are summed


@inlined
def merge_range(
    v: View, batch: BatchView, rank: int, count: int, rows: Rows, lo: int, hi: int, out: Slot
) -> int:
    """Merge a segment's `count` slots with rows lo … hi - 1 into `out`, which does not overlap.
    Returns the slots written."""
    at = segment_at(v, rank)
    inserts, marked, deletes = ZERO, ZERO, False
    for row in range(lo, hi):
        action = row_action(rows, row)
        inserted = np.int64(action == INSERT)
        marked |= inserted << (row_position(rows, row) + inserts)
        inserts += inserted
        deletes |= action == DELETE
    total = count + inserts
    if deletes or not GROUP <= total <= MASKED:
        return _merge_blocks(v, batch, at, count, rows, lo, hi, out)
    _copy_around(v, out, at, total, marked)
    if is_plain(batch):
        append_plain(v, batch, rows, lo, hi, out)
        return total
    inserts = 0
    for row in range(lo, hi):
        action = row_action(rows, row)
        to = advance(v, out, row_position(rows, row) + inserts)
        if action == INSERT:
            insert_run(v, batch, rows, row, hi, to)
            inserts += 1
        elif action == WRITE:
            write_run(v, batch, rows, row, hi, to, to)
    return total


@inlined
def _copy_around(v: View, to: Slot, source: Slot, total: int, marked: int) -> None:
    """Fill the unmarked ones of slots 0 … total - 1 from `source`, in order; bit k marks slot k. A
    GROUP at a time, without a branch on where the marks are; the last one overlaps the one before,
    so that nothing is written behind."""
    k = 0
    while k < total:
        k = min(k, total - GROUP)
        before = k - ones(marked & ((1 << k) - 1))
        expand_slots(v, advance(v, to, k), advance(v, source, before), ~(marked >> k) & EVERY)
        k += GROUP


@inlined
def _merge_blocks(
    v: View, batch: BatchView, at: Slot, count: int, rows: Rows, lo: int, hi: int,
    out: Slot,
) -> int:  # fmt: skip
    """As merge_range, but block by block of what lies between two operations: for any number of
    them."""
    done, written = 0, 0
    for row in range(lo, hi):
        action = row_action(rows, row)
        if action == SKIP:
            continue
        position = row_position(rows, row)
        if position > done:
            copy_slots(v, advance(v, out, written), advance(v, at, done), position - done)
            written += position - done
            done = position
        to = advance(v, out, written)
        if action == INSERT:
            insert_run(v, batch, rows, row, hi, to)
            written += 1
            continue
        if action == WRITE:
            copy_slot(v, to, advance(v, at, done), 0, 0)
            write_run(v, batch, rows, row, hi, to, to)
            written += 1
        done += 1
    if count > done:
        copy_slots(v, advance(v, out, written), advance(v, at, done), count - done)
        written += count - done
    return written


@inlined
def merge_leaf(
    v: View, batch: BatchView, p: int, rows: Rows, lo: int, hi: int, deleted: bool,
    scratch: Slot,
) -> None:  # fmt: skip
    """Apply rows lo … hi - 1 within one leaf window, which has the room."""
    rank = p - (1 << v.m)
    count = count_of(v, p)
    at = segment_at(v, rank)
    if deleted or not GROUP <= 1 << v.shift <= MASKED:
        written = _merge_blocks(v, batch, at, count, rows, lo, hi, scratch)
        move_slots(v, at, scratch, written)
        set_count(v, p, written)
        return
    plain = is_plain(batch)
    inserts, marked = ZERO, ZERO
    for row in range(lo, hi):
        action = row_action(rows, row)
        inserted = np.int64(action == INSERT)
        marked |= inserted << (row_position(rows, row) + inserts)
        inserts += inserted
        if not plain and action == WRITE:
            to = advance(v, at, row_position(rows, row))
            write_run(v, batch, rows, row, hi, to, to)
    if inserts:
        _open_gaps(v, at, trailing_zeros(marked), count + inserts, marked, scratch)
        set_count(v, p, count + inserts)
    if plain:
        append_plain(v, batch, rows, lo, hi, at)
        return
    inserts = ZERO
    for row in range(lo, hi):
        if row_action(rows, row) == INSERT:
            to = advance(v, at, row_position(rows, row) + inserts)
            insert_run(v, batch, rows, row, hi, to)
            inserts += 1


@inlined
def _open_gaps(v: View, at: Slot, first: int, total: int, marked: int, scratch: Slot) -> None:
    """Move slots up, in order, to the unmarked ones of `total`; slot `first` is the first marked,
    bit k marks slot k.
    A GROUP at a time, without a branch on where the gaps are, which nothing could predict. By way
    of `scratch`, because a load that overlaps a store just made waits for it."""
    first_group, groups = first // GROUP, (total - 1) // GROUP + 1
    source = first_group * GROUP
    for group in range(first_group, groups):
        k = group * GROUP
        stored = ((1 << min(total - k, GROUP)) - 1) & ~(marked >> k)
        expand_slots(v, advance(v, scratch, k), advance(v, at, source), stored)
        source += ones(stored)
    for group in range(first_group, groups):
        k = group * GROUP
        expand_slots(v, advance(v, at, k), advance(v, scratch, k), EVERY)


@compiled
def sum_window(v: View, w: int, layer: int) -> None:
    """Make the counts inside window w the sums of their halves, leaves being right."""
    for up in range(1, layer + 1):
        for inner in range(w << (layer - up), (w + 1) << (layer - up)):
            set_count(v, inner, count_of(v, 2 * inner) + count_of(v, 2 * inner + 1))


@compiled
def sum_upward(v: View, ranks: Array, n: int, around: Array) -> None:
    """Make the counts of all windows around these n leaves the sums of their halves. `around` is
    room for as many windows.

    If a batch touches a good part of the leaves, all counts are summed anew. That is one pass
    through memory, window by window downwards, and takes a nanosecond per window; following the
    touched leaves upward takes 25, because the cache lines lie anywhere."""
    if n * MANY > 1 << v.m:
        sum_window(v, 1, v.m)
        return
    for i in range(n):
        around[i] = (1 << v.m) + ranks[i]
    for _ in range(v.m):
        up = 0
        for i in range(n):
            if i + COUNTS_AHEAD < n:
                prefetch(v.counts + (around[i + COUNTS_AHEAD] >> 1) * 8)
            w = around[i] >> 1
            if up == 0 or around[up - 1] != w:
                around[up] = w
                up += 1
                set_count(v, w, count_of(v, 2 * w) + count_of(v, 2 * w + 1))
        n = up


@compiled
def gather(
    v: View,
    batch: BatchView,
    first: int,
    last: int,
    rows: Rows,
    leaves: Leaves,
    members: Array,
    lo: int,
    hi: int,
    out: Slot,
) -> int:
    """Segments first … last - 1 merged with touched leaves members[lo:hi] (all in the range).
    Returns the slots written to `out`."""
    first_leaf = 1 << v.m
    written = 0
    member = lo
    for rank in range(first, last):
        row_lo, row_hi = 0, 0
        if member < hi and get(leaves.rank, members[member]) == rank:
            leaf = members[member]
            row_lo, row_hi = get(leaves.lo, leaf), get(leaves.hi, leaf)
            member += 1
        to = advance(v, out, written)
        written += merge_range(
            v, batch, rank, count_of(v, first_leaf + rank), rows, row_lo, row_hi, to
        )
    return written


@compiled
def gather_rows(v: View, batch: BatchView, rows: Rows, lo: int, hi: int, out: Slot) -> int:
    """As `gather`, of an empty store, for rows lo … hi - 1."""
    return merge_range(v, batch, 0, 0, rows, lo, hi, out)


_int = types.int64
VIEW, BATCH, ROWS, LEAVES = map(record_type, (View, BatchView, Rows, Leaves))
SLOT = types.UniTuple(_int, 3)
gather_at = ByAddress(
    gather, _int, VIEW, BATCH, _int, _int, ROWS, LEAVES, types.int32[::1], _int, _int,
    SLOT,
)  # fmt: skip
call_gather = gather_at.call


@compiled
def spread(
    v: View,
    source: Slot,
    total: int,
    first: int,
    layer: int,
    lo: int,
    hi: int,
    following: np.uint64,
) -> None:
    """Give segments lo … hi - 1 of the 2^layer from rank `first` their even share of `total`
    slots."""
    first_leaf = 1 << v.m
    end = lo * total >> layer
    for k in range(lo, hi):
        start, end = end, (k + 1) * total >> layer
        size = end - start
        rank = first + k
        move_slots(v, segment_at(v, rank), advance(v, source, start), size)
        set_count(v, first_leaf + rank, size)
        if k > 0:
            fence = load_u64(source[0] + start * 8) if start < total else following
            set_fence(v, heap_number(rank, v.m), fence)


@compiled
def following_fence(v: View, rank: int) -> np.uint64:
    """The fence of segment `rank`, or the last of all where there is none."""
    if rank == 1 << v.m:
        return LAST_FENCE
    return fence_of(v, heap_number(rank, v.m))


@compiled
def move_leaves(
    v: View, batch: BatchView, rows: Rows, leaves: Leaves, first: int, last: int,
    scratch: Slot,
) -> None:  # fmt: skip
    """Carry out the plan for touched leaves first … last - 1 that are windows of their own."""
    first_leaf = 1 << v.m
    sparse = leaves.n * SPARSE < 1 << v.m
    for i in range(first, min(first + AHEAD, last)):
        _prefetch_leaf(v, batch, rows, leaves, i, sparse)
    for i in range(first, last):
        if i + AHEAD < last:
            _prefetch_leaf(v, batch, rows, leaves, i + AHEAD, sparse)
        lo, hi, flags = get(leaves.lo, i), get(leaves.hi, i), get(leaves.flags, i)
        if lo < hi and not flags & ROLLED:
            deleted = (flags & DELETED) != 0
            p = first_leaf + get(leaves.rank, i)
            merge_leaf(v, batch, p, rows, lo, hi, deleted, scratch)


@compiled
def move_windows(
    v: View, batch: BatchView, rows: Rows, leaves: Leaves, plan: Array, first: int, last: int,
    scratch: Slot, largest: int, gather_at: int,
) -> None:  # fmt: skip
    """Carry out windows first … last - 1 of a plan's columns; those above layer `largest` are
    left out. `gather_at` is an address."""
    first_leaf = 1 << v.m
    members = plan[MEMBERS]
    for i in range(first, last):
        if i + WINDOWS_AHEAD < last:
            _prefetch_window(v, plan[LAYER, i + WINDOWS_AHEAD], plan[WINDOW, i + WINDOWS_AHEAD])
        layer, w = np.int64(plan[LAYER, i]), np.int64(plan[WINDOW, i])
        if layer > largest:
            continue
        n = 1 << layer
        rank = (w << layer) - first_leaf
        lo, hi = np.int64(plan[LO, i]), np.int64(plan[HI, i])
        total = call_gather(
            gather_at, v, batch, rank, rank + n, rows, leaves, members, lo, hi, scratch
        )
        spread(v, scratch, total, rank, layer, ZERO, n, following_fence(v, rank + n))
        sum_window(v, w, layer)


@inlined
def _prefetch_window(v: View, layer: int, w: int) -> None:
    """Prefetch the segments of a small window; a large one's follow each other level by level."""
    if layer > FEW_LAYERS:
        return
    first, size = (np.int64(w) << layer) - (1 << v.m), min(1 << v.shift, PREFETCHED)
    for rank in range(first, first + (1 << layer)):
        at = segment_at(v, rank)
        prefetch_bytes(at[0], size * 8)
        prefetch_values(v, at, size)


@inlined
def _prefetch_leaf(
    v: View, batch: BatchView, rows: Rows, leaves: Leaves, i: int, sparse: bool
) -> None:
    """Prefetch a touched leaf's lines, and what its operations bring: locating was a while ago, and
    read little of either. In a sparse batch only the lines from the first operation on are
    prefetched; if a leaf takes in several operations, working out which lines are touched costs as
    much as it saves."""
    rank = get(leaves.rank, i)
    at, size = segment_at(v, rank), min(1 << v.shift, PREFETCHED)
    prefetch_bytes(at[0], size * 8)
    if sparse:
        first = row_position(rows, get(leaves.lo, i))
        at, size = advance(v, at, first), count_of(v, (1 << v.m) + rank) + 1 - first
    prefetch_values(v, at, size)
    if brings_columns(batch):
        for row in range(get(leaves.lo, i), get(leaves.hi, i)):
            prefetch_operation(batch, row_place(rows, row))


@compiled
def piece_offsets(
    v: View, first: int, edges: Array, leaves: Leaves, members: Array, lo: int, hi: int
) -> tuple[Array, Array]:
    """For a window cut at segments `edges` (relative to rank `first`): where each piece's
    output starts, and its first member. Both have len(edges) entries."""
    first_leaf = 1 << v.m
    starts = np.zeros(len(edges), np.int64)
    member = np.empty(len(edges), np.int64)
    written = 0
    at = lo
    for piece in range(len(edges)):
        starts[piece] = written
        member[piece] = at
        if piece + 1 == len(edges):
            break
        for k in range(edges[piece], edges[piece + 1]):
            written += count_of(v, first_leaf + first + k)
        while at < hi and get(leaves.rank, members[at]) < first + edges[piece + 1]:
            written += get(leaves.delta, members[at])
            at += 1
    return starts, member


@compiled
def even_pieces(layers: Array, largest: int, smallest: int, most: int) -> Array:
    """Cut a round's windows into at most `most` pieces of about equal work, each of `smallest`
    segments or more: the edges. Windows above layer `largest` count as one of that layer."""
    total = 0
    for layer in layers:
        total += 1 << min(layer, largest)
    pieces = max(1, min(most, total // smallest))
    edges = np.zeros(pieces + 1, np.int64)
    piece = 1
    work = 0
    for i in range(len(layers)):
        work += 1 << min(layers[i], largest)
        while piece < pieces and work >= total * piece // pieces:
            edges[piece] = i + 1
            piece += 1
    edges[pieces] = len(layers)
    return edges
