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
    """Totals since the store was made. A global merge counts under `global_merges` and
    `bytes_moved` only; the counts by layer are the strategies' work, and a shrink's windows and
    segments."""

    batches: int = 0
    operations: int = 0
    rebalances_by_layer: Array = field(default_factory=_layers)  # windows
    segments_by_layer: Array = field(default_factory=_layers)  # their segments
    slots_by_layer: Array = field(default_factory=_layers)  # edges they held after
    redundant_rebalances: int = 0  # segments rebalanced again within one batch
    rounds: int = 0
    expansions: int = 0
    shrinks: int = 0
    global_merges: int = 0
    bytes_moved: int = 0  # read and written, columns in use only
    seconds: float = 0.0

    def count_moves(self, redundant: int, rounds: int, bytes_held: int) -> None:
        """Add what a batch moved, the windows being of so many bytes; the backend has added them
        by layer."""
        self.redundant_rebalances += redundant
        self.rounds += rounds
        self.bytes_moved += 2 * bytes_held

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    def added(self, other: Stats) -> Stats:
        """The sum over two stores of one graph; batches and operations are counted once."""
        both = Stats(self.batches, self.operations)
        for name, value in vars(self).items():
            if name not in ("batches", "operations"):
                setattr(both, name, value + vars(other)[name])
        return both
