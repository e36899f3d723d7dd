"""The rows of one version of a graph, on the CPU, made when they are first read: contiguous or
scattered.

Idea: most streams take a snapshot after every batch, and a batch changes few of the edges. So a
graph keeps the rows of its last snapshot (`RowVersion`), and the next ones are made from them and
the keys that changed since, not by a pass over the whole store (capture.py). What algorithms derive
from rows can be updated in the same way (algorithms/views): a snapshot knows the version of its
rows, and how it follows from an earlier one (`Lineage`).

*Contiguous* rows lie one behind the other, as a Snapshot has them. *Scattered* rows lie anywhere in
one memory, each from a start to an end. Either are made from those of an earlier version and the
keys that changed since (lpma/cpu/merged.py): contiguous ones by a copy of all entries with the
changes merged in, scattered ones by a copy of all starts and ends, and of the entries of changed
rows, which are written behind what the memory holds. With 30 entries a row that is a tenth of the
bytes, and an algorithm that reads row by row is as fast with them. Rows that are not read cost
nothing.

The rule. Contiguous rows have room behind them for as many entries again. While that suffices,
later versions have scattered rows in it; the version for which it does not gets contiguous ones.

Invariants:
1. What rows hold never changes: each part of a memory is taken once (`Memory.take`).
2. Rows hold the contiguous and the scattered rows of one earlier version each, and the keys since:
   at most one for every SHARE entries. So no chain of them grows.

Source: our own; Dhulipala et al., "Low-latency graph streaming using compressed purely-functional
trees", PLDI 2019, share what did not change between versions by trees instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import OutOfMemory
from ..pma.keys import LOW
from ..store.history import joined, newest

Batches = list[tuple[Array, Array]]  # keys uint64, and whether each is an entry now

SHARE = 16


class Memory:
    """Memory of entries, of which the first are taken."""

    def __init__(self, entries: Array, taken: int):
        self.entries = entries
        self.taken = taken
        self._taking = Lock()

    def take(self, entries: int) -> int:
        """Where so many entries may be written, by nobody else; −1 if there is no room for them."""
        with self._taking:
            first = self.taken
            if first + entries > len(self.entries):
                return -1
            self.taken = first + entries
            return first


class ContiguousRows(NamedTuple):
    """Rows one behind the other."""

    indptr: Array  # int64[n+1]
    indices: Array  # uint32[m]
    memory: Memory  # which the indices are the first of

    def scattered(self) -> ScatteredRows:
        """The same rows, seen as scattered ones."""
        return scattered(self.indptr, self.indices, self.memory.entries)


class ScatteredRows(NamedTuple):
    """Rows anywhere: those of u are entries[starts[u]:ends[u]], sorted."""

    starts: Array  # int64[n]
    ends: Array  # int64[n]
    entries: Array  # uint32
    size: int  # entries of all rows

    @property
    def num_rows(self) -> int:
        return len(self.starts)


Merge = Callable[[Array, Array, Array, Array, int], tuple[Array, Array, Array]]  # `rows_with`


def contiguous(indptr: Array, indices: Array) -> ContiguousRows:
    """Rows in arrays, with no room behind them."""
    return ContiguousRows(indptr, indices, Memory(indices, len(indices)))


def scattered(indptr: Array, indices: Array, entries: Array | None = None) -> ScatteredRows:
    """Contiguous rows as scattered ones. entries: memory that begins with `indices`."""
    entries = indices if entries is None else entries
    return ScatteredRows(indptr[:-1], indptr[1:], entries, len(indices))


class Rows:
    """See the module. Any thread may call its methods: what two make at once is alike."""

    def __init__(
        self, num_rows: int, num_entries: int, merge: Merge, contiguous: ContiguousRows | None,
        earlier: tuple[ContiguousRows, Batches] | None = None,
        nearest: tuple[ScatteredRows, Memory, Batches] | None = None,
    ):  # fmt: skip
        """contiguous: what is there; None: the rows are `earlier` ones with batches of changes, and
        also the scattered ones `nearest` with others."""
        self.num_rows = num_rows
        self.num_entries = num_entries
        self._merge = merge
        self._contiguous = contiguous
        self._scattered: tuple[ScatteredRows, Memory] | None = None
        # `contiguous` sets them to None once it has set what it made.
        self._earlier = earlier
        self._before = nearest

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, and of memory taken beside them."""
        scattered = self._scattered
        size = 8 * (self.num_rows + 1) + 4 * self.num_entries
        return size if scattered is None else size + 16 * self.num_rows + 4 * scattered[1].taken

    def contiguous(self) -> ContiguousRows:
        """The rows contiguous. Raises OutOfMemory."""
        earlier = self._earlier
        contiguous = self._contiguous
        if contiguous is None:
            assert earlier is not None
            before, batches = earlier
            rows = before.indptr, before.indices
            try:
                indptr, indices, memory = self._merge(*rows, *net(batches), self.num_rows)
            except MemoryError as error:
                raise OutOfMemory(f"{error}: the rows of a snapshot; free memory") from error
            contiguous = ContiguousRows(indptr, indices, Memory(memory, len(indices)))
            self._contiguous = contiguous
            self._earlier = self._before = None
        return contiguous

    def scattered(self) -> ScatteredRows:
        """The rows scattered, unless they are contiguous."""
        nearest, contiguous = self._before, self._contiguous
        if contiguous is not None:
            return contiguous.scattered()
        scattered = self._scattered
        if scattered is None and nearest is not None:
            self._scattered = scattered = self._made_scattered(*nearest)
        return self.contiguous().scattered() if scattered is None else scattered[0]

    def _made_scattered(
        self, before: ScatteredRows, memory: Memory, batches: Batches
    ) -> tuple[ScatteredRows, Memory] | None:
        from ..cpu import merged

        keys, there = batches[0] if len(batches) == 1 else net(batches)
        room = merged.room_for(keys, before.starts, before.ends)
        if room < 0:  # operations of one batch that were applied one at a time, or vertices
            keys, there = net(batches)
            room = merged.room_for(keys, before.starts, before.ends)
        free = memory.take(room)
        if free < 0:
            return None
        starts, ends = np.empty(self.num_rows, np.int64), np.empty(self.num_rows, np.int64)
        rows = before.starts, before.ends, before.entries
        merged.write_changed(keys, there, *rows, free, starts, ends)
        return ScatteredRows(starts, ends, before.entries, self.num_entries), memory

    def after(self, num_rows: int, num_entries: int, batches: Batches) -> Rows:
        """The rows of a later version. batches: what has changed since."""
        # In this order: a thread that packs meanwhile has set _contiguous before _earlier is None.
        earlier, nearest, scattered = self._earlier, self._before, self._scattered
        contiguous = self._contiguous
        if contiguous is None:
            assert earlier is not None
            before, since = earlier[0], earlier[1] + batches
            if sum([len(keys) for keys, _ in since]) * SHARE > num_entries:
                contiguous = self.contiguous()
        if contiguous is not None:
            before, since = contiguous, batches
            nearest = contiguous.scattered(), contiguous.memory, batches
        elif scattered is not None:
            nearest = *scattered, batches
        elif nearest is not None:
            nearest = nearest[0], nearest[1], nearest[2] + batches
        return Rows(num_rows, num_entries, self._merge, None, (before, since), nearest)


def net(batches: Batches) -> tuple[Array, Array]:
    """The keys of edges that batches changed, once each, ascending; whether each is there now."""
    keys, there = newest(*(batches[0] if len(batches) == 1 else joined(batches)))
    is_marker = (keys & LOW) == LOW
    if is_marker.any():
        keys, there = keys[~is_marker], there[~is_marker]
    return keys, there


KEY = "followed"  # in a snapshot's views: its Lineage


@dataclass(eq=False)
class RowVersion:
    """The rows of one version, and what is derived from them that the next can be made from."""

    version: int
    rows: Rows
    views: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Delta:
    """An earlier version, and the keys that batches touched since."""

    before: RowVersion
    batches: Batches

    @cached_property
    def changes(self) -> tuple[Array, Array]:
        """The keys, uint64, each once, ascending, no markers; and whether each is an edge now."""
        return net(self.batches)


class Lineage(NamedTuple):
    """The version of a snapshot's rows, and the earlier one it was made from, if any."""

    state: RowVersion
    since: Delta | None


def lineage_of(s: Any) -> Lineage | None:
    """How a snapshot's rows came about; None if they are of no version that is kept."""
    lineage: Lineage | None = s.views.get(KEY)
    return lineage
