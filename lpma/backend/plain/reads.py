"""Queries and exports. A version holds the state of its key after its operation, so a query inside
a mixed batch reads the last slot of a key that is within its limit, and folds nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ...arrays import row_numbers
from ...keys import HALF, LOW, keys_of
from .. import ages
from ..values import Array
from .located import StagedBatch
from .segments import Segments
from .slots import Slots

SAMPLED_SLOTS = 1 << 13
PIECE = 1 << 20  # slots that are looked at together


class Reads:
    """See lpma.backend.reading."""

    def find_edges(
        self, segments: Segments, staged: StagedBatch | None, src: Array, dst: Array,
        limits: Array | None,
    ) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
        slots, keys = segments.slots, keys_of(src, dst)
        at = np.searchsorted(slots.keys, keys)
        if slots.marks is not None and limits is not None:
            ends = np.searchsorted(slots.keys, keys, "right")
            at = _last_within(slots.marks, at, ends, limits)
        if not len(slots.keys):
            at, found = at[:0], np.zeros(len(keys), np.bool_)
            values = [None if c is None else np.zeros(len(keys), c.dtype) for c in slots[1:3]]
            return found, values[0], values[1]
        at = np.minimum(at, len(slots.keys) - 1)
        found = slots.keys[at] == keys
        if slots.marks is not None and limits is not None:
            found &= (slots.marks[at] >= 0) & (np.abs(slots.marks[at]) <= limits)
        weights, times = (
            None if column is None else np.where(found, column[at], column.dtype.type(0))
            for column in slots[1:3]
        )
        return found, weights, times

    def count_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None,
    ) -> Array:  # fmt: skip
        lo, hi = _rows_of(segments.slots.keys, vertices)
        if limits is None or not segments.has_versions:
            return hi - lo
        degrees = segments.out_degrees
        return hi - lo - degrees.versions(vertices) + degrees.since(vertices, limits)

    def neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None, values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        slots = segments.slots
        lo, hi = _rows_of(slots.keys, vertices)
        if limits is None or slots.marks is None:
            indptr = np.append(0, np.cumsum(hi - lo))
            at = _ranges(lo, indptr)
        else:
            parts = []
            counts = np.zeros(len(lo), np.int64)
            for first, last in _pieces(hi - lo):
                indptr = np.append(0, np.cumsum((hi - lo)[first:last]))
                at = _ranges(lo[first:last], indptr)
                query = row_numbers(indptr, len(at))
                seen = _seen(slots, at, query, limits[first:last][query])
                parts.append(at[seen])
                counts[first:last] = np.bincount(query[seen], minlength=last - first)
            indptr, at = np.append(0, np.cumsum(counts)), np.concatenate([*parts, lo[:0]])
        ids = (slots.keys[at] & LOW).astype(np.uint32)
        weights, times = (
            None if column is None or not values else column[at] for column in slots[1:3]
        )
        return indptr, ids, weights, times

    def neighbors_from(
        self, segments: Segments, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        slots = segments.slots
        ends = np.array([vertex << 32 | first, vertex << 32 | int(LOW)], np.uint64)
        lo, hi = np.searchsorted(slots.keys, ends).tolist()
        piece = slice(lo, min(hi, lo + most))
        weights, times = (None if c is None else c[piece].copy() for c in slots[1:3])
        return (slots.keys[piece] & LOW).astype(np.uint32), weights, times

    def has_in_edges(
        self, segments: Segments, staged: StagedBatch | None, targets: Array, limits: Array | None
    ) -> Array:
        slots = segments.slots
        first = np.append(True, targets[1:] != targets[:-1])[: len(targets)]
        at, which = _edges_into(slots.keys, targets[first])
        if slots.marks is not None:
            which = which[slots.marks[at] == 0]
        group = np.cumsum(first) - 1
        stored = np.bincount(which, minlength=len(targets))[group]
        if limits is not None and slots.marks is not None:
            stored += segments.in_degrees.since(targets, limits)
        found: Array = stored > 0
        return found

    def scan_targets(
        self, segments: Segments, staged: StagedBatch | None, targets: Array, limits: Array | None
    ) -> tuple[Array, Array]:
        slots = segments.slots
        at, which = _edges_into(slots.keys, targets)
        if limits is not None and slots.marks is not None:
            seen = _seen(slots, at, which, limits[which])
            at, which = at[seen], which[seen]
        return which, (slots.keys[at] >> HALF).astype(np.uint32)

    def largest_vertex(self, segments: Segments) -> int:
        keys = segments.slots.keys
        if not len(keys):
            return -1
        targets = keys & LOW
        edge = targets != LOW
        return max(int(keys[-1] >> HALF), int(targets[edge].max(initial=0)))

    def csr(
        self, segments: Segments, num_rows: int, num_edges: int, markers: bool
    ) -> tuple[Array, Array, Array | None, Array | None]:
        slots = segments.slots
        slots = slots.where(slots.keys & LOW != LOW if markers else slice(None))
        rows = np.arange(num_rows + 1, dtype=np.uint64) << HALF
        indptr = np.searchsorted(slots.keys, rows)
        weights, times = (None if column is None else np.array(column) for column in slots[1:3])
        return indptr, (slots.keys & LOW).astype(np.uint32), weights, times

    def slots(
        self, segments: Segments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        keys, *columns = segments.slots[:3]
        weights, times = (c.copy() if values and c is not None else None for c in columns)
        return keys.copy(), weights, times

    def older(self, segments: Segments, before: int) -> tuple[Array, Array]:
        keys, times = segments.slots.keys, segments.slots.times
        assert times is not None
        hit = np.flatnonzero((times < before) & ((keys & LOW) != LOW))
        return keys[hit], times[hit]

    def since(
        self, segments: Segments, before: int
    ) -> tuple[tuple[Array, Array | None, Array | None], int]:
        return ages.without_older(self.slots(segments), before)

    def sampled_times(self, segments: Segments) -> Array:
        times = segments.slots.times
        assert times is not None
        return times[:: 1 + len(times) // SAMPLED_SLOTS]

    def any_older(self, segments: Segments, times: Array, before: int) -> Callable[[], bool]:
        found = bool((times < before).any())
        return lambda: found

    def copy_slots(
        self, segments: Segments, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        for to, column in zip((keys, weights, times), segments.slots[:3], strict=True):
            if to is not None and column is not None:
                to[:] = column

    def host_memory(self, size: int) -> Array:
        """As much again takes no memory until it is written."""
        return np.empty(2 * size, np.uint8)


def _rows_of(keys: Array, vertices: Array) -> tuple[Array, Array]:
    """The ranges of slots of vertices' edges, without their markers."""
    first = vertices.astype(np.uint64) << HALF
    return np.searchsorted(keys, first), np.searchsorted(keys, first | LOW)


