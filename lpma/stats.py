"""Counters of what a store moved: how the paper's Figures 8 and 10 are reproduced.

All that is counted is counted here, by `note_batch` and the like; compiled code writes to
`by_layer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
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
        """Windows that were rebalanced, and the edges that they held afterwards. Both by layer,
        from layer 0 on."""
        n = len(windows)
        self.rebalances_by_layer[:n] += windows
        self.segments_by_layer[:n] += windows << np.arange(n)
        self.slots_by_layer[:n] += held

    def note_windows_of(self, layer: int, windows: int, held: int = 0) -> None:
        """The same of one layer."""
        self.rebalances_by_layer[layer] += windows
        self.segments_by_layer[layer] += windows << layer
        self.slots_by_layer[layer] += held

    def note_batch(self) -> None:
        """A batch, of which `note_operations` has the rest."""
        self.batches += 1

    def note_operations(self, operations: int, seconds: float = 0.0) -> None:
        """Operations that were applied, and the time that it took."""
        self.operations += operations
        self.seconds += seconds

    def note_moved(self, nbytes: int, rounds: int = 1, redundant: int = 0) -> None:
        """What a plan moved, in how many rounds, and the segments that it moved again."""
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
        """The sum over two stores of one graph; batches and operations count once."""
        both = Stats(self.batches, self.operations)
        for name, value in vars(self).items():
            if name not in ("batches", "operations"):
                setattr(both, name, value + vars(other)[name])
        return both
