"""The invariants of `lpma.store.lpma.LPMA`, checked in the simplest way, for `Graph.check`."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, to_host
from ..backend.values import BOTH, REVERSE
from ..errors import InvariantError
from ..pma.density import root_bounds
from ..pma.keys import HALF, LOW, reversed_keys
from ..pma.layout import heap_number, is_there, level_and_offset, place_in_level
from ..store.lpma import LPMA
from .stores import Stores


def _require(holds: bool, number: int, message: str) -> None:
    if not holds:
        raise InvariantError(number, message)


def check_stores(stores: Stores) -> None:
    """Check each store of a graph, and that they hold the same edges."""
    for store, direction in stores.all:
        keys = check_store(store)
        _check_totals(store, keys, direction)
    _require(stores.version >= 0 and stores.num_edges >= 0, 6, "version and edges are counts")
    if stores.into is not None:
        _check_mirrored(stores.out, stores.into)


def check_store(store: LPMA) -> Array:
    """Invariants 1 to 4 of one store; returns its keys in order."""
    segments, size = store.segments, store.segment_size
    # An empty query, as a barrier: on a device, what is read after it comes after the store's work.
    store.backend.count_neighbors(segments, None, np.empty(0, np.uint32), None)
    m, leaves = segments.m, 1 << segments.m
    counts, fences = to_host(segments.counts), to_host(segments.fences)
    levels = [
        to_host(level[: size * held])
        for level, held in zip(segments.keys, segments.size.by_level, strict=True)
    ]
    _require(len(counts) == 2 * leaves and len(fences) == leaves, 2, "the tree has the wrong size")
    filled = []
    last_fence = 0
    for rank in range(leaves):
        count = int(counts[leaves + rank])
        _require(0 <= count <= size, 2, f"segment {rank} claims {count} of {size} slots")
        _require(count == 0 or is_there(rank, segments.size), 2, f"segment {rank} is not there")
        level, offset = level_and_offset(rank, m)
        start = place_in_level(level, offset) * size
        held = levels[level][start : start + count]
        fence = int(fences[heap_number(rank, m)]) if rank else 0
        _require(fence >= last_fence, 3, f"the fence of segment {rank} falls")
        last_fence = fence
        after = int(fences[heap_number(rank + 1, m)]) if rank + 1 < leaves else 2**64 - 1
        if count:
            inside = fence <= int(held[0]) and int(held[-1]) < after
            _require(inside, 3, f"a key of segment {rank} lies outside its fences")
        elif not is_there(rank, segments.size):
            _require(fence == after, 3, f"segment {rank}, which is not there, takes keys")
        filled.append(held)
    for window in range(1, leaves):
        halves = counts[2 * window] + counts[2 * window + 1]
        _require(counts[window] == halves, 2, f"window {window} is not the sum of its halves")
    keys = np.concatenate(filled)
    _require(bool((keys[1:] > keys[:-1]).all()), 1, "keys do not strictly rise")
    most, least = root_bounds(segments.size, size)
    _require(len(keys) <= most, 4, f"the root holds {len(keys)}, over its bound {most}")
    if m:
        _require(len(keys) >= least, 4, f"the root holds {len(keys)}, under {least}")
    return keys


def _check_totals(store: LPMA, keys: Array, direction: int) -> None:
    """Invariant 5."""
    low, high = keys & LOW, keys >> HALF
    marker = low == LOW
    _require(store.num_slots == len(keys), 5, "num_slots is not the number of filled slots")
    _require(store.num_markers == int(marker.sum()), 5, "num_markers is wrong")
    _require(store.num_loops == int((low == high).sum()), 5, "num_loops is wrong")
    _require(not (direction == REVERSE and marker.any()), 5, "an in-store holds a marker")
    largest = max(int(high.max(initial=0)), int(low[~marker].max(initial=0))) if len(keys) else -1
    _require(store.largest in (None, largest), 5, "the largest vertex is wrong")
    stored, weights, times = map(to_host, store.backend.slots(store.segments))
    _require(np.array_equal(stored, keys), 5, "the columns disagree")
    if weights is not None:
        _require(bool((weights >= 0).all()), 5, "a stored weight is negative")
        _require(not weights[marker].any(), 5, "a marker has a weight")
    if times is not None:
        _require(len(times) == len(keys), 5, "the columns disagree")
    if direction == BOTH:
        edge = ~marker
        _require(_same_edges(keys[edge], keys[edge]), 5, "an undirected edge lacks a side")
        other_side = np.argsort(reversed_keys(keys[edge]), kind="stable")
        for held in (column[edge] for column in (weights, times) if column is not None):
            same = np.array_equal(held, held[other_side])
            _require(same, 5, "the two sides of an undirected edge differ")


def _same_edges(keys: Array, mirrored: Array) -> bool:
    return bool(np.array_equal(keys, np.sort(reversed_keys(mirrored))))


def _check_mirrored(out: LPMA, into: LPMA) -> None:
    """The in-store holds the out-store's edges, reversed, with the same columns."""
    keys, weights, times = map(to_host, out.backend.slots(out.segments))
    back, back_weights, back_times = map(to_host, into.backend.slots(into.segments))
    edge = (keys & LOW) != LOW
    _require(_same_edges(keys[edge], back), 5, "the in-store holds other edges")
    order = np.argsort(reversed_keys(back), kind="stable")
    for column, reversed_column in ((weights, back_weights), (times, back_times)):
        if column is not None and reversed_column is not None:
            same = np.array_equal(column[edge], reversed_column[order])
            _require(same, 5, "the in-store's columns differ from the out-store's")
