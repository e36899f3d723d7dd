"""The backend in NumPy alone: the operations of protocol.py, each a few calls of NumPy.

A batch is folded (fold.py) and merged with all slots, whatever the graph's strategy: no windows are
planned, since to write one array anew is all that NumPy can do with it. So what is done without a
copy elsewhere takes time linear in the store here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import row_numbers
from ...batch.columns import Columns
from ...pma.counters import Stats
from ...pma.keys import HALF, LOW, keys_of
from ...pma.layout import Size
from ..defaults import Defaults
from ..protocol import AnyBackend
from ..values import Array, Committed, Costs, Implied, SlotSource, Tally, num_pieces
from . import fold
from .fold import Folded, KeyRows, StagedBatch
from .segments import Segments, Slots

ONE = np.ones(1, np.float32)
MOST_LEVELS = 29  # as many as the Numba backend can number


@dataclass
class Located:
    """A folded batch on a store, with what it amounts to."""

    batch: Folded
    tally: Tally
    changes: tuple[Array, Array]  # the keys inserted and deleted, rising, and which are inserted


class NumpyBackend(Defaults):
    """See lpma.backend.protocol. One instance per store; not thread-safe."""

    name = "numpy"
    validates = False
    is_provisional = True
    costs = Costs(load=0)  # every batch is merged with the whole store
    buffer_bytes = 0  # nothing is kept from batch to batch
    way_out = "make the graph with a larger segment_size"

    def __init__(self, successor: Callable[[], AnyBackend | None] = lambda: None) -> None:
        self._successor = successor
        self.written = False
        self.beside: Folded | None = None  # the batch that lies beside the store

    def successor(self) -> AnyBackend | None:
        return self._successor()

    # -- one batch ----------------------------------------------------------------------------

    def stage(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> StagedBatch:
        given = ONE if columns.weight is None else columns.weight
        weight = given if weight_dtype is None else given.astype(weight_dtype, copy=False)
        return StagedBatch(columns.kind, given, weight, time)

    def key_rows(
        self, staged: StagedBatch, columns: Columns, direction: int, implied: Implied | None = None
    ) -> KeyRows:
        return fold.key_rows(columns, direction, implied)

    def sort_beside(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        self.beside = fold.folded(segments.slots, staged, rows)

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, strategy: str
    ) -> Located:
        self.beside = None
        batch = fold.folded(segments.slots, staged, rows)
        present = batch.present[batch.last]
        comes, goes = present & ~batch.stored, batch.stored & ~present
        moves, touched = comes | goes, present | batch.stored
        changes = batch.keys[moves], comes[moves]
        return Located(batch, _tally(int(touched.sum()), *changes), changes)

    def rollback(self, located: Located) -> None:
        """Locating writes nothing."""

    def commit(
        self, segments: Segments, located: Located, plan: None, stats: Stats, most_changes: int
    ) -> Committed:
        """The store was rebuilt: what is left is to tell."""
        changes = located.changes if located.tally.num_changes <= most_changes else None
        unchanged = located.batch.unchanged.tolist()
        return Committed(tally=located.tally, unchanged=unchanged, changes=changes)

    def rebuild(self, segments: Segments, located: Located, size: Size) -> Segments:
        return Segments(segments.segment_size, size, located.batch.merged(segments.slots))

    def _not_asked(self, *_: Any) -> Any:
        raise AssertionError("every batch rebuilds the store: see Costs.load")

    expand = shrink = place_on = plan = reserve = _not_asked

    def trim(self, segments: Segments, staged: StagedBatch) -> None:
        self.beside = None

    # -- whole stores -------------------------------------------------------------------------

    def most_levels(self, segment_size: int) -> int:
        return MOST_LEVELS

    def empty(self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Segments:
        return Segments(segment_size, Size(0), Slots.empty(0, weight_dtype, times))

    def build(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool, size: Size,
        slots: SlotSource,
    ) -> Segments:  # fmt: skip
        total, n = slots.total, num_pieces(slots.total)
        own = Slots.empty(total, weight_dtype, times)
        for first, last in pairwise(total * piece // n for piece in range(n + 1)):
            for to, column in zip(own, slots.read(first, last), strict=True):
                if to is not None:
                    to[first:last] = column
        return Segments(segment_size, size, own)

    # -- queries ------------------------------------------------------------------------------
    # In a mixed batch, answers from the store are put right by what the batch beside it says of the
    # keys that a query sees changed.

    def find_edges(
        self, segments: Segments, staged: StagedBatch | None, src: Array, dst: Array | None,
        limits: Array | None, unseen: bool = False,
    ) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
        slots, keys = segments.slots, keys_of(src, LOW if dst is None else dst)
        beside = self.batch_of(staged)
        at, found = slots.find(keys)
        answers = [(np.flatnonzero(found), slots.where(at[found]))]
        if beside is not None and limits is not None:
            query, row = beside.seen_of(keys, limits)
            found[query] = beside.present[row]
            answers.append((query, beside.slots(row, slots)))
        values = [None if column is None else np.zeros(len(keys), column.dtype) for column in slots]
        for query, those in answers:
            for value, column in zip(values, those, strict=True):
                if value is not None and column is not None:
                    value[query] = np.where(found[query], column, 0)
        return found, values[1], values[2]

    def count_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None, unseen: bool = False,
    ) -> Array:  # fmt: skip
        (lo, hi), beside = _rows_of(segments.slots.keys, vertices), self.batch_of(staged)
        if beside is None or limits is None:
            return hi - lo
        return hi - lo + beside.degrees.since(vertices, limits)

    def neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None, values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        (lo, hi), beside = _rows_of(segments.slots.keys, vertices), self.batch_of(staged)
        at, query = _ranges(lo, hi)
        if beside is None or limits is None:
            slots = segments.slots.where(at)
        else:
            slots, query = _seen(segments.slots, beside, vertices, limits, lo, hi)
        counts = np.bincount(query, minlength=len(vertices))
        weights, times = slots[1:] if values else (None, None)
        return np.append(0, np.cumsum(counts)), _targets(slots.keys), weights, times

    def neighbors_from(
        self, segments: Segments, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        ends = np.array([vertex << 32 | first, vertex << 32 | int(LOW)], np.uint64)
        lo, hi = np.searchsorted(segments.slots.keys, ends).tolist()
        keys, weights, times = segments.slots.where(np.arange(lo, min(hi, lo + most)))
        return _targets(keys), weights, times

    def has_in_edges(self, segments: Segments, targets: Array) -> Array:
        found: Array = np.isin(targets, _targets(_into(segments.slots.keys, targets)))
        return found

    def scan_targets(self, segments: Segments, targets: Array) -> tuple[Array, Array]:
        into = _into(segments.slots.keys, targets)
        return np.searchsorted(targets, _targets(into)), (into >> HALF).astype(np.uint32)

    def largest_vertex(self, segments: Segments) -> int:
        keys = segments.slots.keys
        if not len(keys):
            return -1
        targets = keys & LOW
        return max(int(keys[-1] >> HALF), int(targets[targets != LOW].max(initial=0)))

    # -- all slots ----------------------------------------------------------------------------

    def slots(
        self, segments: Segments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        keys, *columns = segments.slots
        weights, times = (c.copy() if values and c is not None else None for c in columns)
        return keys.copy(), weights, times

    def older(self, segments: Segments, before: int) -> tuple[Array, Array]:
        keys, _, times = segments.slots
        assert times is not None
        hit = (times < before) & ((keys & LOW) != LOW)
        return keys[hit], times[hit]

    def copy_slots(
        self, segments: Segments, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        for to, column in zip((keys, weights, times), segments.slots, strict=True):
            if to is not None and column is not None:
                to[:] = column

    def host_memory(self, size: int) -> Array:
        """As much again takes no memory until it is written."""
        return np.empty(2 * size, np.uint8)


def _tally(touched: int, keys: Array, inserted: Array) -> Tally:
    """What keys that come and go amount to."""
    src, dst = keys >> HALF, keys & LOW
    sign, marker = np.where(inserted, 1, -1), dst == LOW
    ends = np.maximum(src, np.where(marker, 0, dst))[inserted]
    return Tally(
        touched=touched,
        delta=int(sign.sum()),
        markers=int(sign[marker].sum()),
        loops=int(sign[src == dst].sum()),
        largest=int(ends.max()) if len(ends) else -1,
        deletions=int(np.count_nonzero(~inserted)),
    )


def _targets(keys: Array) -> Array:
    return (keys & LOW).astype(np.uint32)


def _into(keys: Array, targets: Array) -> Array:
    """The keys of edges into targets. A marker's is not a vertex."""
    return keys[np.isin(keys & LOW, targets)]


