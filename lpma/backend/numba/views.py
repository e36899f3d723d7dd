"""Views in time of a store on the CPU: lpma/time_view.py says what they are.

Idea: a pass over the times counts what each range of segments has in the view, and finds the newest
of it. So each range knows where its rows and columns go, and a second pass writes both at once,
reading each slot once. Weights decay a block at a time, while the block is in the cache.

Requires: the store keeps times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, address
from ...cpu import pieces
from ...cpu.decay import decay_column
from ...cpu.instructions import load_i64, load_u32, load_u64, store_i64, store_u32, store_u64
from ...cpu.jit import compiled
from ...cpu.threads import cuts, run_all
from ...pma.keys import HALF, LOW
from ...time_view import LEAST, Decay, TimeView
from . import snapshot_memory
from .addressing import MARKER, Slot, View, count_of, prefetch_bytes, prefetch_values, segment_at
from .export import AHEAD, SEGMENTS_PER_TASK, fill_gaps
from .segments import Segments

BLOCK = 32  # segments, after which what was written decays
APART = 32  # entries between what two ranges write: no cache line, of any column, is of both
NO_DECAY = Decay(0, 0, 0, 0.0)


@compiled
def survey_view(
    v: View, first: int, last: int, low: int, high: int, keyed: bool
) -> tuple[int, int, int, int]:
    """Of segments first … last - 1: (edges whose time is low … high, how many of them are loops,
    the newest of their times, the source of the last slot there or -1). keyed: there may be markers
    or loops, so that keys are read."""
    leaves = 1 << v.m
    edges, loops = 0, 0
    newest: Any = np.int64(LEAST)
    for rank in range(first, last):
        if rank + AHEAD < last:
            coming = segment_at(v, rank + AHEAD)
            prefetch_bytes(coming[2], 8 << v.shift)
            if keyed:
                prefetch_bytes(coming[0], 8 << v.shift)
        at = segment_at(v, rank)
        for position in range(count_of(v, leaves + rank)):
            time = load_i64(at[2] + position * 8)
            held = (time >= low) & (time <= high)
            if keyed:
                key = load_u64(at[0] + position * 8)
                held = held & ((key & LOW) != MARKER)
                loops += held & ((key & LOW) == (key >> HALF))
            edges += held
            newest = max(newest, time if held else newest)
    source: Any = np.int64(-1)
    rank = last
    while source < 0 and rank > first:
        rank -= 1
        count = count_of(v, leaves + rank)
        if count > 0:
            source = np.int64(load_u64(segment_at(v, rank)[0] + (count - 1) * 8) >> HALF)
    return edges, loops, newest, source


@compiled
def write_view(
    v: View, first: int, last: int, out: int, before: int, open_row: int, low: int, high: int,
    indptr: Array, to: Slot, spare: int, d: Decay,
) -> None:  # fmt: skip
    """Write the targets, weights and times of the edges of segments first … last - 1 whose time is
    low … high, from entry `out` of the columns at `to` on, and where the rows of their sources end.
    before, open_row: as of `export.write_rows`; what is not to be written goes to the entry
    `spare`. d: how weights decay; its half-life is 0 if they do not."""
    leaves = 1 << v.m
    spare_row = len(indptr) - 1
    weight_bytes = v.weight_bytes if v.weight_bytes else 4
    if before >= 0 and before != open_row:
        indptr[before + 1] = out
    for block in range(first, last, BLOCK):
        start = out
        for rank in range(block, min(block + BLOCK, last)):
            if rank + AHEAD < last:
                coming = segment_at(v, rank + AHEAD)
                prefetch_bytes(coming[0], 8 << v.shift)
                prefetch_values(v, coming, 1 << v.shift)
            at = segment_at(v, rank)
            for position in range(count_of(v, leaves + rank)):
                key, time = load_u64(at[0] + position * 8), load_i64(at[2] + position * 8)
                source = np.int64(key >> HALF)
                held = (time >= low) & (time <= high) & ((key & LOW) != MARKER)
                entry = out if held else spare
                store_u32(to[0] + entry * 4, np.uint32(key & LOW))
                if v.weight_bytes == 4:
                    store_u32(to[1] + entry * 4, load_u32(at[1] + position * 4))
                elif v.weight_bytes == 8:
                    store_u64(to[1] + entry * 8, load_u64(at[1] + position * 8))
                store_i64(to[2] + entry * 8, time)
                out += held
                indptr[spare_row if source == open_row else source + 1] = out
        if d.half_life:
            weights, times = to[1] + start * weight_bytes, to[2] + start * 8
            decay_column(weights, times, out - start, weight_bytes, v.weight_bytes == 0, d)


def csr_view(
    segments: Segments, num_rows: int, view: TimeView, markers: bool, loops: bool
) -> tuple[Array, Array, Array | None, Array, int]:
    leaves, v, bounds = 1 << segments.m, segments.view, (view.first, view.last)
    ranges = [(0, leaves)]
    if segments.num_slots >= pieces.FEW:
        ranges = cuts(leaves, SEGMENTS_PER_TASK, 4)
    keyed = markers or loops
    found = run_all(survey_view, [(v, *part, *bounds, keyed) for part in ranges])
    edges = sum(held for held, *_ in found)
    decay = view.decay(max(newest for _, _, newest, _ in found))
    indptr, indices, weights, times = _columns(segments, num_rows, edges, len(ranges), decay)
    to = address(indices), 0 if weights is None else address(weights), address(times)
    d = NO_DECAY if decay is None else decay
    d = d._replace(most=np.uint64(d.most))  # type: ignore[arg-type]  # as Numba takes it
    calls: list[Any] = []
    out, before = 0, -1
    for i, (part, (held, _, _, source)) in enumerate(zip(ranges, found, strict=True)):
        last = max(before, source)
        open_row = -1 if i == len(ranges) - 1 else last
        spare = edges + APART * (i + 1)
        calls.append((v, *part, out, before, open_row, *bounds, indptr, to, spare, d))
        out, before = out + held, last
    run_all(write_view, calls)
    indptr = indptr[: num_rows + 1]
    fill_gaps(indptr)
    kept = None if weights is None else weights[:edges]
    return indptr, indices[:edges], kept, times[:edges], sum(n for _, n, _, _ in found)


def _columns(
    segments: Segments, num_rows: int, edges: int, ranges: int, decay: Decay | None
) -> tuple[Array, Array, Array | None, Array]:
    """(indptr, zeros; targets, weights, times), with an entry more for each range, which takes what
    is not in the view."""
    weight: Any = segments.weights[0].dtype if segments.weights else None
    if weight is None and decay is not None:
        weight = np.float32
    room = edges + APART * (ranges + 1)
    wanted = [(num_rows + 2, np.int64), (room, np.uint32), (room, np.int64)]
    if weight is not None:
        wanted.append((room, weight))
    indptr, indices, times, *weights = snapshot_memory.arrays(*wanted)
    indptr[:] = 0
    return indptr, indices, weights[0] if weights else None, times
