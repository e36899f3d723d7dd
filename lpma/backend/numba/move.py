"""The mover: carries out a plan's windows, and nothing else moves an edge between segments.

A leaf window is merged in place. A larger window is gathered: its segments, merged with its
operations in key order, go to a scratch buffer; then they are spread evenly over its segments,
segment k of n getting elements k*T//n … (k+1)*T//n - 1 of T. Fences inside the window become
the first keys of their segments; an empty segment takes the fence of its successor, so nothing
is located into it. The first fence of a window never changes: its neighbours rely on it.

Windows of a round are disjoint and run on any thread. One too large for a thread is gathered
and spread in pieces, whose places in the buffer follow from the counts alone.

Requires: scratch for every window (`NumbaBackend.reserve`), allocated before the first write.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from ...layout import heap_number
from ...rebalance import DELETED, HI, LAYER, LO, MEMBERS, ROLLED, WINDOW
from .fold import insert_run, write_run
from .instructions import (
    GROUP,
    load_u64,
    ones,
    prefetch,
)
from .locate import SPARSE
from .memory import (
    EVERY,
    View,
    advance,
    copy_slot,
    copy_slots,
    count_of,
    expand_slots,
    fence_of,
    move_slots,
    prefetch_bytes,
    segment_at,
    set_count,
    set_fence,
)
from .rows import (
    DELETE,
    INSERT,
    SKIP,
    WRITE,
    BatchView,
    Leaves,
    Rows,
    get,
    prefetch_operation,
    row_action,
    row_place,
    row_position,
)
from .segments import LAST_FENCE

Array = npt.NDArray[Any]
Slot = tuple[int, int, int, int]

AHEAD = 6  # windows between asking for a leaf and moving it
COUNTS_AHEAD = 24  # windows between asking for a count and writing it
PREFETCHED = 64  # slots of a leaf, at most
MASKED = 64  # slots of a leaf, a bit each in an integer, at most


@njit(cache=True, nogil=True, forceinline=True)
def merge_range(
    v: View,
    batch: BatchView,
    rank: int,
    count: int,
    rows: Rows,
    lo: int,
    hi: int,
    versions: bool,
    out: Slot,
) -> int:
    """Merge a segment's `count` slots with rows lo … hi - 1 into `out`, which lies apart. Returns
    the slots written."""
    at = segment_at(v, rank)
    inserts, marked, deletes = 0, 0, False
    for row in range(lo, hi):
        action = row_action(rows, row)
        if action == INSERT:
            marked |= 1 << (row_position(rows, row) + inserts)
            inserts += 1
        deletes |= action == DELETE
    total = count + inserts
    if deletes or not GROUP <= total <= MASKED:
        return _merge_blocks(v, batch, at, count, rows, lo, hi, versions, out)
    _copy_around(v, out, at, total, marked)
    inserts = 0
    for row in range(lo, hi):
        action = row_action(rows, row)
        to = advance(v, out, row_position(rows, row) + inserts)
        if action == INSERT:
            insert_run(v, batch, rows, row, hi, versions, to)
            inserts += 1
        elif action == WRITE:
            write_run(v, batch, rows, row, hi, to, to)
    return total


@njit(cache=True, nogil=True, forceinline=True)
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


@njit(cache=True, nogil=True, forceinline=True)
def _merge_blocks(
    v: View, batch: BatchView, at: Slot, count: int, rows: Rows, lo: int, hi: int, versions: bool,
    out: Slot,
) -> int:  # fmt: skip
    """As merge_range, block by block of what lies between two operations: for any of them."""
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
            insert_run(v, batch, rows, row, hi, versions, to)
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


@njit(cache=True, nogil=True, forceinline=True)
def _merge_leaf(
    v: View, batch: BatchView, p: int, rows: Rows, lo: int, hi: int, deleted: bool, versions: bool,
    scratch: Slot,
) -> None:  # fmt: skip
    """Apply rows lo … hi - 1 within one leaf window, which has the room."""
    rank = p - (1 << v.m)
    count = count_of(v, p)
    at = segment_at(v, rank)
    if deleted or not GROUP <= 1 << v.shift <= MASKED:
        written = _merge_blocks(v, batch, at, count, rows, lo, hi, versions, scratch)
        move_slots(v, at, scratch, written)
        set_count(v, p, written)
        return
    inserts, first, marked = 0, 0, 0
    for row in range(lo, hi):
        action = row_action(rows, row)
        if action == INSERT:
            k = row_position(rows, row) + inserts
            first = k if inserts == 0 else first
            marked |= 1 << k
            inserts += 1
        elif action == WRITE:
            to = advance(v, at, row_position(rows, row))
            write_run(v, batch, rows, row, hi, to, to)
    if inserts == 0:
        return
    _open_gaps(v, at, first, count + inserts, marked, scratch)
    inserts = 0
    for row in range(lo, hi):
        if row_action(rows, row) == INSERT:
            to = advance(v, at, row_position(rows, row) + inserts)
            insert_run(v, batch, rows, row, hi, versions, to)
            inserts += 1
    set_count(v, p, count + inserts)


@njit(cache=True, nogil=True, forceinline=True)
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


@njit(cache=True, nogil=True)
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
    versions: bool,
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
            v, batch, rank, count_of(v, first_leaf + rank), rows, row_lo, row_hi, versions, to
        )
    return written


@njit(cache=True, nogil=True)
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
    for k in range(lo, hi):
        start = (k * total) >> layer
        size = (((k + 1) * total) >> layer) - start
        rank = first + k
        move_slots(v, segment_at(v, rank), advance(v, source, start), size)
        set_count(v, first_leaf + rank, size)
        if k > 0:
            fence = load_u64(source[0] + start * 8) if start < total else following
            set_fence(v, heap_number(rank, v.m), fence)


@njit(cache=True, nogil=True)
def following_fence(v: View, rank: int) -> np.uint64:
    """The fence of segment `rank`, or the last of all where there is none."""
    if rank == 1 << v.m:
        return LAST_FENCE
    return fence_of(v, heap_number(rank, v.m))


@njit(cache=True, nogil=True)
def sum_window(v: View, w: int, layer: int) -> None:
    """Make the counts inside window w the sums of their halves, leaves being right."""
    for up in range(1, layer + 1):
        for inner in range(w << (layer - up), (w + 1) << (layer - up)):
            set_count(v, inner, count_of(v, 2 * inner) + count_of(v, 2 * inner + 1))


@njit(cache=True, nogil=True)
def sum_upward(v: View, ranks: Array, n: int, around: Array) -> None:
    """Make the counts of all windows around these n leaves the sums of their halves. `around` is
    room for as many windows."""
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


@njit(cache=True, nogil=True)
def move_leaves(
    v: View, batch: BatchView, rows: Rows, leaves: Leaves, first: int, last: int, versions: bool,
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
            _merge_leaf(v, batch, p, rows, lo, hi, deleted, versions, scratch)


@njit(cache=True, nogil=True)
def move_windows(
    v: View, batch: BatchView, rows: Rows, leaves: Leaves, plan: Array, first: int, last: int,
    versions: bool, scratch: Slot, largest: int,
) -> None:  # fmt: skip
    """Carry out windows first … last - 1 of a plan's columns; those above layer `largest` are
    another's work."""
    first_leaf = 1 << v.m
    members = plan[MEMBERS]
    for i in range(first, last):
        layer, w, lo, hi = plan[LAYER, i], plan[WINDOW, i], plan[LO, i], plan[HI, i]
        if layer > largest:
            continue
        n = 1 << layer
        rank = (w << layer) - first_leaf
        total = gather(v, batch, rank, rank + n, rows, leaves, members, lo, hi, versions, scratch)
        spread(v, scratch, total, rank, layer, 0, n, following_fence(v, rank + n))
        sum_window(v, w, layer)


