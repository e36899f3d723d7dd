"""Reading the slow backend's store: every query folds every slot that there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lpma.backend.values import Array
from tests.support.slow_store import LOW, SlowBatch, SlowSegments, State, fold


class SlowReads:
    """See lpma.backend.protocol; beside: the rows of a batch that is not in the store, by place."""

    beside: tuple[tuple[int, int], ...] = ()

    def _seen(self, segments: SlowSegments, staged: SlowBatch | None, limit: int | None) -> Any:
        """{key: (weight, time)} as a query with this limit sees it."""
        state: dict[int, State] = {slot.key: (slot.weight, slot.time) for slot in segments.slots}
        for key, place in self.beside if staged is not None and limit is not None else ():
            if place < limit:  # type: ignore[operator]
                state[key] = fold(segments, staged, key, state.get(key), [place], None)  # type: ignore[arg-type]
        return {key: value for key, value in state.items() if value is not None}

    def _all_seen(
        self, segments: SlowSegments, staged: SlowBatch | None, n: int, limits: Array | None
    ) -> list[dict[int, tuple[float, int]]]:
        """What each of n queries sees."""
        if staged is None:
            return [self._seen(segments, None, None)] * n
        assert limits is not None
        return [self._seen(segments, staged, limit) for limit in limits.tolist()]

    def _columns(self, segments: SlowSegments, rows: list[tuple[float, int]]) -> Any:
        """(weights, times), None for a column that the store does not keep."""
        weights = np.array([weight for weight, _ in rows], segments.weight_dtype)
        times = np.array([time for _, time in rows], np.int64)
        return (
            None if segments.weight_dtype is None else weights,
            times if segments.has_times else None,
        )

    def find_edges(
        self, segments: SlowSegments, staged: SlowBatch | None, src: Array, dst: Array | None,
        limits: Array | None, unseen: bool = False,
    ) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
        ends = [LOW] * len(src) if dst is None else dst.tolist()
        keys = [u << 32 | v for u, v in zip(src.tolist(), ends, strict=True)]
        seen = self._all_seen(segments, staged, len(keys), limits)
        pairs = list(zip(keys, seen, strict=True))
        found = np.array([key in state for key, state in pairs], np.bool_)
        return found, *self._columns(segments, [state.get(key, (0.0, 0)) for key, state in pairs])

    def count_neighbors(
        self, segments: SlowSegments, staged: SlowBatch | None, vertices: Array,
        limits: Array | None, unseen: bool = False,
    ) -> Array:  # fmt: skip
        return np.diff(self.neighbors(segments, staged, vertices, limits, False)[0])

    def neighbors(
        self, segments: SlowSegments, staged: SlowBatch | None, vertices: Array,
        limits: Array | None, values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        seen = self._all_seen(segments, staged, len(vertices), limits)
        ids, rows, ends = [], [], [0]
        for u, state in zip(vertices.tolist(), seen, strict=True):
            for key in sorted(state):
                if key >> 32 == u and key & LOW != LOW:
                    ids.append(key & LOW)
                    rows.append(state[key])
            ends.append(len(ids))
        weights, times = self._columns(segments, rows) if values else (None, None)
        return np.array(ends), np.array(ids, np.uint32), weights, times

    def neighbors_from(
        self, segments: SlowSegments, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        _, ids, weights, times = self.neighbors(segments, None, np.array([vertex]), None, True)
        kept = np.flatnonzero(ids >= first)[:most]
        weights, times = (None if c is None else c[kept] for c in (weights, times))
        return ids[kept], weights, times

    def has_in_edges(self, segments: SlowSegments, targets: Array) -> Array:
        entered = {slot.key & LOW for slot in segments.slots}
        return np.array([v in entered for v in targets.tolist()], np.bool_)

    def scan_targets(self, segments: SlowSegments, targets: Array) -> tuple[Array, Array]:
        keys = [slot.key for slot in segments.slots]
        pairs = enumerate(targets.tolist())
        hits = [(i, key >> 32) for i, v in pairs for key in keys if key & LOW == v]
        return (
            np.array([i for i, _ in hits], np.int64),
            np.array([u for _, u in hits], np.uint32),
        )

    def largest_vertex(self, segments: SlowSegments) -> int:
        ends = [(slot.key >> 32, slot.key & LOW) for slot in segments.slots]
        return max([-1, *(max(u, v) if v != LOW else u for u, v in ends)])

    def slots(
        self, segments: SlowSegments, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]:
        keys = np.array([slot.key for slot in segments.slots], np.uint64)
        rows = [(slot.weight, slot.time) for slot in segments.slots]
        return keys, *(self._columns(segments, rows) if values else (None, None))

    def older(self, segments: SlowSegments, before: int) -> tuple[Array, Array]:
        old = [slot for slot in segments.slots if slot.time < before and slot.key & LOW != LOW]
        keys = np.array([slot.key for slot in old], np.uint64)
        return keys, np.array([slot.time for slot in old], np.int64)

    def since(
        self, segments: SlowSegments, before: int
    ) -> tuple[tuple[Array, Array | None, Array | None], int]:
        stay = [slot for slot in segments.slots if slot.time >= before or slot.key & LOW == LOW]
        gone = [slot.key for slot in segments.slots if slot not in stay]
        loops = sum(key >> 32 == key & LOW for key in gone)
        return self.slots(replace(segments, filled=[stay])), loops

    def sampled_times(self, segments: SlowSegments) -> Array:
        return np.array([slot.time for slot in segments.slots[:1]], np.int64)

    def any_older(self, segments: SlowSegments, times: Array, before: int) -> Callable[[], bool]:
        return lambda: any(time < before for time in times.tolist())

    def copy_slots(
        self, segments: SlowSegments, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        for target, column in zip((keys, weights, times), self.slots(segments), strict=True):
            if target is not None and column is not None:
                target[:] = column

    def host_memory(self, size: int) -> Array:
        return np.empty(size, np.uint8)