def _ranges(starts: Array, indptr: Array) -> Array:
    """The numbers of ranges, range after range: the i-th goes from starts[i] up."""
    n = int(indptr[-1])
    return np.repeat(starts - indptr[:-1], np.diff(indptr)) + np.arange(n)


def _pieces(lengths: Array) -> list[tuple[int, int]]:
    """Queries cut so that each piece looks at few slots, or is one query."""
    total = np.cumsum(lengths)
    cuts, last = [0], 0
    while last < len(lengths):
        before = int(total[last - 1]) if last else 0
        last = max(last + 1, int(np.searchsorted(total, before + PIECE)))
        cuts.append(last)
    return list(pairwise(cuts))


def _seen(slots: Slots, at: Array, query: Array, limits: Array) -> Array:
    """bool[n]: whether slot at[i] is its key's state to a query with that limit. A query's slots of
    one key follow each other."""
    assert slots.marks is not None
    marks, keys = slots.marks[at], slots.keys[at]
    within = np.abs(marks) <= limits
    last = within.copy()
    last[:-1] &= ~(within[1:] & (keys[1:] == keys[:-1]) & (query[1:] == query[:-1]))
    seen: Array = last & (marks >= 0)
    return seen


def _last_within(marks: Array, lo: Array, hi: Array, limits: Array) -> Array:
    """The last slot of each range lo[i] … hi[i] - 1 that is within a limit, or lo[i] if none is.
    By bisection, of all ranges together."""
    while (hi - lo > 1).any():
        middle = (lo + hi) >> 1
        within = (hi - lo > 1) & (np.abs(marks[np.minimum(middle, len(marks) - 1)]) <= limits)
        wide = hi - lo > 1
        lo, hi = np.where(within, middle, lo), np.where(wide & ~within, middle, hi)
    return lo


def _edges_into(keys: Array, targets: Array) -> tuple[Array, Array]:
    """(slots, which target each goes to) of the slots whose target is among rising `targets`. A
    marker's is not a vertex."""
    low = keys & LOW
    sought = targets.astype(np.uint64)
    at = np.flatnonzero(np.isin(low, sought))
    return at, np.searchsorted(sought, low[at])
