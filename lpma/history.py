"""The last changes of a graph, kept within a bound: what `Graph.changes` answers from.

Each batch adds the keys that it inserted and deleted, in order. The net change of a key over
several batches is its first change where that equals its last, and nothing where it does not,
for insertions and deletions of one key take turns.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import to_host
from .results import Changes

Array = npt.NDArray[Any]

MAX_KEYS = 1 << 19


class History:
    """Invariant: every change after version `floor` is here, none is twice."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._entries: deque[tuple[int, Array, Array]] = deque()
        self._max_keys = max_keys
        self._keys = 0
        self.floor = 0

    @property
    def nbytes(self) -> int:
        return 9 * self._keys

    def add(self, version: int, keys: Array, inserted: Array) -> None:
        """Note one version's changes: uint64[n], bool[n]. May be called again for a version.
        Device arrays stay where they are until somebody asks."""
        if not len(keys):
            return
        self._entries.append((version, keys, inserted))
        self._keys += len(keys)
        while self._keys > self._max_keys:
            self.floor, dropped, _ = self._entries.popleft()
            self._keys -= len(dropped)

    def forget(self, version: int) -> None:
        """Know nothing of what led to `version`."""
        self._entries.clear()
        self._keys = 0
        self.floor = version

    def since(self, version: int) -> list[tuple[Array, Array]] | None:
        """What was changed after a version, batch by batch, where it lies; None where some of it
        was let go."""
        if version < self.floor:
            return None
        return [entry[1:] for entry in self._entries if entry[0] > version]

    def net(self, since: int, directed: bool) -> Changes | None:
        """Net changes after version `since`; None where some of them were let go."""
        kept = self.since(since)
        if kept is None:
            return None
        keys = np.concatenate([np.empty(0, np.uint64), *[to_host(entry[0]) for entry in kept]])
        inserted = np.concatenate([np.empty(0, np.bool_), *[to_host(entry[1]) for entry in kept]])
        src, dst = (keys >> np.uint64(32)), keys & np.uint64(0xFFFFFFFF)
        counted = dst != np.uint64(0xFFFFFFFF)  # vertex markers are no edges
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
        keys, inserted = keys[first][net], inserted[first][net]
        src, dst = (keys >> np.uint64(32)), keys & np.uint64(0xFFFFFFFF)
        return Changes(src.astype(np.uint32), dst.astype(np.uint32), inserted)
