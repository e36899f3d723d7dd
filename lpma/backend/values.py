"""What crosses the seam between a store and its backend: a batch on its way, step by step.

    Columns -> StagedBatch -> KeyRows -> Located -> Plan -> Committed
             stage        key_rows   locate     plan     commit

`Columns` (batch/columns.py) is the host's. The middle four belong to the backend that made them:
the host reads what their protocols name here, and hands them back to the same backend. `Committed`
is plain numbers and arrays that belong to whoever gets them.

A backend keeps one batch per store in its buffers. So each of these values is valid until the next
`key_rows`, `locate` or `apply_at_once` of its backend; a `Committed` stays valid.

What is made for every batch is a `Record`, whose constructor is no function of Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..arrays import Array as Array
from ..cpu import columns
from ..pma.keys import Slots
from ..pma.layout import Size
from ..record import Record

# The keys that a row of a batch gives a store: (src, dst), (dst, src), or both for an undirected
# graph.
FORWARD, REVERSE, BOTH = 0, 1, 2
KEYS_A_ROW = 1, 1, 2  # at most, by direction
MAX_CHANGES = 1 << 19  # keys: what a graph's history keeps, of one batch or several

# What an update by itself does to its key: see SingleOperations.update_one.
REFUSED, SKIP, INSERT, WRITE, DELETE = range(-1, 4)
Single = tuple[int, int, int, int]

Pair = tuple[Array, Array]  # (keys uint64[c], inserted bool[c])
SlotColumns = tuple[Array, Array | None, Array | None]  # keys, weights and times

PIECES, PIECE_SLOTS = 16, 1 << 17  # in which a store is filled: at most, and the least of one


class Unread(Record):
    """Changes that stay where a device wrote them until somebody asks."""

    number: int
    read: Callable[[int], Pair]  # of so many


Changed = Pair | Unread | None  # None: not known
Implied = tuple[Array, Array]  # (keys uint64[n], places uint32[n]) by rising place, on the host


@dataclass(frozen=True)
class Costs:
    """What a backend's work costs, measured (docs/development/notes), and weighed by
    global_merge="auto". The first four are in slots moved."""

    leaf: float = 0.0  # applying a touched leaf's operations in place
    window: float = 0.0  # a slot of a larger window, gathered and then spread
    rebuild: float = math.inf  # a slot of the whole store, merged into fresh levels
    fresh: float = 0.0  # taking the fresh levels, where they come in parts, and giving the old back
    # A batch of more than this many times the store's slots is a load, always merged. 0: so is each
    # batch of any graph, and nobody asks for plans, nor for a store to be expanded or shrunk.
    load: int = 1
    evened: int = 0  # slots, spread evenly in about the time of a small batch (growth.py)


# A merge with the whole store needs fresh memory, whose pages must be cleared: in a large one that
# takes up to four times as long as moving windows. The memory of a load is fresh anyway.
ON_CPU = Costs(load=4)


class SlotSource(Protocol):
    """The slots of a whole store by rising key, read as the store is filled with them: they need
    not be in memory all at once."""

    @property
    def total(self) -> int:
        """How many there are."""

    def read(self, first: int, last: int) -> SlotColumns:
        """Slots first … last - 1, None for columns that are not there. REQUIRES: a pass reads from
        0 to `total`, in order; what is returned is not used after the next call. Raises what the
        source does, with the last slots if it is wrong as a whole."""

    @property
    def facts(self) -> Slots:
        """What the slots are. REQUIRES: a pass is over."""


@dataclass
class SlotArrays:
    """A SlotSource of whole columns. REQUIRES: the keys strictly rise."""

    keys: Array
    weights: Array | None
    times: Array | None

    @property
    def total(self) -> int:
        return len(self.keys)

    def read(self, first: int, last: int) -> SlotColumns:
        weights, times = (None if c is None else c[first:last] for c in (self.weights, self.times))
        return self.keys[first:last], weights, times

    @cached_property
    def facts(self) -> Slots:
        return columns.survey(self.keys, None, None, True)


def num_pieces(total: int) -> int:
    """In how many pieces so many slots are read to fill a store: what is in memory beside it is a
    piece."""
    return max(1, min(PIECES, total // PIECE_SLOTS))


class Tally(Record):
    """What a batch's key operations do, in numbers. Markers count as slots."""

    touched: int  # leaves in which something is written or moved
    delta: int  # net change in the number of filled slots
    markers: int  # net change of the markers
    loops: int  # net change of the loops
    largest: int  # the largest vertex id that an inserted slot brings, -1 for none
    deletions: int  # slots that are removed

    @property
    def num_changes(self) -> int:
        """Keys inserted or deleted."""
        return self.delta + 2 * self.deletions


class Committed(Record):
    """What a batch amounted to, once applied. Sizes are those after the batch."""

    tally: Tally
    unchanged: Sequence[int]  # [2 * REASONS]: the counts of counters.py
    changes: Changed  # the keys inserted and deleted, markers too; Unread where batches overlap
    redundant: int = 0  # segments rebalanced again in a later round
    num_rounds: int = 0
    held: int = 0  # edges in the windows in which slots moved, leaves included


class Segments(Protocol):
    """One shape of a store: its segments, their fences, the counts of every window.

    Level x holds 1 segment (x = 0) or 2^(x-1) segments, the last one the `parts` that are there
    (layout.py). A shape that was published
    stays readable while another is prepared; `num_slots`, the counts, fences and slots of the
    published one change in `commit`, `shrink` and `apply_at_once` alone. (`plan` may
    write counts ahead; see `Writing`.)"""

    @property
    def m(self) -> int: ...
    @property
    def size(self) -> Size: ...
    @property
    def segment_size(self) -> int: ...
    @property
    def num_slots(self) -> int:
        """Filled slots: edges and markers."""

    @property
    def room(self) -> int:
        """The slots that are there, filled or not."""

    @property
    def nbytes(self) -> int: ...
    @property
    def keys(self) -> Sequence[Array]:
        """uint64 by level. Of the last level, only the parts that are there may be read."""

    @property
    def weights(self) -> Sequence[Array] | None:
        """float32 or float64 by level; None if the store keeps none."""

    @property
    def times(self) -> Sequence[Array] | None:
        """int64 by level, milliseconds since 1970; None if the store keeps none."""

    @property
    def fences(self) -> Array:
        """uint64[2^m] by heap number."""

    @property
    def counts(self) -> Array:
        """Integers [2^(m+1)] by window."""


class StagedBatch(Protocol):
    """A batch's columns where the backend's kernels read them. Valid until `trim`."""


class KeyRows(Protocol):
    """The key operations that a batch's rows give one store, not yet sorted."""

    def __len__(self) -> int:
        """An upper bound on their number; buffers are made for this many."""


class Located(Protocol):
    """Sorted key operations, what each does to the segments, and the leaves they touch."""

    @property
    def tally(self) -> Tally: ...


class Plan(Protocol):
    """The windows that a located batch rebalances, for one shape of the store."""

    @property
    def held_above_leaves(self) -> int:
        """Edges that the windows of layer 1 and more hold after the batch, window by window."""

    @property
    def redundant(self) -> int:
        """Segments that a later round rebalances again."""

    @property
    def num_rounds(self) -> int: ...
