"""Opera: a mixed batch in two passes, each query answered as if operations ran one at a time.

Source: paper, Section VI. If most updates come before the first query, those are applied as usual;
if there are only a few, they are not worth a pass and go with the others. The others are put beside
the stored edge of their key as versions (key, 1 + place), unfolded. Then all queries run in
parallel, each folding the versions before its own place. Then one compaction folds the versions for
good. That is two passes over the updates, however many queries there are.

A backend may do without the first pass: it answers from what is stored and from the batch's sorted
rows beside it, which are the same versions (backend/beside.py). The batch is then applied like one
without queries. Not where vertices are removed or edges expire, since those rows imply others, nor
where a scan of the store is needed.

What a mixed batch may need (levels, the version column, buffers) is allocated before its first
write; after that, only the answers and a few words are. So if memory runs out, the graph is as it
was, unless it was an answer that was too large: then the updates are applied all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import mixed, sweep
from .answers import NO_ANSWERS, Answers, SerialAnswers, answer_queries, answer_query
from .backend.values import (
    BOTH,
    REVERSE,
    Array,
    Changed,
    Committed,
    Implied,
    StagedBatch,
)
from .batch import FIRST_QUERY, Columns, Kind, last_stamped, last_update, now_ms
from .errors import OutOfMemory, StoreTooLarge
from .keys import keys_of
from .overlap import Behind
from .prepared import Prepared
from .removal import incident_deletions
from .stores import Stores
from .usable import stays_beside


@dataclass
class Outcome:
    """The outcome of a batch that was applied."""

    answers: Answers
    changes: list[Changed | Behind]  # in order
    failure: MemoryError | None = None  # an answer was too large; the updates are applied


def apply(stores: Stores, columns: Columns, in_parallel: bool) -> Outcome:
    """Apply a batch and note it: see Graph.apply. The caller holds the graph's lock to write.
    Raises BatchError, OutOfMemory and StoreTooLarge; if no store is `written`, nothing has
    changed."""
    if len(columns.kind) == 1 and columns.kind[0] >= FIRST_QUERY:
        return _apply_query(stores, columns)
    if not columns.checked and columns.on_device:
        stores.place.take_in()
    time = columns.time
    if time is None:
        time = np.array([now_ms()])
    if stores.expiry.horizon is not None:
        if columns.as_given:  # the front reads them
            columns = Columns.edges(
                Kind(columns.kind[0]), columns.src, columns.dst, columns.weight, columns.time
            )
        stores.take_in()
        stores.expiry.look(columns, time, stores.out)
    try:
        last = len(columns.kind) - 1 if columns.edges_only else last_stamped(columns.kind)
        if not columns.edges_only and columns.expires:
            outcome = _apply_expiring(stores, columns, in_parallel)
        else:
            outcome = _apply_staged(stores, columns, time, in_parallel)
    except StoreTooLarge:
        raise
    except MemoryError as error:
        raise OutOfMemory(f"the batch is unapplied ({error}): cut it, or free memory") from error
    if stores.expiry.horizon is not None:
        stores.expiry.note(columns, time)
    stores.note(outcome.changes, int(time[min(last, len(time) - 1)]) if last >= 0 else stores.time)
    for store, direction in stores.all:
        if outcome.changes and store.growth.foreseeing is not None:
            store.growth.after(store, _key_operations(columns, direction))
    return outcome


def _apply_expiring(stores: Stores, columns: Columns, in_parallel: bool) -> Outcome:
    """Apply a batch that lets edges expire: see expiry.py, and sweep.py where most do."""
    given = columns
    try:
        if not columns.aged:
            if sweep.is_cheaper(stores, columns):
                return Outcome(NO_ANSWERS, sweep.sweep(stores, columns))
            columns = stores.expiry.expanded(columns, stores.out, stores.directed)
        if columns.on_device:
            stores.place.take_in()
        outcome = _apply_staged(stores, columns, columns.time, in_parallel)
    except BaseException:
        stores.expiry.forget()
        raise
    # An expiry is one operation, however many edges it lets go.
    stores.out.counters.operations += last_update(given.kind) - last_update(columns.kind)
    return outcome


def _apply_staged(stores: Stores, columns: Columns, time: Any, in_parallel: bool) -> Outcome:
    for store, direction in stores.all:
        if store.growth.due:
            store.growth.before(store, _key_operations(columns, direction))
    return _apply_to(stores, columns, time, in_parallel)


def _key_operations(columns: Columns, direction: int) -> int:
    """How many a batch has at most, in a store of that direction."""
    return len(columns.kind) * (2 if direction == BOTH else 1)


def _apply_to(stores: Stores, columns: Columns, time: Any, in_parallel: bool) -> Outcome:
    if in_parallel and columns.edges_only and stores.into is None:
        ((store, direction),) = stores.all
        return Outcome(NO_ANSWERS, [store.apply(columns, time, direction)])
    staged = stores.out.backend.stage(columns, time, stores.weight_dtype)
    stores.take_in()
    outcome = (apply_in_parallel if in_parallel else apply_serially)(stores, columns, staged)
    for store, _ in stores.all:
        store.end_batch(staged)
    return outcome


def _apply_query(stores: Stores, columns: Columns) -> Outcome:
    """A batch of one query, which needs no staging: this is what a pipeline at rest gets."""
    try:
        outcome = Outcome(answer_query(stores, columns), [])
    except MemoryError as error:
        outcome = Outcome(NO_ANSWERS, [], error)
    stores.note([], stores.time)
    return outcome


def apply_in_parallel(stores: Stores, columns: Columns, staged: StagedBatch) -> Outcome:
    """Apply a batch that the backends have staged, all of its queries together."""
    if columns.edges_only:
        return Outcome(NO_ANSWERS, _apply_rows(stores, columns, staged, 0, len(columns)))
    places = columns.queries
    if stays_beside(stores, columns):
        return _apply_beside(stores, columns, staged)
    first = int(places[0]) if len(places) else len(columns)
    last = last_update(columns.kind) + 1
    if last > first:
        head = first if first > last - first else 0
        return _apply_mixed(stores, columns, staged, places, head, last)
    changes = _apply_rows(stores, columns, staged, 0, first) if first else []
    try:
        return Outcome(answer_queries(stores, columns, None, places), changes)
    except MemoryError as error:
        return Outcome(NO_ANSWERS, changes, error)


def _apply_beside(stores: Stores, columns: Columns, staged: StagedBatch) -> Outcome:
    """Answer first, then apply, without versions."""
    outcome = Outcome(NO_ANSWERS, [])
    for store, direction in stores.all:
        backend: Any = store.backend
        rows = backend.key_rows(staged, columns, 0, len(columns), direction)
        backend.sort_beside(store.segments, staged, rows)
    try:
        outcome.answers = answer_queries(stores, columns, staged, columns.queries)
    except MemoryError as error:
        outcome.failure = error
    outcome.changes = _apply_rows(stores, columns, staged, 0, len(columns))
    return outcome


def _apply_rows(
    stores: Stores, columns: Columns, staged: StagedBatch, lo: int, hi: int
) -> list[Changed | Behind]:
    """Apply rows lo … hi - 1, without versions. All stores are prepared before any is written."""
    operations = last_update(columns.kind[lo:hi]) + 1  # queries behind the last count nowhere
    implied = _implied(stores, columns, lo, hi)
    prepared = _prepare(stores, columns, staged, implied, lo, hi)
    return _changes(
        [
            store.commit(ready, operations, most_changes=stores.most_changes(store))
            for (store, _), ready in zip(stores.all, prepared, strict=True)
        ]
    )


def _changes(committed: list[Committed]) -> list[Changed | Behind]:
    """The changes of the first store's commit: the out-store's, if there is one."""
    return [of_store.changes for of_store in committed[:1]]


def _apply_mixed(
    stores: Stores, columns: Columns, staged: StagedBatch, places: Array, head: int, last: int
) -> Outcome:
    """Apply rows up to `head` at once, and keep the updates from there up to `last` as versions
    until the queries are answered. REQUIRES: no query lies before `head`."""
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
        store.growth.expanded_from(store, segments.size)
    committed = [
        store.commit(ready, head, may_shrink=False, most_changes=stores.most_changes(store))
        for (store, _), ready in zip(stores.all, prepared, strict=False)  # none without a head
    ]
    outcome = Outcome(NO_ANSWERS, _changes(committed))
    prepared = _prepare(stores, columns, staged, implied, head, last, versions=True)
    for (store, _), ready in zip(stores.all, prepared, strict=True):
        store.commit(ready, last - head)
    try:
        outcome.answers = answer_queries(stores, columns, staged, places)
    except MemoryError as error:
        outcome.failure = error
    outcome.changes += _changes(
        [
            mixed.compact(store, ready.located, stores.most_changes(store))
            for (store, _), ready in zip(stores.all, prepared, strict=True)
        ]
    )
    return outcome


def apply_serially(stores: Stores, columns: Columns, staged: StagedBatch) -> Outcome:
    """The baseline: cut the batch at every query and run the pieces one after the other. If memory
    runs out for the updates of a later piece, the graph is broken: the earlier pieces are
    applied."""
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
                parts.append(answer_queries(stores, columns, None, np.arange(lo, hi)))
            except MemoryError as error:
                outcome.failure = error
    outcome.answers = SerialAnswers(parts)
    # Queries before the last update count, as in parallel.
    updates = len(columns) - int(np.count_nonzero(is_query))
    stores.out.counters.operations += last_update(columns.kind) + 1 - updates
    return outcome


def _implied(stores: Stores, columns: Columns, lo: int, hi: int) -> list[Implied | None]:
    """For each store, the deletions that removals in rows lo … hi - 1 imply, by place."""
    if columns.names_its_keys:
        return [None for _ in stores.all]
    found = incident_deletions(columns.rows(lo, hi), stores.out, stores.into, stores.directed)
    if found is None:
        return [None for _ in stores.all]
    u, v, at = found
    implied: list[Implied | None] = []
    for _, direction in stores.all:
        keys, back = keys_of(u, v), keys_of(v, u)
        places = (at + lo).astype(np.uint32)
        if direction == REVERSE:
            keys = back
        elif direction == BOTH:
            # An edge may be implied from either end: one deletion per key and place is enough.
            keys, places = np.concatenate([keys, back]), np.concatenate([places, places])
            order = np.lexsort((keys, places))
            keys, places = keys[order], places[order]
            once = np.ones(len(keys), np.bool_)
            once[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
            keys, places = keys[once], places[once]
        implied.append((keys, places))
    return implied


def _prepare(
    stores: Stores, columns: Columns, staged: StagedBatch, implied: list[Implied | None],
    lo: int, hi: int, versions: bool = False,
) -> list[Prepared]:  # fmt: skip
    """Prepare rows lo … hi - 1, with the deletions they imply, in every store; if one raises, in
    none."""
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