def _rows_of(keys: Array, vertices: Array) -> tuple[Array, Array]:
    """The ranges of slots of vertices' edges, without their markers."""
    first = vertices.astype(np.uint64) << HALF
    return np.searchsorted(keys, first), np.searchsorted(keys, first | LOW)


def _ranges(lo: Array, hi: Array) -> tuple[Array, Array]:
    """The numbers of ranges lo[i] … hi[i] - 1, range after range, and which range each is of."""
    indptr = np.append(0, np.cumsum(hi - lo))
    of = row_numbers(indptr, int(indptr[-1]))
    return np.arange(len(of)) + (lo - indptr[:-1])[of], of


def _seen(
    stored: Slots, beside: Folded, vertices: Array, limits: Array, lo: Array, hi: Array
) -> tuple[Slots, Array]:
    """(slots, the query that each is of) of neighbours at the queries' limits: those stored, at
    lo … hi - 1 of each vertex, but for those with operations before the limit, which these speak
    for."""
    at, query = _ranges(lo, hi)
    runs, asker = _ranges(*_rows_of(beside.keys, vertices))
    sees, row = beside.seen(runs, limits[asker])
    runs, asker, row = runs[sees], asker[sees], row[sees]
    stays, known = np.ones(len(at), np.bool_), beside.stored[runs]
    begin = np.append(0, np.cumsum(hi - lo))[:-1] - lo
    stays[begin[asker[known]] + beside.at[runs[known]]] = False
    there = beside.present[row]
    query = np.concatenate([query[stays], asker[there]])
    both = zip(stored.where(at[stays]), beside.slots(row[there], stored), strict=True)
    slots = Slots._make(None if old is None else np.concatenate([old, new]) for old, new in both)
    order = np.lexsort((slots.keys, query))
    return slots.where(order), query[order]