@njit(cache=True, nogil=True, forceinline=True)
def _prefetch_leaf(
    v: View, batch: BatchView, rows: Rows, leaves: Leaves, i: int, sparse: bool
) -> None:
    """Ask for a touched leaf's lines, and for what its operations bring: locating was a while
    ago, and read little of either. In a sparse batch only for the lines from the first operation
    on: where a leaf takes in several, to work out which are touched costs what it saves."""
    rank = get(leaves.rank, i)
    at, size = segment_at(v, rank), min(1 << v.shift, PREFETCHED)
    prefetch_bytes(at[0], size * 8)
    if sparse:
        first = row_position(rows, get(leaves.lo, i))
        at, size = advance(v, at, first), count_of(v, (1 << v.m) + rank) + 1 - first
    prefetch_bytes(at[1], size * v.weight_bytes)
    prefetch_bytes(at[2], size * v.time_bytes)
    if batch.weight_step or batch.time_step or batch.kind_step:
        for row in range(get(leaves.lo, i), get(leaves.hi, i)):
            prefetch_operation(batch, row_place(rows, row))


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def shrink(
    v: View, to: View, batch: BatchView, rows: Rows, leaves: Leaves, members: Array, most: Array,
    scratch: Slot,
) -> Array:  # fmt: skip
    """Empty the last level of `v` into the others, which `to` shares. The batch is empty. Returns
    the windows rebalanced by layer of `to`, pairs being layer 0.

    A window of `to` is the same window of `v` one layer lower, so its count is known before. Down
    from the root: where both halves fit, each by itself; where one does not, the whole evenly."""
    first_leaf = 1 << to.m
    rebalanced = np.zeros(to.m + 1, np.int64)
    stack = np.empty((to.m + 2, 2), np.int64)
    stack[0] = (1, to.m)
    depth = 1
    while depth:
        depth -= 1
        w, layer = stack[depth]
        if layer > 0 and count_of(v, 2 * w) <= most[layer - 1] >= count_of(v, 2 * w + 1):
            stack[depth] = (2 * w + 1, layer - 1)
            stack[depth + 1] = (2 * w, layer - 1)
            depth += 2
            continue
        rank = (w << layer) - first_leaf
        if layer == 0:
            left, right = count_of(v, 2 * w), count_of(v, 2 * w + 1)
            if right:
                at = advance(v, segment_at(v, 2 * rank), left)
                move_slots(v, at, segment_at(v, 2 * rank + 1), right)
                rebalanced[0] += 1
            continue
        n = 1 << layer
        total = gather(
            v, batch, 2 * rank, 2 * (rank + n), rows, leaves, members, 0, 0, False, scratch
        )
        spread(to, scratch, total, rank, layer, 0, n, following_fence(to, rank + n))
        sum_window(to, w, layer)
        rebalanced[layer] += 1
    return rebalanced


@njit(cache=True, nogil=True)
def even_pieces(layers: Array, largest: int, smallest: int, most: int) -> Array:
    """Cut a round's windows in at most `most` pieces of about equal work, each of `smallest`
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
