"""The latest changes to a graph, within a bound: what `Graph.changes` answers from.

Each batch adds the keys that it inserted and deleted, in order. Insertions and deletions of one key
take turns. So the net change of a key over several batches is its first change if that equals its
last, and otherwise nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import to_host
from .keys import LOW, ends_of
from .results import Changes

Array = npt.NDArray[Any]

MAX_KEYS = 1 << 19


class History:
    """The latest changes, at most `max_keys` keys; the oldest batches are dropped.

    Invariant: every change after version `floor` is here, once."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._entries: deque[tuple[int, Array, Array]] = deque()
        self._max_keys = max_keys
        self._keys = 0
        self.floor = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and of whether each was inserted."""
        return 9 * self._keys

    def add(self, version: int, keys: Array, inserted: Array) -> None:
        """Add the changes that led to a version: keys uint64[n], inserted bool[n]. May be called
        again for the same version. Arrays on a device stay there until they are read."""
        if not len(keys):
            return
        self._entries.append((version, keys, inserted))
        self._keys += len(keys)
        while self._keys > self._max_keys:
            self.floor, dropped, _ = self._entries.popleft()
            self._keys -= len(dropped)

    def forget(self, version: int) -> None:
        """Drop all changes that led to `version`."""
        self._entries.clear()
        self._keys = 0
        self.floor = version

    def since(self, version: int) -> list[tuple[Array, Array]] | None:
        """The (keys, inserted) of the batches after a version, where they lie; None if some of them
        were dropped."""
        if version < self.floor:
            return None
        return [entry[1:] for entry in self._entries if entry[0] > version]

    def net(self, since: int, directed: bool) -> Changes | None:
        """The net changes after version `since`; None if some of them were dropped."""
        kept = self.since(since)
        if kept is None:
            return None
        keys = np.concatenate([np.empty(0, np.uint64), *[to_host(entry[0]) for entry in kept]])
        inserted = np.concatenate([np.empty(0, np.bool_), *[to_host(entry[1]) for entry in kept]])
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
