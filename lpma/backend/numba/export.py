"""Snapshots and copies of a store on the CPU: one read of the store, one write of the arrays.

Rows and columns are written apart, since most who read the rows need no columns.

The slots are already in CSR order, so a range of segments becomes a range of rows of the output,
whose place follows from the window counts (and, where there are vertex markers, which are no
edges, from a count of those).

Trick: consecutive segments lie on different levels, which makes more streams of addresses than a
processor prefetches by itself. So the kernels prefetch the next segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import Array, address
from ...cpu import merged, pieces
from ...cpu.instructions import load_u64
from ...cpu.jit import compiled
from ...cpu.threads import cuts, run_all
from ...pma.keys import HALF, LOW
from . import snapshot_memory
from .addressing import (
    MARKER,
    Slot,
    View,
    advance,
    copy_slots,
    count_of,
    further,
    move_values,
    prefetch_bytes,
    prefetch_values,
    segment_at,
)
from .allocate import empty
from .segments import Segments

AHEAD = 4  # segments
SEGMENTS_PER_TASK = 1024
PIECE_SLOTS = 1 << 18  # of `column_pieces`: they fit a cache, with the checksum beside


@compiled
def survey(v: View, first: int, last: int, markers: bool) -> tuple[int, int]:
    """(edges in segments first … last - 1, source of the last slot there or -1)."""
    leaves = 1 << v.m
    edges = 0
    source = np.int64(-1)
    for rank in range(first, last):
        count = count_of(v, leaves + rank)
        edges += count
        if count == 0:
            continue
        at = segment_at(v, rank)[0]
        if markers:
            for position in range(count):
                edges -= 1 if (load_u64(at + position * 8) & LOW) == MARKER else 0
        source = np.int64(load_u64(at + (count - 1) * 8) >> HALF)
    return edges, source


@compiled
def write_rows(
    v: View, first: int, last: int, out: int, before: int, open_row: int, markers: bool,
    indptr: Array, indices: Array,
) -> None:  # fmt: skip
    """Write the targets of segments first … last - 1 from entry `out` on, and where the rows of
    their sources end. before: the source of the slot before them, -1 if there is none. open_row:
    the source of the last slot, whose row may go on: its end is left to whoever writes the segments
    that follow; -1 if none do.

    A row's end is written anew at each of its slots: that takes no branch, which would be
    mispredicted at the end of each row. In a segment with markers or slots of the open row, what is
    not to be written goes to the last entry of the array, of which nothing is asked. REQUIRES: it
    is there."""
    leaves = 1 << v.m
    spare_row, spare = len(indptr) - 1, len(indices) - 1
    if before >= 0 and before != open_row:
        indptr[before + 1] = out
    for rank in range(first, last):
        if rank + AHEAD < last:
            prefetch_bytes(segment_at(v, rank + AHEAD)[0], 8 << v.shift)
        at, count = segment_at(v, rank)[0], count_of(v, leaves + rank)
        if count == 0:
            continue
        largest = np.int64(load_u64(at + (count - 1) * 8) >> HALF)
        if not markers and largest != open_row:
            for position in range(count):
                key = load_u64(at + position * 8)
                indices[out] = np.uint32(key & LOW)
                out += 1
                indptr[np.int64(key >> HALF) + 1] = out
            continue
        for position in range(count):
            key = load_u64(at + position * 8)
            low, source = key & LOW, np.int64(key >> HALF)
            is_edge = low != MARKER
            indices[out if is_edge else spare] = np.uint32(low)
            out += is_edge
            indptr[spare_row if source == open_row else source + 1] = out


@compiled
def fill_gaps(indptr: Array) -> None:
    """Let rows without entries end where the row before them ends."""
    end = np.int64(0)
    for u in range(len(indptr)):
        end = max(end, indptr[u])
        indptr[u] = end


@compiled
def write_columns(v: View, first: int, last: int, out: int, markers: bool, to: Slot) -> None:
    """Write the values of the edges of segments first … last - 1 to columns from entry `out` on."""
    leaves = 1 << v.m
    for rank in range(first, last):
        if rank + AHEAD < last:
            prefetch_values(v, segment_at(v, rank + AHEAD), 1 << v.shift)
        at = segment_at(v, rank)
        count = count_of(v, leaves + rank)
        done = 0  # slots that are copied, or passed over
        if markers:
            for position in range(count):
                if (load_u64(at[0] + position * 8) & LOW) == MARKER:
                    move_values(v, advance(v, to, out), advance(v, at, done), position - done)
                    out, done = out + position - done, position + 1
        move_values(v, advance(v, to, out), advance(v, at, done), count - done)
        out += count - done


@compiled
def write_slots(v: View, first: int, last: int, to: Slot) -> None:
    """Copy all slots, markers included, of segments first … last - 1 to the address `to`."""
    leaves = 1 << v.m
    span = 1 << v.shift
    for rank in range(first, last):
        if rank + AHEAD < last:
            coming = segment_at(v, rank + AHEAD)
            prefetch_bytes(coming[0], span * 8)
            prefetch_bytes(coming[1], span * v.weight_bytes)
            prefetch_bytes(coming[2], span * v.time_bytes)
        count = count_of(v, leaves + rank)
        copy_slots(v, to, segment_at(v, rank), count)
        to = advance(v, to, count)


def csr_rows(
    segments: Segments, num_rows: int, num_edges: int, markers: bool
) -> tuple[Array, Array]:
    parts = _parts(segments, markers)
    # With an entry more each, for what a thread need not write.
    indptr, indices = snapshot_memory.arrays((num_rows + 2, np.int64), (num_edges + 1, np.uint32))
    indptr[:] = 0
    calls, before = [], -1
    for i, (*part, source) in enumerate(parts):
        open_row = -1 if i == len(parts) - 1 else source
        calls.append((segments.view, *part, before, open_row, markers, indptr, indices))
        before = source
    run_all(write_rows, calls)
    indptr = indptr[: num_rows + 1]
    fill_gaps(indptr)
    return indptr, indices[:num_edges]


def rows_with(
    indptr: Array, indices: Array, keys: Array, there: Array, num_rows: int
) -> tuple[Array, Array, Array]:
    """Earlier rows with the changes to them merged in, and the memory of their entries, which
    has room for as many again."""
    memory: list[Array] = []

    def room(starts: int, entries: int) -> merged.Memory:
        memory[:] = snapshot_memory.arrays((starts, np.int64), (2 * entries, np.uint32))
        return memory[0], memory[1]

    made = merged.with_changes(indptr, indices, keys, there, num_rows, room)
    return *made, memory[1]


def csr_columns(
    segments: Segments, num_edges: int, markers: bool, taker: Any
) -> tuple[Array | None, Array | None]:
    dtypes = [levels[0].dtype if levels else None for levels in (segments.weights, segments.times)]
    made = iter(snapshot_memory.arrays(*((num_edges, dtype) for dtype in dtypes if dtype)))
    weights, times = (next(made) if dtype else None for dtype in dtypes)
    view, to = into(segments, None, weights, times)
    parts = _parts(segments, markers)
    run_all(write_columns, [(view, *part, markers, to) for *part, _ in parts])
    return weights, times


def slots(segments: Segments, values: bool = True) -> tuple[Array, Array | None, Array | None]:
    n = segments.num_slots
    keys, columns = np.empty(n, np.uint64), value_columns(segments, n, values)
    copy_columns(segments, keys, *columns)
    return keys, *columns


def copy_columns(
    segments: Segments, keys: Array, weights: Array | None, times: Array | None
) -> None:
    """What `slots` gives, into arrays of that length."""
    starts = starts_of(segments)
    view, to = into(segments, keys, weights, times)
    pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
    run_all(write_slots, [(view, lo, hi, further(view, to, int(starts[lo]))) for lo, hi in pieces])


def column_pieces(segments: Segments, name: str) -> Iterator[Array]:
    """See the protocol. The pieces share one memory: fresh pages cost more than copying."""
    starts, leaves = starts_of(segments), 1 << segments.m
    begins = np.searchsorted(starts, np.arange(0, starts[-1], PIECE_SLOTS), "right") - 1
    ranges = list(pairwise([*np.unique(begins).tolist(), leaves]))
    dtype = np.dtype(np.uint64) if name == "keys" else getattr(segments, name)[0].dtype
    memory = np.empty(max((int(starts[b] - starts[a]) for a, b in ranges), default=0), dtype)
    given = {column: memory if column == name else None for column in ("keys", "weights", "times")}
    view, to = into(segments, **given)
    for first, last in ranges:
        before = starts[first]
        parts = [(first + a, first + b) for a, b in cuts(last - first, SEGMENTS_PER_TASK, 4)]
        if name == "keys":
            places = [further(view, to, int(starts[a] - before)) for a, _ in parts]
            run_all(
                write_slots, [(view, *part, at) for part, at in zip(parts, places, strict=True)]
            )
        else:
            calls = [(view, a, b, int(starts[a] - before), False, to) for a, b in parts]
            run_all(write_columns, calls)
        yield memory[: int(starts[last] - before)]


def value_columns(
    segments: Segments, n: int, wanted: bool = True, make: Callable[..., Array] = np.empty
) -> tuple[Array | None, Array | None]:
    """Columns for n weights and n times, of those that the store keeps, if they are wanted."""
    return (
        make(n, segments.weights[0].dtype) if wanted and segments.weights else None,
        make(n, np.int64) if wanted and segments.times else None,
    )


def into(
    segments: Segments, keys: Array | None, weights: Array | None, times: Array | None
) -> tuple[View, Slot]:
    """What a kernel that writes these columns (keys, or ids) gets: a view of the store in which
    those that are not there are off, and their addresses."""
    key, weight, time = (0 if c is None else address(c) for c in (keys, weights, times))
    view = segments.view._replace(
        weight_bytes=0 if weights is None else weights.itemsize, time_bytes=8 if time else 0
    )
    return view, (key, weight, time)


def host_memory(size: int) -> Array:
    """At least uint8[size], not initialized, for copies of a growing store. Twice the size is
    mapped: untouched pages take no memory."""
    return empty(2 * size, np.uint8)


def _parts(segments: Segments, markers: bool) -> list[tuple[int, int, int, int]]:
    """The segments as ranges (first, last, edges before them, source of the last slot in them or
    before them): one where a pass over all of them is short (`pieces.FEW`)."""
    leaves = 1 << segments.m
    if segments.num_slots < pieces.FEW:
        return [(0, leaves, 0, -1)]
    ranges = cuts(leaves, SEGMENTS_PER_TASK, 4)
    surveys = run_all(survey, [(segments.view, *part, markers) for part in ranges])
    parts, out, last = [], 0, -1
    for part, (edges, source) in zip(ranges, surveys, strict=True):
        last = max(last, source)
        parts.append((*part, out, last))
        out += edges
    return parts


def starts_of(segments: Segments) -> Array:
    """int64[segments + 1]: how many slots are filled before each segment."""
    return np.concatenate([[0], np.cumsum(segments.counts[1 << segments.m :])])
