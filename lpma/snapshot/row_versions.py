"""The rows of one version of a graph, on the CPU, made when they are first read: packed or loose.

*Packed* rows lie one behind the other, as a Snapshot has them. *Loose* rows lie anywhere in one
memory, each from a start to an end. Either are made from those of an earlier version and the keys
that changed since: packed ones by a copy of all entries with the changes merged in
(lpma/cpu/merged.py), loose ones by a copy of all starts and ends, and of the entries of changed
rows, which are written behind what the memory holds (lpma/cpu/loose.py). In a graph of 30 entries a
row that is a tenth of the bytes, and an algorithm that reads row by row does as well with them.
Whoever reads neither pays for neither.

The rule. Packed rows have room behind them for as many entries again. While that suffices, later
versions have loose rows in it; the one for which it does not is packed anew.

Invariants:
1. What rows hold never changes: each part of a memory is taken once (`Memory.take`).
2. Rows hold the packed and the loose rows of one earlier version each, and the keys since: at most
   one for every SHARE entries. So no chain of them grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import OutOfMemory
from ..pma.keys import LOW
from ..store.history import joined, newest

Array = npt.NDArray[Any]
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


class Packed(NamedTuple):
    """Rows one behind the other."""

    indptr: Array  # int64[n+1]
    indices: Array  # uint32[m]
    memory: Memory  # which the indices are the first of


class Loose(NamedTuple):
    """Rows anywhere: those of u are entries[starts[u]:ends[u]], sorted."""

    starts: Array  # int64[n]
    ends: Array  # int64[n]
    entries: Array  # uint32
    size: int  # entries of all rows

    @property
    def num_rows(self) -> int:
        return len(self.starts)


Merge = Callable[[Array, Array, Array, Array, int], tuple[Array, Array, Array]]  # `rows_with`


def packed_of(indptr: Array, indices: Array) -> Packed:
    """Rows in arrays, with no room behind them."""
    return Packed(indptr, indices, Memory(indices, len(indices)))


def loose_of(indptr: Array, indices: Array, entries: Array | None = None) -> Loose:
    """Packed rows as loose ones. entries: memory that begins with `indices`."""
    entries = indices if entries is None else entries
    return Loose(indptr[:-1], indptr[1:], entries, len(indices))


class Rows:
    """See the module. Its methods may be called by any thread: what two of them make at once is
    alike."""

    def __init__(
        self, num_rows: int, num_entries: int, merge: Merge, packed: Packed | None,
        earlier: tuple[Packed, Batches] | None = None,
        near: tuple[Loose, Memory, Batches] | None = None,
    ):  # fmt: skip
        """packed: what is there; None: the rows are `earlier` ones with batches of changes, and
        also the loose ones `near` with others."""
        self.num_rows = num_rows
        self.num_entries = num_entries
        self._merge = merge
        self._packed = packed
        self._loose: tuple[Loose, Memory] | None = None
        # `packed` sets them to None once it has set what it made.
        self._earlier = earlier
        self._near = near

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, and of memory taken beside them."""
        loose = self._loose
        size = 8 * (self.num_rows + 1) + 4 * self.num_entries
        return size if loose is None else size + 16 * self.num_rows + 4 * loose[1].taken

    def packed(self) -> Packed:
        """The rows packed. Raises OutOfMemory."""
        earlier = self._earlier
        packed = self._packed
        if packed is None:
            assert earlier is not None
            before, batches = earlier
            rows = before.indptr, before.indices
            try:
                indptr, indices, memory = self._merge(*rows, *net(batches), self.num_rows)
            except MemoryError as error:
                raise OutOfMemory(f"{error}: the rows of a snapshot; free memory") from error
            packed = Packed(indptr, indices, Memory(memory, len(indices)))
            self._packed = packed
            self._earlier = self._near = None
        return packed

    def loose(self) -> Loose:
        """The rows loose, unless they are packed."""
        near, packed = self._near, self._packed
        if packed is not None:
            return _all_of(packed)
        loose = self._loose
        if loose is None and near is not None:
            self._loose = loose = self._made_loose(*near)
        return _all_of(self.packed()) if loose is None else loose[0]

    def _made_loose(
        self, before: Loose, memory: Memory, batches: Batches
    ) -> tuple[Loose, Memory] | None:
        from ..cpu import loose

        keys, there = batches[0] if len(batches) == 1 else net(batches)
        room = loose.room_for(keys, before.starts, before.ends)
        if room < 0:  # operations of one batch that were applied one at a time, or vertices
            keys, there = net(batches)
            room = loose.room_for(keys, before.starts, before.ends)
        free = memory.take(room)
        if free < 0:
            return None
        starts, ends = np.empty(self.num_rows, np.int64), np.empty(self.num_rows, np.int64)
        rows = before.starts, before.ends, before.entries
        loose.write_changed(keys, there, *rows, free, starts, ends)
        return Loose(starts, ends, before.entries, self.num_entries), memory

    def after(self, num_rows: int, num_entries: int, batches: Batches) -> Rows:
        """The rows of a later version. batches: what has changed since."""
        # In this order: a thread that packs meanwhile has set _packed before _earlier is None.
        earlier, near, loose = self._earlier, self._near, self._loose
        packed = self._packed
        if packed is None:
            assert earlier is not None
            before, since = earlier[0], earlier[1] + batches
            if sum([len(keys) for keys, _ in since]) * SHARE > num_entries:
                packed = self.packed()
        if packed is not None:
            before, since = packed, batches
            near = _all_of(packed), packed.memory, batches
        elif loose is not None:
            near = *loose, batches
        elif near is not None:
            near = near[0], near[1], near[2] + batches
        return Rows(num_rows, num_entries, self._merge, None, (before, since), near)


def net(batches: Batches) -> tuple[Array, Array]:
    """The keys of edges that batches changed, each once and ascending, and whether each is there
    after them."""
    keys, there = newest(*(batches[0] if len(batches) == 1 else joined(batches)))
    is_marker = (keys & LOW) == LOW
    if is_marker.any():
        keys, there = keys[~is_marker], there[~is_marker]
    return keys, there


def _all_of(packed: Packed) -> Loose:
    return loose_of(packed.indptr, packed.indices, packed.memory.entries)


KEY = "followed"  # in a snapshot's views: its Link


@dataclass(eq=False)
class State:
    """The rows of one version, and of what is derived from them what the next may follow."""

    version: int
    rows: Rows
    views: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Since:
    """An earlier state, and the keys that batches touched since."""

    before: State
    batches: Batches

    @cached_property
    def changes(self) -> tuple[Array, Array]:
        """The keys, uint64, each once, ascending, without vertex markers; and whether each is an
        edge now."""
        return net(self.batches)


class Link(NamedTuple):
    """The state of a snapshot, and how it came from an earlier one; None: it was made anew."""

    state: State
    since: Since | None


def link_of(s: Any) -> Link | None:
    """How a snapshot follows another; None if it has no state."""
    link: Link | None = s.views.get(KEY)
    return link
