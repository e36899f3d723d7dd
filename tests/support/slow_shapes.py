"""The slow backend's whole stores: made, spread, a level more, a level less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lpma.backend.values import Array, SlotSource
from lpma.pma import layout
from lpma.pma.layout import Size
from tests.support.slow_store import LAST, Slot, SlowSegments


class SlowShapes:
    """See lpma.backend.protocol.Shaping."""

    way_out = "use another"

    def most_levels(self, segment_size: int) -> int:
        return 20

    def parted_from(self, segment_size: int) -> int:
        return layout.parted_from(segment_size)

    def empty(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool
    ) -> SlowSegments:
        return SlowSegments(segment_size, weight_dtype, times, [[]], [0])

    def _spread_over(self, like: SlowSegments, slots: list[Slot], size: Size) -> SlowSegments:
        """Fresh segments of the same columns that hold these slots."""
        fresh = SlowSegments(
            like.segment_size, like.weight_dtype, like.has_times,
            [[] for _ in range(1 << size.m)], [0] + [LAST] * ((1 << size.m) - 1),
            parts=size.parts,
        )  # fmt: skip
        fresh.spread(slots, 0, 1 << size.m)
        fresh.recount()
        return fresh

    def build(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool, size: Size,
        slots: SlotSource,
    ) -> SlowSegments:  # fmt: skip
        like = self.empty(segment_size, weight_dtype, times)
        columns = [
            [0] * slots.total if column is None else column.tolist()
            for column in slots.read(0, slots.total)
        ]
        return self._spread_over(like, [Slot(*row) for row in zip(*columns, strict=True)], size)

    def expand(self, segments: SlowSegments, size: Size) -> SlowSegments:
        if size.m == segments.m:
            return replace(
                segments, filled=[slots[:] for slots in segments.filled],
                fence=segments.fence[:], counts=segments.counts.copy(), parts=size.parts,
            )  # fmt: skip
        following = [*segments.fence[1:], LAST]
        filled: list[list[Slot]] = [s for slots in segments.filled for s in (slots, [])]
        fence = [f for pair in zip(segments.fence, following, strict=True) for f in pair]
        return SlowSegments(
            segments.segment_size, segments.weight_dtype, segments.has_times, filled, fence,
            parts=size.parts,
        )  # fmt: skip

    def even_out(self, segments: SlowSegments, layer: int, first: int, last: int) -> None:
        n = 1 << layer
        for rank in range(first * n, last * n, n):
            segments.spread([s for r in segments.filled[rank : rank + n] for s in r], rank, n)
        segments.recount()

    def shrink(self, segments: SlowSegments, most: Array) -> tuple[SlowSegments, Array]:
        smaller = SlowSegments(
            segments.segment_size, segments.weight_dtype, segments.has_times,
            [a + b for a, b in zip(segments.filled[::2], segments.filled[1::2], strict=True)],
            segments.fence[::2],
        )  # fmt: skip
        moved = np.zeros(smaller.m + 1, np.int64)

        def settle(layer: int, j: int) -> None:
            halves = [(layer - 1, 2 * j), (layer - 1, 2 * j + 1)]
            held = [
                sum(map(len, smaller.filled[k << x : (k + 1) << x])) for x, k in halves if x >= 0
            ]
            if layer and max(held) <= most[layer - 1]:
                for half in halves:
                    settle(*half)
            elif layer:
                first, n = j << layer, 1 << layer
                smaller.spread([s for r in smaller.filled[first : first + n] for s in r], first, n)
                moved[layer] += 1
            else:
                moved[0] += len(segments.filled[2 * j + 1]) > 0

        settle(smaller.m, 0)
        smaller.recount()
        return smaller, moved
