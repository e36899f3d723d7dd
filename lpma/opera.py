"""Opera: a mixed batch in two passes, each query answered as if operations ran one at a time.

Source: paper, Section VI. Updates before the first query merge as usual. Later ones are put
beside the stored edge of their key as versions (key, 1 + place), unmerged; then all queries run
in parallel, each folding the versions before its own place; then one compaction merges the
versions for good. That is two passes over the updates however many queries there are.

What a mixed batch may need (levels, the version column, buffers) is allocated before its first
write, so that only an answer can be too large for memory, and then the updates are applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import query
from .batch import FIRST_QUERY, Columns, Edges, Kind, Neighbors
from .removal import incident_deletions
from .store import LPMA

Array = npt.NDArray[Any]
Answer = Edges | Neighbors | Array

FORWARD, REVERSE, BOTH = 0, 1, 2


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


class Answers:
    """The answers of a batch's queries, by query number: what `Graph.edges`, `successors` …
    would have returned at that place, for one query."""

    def __init__(self, kinds: Array, groups: dict[int, tuple[Array, Answer]]) -> None:
        self._kinds = kinds  # of each query
        self._answers = {kind: answer for kind, (_, answer) in groups.items()}
        self._row = np.empty(len(kinds), np.int64)
        for numbers, _ in groups.values():
            self._row[numbers] = np.arange(len(numbers))
        self._parts: list[Answers] = []

    @staticmethod
    def joined(parts: list[Answers]) -> Answers:
        """The answers of several batches, numbered on."""
        whole = Answers(np.concatenate([np.empty(0, np.uint8), *[p._kinds for p in parts]]), {})
        whole._parts = parts
        return whole

    def __len__(self) -> int:
        return len(self._kinds)

    def __getitem__(self, number: int) -> Answer:
        number = range(len(self))[number]
        for part in self._parts:
            if number < len(part):
                return part[number]
            number -= len(part)
        row = int(self._row[number])
        answer = self._answers[int(self._kinds[number])]
        if isinstance(answer, Edges):
            return Edges(*[None if a is None else a[row : row + 1] for a in vars(answer).values()])
        if isinstance(answer, Neighbors):
            lo, hi = int(answer.indptr[row]), int(answer.indptr[row + 1])
            columns = (answer.ids, answer.weight, answer.time)
            return Neighbors(
                np.array([0, hi - lo]), *[None if a is None else a[lo:hi] for a in columns]
            )
        return answer[row : row + 1]


def apply_in_parallel(
    stores: Stores, columns: Columns, batch: list[Any]
) -> tuple[Answers, list[Any]]:
    """Apply a validated batch. `batch` is each store's backend view of its columns.

    Returns the answers, and what was located of the out-store's updates, for `Graph.changes`:
    (keys, inserted) pairs in order."""
    places = np.flatnonzero(columns.kind >= FIRST_QUERY)
    first = int(places[0]) if len(places) else len(columns)
    last_update = _last_update(columns, first)
    deletions = incident_deletions(columns, stores.out, stores.into, stores.directed)
    mixed = last_update >= first
    if mixed:
        for store, direction in stores.all:
            extra = len(deletions[0]) if deletions else 0
            rows = (len(columns) + extra) * (2 if direction == BOTH else 1)
            store.make_room(rows)
    changes = _merge(stores, columns, batch, deletions, 0, first, mixed)
    if not mixed:
        return _answer(stores, columns, None, places), changes
    located = _append_versions(stores, columns, batch, deletions, first, last_update + 1)
    try:
        answers = _answer(stores, columns, batch, places)
    finally:
        for (store, _), versions in zip(stores.all, located, strict=True):
            final = store.compact(versions)
            if store is stores.out:
                changes.append(store.backend.changes(final))
    return answers, changes


def apply_serially(
    stores: Stores, columns: Columns, batch: list[Any]
) -> tuple[Answers, list[Any]]:
    """The baseline: cut the batch at every query, run the pieces one after the other."""
    is_query = columns.kind >= FIRST_QUERY
    edges = np.flatnonzero(np.diff(is_query)) + 1
    changes: list[Any] = []
    answers = []
    for lo, hi in zip([0, *edges.tolist()], [*edges.tolist(), len(columns)], strict=True):
        if lo == hi:
            continue
        if is_query[lo]:
            answers.append(_answer(stores, columns, None, np.arange(lo, hi)))
            continue
        here = columns.rows(lo, hi)
        deletions = incident_deletions(here, stores.out, stores.into, stores.directed)
        if deletions is not None:
            deletions = (*deletions[:2], deletions[2] + lo)
        changes += _merge(stores, columns, batch, deletions, lo, hi, False)
    return Answers.joined(answers), changes


def _last_update(columns: Columns, first: int) -> int:
    updates = np.flatnonzero(columns.kind[first:] < FIRST_QUERY)
    return first + int(updates[-1]) if len(updates) else -1


def _keys(
    store: LPMA, direction: int, columns: Columns, deletions: Any, lo: int, hi: int
) -> tuple[Array, Array]:
    """The key operations of rows lo … hi - 1, implied deletions among them, by place."""
    keys, places = store.backend.keys(
        columns.kind, columns.src, columns.dst, lo, hi, direction
    )
    if deletions is None:
        return keys, places
    inside = (deletions[2] >= lo) & (deletions[2] < hi)
    u, v, at = (column[inside] for column in deletions)
    if direction == REVERSE:
        u, v = v, u
    half = np.uint64(32)
    more = (u.astype(np.uint64) << half) | v
    if direction == BOTH:
        back = u != v
        more = np.concatenate([more, ((v.astype(np.uint64) << half) | u)[back]])
        at = np.concatenate([at, at[back]])
        # An undirected edge is found from either end: one deletion a key and place is enough.
        order = np.lexsort((more, at))
        more, at = more[order], at[order]
        again = np.zeros(len(more), np.bool_)
        again[1:] = (more[1:] == more[:-1]) & (at[1:] == at[:-1])
        more, at = more[~again], at[~again]
    keys = np.concatenate([keys, more])
    places = np.concatenate([places, at.astype(np.uint32)])
    order = np.argsort(places, kind="stable")
    return keys[order], places[order]


def _merge(
    stores: Stores, columns: Columns, batch: list[Any], deletions: Any, lo: int, hi: int,
    mixed: bool,
) -> list[Any]:  # fmt: skip
    """Merge rows lo … hi - 1 for good: all stores are prepared before any is written."""
    prepared = []
    for (store, direction), view in zip(stores.all, batch, strict=True):
        keys, places = _keys(store, direction, columns, deletions, lo, hi)
        prepared.append(store.prepare(view, keys, places, may_rebuild=not mixed))
    changes = [stores.out.backend.changes(prepared[0].located)]
    for (store, _), ready in zip(stores.all, prepared, strict=True):
        store.commit(ready, hi - lo, may_shrink=not mixed)
    return changes


def _append_versions(
    stores: Stores, columns: Columns, batch: list[Any], deletions: Any, lo: int, hi: int
) -> list[Any]:
    """Put rows lo … hi - 1 in as versions; returns each store's located operations."""
    located = []
    for (store, direction), view in zip(stores.all, batch, strict=True):
        keys, places = _keys(store, direction, columns, deletions, lo, hi)
        ready = store.prepare(view, keys, places, versions=True)
        store.commit(ready, hi - lo)
        located.append(ready.located)
    return located


