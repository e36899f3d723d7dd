"""One pass over the whole store into fresh levels: the global merge, and the bulk load.

If a batch is large compared with the store, most segments are rebalanced anyway; then it is cheaper
to stream the old segments and the batch once, in key order, straight to their places in new levels.
Every edge is read once and written once, and the old store is untouched until the new one is
published.

The output is cut into pieces for the threads, at segments or at rows of the batch, whichever are
more numerous; a piece starts at the output position that the counts before it add up to.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...cpu.instructions import load_u64, store_u64
from ...cpu.jit import compiled, inlined
from ..values import DELETE, INSERT, SKIP
from .addressing import (
    Slot,
    View,
    advance,
    copy_slot,
    copy_slots,
    count_of,
    fence_of,
    heap_number,
    segment_at,
    set_count,
    set_fence,
)
from .batch_view import (
    BatchView,
    Leaves,
    Rows,
    get,
    row_action,
    row_key,
    row_position,
)
from .fold import insert_run, write_run
from .segments import LAST_FENCE

Array = npt.NDArray[Any]


class Cuts(NamedTuple):
    """Where the pieces begin: piece i takes the slots from (rank, slot) and the rows from `row`
    up to where piece i + 1 begins, and writes from element `start` on."""

    rank: Array
    slot: Array
    row: Array
    start: Array


@compiled
def cut(v: View, rows: Rows, leaves: Leaves, pieces: int) -> Cuts:
    """Cut the merge into `pieces`, near-equal in segments or in rows. Arrays of pieces + 1."""
    first_leaf = 1 << v.m
    total_rows = rows.n
    by_row = total_rows > count_of(v, 1)
    n = pieces + 1
    cuts = Cuts(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    )
    t = 0  # touched leaves wholly before the cut
    delta = 0
    rank = 0
    stored = 0  # slots in segments before `rank`
    for piece in range(pieces + 1):
        row, slot, inner = total_rows, 0, 0
        target = first_leaf
        if piece < pieces and by_row:
            row = total_rows * piece // pieces
            while row < total_rows and row_action(rows, row) == SKIP:
                row += 1
            while t < leaves.n and get(leaves.hi, t) <= row:
                delta += get(leaves.delta, t)
                t += 1
            if t < leaves.n and get(leaves.lo, t) <= row:
                target = get(leaves.rank, t)
                slot = row_position(rows, row)
                for before in range(get(leaves.lo, t), row):
                    inner += 1 if row_action(rows, before) == INSERT else 0
                    inner -= 1 if row_action(rows, before) == DELETE else 0
            else:
                target = get(leaves.rank, t) if t < leaves.n else first_leaf
        elif piece < pieces:
            target = first_leaf * piece // pieces
            while t < leaves.n and get(leaves.rank, t) < target:
                delta += get(leaves.delta, t)
                t += 1
            row = get(leaves.lo, t) if t < leaves.n else total_rows
        else:
            while t < leaves.n:
                delta += get(leaves.delta, t)
                t += 1
        while rank < target:
            stored += count_of(v, first_leaf + rank)
            rank += 1
        cuts.rank[piece], cuts.slot[piece], cuts.row[piece] = rank, slot, row
        cuts.start[piece] = stored + slot + delta + inner
    cuts.rank[0], cuts.slot[0], cuts.row[0], cuts.start[0] = 0, 0, 0, 0
    return cuts


@inlined
def _target(to: View, total: int, element: int) -> tuple[int, int]:
    """(segment that element belongs to, the element after that segment's last)."""
    k = (((element + 1) << to.m) - 1) // total
    return k, _begin(to, total, k + 1)


@inlined
def _begin(to: View, total: int, k: int) -> int:
    """The first element of segment k, which may be 2^m."""
    return k * total >> to.m


@inlined
def _put_block(
    to: View, total: int, element: int, end: int, out: Slot, source: Slot, n: int
) -> tuple[int, Slot]:
    """Write n slots from `source` as elements element … of the new store. `out` is the address
    for the next one in the segment that takes elements up to `end`. Returns end and out after."""
    while n > 0:
        if element == end:
            k, end = _target(to, total, element)
            out = segment_at(to, k)
            set_fence(to, heap_number(k, to.m), load_u64(source[0]))
        take = min(n, end - element)
        copy_slots(to, out, source, take)
        source = advance(to, source, take)
        out = advance(to, out, take)
        element += take
        n -= take
    return end, out


@inlined
def _first_ending_after(leaves: Leaves, row: int) -> int:
    """The first touched leaf with operations after `row`, or with `row` itself."""
    low, high = 0, leaves.n
    while low < high:
        middle = (low + high) >> 1
        if get(leaves.hi, middle) <= row:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def merge_piece(
    v: View, to: View, batch: BatchView, rows: Rows, leaves: Leaves, cuts: Cuts, piece: int,
    total: int,
) -> None:  # fmt: skip
    """Stream one piece of the old store and of the batch into the new store."""
    first_leaf = 1 << v.m
    last_rank, last_slot = cuts.rank[piece + 1], cuts.slot[piece + 1]
    last_row = cuts.row[piece + 1]
    rank, done, row = cuts.rank[piece], cuts.slot[piece], cuts.row[piece]
    element = cuts.start[piece]
    end = element
    out = segment_at(to, 0)
    if element < cuts.start[piece + 1]:  # a piece may begin inside a segment
        k, end = _target(to, total, element)
        begin = _begin(to, total, k)
        out = advance(to, segment_at(to, k), element - begin)
        if element == begin:
            end = element
    t = _first_ending_after(leaves, row)
    while rank < last_rank or (rank == last_rank and (done < last_slot or row < last_row)):
        stop = count_of(v, first_leaf + rank) if rank < last_rank else last_slot
        row_stop = row
        if t < leaves.n and get(leaves.rank, t) == rank:
            row = max(row, min(get(leaves.lo, t), last_row))
            row_stop = min(get(leaves.hi, t), last_row)
            t += 1
        at = segment_at(v, rank)
        while row < row_stop:
            action = row_action(rows, row)
            if action != SKIP:
                position = row_position(rows, row)
                if position > done:
                    n = position - done
                    end, out = _put_block(to, total, element, end, out, advance(v, at, done), n)
                    element += n
                    done = position
                if action != DELETE:
                    key = row_key(rows, row)
                    if element == end:
                        k, end = _target(to, total, element)
                        out = segment_at(to, k)
                        set_fence(to, heap_number(k, to.m), key)
                    if action == INSERT:
                        insert_run(to, batch, rows, row, row_stop, out)
                    else:
                        store_u64(out[0], key)
                        write_run(to, batch, rows, row, row_stop, advance(v, at, done), out)
                    out = advance(to, out, 1)
                    element += 1
                if action != INSERT:
                    done += 1
            row += 1
        if stop > done:
            n = stop - done
            end, out = _put_block(to, total, element, end, out, advance(v, at, done), n)
            element += n
        if rank == last_rank:
            break
        rank += 1
        done = 0


@compiled
def finish_tree(to: View, total: int) -> None:
    """Write the counts, and the fences of segments that got nothing."""
    segments = 1 << to.m
    following = LAST_FENCE
    sparse = total < segments
    begin = total
    for k in range(segments - 1, -1, -1):
        end, begin = begin, _begin(to, total, k)
        size = end - begin
        set_count(to, segments + k, size)
        if sparse:
            if size == 0:
                set_fence(to, heap_number(k, to.m), following)
            else:
                following = fence_of(to, heap_number(k, to.m))
    for w in range(segments - 1, 0, -1):
        set_count(to, w, count_of(to, 2 * w) + count_of(to, 2 * w + 1))


@compiled
def fill_piece(to: View, source: Slot, lo: int, hi: int, total: int) -> None:
    """Write elements lo … hi - 1 of a new store from whole sorted columns, of the store's dtypes,
    at `source`."""
    end = lo
    out = segment_at(to, 0)
    for element in range(lo, hi):
        if element == end:
            k, end = _target(to, total, element)
            begin = _begin(to, total, k)
            out = advance(to, segment_at(to, k), element - begin)
            if element == begin:
                set_fence(to, heap_number(k, to.m), load_u64(source[0] + element * 8))
        copy_slot(to, out, source, 0, element)
        out = advance(to, out, 1)
