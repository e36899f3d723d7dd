"""Opera: a mixed batch in two passes, each query answered as if operations ran one at a time.

Source: paper, Section VI. Updates before the first query are applied as usual, where they are the
most of the batch; few of them are not worth a pass and go with the others. The others are put
beside the stored edge of their key as versions (key, 1 + place), unfolded; then all queries run in
parallel, each folding the versions before its own place; then one compaction folds them for good.
That is two passes over the updates however many queries there are.

What a mixed batch may need (levels, the version column, buffers) is allocated before its first
write; after that only a few words are, and the answers. So memory that runs out leaves the
graph as it was, but for an answer that is too large: then the updates are applied all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import mixed
from .answers import NO_ANSWERS, Answers, SerialAnswers, answer_queries
from .backend.values import (
    BOTH,
    FORWARD,
    REVERSE,
    Array,
    Changed,
    Committed,
    Implied,
    StagedBatch,
)
from .batch import FIRST_QUERY, Columns, last_update
from .history import MAX_KEYS
from .query import HALF
from .removal import incident_deletions
from .store import LPMA, Prepared


@dataclass(frozen=True)
class Stores:
    """The stores of one graph."""

    out: LPMA
    into: LPMA | None
    directed: bool

    @property
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
        """Whether the batch under way has changed what is published: then it must be ended."""
        return any(store.written or store.backend.written for store, _ in self.all)

    def settle(self) -> None:
        """What is published is that of a whole batch."""
        for store, _ in self.all:
            store.written = store.backend.written = False

    def answer(self, columns: Columns, staged: StagedBatch | None, places: Array) -> Answers:
        """See answers.answer_queries."""
        return answer_queries(self.out, self.into, self.directed, columns, staged, places)

    def wanted(self, store: LPMA) -> int:
        """How many changes of a store are wanted: the history is of the out-store."""
        return MAX_KEYS if store is self.out else -1


@dataclass
class Outcome:
    """What applying a batch came to."""

    answers: Answers
    changes: list[Changed]  # of the out-store, in order
    failure: MemoryError | None = None  # an answer was too large; the updates are applied


def apply_in_parallel(stores: Stores, columns: Columns, staged: StagedBatch) -> Outcome:
    """Apply a validated batch, which the out-store's backend has staged for all."""
    if columns.edges_only:
        return Outcome(NO_ANSWERS, _apply_rows(stores, columns, staged, 0, len(columns)))
    places = np.flatnonzero(columns.kind >= FIRST_QUERY)
    first = int(places[0]) if len(places) else len(columns)
    last = last_update(columns.kind) + 1
    if last > first:
        head = first if first > last - first else 0
        return _apply_mixed(stores, columns, staged, places, head, last)
    changes = _apply_rows(stores, columns, staged, 0, first)
    try:
        return Outcome(stores.answer(columns, None, places), changes)
    except MemoryError as error:
        return Outcome(NO_ANSWERS, changes, error)


def _apply_rows(
    stores: Stores, columns: Columns, staged: StagedBatch, lo: int, hi: int
) -> list[Changed]:
    """Apply rows lo … hi - 1, without versions: all stores are prepared before any is written."""
    implied = _implied(stores, columns, lo, hi)
    prepared = _prepare(stores, columns, staged, implied, lo, hi)
    return _changes(
        [
            store.commit(ready, hi - lo, most_changes=stores.wanted(store))
            for (store, _), ready in zip(stores.all, prepared, strict=True)
        ]
    )


def _changes(committed: list[Committed]) -> list[Changed]:
    """What committing to each store came to, as changes: of the first, the out-store, if any."""
    return [of_store.changes for of_store in committed[:1]]