def _answer(stores: Stores, columns: Columns, batch: list[Any] | None, places: Array) -> Answers:
    """All queries, those of a kind together. `batch` is None where the stores hold no versions."""
    kinds = columns.kind[places]
    out_batch = None if batch is None else batch[0]
    groups: dict[int, tuple[Array, Answer]] = {}
    for kind in Kind:
        numbers = np.flatnonzero(kinds == kind)
        if not len(numbers):
            continue
        at = places[numbers]
        u, v = columns.src[at], columns.dst[at]
        answer: Answer
        if kind == Kind.EDGE:
            answer = query.edges(stores.out, out_batch, u, v, at)
        elif kind == Kind.SUCCESSORS:
            answer = query.neighbors(stores.out, out_batch, u, at)
        elif kind == Kind.PREDECESSORS:
            store = stores.reverse
            assert store is not None  # Graph refuses the batch before
            reverse_batch = None if batch is None else batch[-1]
            answer = query.neighbors(store, reverse_batch, u, at)
        elif kind == Kind.HOPS:
            answer = query.hops(stores.out, out_batch, u, v.astype(np.int64), at)
        elif kind == Kind.DEGREE:
            answer = query.degrees(stores.out, out_batch, u, at)
        else:
            answer = _membership(stores, batch, u, at)
        groups[int(kind)] = (numbers, answer)
    return Answers(kinds, groups)


def _membership(stores: Stores, batch: list[Any] | None, vertices: Array, limits: Array) -> Array:
    return query.present_vertices(
        stores.out, stores.into, stores.directed, None if batch is None else batch[0],
        vertices, limits,
    )  # fmt: skip
