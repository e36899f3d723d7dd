"""The stores of one graph, and what belongs to them as a whole: versions, times, the history.

A graph has an out-store, whose keys are (src, dst); an undirected one holds both directions of each
edge in it. A directed graph may have an in-store beside it, whose keys are (dst, src).

The caller of a method holds the graph's lock (lock.py).
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import array_module
from ..backend.protocol import Place
from ..backend.values import (
    BOTH,
    FORWARD,
    MAX_CHANGES,
    REVERSE,
    Array,
    Changed,
    SlotArrays,
    SlotColumns,
    SlotSource,
)
from ..pma.counters import Stats
from ..pma.keys import LOW, Slots, ends_of, reversed_keys
from ..store.history import History, joined, newest
from ..store.lpma import LPMA
from ..store.pending import PendingBatch
from .expiry import Expiry
from .in_degrees import InDegrees

FEW = 16  # slots for each key that changed, from which on to read the changes beats a scan


@dataclass
class Stores:
    """The contents of one graph.

    Invariant 6 (of lpma.store.lpma.LPMA): the version rises by one a batch."""

    # Changed by `move_on`.
    out: LPMA
    into: LPMA | None
    # Immutable after construction.
    directed: bool
    weight_dtype: np.dtype[Any] | None
    place: Place
    left: int | None = None  # of a bipartite graph, how many ids are of the left side
    # Changed by `note` and by `fill`; `deferred` and `last` by a snapshot too.
    version: int = 0
    loaded: int = 0  # the version that `fill` made
    time: int = 0  # of the last update applied
    history: History = field(default_factory=History)
    expiry: Expiry = field(default_factory=Expiry)
    deferred: weakref.ref[Any] | None = None  # columns of snapshots of this version
    last: Any = None  # the last snapshot's, while it is small (row_versions.py)
    # Changed by `largest_vertex`, and by `fill`.
    largest_at: tuple[int, int] = (-1, -1)  # a version, and the largest vertex there was
    # Changed by a snapshot, and by `fill`: a version, and the vertices that had markers then.
    added: tuple[int, Array] = (-1, np.empty(0, np.uint32))
    # Changed by queries for vertices, and by `fill`.
    in_degrees: InDegrees = field(default_factory=InDegrees)
    is_provisional: bool = field(init=False)  # whether a better backend may yet come

    def __post_init__(self) -> None:
        self.is_provisional = self.out.backend.is_provisional

    @cached_property
    def all(self) -> list[tuple[LPMA, int]]:
        """Each store with the direction of its keys."""
        if self.into is not None:
            return [(self.out, FORWARD), (self.into, REVERSE)]
        return [(self.out, FORWARD if self.directed else BOTH)]

    @property
    def reverse(self) -> LPMA | None:
        """The store whose successors are predecessors."""
        return self.into if self.directed else self.out

    @property
    def written(self) -> bool:
        """Whether the batch under way has changed what is published, and must be completed."""
        return any(store.written or store.backend.written for store, _ in self.all)

    def move_on(self) -> None:
        """Between batches: if the provisional backend has a successor, that one keeps the stores,
        or if memory does not suffice, later. Contents, version and counters stay; levels are made
        anew."""
        successors = [store.backend.successor() for store, _ in self.all]
        if None in successors:
            return
        with suppress(MemoryError):
            moved = [_moved(store, to) for (store, _), to in zip(self.all, successors, strict=True)]
            # In one step: no signal's handler finds one store moved and the other not.
            out, into = moved[0], moved[1] if len(moved) > 1 else None
            now = [(to, direction) for to, (_, direction) in zip(moved, self.all, strict=True)]
            vars(self).update(out=out, into=into, all=now, is_provisional=False)

    def finish_pending(self) -> None:
        self.out.finish_pending()

    def materialize_deferred(self) -> None:
        """Before a batch: copy what snapshots have not yet copied. Raises MemoryError."""
        if self.deferred is not None and (columns := self.deferred()) is not None:
            columns.copied()
        self.deferred = None

    def settle(self) -> None:
        """Note that what is published is the state after a whole batch."""
        for store, _ in self.all:
            store.written = False
            if store.backend.written:
                store.backend.written = False

    @property
    def num_edges(self) -> int:
        """Edges, markers left out; an undirected one counts once."""
        stored = self.out.segments.num_slots - self.out.num_markers
        return stored if self.directed else (stored + self.out.num_loops) // 2

    @property
    def nbytes(self) -> int:
        """Bytes of all stores, and of what is kept beside them."""
        kept = self.in_degrees.nbytes + (0 if self.last is None else self.last.rows.nbytes)
        stores = sum(store.nbytes for store, _ in self.all)
        return stores + self.history.nbytes + self.expiry.nbytes + kept

    def stats(self) -> Stats:
        """What has been moved so far, over all stores."""
        stats = self.out.stats.added(self.into.stats if self.into else Stats())
        stats.batches = self.version - self.loaded
        return stats

    def largest_vertex(self) -> int:
        """The largest id in an edge or a marker, -1 if there is none. After a deletion on the host,
        it is told from the last one known, if few keys changed and none of that vertex went."""
        out, (version, largest) = self.out, self.largest_at
        batches = None
        if out.largest is None and array_module(out.segments.counts) is np:
            batches = self.history.since(version)
        if batches is not None and sum([len(keys) for keys, _ in batches]) * FEW < out.num_slots:
            keys, there = newest(*joined(batches))
            src, dst = ends_of(keys)
            ends = np.maximum(src, np.where(dst == LOW, src, dst))  # a marker has one end
            if not (ends[~there] == largest).any():
                out.largest = max([largest, *ends[there].tolist()])
        self.largest_at = self.version, out.largest_vertex()
        return self.largest_at[1]

    def most_changes(self, store: LPMA) -> int:
        """How many of a store's changes the history takes: it records the out-store's only."""
        return MAX_CHANGES if store is self.out else -1

    def note(self, changes: list[Changed | PendingBatch], time: int) -> None:
        """Note what an applied batch means for the graph as a whole. changes: in order; time: that
        of the batch's last update, or the graph's if it had none."""
        self.out.written = True  # a batch of queries alone is noted too
        self.version += 1
        for changed in changes:
            if isinstance(changed, PendingBatch):
                changed.version, changed.history = self.version, self.history
            else:
                self.history.add(self.version, changed)
        self.time = time

    def fill(self, slots: SlotSource) -> None:
        """Replace the contents by these; no history remains. What `slots` or a lack of memory
        raises leaves the stores as they were."""
        # First, since the whole columns are in memory only then.
        into = None if self.into is None else self.into.build(_reversed(slots))
        out = self.out.build(slots)
        self.out.load(out, slots.facts.markers, slots.facts.loops)
        if self.into is not None and into is not None:
            self.into.load(into, 0, slots.facts.loops)
        self.out.largest = slots.facts.largest
        self.history.forget(self.version)
        self.expiry.forget()
        self.last = None
        self.loaded = self.version
        self.largest_at = -1, -1
        self.added = -1, np.empty(0, np.uint32)
        self.in_degrees = InDegrees()
        self.settle()


@dataclass
class _Sorted:
    """A SlotSource: the edges in `order` of whole columns, each from its target."""

    keys: Array
    weights: Array | None
    times: Array | None
    order: Array

    @property
    def total(self) -> int:
        return len(self.order)

    def read(self, first: int, last: int) -> SlotColumns:
        rows = self.order[first:last]
        weights, times = (None if c is None else c[rows] for c in (self.weights, self.times))
        return reversed_keys(self.keys[rows]), weights, times

    @property
    def facts(self) -> Slots:
        raise AssertionError("those of the out-store say it")


def _reversed(slots: SlotSource) -> SlotSource:
    """The edges of an out-store as an in-store has them."""
    keys, weights, times = slots.read(0, slots.total)
    order = np.argsort(reversed_keys(keys), kind="stable")  # the fastest here; markers come last
    return _Sorted(keys, weights, times, order[: len(order) - slots.facts.markers])


def _moved(store: LPMA, backend: Any) -> LPMA:
    """The same contents and figures, kept by another backend. Raises MemoryError."""
    moved = copy(store)
    moved.use(backend)
    moved.segments = moved.build(SlotArrays(*store.backend.slots(store.segments)))
    moved.hybrid = moved.new_hybrid()  # which strategy is faster says nothing of another backend
    return moved
