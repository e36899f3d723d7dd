"""Opera: a mixed batch, each query answered as if operations ran one at a time.

Source: paper, Section VI, which puts the updates of a mixed batch into the store as versions that
queries fold, and folds them for good by a compaction (`benchmarks/papers/lpma/` has it). Here the
updates lie *beside* the store, sorted, while the queries run: each is answered from what is stored
and from its key's operations before its place. Then the batch is applied like one without queries:
the store is written once, and needs no mark for each slot.

A vertex that is removed takes its edges along, as deletions at its place (removal.py), and what
expires is named edge by edge (expiry.py): these lie beside the store like others. Nothing is
written before the queries are answered. If an answer is too large for memory, the updates are
applied all the same.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..backend.values import KEYS_A_ROW, Changed, Implied, KeyRows, StagedBatch
from ..batch.columns import QUERIES, Columns, Kind, last_update, now_ms
from ..errors import OutOfMemory, StoreTooLarge
from ..pma.keys import reversed_keys
from ..record import Record
from ..store.lpma import Prepared
from ..store.pending import PendingBatch
from . import expiry_rebuild
from .admission import admit
from .answers import NO_ANSWERS, Answers, answer_queries, answer_query
from .queries import MixedBatch
from .removal import each_once, incident_deletions
from .stores import Stores


class Watcher(Protocol):
    """Who wants to know what a batch changes: see net.py."""

    def look(self, stores: Stores, columns: Columns, implied: Array | None = None) -> None:
        """Called once, before anything of the batch is applied; its expiries are expanded."""

    def finish(self, stores: Stores) -> None:
        """Called once the batch is applied and counted, by whoever applied it."""


class Outcome(Record):
    """The outcome of a batch that was applied."""

    answers: Answers
    changes: list[Changed | PendingBatch]  # in order
    failure: MemoryError | None = None  # an answer was too large; the updates are applied


def apply(
    stores: Stores, columns: Columns, is_admitted: bool = False, watch: Watcher | None = None
) -> Outcome:
    """Apply a batch and note it: see Graph.apply. REQUIRES: the lock is held to write. is_admitted:
    `admit` has seen the batch. Only one of edges alone may overlap a pending one. watch: is shown
    the batch. Raises BatchError, OutOfMemory and StoreTooLarge; if no store is `written`, nothing
    has changed."""
    if not (is_admitted or (columns.checked and columns.edges_only)):
        columns = admit(stores, columns)
    if not columns.edges_only:
        stores.finish_pending()
    if len(columns.kind) == 1 and int(columns.kind[0]) in QUERIES:
        if watch is not None:
            watch.look(stores, columns)
        return _apply_query(stores, columns)
    if not columns.checked and columns.on_device:
        stores.place.wait_for_caller()
    time = columns.time
    if time is None:
        time = np.array([now_ms()])
    if stores.expiry.horizon is not None:
        if columns.unvalidated:  # the front reads them
            columns = Columns.edges(
                Kind(columns.kind[0]), columns.src, columns.dst, columns.weight, columns.time
            )
        stores.finish_pending()
        stores.expiry.look(columns, time, stores.out)
    try:
        last = len(columns.kind) - 1 if columns.edges_only else last_update(columns.kind, True)
        if columns.edges_only and stores.into is None:
            ((store, direction),) = stores.all
            if watch is not None:
                watch.look(stores, columns)
            outcome = Outcome(answers=NO_ANSWERS, changes=[store.apply(columns, time, direction)])
        elif not columns.edges_only and columns.expires:
            outcome = _apply_expiring(stores, columns, watch)
        else:
            outcome = _apply_batch(stores, columns, time, watch)
    except StoreTooLarge:
        raise
    except MemoryError as error:
        raise OutOfMemory(f"the batch is unapplied ({error}): cut it, or free memory") from error
    if stores.expiry.horizon is not None:
        stores.expiry.note(columns, time)
    stores.note(outcome.changes, int(time[min(last, len(time) - 1)]) if last >= 0 else stores.time)
    for store, direction in stores.all:
        if outcome.changes and store.growth.is_early:
            store.growth.after(store, len(columns.kind) * KEYS_A_ROW[direction])
    return outcome


def _apply_expiring(stores: Stores, columns: Columns, watch: Watcher | None) -> Outcome:
    """Apply a batch that lets edges expire: see expiry.py, and expiry_rebuild.py where most do. Who
    watches is shown each edge, so no store is rewritten then."""
    given = columns
    try:
        if not columns.expiry_expanded:
            if watch is None and expiry_rebuild.is_cheaper(stores, columns):
                return Outcome(answers=NO_ANSWERS, changes=expiry_rebuild.sweep(stores, columns))
            columns = stores.expiry.expanded(columns, stores.out, stores.directed)
        if columns.on_device:
            stores.place.wait_for_caller()
        outcome = _apply_batch(stores, columns, columns.time, watch)
    except BaseException:
        stores.expiry.forget()
        raise
    # An expiry is one operation, however many edges it lets go.
    stores.out.counters.note_applied(last_update(given.kind) - last_update(columns.kind))
    return outcome


def _apply_batch(stores: Stores, columns: Columns, time: Any, watch: Watcher | None) -> Outcome:
    for store, direction in stores.all:
        if store.growth.due:
            store.growth.before(store, len(columns.kind) * KEYS_A_ROW[direction])
    staged = stores.out.backend.stage(columns, time, stores.weight_dtype)
    stores.finish_pending()
    outcome = apply_staged(stores, columns, staged, watch)
    for store, _ in stores.all:
        store.end_batch(staged)
    return outcome


def _apply_query(stores: Stores, columns: Columns) -> Outcome:
    """A batch of one query, which needs no staging: this is what a pipeline at rest gets."""
    outcome = Outcome(answers=NO_ANSWERS, changes=[])
    try:
        outcome.answers = answer_query(stores, columns)
    except MemoryError as error:
        outcome.failure = error
    stores.note([], stores.time)
    return outcome


def apply_staged(
    stores: Stores, columns: Columns, staged: StagedBatch, watch: Watcher | None = None
) -> Outcome:
    """Apply a staged batch. All stores are prepared before any is written."""
    outcome, last = Outcome(answers=NO_ANSWERS, changes=[]), last_update(columns.kind)
    asks = not columns.edges_only and len(columns.queries) > 0
    is_mixed = asks and int(columns.queries[0]) < last
    if last >= 0:
        implied = _implied(stores, columns)
        if watch is not None:
            watch.look(stores, columns, None if implied[0] is None else implied[0][0])
        rows = [
            store.backend.key_rows(staged, columns, direction, more)
            for (store, direction), more in zip(stores.all, implied, strict=True)
        ]
        if is_mixed:
            for (store, _), of_store in zip(stores.all, rows, strict=True):
                store.backend.sort_beside(store.segments, staged, of_store)
            _answer(outcome, stores, columns, MixedBatch(staged, columns, implied[0]))
        committed = [
            store.commit(ready, last + 1, stores.most_changes(store))  # trailing queries left out
            for (store, _), ready in zip(stores.all, _prepare(stores, staged, rows), strict=True)
        ]
        outcome.changes = [committed[0].changes]  # of the out-store, which has them all
    elif watch is not None:
        watch.look(stores, columns)
    if asks and not is_mixed:
        _answer(outcome, stores, columns, None)
    return outcome


def _answer(outcome: Outcome, stores: Stores, columns: Columns, batch: MixedBatch | None) -> None:
    try:
        outcome.answers = answer_queries(stores, columns, batch)
    except MemoryError as error:
        outcome.failure = error


def _prepare(stores: Stores, staged: StagedBatch, rows: list[KeyRows]) -> list[Prepared]:
    """Prepare a batch in every store; if one raises, in none."""
    prepared: list[Prepared] = []
    try:
        for (store, _), of_store in zip(stores.all, rows, strict=True):
            prepared.append(store.prepare(staged, of_store))
    except BaseException:
        for (store, _), ready in zip(stores.all, prepared, strict=False):
            store.backend.rollback(ready.located)
        raise
    return prepared


def _implied(stores: Stores, columns: Columns) -> list[Implied | None]:
    """For each store, the deletions that removals imply, by place."""
    found = incident_deletions(columns, stores.out, stores.into, stores.directed)
    if found is None:
        return [None for _ in stores.all]
    keys, places = found
    back = reversed_keys(keys)
    if not stores.directed:  # an edge may be implied from either end
        return [each_once(np.concatenate([keys, back]), np.concatenate([places, places]))]
    implied: list[Implied | None] = [found, (back, places)]
    return implied[: len(stores.all)]
