"""Counters of what a store moved: how the paper's Figures 8 and 10 are reproduced.

Every total of work is written here, by `note_applied` and the like; compiled code writes to
`by_layer`, and a graph's version counts its batches. Markers, loops and operations that changed
nothing are the store's (`LPMA.account`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array

LAYERS = 41


def _layers() -> Array:
    return np.zeros(LAYERS, np.int64)


@dataclass
class Stats:
    """Totals since this graph was made or loaded, over its stores; a batch and its operations count
    once, queries up to its last update among them. A global merge counts under `global_merges` and
    `bytes_moved` only; the counts by layer are the strategies' work, and a shrink's windows and
    segments.

    batches, operations   applied
    rebalances_by_layer   int64[41]: windows rebalanced; a window of layer i has 2^i segments
    segments_by_layer     int64[41]: the segments of those windows
    slots_by_layer        int64[41]: the edges that those windows held afterwards
    redundant_rebalances  segments rebalanced again within one batch
    rounds                rounds of plans, which run one after another
    expansions, shrinks   levels added, levels dropped
    global_merges         batches merged with the whole store in one pass
    bytes_moved           bytes read and written, of the columns in use
    seconds               time spent on updates, by the graph's clock

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert([1, 2], [2, 3])
    >>> stats = g.stats()
    >>> stats.batches, stats.operations
    (1, 2)
    """

    batches: int = 0
    operations: int = 0
    rebalances_by_layer: Array = field(default_factory=_layers)
    segments_by_layer: Array = field(default_factory=_layers)
    slots_by_layer: Array = field(default_factory=_layers)
    redundant_rebalances: int = 0
    rounds: int = 0
    expansions: int = 0
    shrinks: int = 0
    global_merges: int = 0
    bytes_moved: int = 0
    seconds: float = 0.0

    @property
    def by_layer(self) -> tuple[Array, Array, Array]:
        """Windows, their segments and their edges: the arrays themselves."""
        return self.rebalances_by_layer, self.segments_by_layer, self.slots_by_layer

    def note_windows(self, windows: Array, held: Array | int = 0) -> None:
        """Windows that were rebalanced, and the edges that they held afterwards, by layer."""
        n = len(windows)
        self.rebalances_by_layer[:n] += windows
        self.segments_by_layer[:n] += windows << np.arange(n)
        self.slots_by_layer[:n] += held

    def note_windows_of(self, layer: int, windows: int, held: int = 0) -> None:
        """The same of one layer."""
        self.rebalances_by_layer[layer] += windows
        self.segments_by_layer[layer] += windows << layer
        self.slots_by_layer[layer] += held

    def note_applied(
        self, operations: int, seconds: float = 0.0, nbytes: int = 0, rounds: int = 0,
        redundant: int = 0,
    ) -> None:  # fmt: skip
        """Operations that were applied, and the time that it took; the bytes that a plan moved, in
        how many rounds, and the segments that it moved again."""
        self.operations += operations
        self.seconds += seconds
        self.bytes_moved += nbytes
        self.rounds += rounds
        self.redundant_rebalances += redundant

    def note_merge(self, nbytes: int) -> None:
        """A merge of the whole store."""
        self.global_merges += 1
        self.bytes_moved += nbytes

    def note_levels(self, expansions: int = 0, shrinks: int = 0) -> None:
        """Levels added, and levels dropped."""
        self.expansions += expansions
        self.shrinks += shrinks

    def as_dict(self) -> dict[str, Any]:
        """The same as plain numbers and lists, for JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    def added(self, other: Stats) -> Stats:
        """The sum over two stores of one graph; operations count once. Batches are the graph's."""
        both = Stats(operations=self.operations)
        for name, value in vars(self).items():
            if name not in ("batches", "operations"):
                setattr(both, name, value + vars(other)[name])
        return both


CHANGED = -1
# In the order of the fields below, and then the count of edges that expired.
NOT_POSITIVE, UNDERFLOW, DELETE_ABSENT, ROUNDED_OFF, EXPIRED = range(5)
REASONS = 5


@dataclass
class Unchanged:
    """How many operations changed nothing, by reason. `Graph.unchanged` returns it.

    not_positive   insertions of a weight of 0 or less where there is no edge, and an absent edge
                   set to such a weight; if edges have no weights, insertions of 0 to any
    underflow      insertions of a weight so small that the store's dtype rounds it to 0, and an
                   absent edge set to such a weight
    delete_absent  deletions of an absent edge
    rounded_off    insertions whose sum is rounded back to what it was: past 2^24 in float32 and 2^53
                   in float64, adding 1 does that

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert(1, 2, weight=-1.0)
    >>> g.delete(3, 4)
    >>> g.unchanged
    Unchanged(not_positive=1, underflow=0, delete_absent=1, rounded_off=0)
    """

    not_positive: int = 0
    underflow: int = 0
    delete_absent: int = 0
    rounded_off: int = 0

    @property
    def total(self) -> int:
        """The sum over all reasons."""
        return sum(self.as_dict().values())

    def as_dict(self) -> dict[str, int]:
        """The counts by the names of their reasons."""
        return asdict(self)

    def since(self, before: Unchanged) -> Unchanged:
        """The counts since `before`, an earlier reading of the same graph."""
        then = before.as_dict()
        return Unchanged(**{why: count - then[why] for why, count in self.as_dict().items()})


def unchanged_of(counts: Any, directed: bool) -> Unchanged:
    """From counts [2 * REASONS]: of edges to a vertex that is no smaller, then of falling ones. In
    an undirected graph those are the same edges in the other direction."""
    return Unchanged(*_once(counts, directed)[:EXPIRED])


def expired_of(counts: Any, directed: bool) -> int:
    """The edges that expired, from the same counts."""
    return _once(counts, directed)[EXPIRED]


def _once(counts: Any, directed: bool) -> list[int]:
    rising, falling = counts[:REASONS].tolist(), counts[REASONS:].tolist()
    return [up + directed * down for up, down in zip(rising, falling, strict=True)]
