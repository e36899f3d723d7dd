"""The latest changes to a graph, within a bound: what `Graph.changes` answers from.

Each batch adds the keys that it inserted and deleted, in order. Insertions and deletions of one key
take turns, so its net change over several batches is its first change if that equals its last, and
otherwise nothing.

An entry holds one batch's changes, or those of up to PACKED single operations: two arrays for each
of those would take ten times the memory of the store's own slot.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..arrays import Array, to_host
from ..backend.values import MAX_CHANGES, Changed, Pair, Unread
from ..pma.keys import LOW, ends_of
from ..results import Changes

Entry = tuple[Any, int, Pair | Unread]  # version, or versions of single keys; keys; changes

PACKED = 512


class History:
    """The latest changes, at most `max_keys` keys; the oldest batches are dropped.

    Invariant: every change after version `floor` is here, once."""

    def __init__(self, max_keys: int = MAX_CHANGES) -> None:
        self._entries: deque[Entry] = deque()
        self._single: list[tuple[int, int, bool]] = []  # the latest, not yet an entry
        self._max_keys = max_keys
        self._keys = 0
        self.floor = 0

    @property
    def nbytes(self) -> int:
        return 9 * (self._keys + len(self._single))

    def add(self, version: int, changes: Changed) -> None:
        """Add the changes that led to a version, perhaps one that has some; None: they are not
        known, and all is forgotten. Arrays on a device stay there until they are read."""
        if changes is None:
            self.forget(version)
            return
        count = changes.number if isinstance(changes, Unread) else len(changes[0])
        if count:
            if self._single:
                self._pack()
            self._entries.append((version, count, changes))
            self._keys += count
            if self._keys > self._max_keys:
                self._drop()

    def add_one(self, version: int, key: int, inserted: bool) -> None:
        """Add a change of one key, as `add` does."""
        self._single.append((version, key, inserted))
        if len(self._single) == PACKED:
            try:
                self._pack()
            except MemoryError:  # the operation is applied; the history may forget
                self.forget(version)

    def _pack(self) -> None:
        """Make an entry of the latest single keys."""
        packed, self._single = _entry(self._single), []
        self._entries.append(packed)
        self._keys += packed[1]
        self._drop()

    def _drop(self) -> None:
        """Drop the oldest entries, if there is more than there may be."""
        while self._keys > self._max_keys:
            dropped, gone, _ = self._entries.popleft()
            self.floor = dropped if isinstance(dropped, int) else int(dropped[-1])
            self._keys -= gone

    def forget(self, version: int) -> None:
        """Drop all changes that led to `version`."""
        self._entries.clear()
        self._single = []
        self._keys = 0
        self.floor = version

    def since(self, version: int) -> list[tuple[Array, Array]] | None:
        """(keys, inserted) of the batches after a version, where they lie; None if some are
        gone."""
        if version < self.floor:
            return None
        found: list[Pair] = []
        entries = [*self._entries, _entry(self._single)] if self._single else self._entries
        for versions, count, changes in reversed(entries):  # a caller mostly asks for the newest
            if (versions if isinstance(versions, int) else versions[-1]) <= version:
                break
            first = 0
            if not isinstance(versions, int):
                first = int(np.searchsorted(versions, version, "right"))
            keys, inserted = changes.read(count) if isinstance(changes, Unread) else changes
            found.append((keys[first:], inserted[first:]))
        return found[::-1]

    def net(self, since: int, directed: bool) -> Changes | None:
        """The net changes after version `since`; None if some of them were dropped."""
        kept = self.since(since)
        if kept is None:
            return None
        keys, inserted = joined([(to_host(keys), to_host(inserted)) for keys, inserted in kept])
        src, dst = ends_of(keys)
        counted = (keys & LOW) != LOW  # vertex markers are not edges
        if not directed:
            counted &= src <= dst
        keys, inserted = keys[counted], inserted[counted]
        order = np.argsort(keys, kind="stable")
        keys, inserted = keys[order], inserted[order]
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        last = np.ones(len(keys), np.bool_)
        last[:-1] = first[1:]
        net = inserted[first] == inserted[last]
        return Changes(*ends_of(keys[first][net]), inserted[first][net])


def joined(batches: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The keys of several batches in their order, and whether each was inserted, on the host."""
    keys = np.concatenate([np.empty(0, np.uint64), *[keys for keys, _ in batches]])
    return keys, np.concatenate([np.empty(0, np.bool_), *[inserted for _, inserted in batches]])


def newest(keys: Array, inserted: Array) -> tuple[Array, Array]:
    """The keys, each once and ascending, and whether its last change inserted it. See `joined`."""
    if not (keys[1:] <= keys[:-1]).any():  # as in one batch that was not applied one at a time
        return keys, inserted
    order = keys.argsort(kind="stable")
    keys, inserted = keys[order], inserted[order]
    is_last = np.ones(len(keys), np.bool_)
    is_last[:-1] = keys[1:] != keys[:-1]
    return keys[is_last], inserted[is_last]


def _entry(single: list[tuple[int, int, bool]]) -> Entry:
    versions, keys, inserted = zip(*single, strict=True)
    return np.array(versions), len(keys), (np.array(keys, np.uint64), np.array(inserted))