def _apply_mixed(
    stores: Stores, columns: Columns, staged: StagedBatch, places: Array, head: int, last: int
) -> Outcome:
    """Rows up to `head` are applied first; updates from there up to `last` are versions meanwhile.
    REQUIRES: no query lies before `head`."""
    implied = _implied(stores, columns, 0, last)
    before = [store.segments for store, _ in stores.all]
    updates = len(columns) - len(places)
    try:
        for (store, direction), more in zip(stores.all, implied, strict=True):
            width, extra = 2 if direction == BOTH else 1, len(more[0]) if more else 0
            mixed.make_room(store, updates * width + extra, len(columns) * width + extra)
        prepared = _prepare(stores, columns, staged, implied, 0, head) if head else []
    except MemoryError:
        for (store, _), segments in zip(stores.all, before, strict=True):
            mixed.take_back(store, segments)
        raise
    for (store, _), segments in zip(stores.all, before, strict=True):
        mixed.count_room(store, segments)
    committed = [
        store.commit(ready, head, may_shrink=False, most_changes=stores.wanted(store))
        for (store, _), ready in zip(stores.all, prepared, strict=False)  # none without a head
    ]
    outcome = Outcome(NO_ANSWERS, _changes(committed))
    prepared = _prepare(stores, columns, staged, implied, head, last, versions=True)
    for (store, _), ready in zip(stores.all, prepared, strict=True):
        store.commit(ready, last - head)
    try:
        outcome.answers = stores.answer(columns, staged, places)
    except MemoryError as error:
        outcome.failure = error
    outcome.changes += _changes(
        [
            mixed.compact(store, ready.located, stores.wanted(store))
            for (store, _), ready in zip(stores.all, prepared, strict=True)
        ]
    )
    return outcome


def apply_serially(stores: Stores, columns: Columns, staged: StagedBatch) -> Outcome:
    """The baseline: cut the batch at every query, run the pieces one after the other. Memory that
    runs out for the updates of a later piece breaks the graph, as what is applied stays."""
    is_query = columns.kind >= FIRST_QUERY
    edges = (np.flatnonzero(np.diff(is_query)) + 1).tolist()
    outcome = Outcome(NO_ANSWERS, [])
    parts = []
    for lo, hi in zip([0, *edges], [*edges, len(columns)], strict=True):
        if lo == hi:
            continue
        if not is_query[lo]:
            outcome.changes += _apply_rows(stores, columns, staged, lo, hi)
        elif outcome.failure is None:
            try:
                parts.append(stores.answer(columns, None, np.arange(lo, hi)))
            except MemoryError as error:
                outcome.failure = error
    outcome.answers = SerialAnswers(parts)
    return outcome


def _implied(stores: Stores, columns: Columns, lo: int, hi: int) -> list[Implied | None]:
    """For each store, the deletions that removals in rows lo … hi - 1 imply, by place."""
    if columns.edges_only:
        return [None for _ in stores.all]
    found = incident_deletions(columns.rows(lo, hi), stores.out, stores.into, stores.directed)
    if found is None:
        return [None for _ in stores.all]
    u, v, at = found
    implied: list[Implied | None] = []
    for _, direction in stores.all:
        keys = (u.astype(np.uint64) << HALF) | v
        back = (v.astype(np.uint64) << HALF) | u
        places = (at + lo).astype(np.uint32)
        if direction == REVERSE:
            keys = back
        elif direction == BOTH:
            # An edge may be implied from either end: one deletion a key and place is enough.
            keys, places = np.concatenate([keys, back]), np.concatenate([places, places])
            order = np.lexsort((keys, places))
            keys, places = keys[order], places[order]
            once = np.ones(len(keys), np.bool_)
            once[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
            keys, places = keys[once], places[once]
        implied.append((keys, places))
    return implied


def _prepare(
    stores: Stores,
    columns: Columns,
    staged: StagedBatch,
    implied: list[Implied | None],
    lo: int,
    hi: int,
    versions: bool = False,
) -> list[Prepared]:
    """Prepare rows lo … hi - 1 in every store, with the deletions they imply; none where one
    cannot."""
    prepared: list[Prepared] = []
    try:
        for (store, direction), more in zip(stores.all, implied, strict=True):
            if more is not None:
                first, last = np.searchsorted(more[1], [lo, hi]).tolist()
                more = (more[0][first:last], more[1][first:last])
            rows = store.backend.key_rows(staged, columns, lo, hi, direction, more)
            prepared.append(store.prepare(staged, rows, versions))
    except BaseException:
        for (store, _), ready in zip(stores.all, prepared, strict=False):
            store.rollback(ready)
        raise
    return prepared
