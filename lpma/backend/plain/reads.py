"""Queries and exports. Inside a mixed batch, answers from the store are put right by what the batch
beside it says of the keys that a query sees changed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ...arrays import row_numbers
from ...pma.keys import HALF, LOW, keys_of
from .. import ages
from ..values import Array
from .beside import Beside
from .located import StagedBatch
from .segments import Segments
from .slots import Slots

SAMPLED_SLOTS = 1 << 13
PIECE = 1 << 20  # slots that are looked at together


class Reads:
    """See lpma.backend.reading."""

    beside: Beside | None = None  # the batch that lies beside the store

    @property
    def _beside(self) -> Beside:
        assert self.beside is not None, "REQUIRES: sort_beside"
        return self.beside

    def find_edges(
        self, segments: Segments, staged: StagedBatch | None, src: Array, dst: Array,
        limits: Array | None,
    ) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
        slots, keys = segments.slots, keys_of(src, dst)
        found = np.zeros(len(keys), np.bool_)
        values = [None if c is None else np.zeros(len(keys), c.dtype) for c in slots[1:]]
        if len(slots.keys):
            at = np.minimum(np.searchsorted(slots.keys, keys), len(slots.keys) - 1)
            found = slots.keys[at] == keys
            for value, column in zip(values, slots[1:], strict=True):
                if value is not None and column is not None:
                    value[found] = column[at[found]]
        if staged is not None and limits is not None:
            states = self._beside.states
            query, row = self._beside.seen_of(keys, limits)
            found[query] = states.present[row]
            for value, column in zip(values, (states.weight, states.time), strict=True):
                if value is not None and column is not None:
                    value[query] = np.where(states.present[row], column[row], 0)
        return found, values[0], values[1]

    def count_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None,
    ) -> Array:  # fmt: skip
        lo, hi = _rows_of(segments.slots.keys, vertices)
        if staged is None or limits is None:
            return hi - lo
        return hi - lo + self._beside.degrees.since(vertices, limits)

    def neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None, values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        lo, hi = _rows_of(segments.slots.keys, vertices)
        slots, indptr = segments.slots, np.append(0, np.cumsum(hi - lo))
        if staged is None or limits is None:
            slots = slots.where(_ranges(lo, indptr))
        else:
            indptr, slots = self._seen(segments, vertices, limits, lo, hi)
        weights, times = slots[1:] if values else (None, None)
        return indptr, (slots.keys & LOW).astype(np.uint32), weights, times

    def _seen(
        self, segments: Segments, vertices: Array, limits: Array, lo: Array, hi: Array
    ) -> tuple[Array, Slots]:
        """(indptr, slots) of neighbours at the queries' limits: those stored, at lo … hi - 1 of
        each vertex, but for those with operations before the limit, which these speak for."""
        beside, slots = self._beside, segments.slots
        batch, states = beside.batch, beside.states
        first, last = _rows_of(batch.keys, vertices)
        counts, parts = np.zeros(len(lo), np.int64), [slots.where(slice(0))]
        for piece in _pieces(hi - lo + last - first):
            here = slice(*piece)
            at, query = _both(lo[here], hi[here])
            runs, asker = _both(first[here], last[here])
            sees, row = beside.seen(runs, limits[here][asker])
            runs, asker, row = runs[sees], asker[sees], row[sees]
            stays, known = np.ones(len(at), np.bool_), batch.stored.present[runs]
            before = np.append(0, np.cumsum((hi - lo)[here]))[:-1] - lo[here]
            stays[before[asker[known]] + batch.at[runs[known]]] = False
            there = states.present[row]
            of = np.concatenate([query[stays], asker[there]])
            seen = Slots.joined([slots.where(at[stays]), beside.slots(row[there], slots)])
            parts.append(seen.where(np.lexsort((seen.keys, of))))
            counts[here] = np.bincount(of, minlength=len(before))
        return np.append(0, np.cumsum(counts)), Slots.joined(parts)

    def neighbors_from(
        self, segments: Segments, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        slots = segments.slots
        ends = np.array([vertex << 32 | first, vertex << 32 | int(LOW)], np.uint64)
        lo, hi = np.searchsorted(slots.keys, ends).tolist()
        piece = slice(lo, min(hi, lo + most))
        weights, times = (None if c is None else c[piece].copy() for c in slots[1:])
        return (slots.keys[piece] & LOW).astype(np.uint32), weights, times

    def has_in_edges(self, segments: Segments, targets: Array) -> Array:
        first = np.append(True, targets[1:] != targets[:-1])[: len(targets)]
        _, which = _edges_into(segments.slots.keys, targets[first])
        found: Array = np.bincount(which, minlength=len(targets))[np.cumsum(first) - 1] > 0
        return found

    def scan_targets(self, segments: Segments, targets: Array) -> tuple[Array, Array]:
        keys = segments.slots.keys
        at, which = _edges_into(keys, targets)
        return which, (keys[at] >> HALF).astype(np.uint32)

    def largest_vertex(self, segments: Segments) -> int:
        keys = segments.slots.keys
        if not len(keys):
            return -1
        targets = keys & LOW
        edge = targets != LOW
        return max(int(keys[-1] >> HALF), int(targets[edge].max(initial=0)))

    def slots(
        self, segments: Segments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        keys, *columns = segments.slots
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
        for to, column in zip((keys, weights, times), segments.slots, strict=True):
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


def _both(lo: Array, hi: Array) -> tuple[Array, Array]:
    """The numbers of ranges lo[i] … hi[i] - 1, range after range, and which range each is of."""
    indptr = np.append(0, np.cumsum(hi - lo))
    return _ranges(lo, indptr), row_numbers(indptr, int(indptr[-1]))


def _pieces(lengths: Array) -> list[tuple[int, int]]:
    """Queries cut so that each piece looks at few slots, or is one query."""
    total = np.cumsum(lengths)
    cuts, last = [0], 0
    while last < len(lengths):
        before = int(total[last - 1]) if last else 0
        last = max(last + 1, int(np.searchsorted(total, before + PIECE)))
        cuts.append(last)
    return list(pairwise(cuts))


def _edges_into(keys: Array, targets: Array) -> tuple[Array, Array]:
    """(slots, which target each goes to) of the slots whose target is among rising `targets`. A
    marker's is not a vertex."""
    low = keys & LOW
    sought = targets.astype(np.uint64)
    at = np.flatnonzero(np.isin(low, sought))
    return at, np.searchsorted(sought, low[at])
