"""A segment's slots merged with the operations that fall into it, out of place or in place."""

from __future__ import annotations

import numpy as np

from ...cpu.instructions import GROUP, ones, trailing_zeros
from ...cpu.jit import ZERO, inlined
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
    move_slots,
    segment_at,
    set_count,
)
from .batch_view import BatchView, Rows, row_action, row_position
from .fold import append_plain, insert_run, is_plain, write_run

MASKED = 64  # slots of a leaf, a bit each in an integer, at most


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
