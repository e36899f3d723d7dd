"""Counters of what a store moved: how the paper's Figures 8 and 10 are reproduced."""

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

    def add_windows(self, windows: Array, held: Array | int = 0) -> None:
        """Count windows that were rebalanced, and the edges that they held afterwards. Both by
        layer, from layer 0 on."""
        n = len(windows)
        self.rebalances_by_layer[:n] += windows
        self.segments_by_layer[:n] += windows << np.arange(n)
        self.slots_by_layer[:n] += held

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
