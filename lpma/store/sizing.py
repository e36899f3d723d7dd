"""How large a store is to be, and when it is cheaper to rebuild it entirely.

The paper's store expands by a level, which doubles it: just after that it is less than half full.
So does ours on the CPU, where the room makes batches faster. On a device, whose memory is scarce, a
large one expands by a part of a level (layout.py), a quarter of its slots at the most: so it is
0.72 full or more from there on. Small windows are spread beforehand (growth.py), which moves every
slot four times while the store doubles, and leaves little to be moved in between.
"""

from __future__ import annotations

import math

from ..backend.protocol import AnyBackend
from ..backend.values import Segments, Tally
from ..errors import StoreTooLarge
from ..pma.density import root_bounds
from ..pma.layout import NO_LEVEL, Size


class Sizing:
    """The rules of one store. Immutable."""

    def __init__(self, backend: AnyBackend, segment_size: int, global_merge: str) -> None:
        self._backend = backend
        self._segment_size = segment_size
        # Else all is as in the paper.
        self._rebuilds = global_merge == "auto" or backend.costs.load == 0
        # The first level that comes in parts, where the backend has such.
        self._parted_from = backend.parted_from(segment_size) if self._rebuilds else NO_LEVEL
        # By the number of key operations in a batch: see `_least_held`.
        self.least_held = tuple(map(self._least_held, range(3)))

    def size_for(self, total: int, size: Size) -> Size:
        """The least size, `size` or larger, whose root has room for `total` slots. Raises
        StoreTooLarge."""
        while total > root_bounds(size, self._segment_size)[0]:
            size = self.larger(size)
        most = self._backend.most_levels(self._segment_size)
        if size.m > most:
            raise StoreTooLarge(
                f"{total:,} filled slots need 2^{size.m} segments of {self._segment_size}, and a "
                f"store on this device has up to 2^{most}: nothing is changed; "
                f"{self._backend.way_out}"
            )
        return size

    def is_too_empty(self, total: int, size: Size) -> bool:
        """Whether the root must hold more than `total` slots and a level can be dropped."""
        return size.m > 0 and total < root_bounds(size, self._segment_size)[1]

    def size_rebuilt(self, total: int, size: Size) -> Size:
        """What a store of this size has once it is rebuilt to hold `total` slots."""
        size = self.size_for(total, size)
        while self.is_too_empty(total, size):
            size = Size(size.m - 1)
        return size

    def larger(self, size: Size) -> Size:
        """What a store of this size expands to."""
        return size.larger(self._parted_from)

    def comes_in_parts(self, size: Size) -> bool:
        """Whether the last level of a store of this size is one that comes in parts."""
        return size.m >= self._parted_from

    def steps(self, before: Size, after: Size) -> int:
        """How often a store expands between two sizes."""
        steps = 0
        while before < after:
            before, steps = self.larger(before), steps + 1
        return steps

    def most_cost(self, segments: Segments, rows: int) -> float:
        """What moving windows may cost a batch of `rows` key operations before the store is
        rebuilt. A batch much larger than the store rebuilds it in any case, since that is a
        load."""
        if not self._rebuilds:
            return math.inf
        held, costs = segments.num_slots, self._backend.costs
        if rows > costs.load * held:
            return -1.0
        fresh = costs.fresh if segments.size.m >= self._parted_from else 0
        return costs.rebuild * (held + rows) + fresh

    def _least_held(self, rows: int) -> int:
        """From how many slots on a batch of `rows` key operations, each in a leaf of its own, is
        not merged with the whole store: see `most_cost`."""
        costs = self._backend.costs
        return max(rows, math.ceil(costs.leaf * rows / costs.rebuild)) if self._rebuilds else 0

    def cost(self, tally: Tally, held_above_leaves: int) -> float:
        """What applying a batch costs, in slots moved."""
        costs = self._backend.costs
        return costs.leaf * tally.touched + costs.window * held_above_leaves
