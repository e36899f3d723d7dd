"""How many levels a store is to have, and when it is cheaper to rebuild it entirely."""

from __future__ import annotations

import math

from .backend.protocol import AnyBackend
from .backend.values import Segments, Tally
from .density import bounds
from .errors import StoreTooLarge


class Sizing:
    """The rules of one store. Immutable."""

    def __init__(self, backend: AnyBackend, segment_size: int, global_merge: str) -> None:
        self._backend = backend
        self._segment_size = segment_size
        self._rebuilds = global_merge == "auto"
        # By the number of key operations in a batch: see `_least_held`.
        self.least_held = tuple(map(self._least_held, range(3)))

    def levels_for(self, total: int, m: int) -> int:
        """The least number of levels, m or more, whose root has room for `total` slots. Raises
        StoreTooLarge if the backend cannot number that many segments."""
        while total > bounds(m, self._segment_size)[0][m]:
            m += 1
        most = self._backend.most_levels(self._segment_size)
        if m > most:
            raise StoreTooLarge(
                f"{total:,} filled slots need 2^{m} segments of {self._segment_size}, and a store "
                f"on this device has up to 2^{most}: nothing is changed; {self._backend.way_out}"
            )
        return m

    def is_too_empty(self, total: int, m: int) -> bool:
        """Whether the root of m levels must hold more than `total` slots and a level can be
        dropped."""
        return m > 0 and total < int(bounds(m, self._segment_size)[1][m])

    def levels_rebuilt(self, total: int, m: int) -> int:
        """The levels that a store of m levels has once it is rebuilt to hold `total` slots."""
        m = self.levels_for(total, m)
        while self.is_too_empty(total, m):
            m -= 1
        return m

    def most_cost(self, segments: Segments, rows: int) -> float:
        """What moving windows may cost a batch of `rows` key operations before global_merge="auto"
        rebuilds the store. A batch larger than the store rebuilds it in any case, since that is a
        load. Inside a mixed batch the store is never rebuilt."""
        if not self._rebuilds or segments.has_versions:
            return math.inf
        held = segments.num_slots
        return -1.0 if rows > held else self._backend.costs.rebuild * (held + rows)

    def _least_held(self, rows: int) -> int:
        """A number of slots from which on a batch of `rows` key operations, each in a leaf of its
        own, is not cheaper merged with the whole store: see `most_cost`."""
        costs = self._backend.costs
        return max(rows, math.ceil(costs.leaf * rows / costs.rebuild)) if self._rebuilds else 0

    def cost(self, tally: Tally, held_above_leaves: int) -> float:
        """What applying a batch costs, in slots moved."""
        costs = self._backend.costs
        return costs.leaf * tally.touched + costs.window * held_above_leaves
