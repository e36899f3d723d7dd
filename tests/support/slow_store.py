"""The slow backend's store and batches: lists of slots, operations one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lpma.backend.values import Array, Changed, Tally
from lpma.batch.columns import Columns, Kind
from lpma.pma.counters import DELETE_ABSENT, EXPIRED, NOT_POSITIVE, REASONS, ROUNDED_OFF, UNDERFLOW
from lpma.pma.layout import Size, heap_number, level_and_offset
from tests.support.layout_oracles import place_of

LOW = 2**32 - 1
LAST = 2**64 - 1  # a fence above every key
State = tuple[float, int] | None  # (weight, time) of a key, None where it is absent


@dataclass(frozen=True)
class Slot:
    """A stored key."""

    key: int
    weight: float = 0.0
    time: int = 0


@dataclass
class SlowSegments:
    """The segments in key order. Rank 0 takes what is below every fence."""

    segment_size: int
    weight_dtype: np.dtype[Any] | None
    has_times: bool
    filled: list[list[Slot]]
    fence: list[int]  # by rank
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # by window
    parts: int = 4  # of the last level, which are there

    def __post_init__(self) -> None:
        if not len(self.counts):
            self.recount()

    def recount(self) -> None:
        leaves = [len(slots) for slots in self.filled]
        counts = [0] * len(leaves) + leaves
        for window in range(len(leaves) - 1, 0, -1):
            counts[window] = counts[2 * window] + counts[2 * window + 1]
        self.counts = np.array(counts, np.int64)

    @property
    def m(self) -> int:
        return len(self.filled).bit_length() - 1

    @property
    def size(self) -> Size:
        return Size(self.m, self.parts)

    @property
    def room(self) -> int:
        return self.segment_size * sum(map(self.is_there, range(1 << self.m)))

    def is_there(self, rank: int) -> bool:
        """Parts 1, 2, 3, 4 are the ranks 1, 5, 3, 7 of every eight."""
        return self.m < 3 or rank % 8 not in (1, 5, 3, 7)[self.parts :]

    @property
    def slots(self) -> list[Slot]:
        return [slot for slots in self.filled for slot in slots]

    @property
    def num_slots(self) -> int:
        return len(self.slots)

    @property
    def nbytes(self) -> int:
        return 24 * (self.segment_size << self.m)

    def _levels(self, name: str, dtype: Any) -> list[Array]:
        size = self.segment_size
        levels = [np.zeros(size << max(level - 1, 0), dtype) for level in range(self.m + 1)]
        for rank, slots in enumerate(self.filled):
            level, offset = level_and_offset(rank, self.m)
            values = [getattr(slot, name) for slot in slots]
            start = place_of(level, offset) * size
            levels[level][start : start + len(slots)] = values
        return levels

    @property
    def keys(self) -> list[Array]:
        return self._levels("key", np.uint64)

    @property
    def weights(self) -> list[Array] | None:
        return None if self.weight_dtype is None else self._levels("weight", self.weight_dtype)

    @property
    def times(self) -> list[Array] | None:
        return self._levels("time", np.int64) if self.has_times else None

    @property
    def fences(self) -> Array:
        by_heap = np.zeros(1 << self.m, np.uint64)
        for rank, fence in enumerate(self.fence):
            by_heap[heap_number(rank, self.m)] = fence
        return by_heap

    def rank_of(self, key: int) -> int:
        """The last segment whose fence is not above the key; the first where there is none."""
        return max([0, *(rank for rank, fence in enumerate(self.fence) if fence <= key)])

    def spread(self, slots: list[Slot], first: int, n: int) -> None:
        """Fill those of n segments that are there evenly. The first one's fence stays: its
        neighbours rely on it."""
        following = self.fence[first + n] if first + n < len(self.fence) else LAST
        ranks = [rank for rank in range(first, first + n) if self.is_there(rank)]
        for k, rank in enumerate(ranks):
            start, end = k * len(slots) // len(ranks), (k + 1) * len(slots) // len(ranks)
            self.filled[rank][:] = slots[start:end]
            if k:
                self.fence[rank] = slots[start].key if start < len(slots) else following
        for rank in reversed(range(first, first + n)):
            if not self.is_there(rank):
                self.filled[rank][:] = []
                self.fence[rank] = self.fence[rank + 1] if rank + 1 < first + n else following


@dataclass(frozen=True)
class Operation:
    kind: int
    weight: float
    time: int


@dataclass(frozen=True)
class SlowBatch:
    operations: list[Operation]  # by place
    columns: Columns


@dataclass(frozen=True)
class SlowRows:
    keys: list[tuple[int, int]]  # (key, place) by rising place

    def __len__(self) -> int:
        return len(self.keys)


def applied(slots: list[Slot], changed: dict[int, list[Slot]]) -> list[Slot]:
    """A segment's slots with some keys' slots replaced."""
    kept = [slot for slot in slots if slot.key not in changed]
    kept += [slot for after in changed.values() for slot in after]
    return sorted(kept, key=lambda slot: slot.key)


def fold(
    segments: SlowSegments, staged: SlowBatch, key: int, state: State, places: list[int],
    unchanged: list[int] | None,
) -> State:  # fmt: skip
    """Definition 2, one operation after the other; notes those that change nothing."""
    for place in places:
        state, why = operate(segments.weight_dtype, key, state, staged.operations[place])
        if why is not None and unchanged is not None:
            falling = (key >> 32) > (key & LOW)
            unchanged[falling * REASONS + why] += 1
    return state


def operate(
    dtype: np.dtype[Any] | None, key: int, state: State, operation: Operation
) -> tuple[State, int | None]:
    """The state after one operation, and why that is the state before, or EXPIRED."""
    kind, weight, time = operation.kind, operation.weight, operation.time
    if kind == Kind.ADD_VERTEX:
        return ((0.0, time) if key & LOW == LOW else None), None
    if kind == Kind.EXPIRE:
        return (None, EXPIRED) if state is not None and state[1] < time else (state, None)
    if kind == Kind.SET:
        d = weight if dtype is None else float(dtype.type(weight))
        if d > 0:
            return (0.0 if dtype is None else d, time), None
        if state is not None:
            return None, None
        return None, UNDERFLOW if d == 0 and weight != 0 else NOT_POSITIVE
    if kind != Kind.INSERT:
        return None, DELETE_ABSENT if kind == Kind.DELETE and state is None else None
    if dtype is None:
        if weight > 0:
            return (0.0, time), None
        unmoved = weight == 0 or state is None
        return (state if weight == 0 else None), NOT_POSITIVE if unmoved else None
    d = float(dtype.type(weight))
    if state is None:
        if d > 0:
            return (d, time), None
        return None, UNDERFLOW if weight != 0 and d == 0 else NOT_POSITIVE
    after = float(dtype.type(state[0] + d))
    why = ROUNDED_OFF if d != 0 and after == state[0] else None
    if weight != 0 and d == 0:
        why = UNDERFLOW
    return ((after, time) if after >= 0 else None), why


def tally_of(inserted: dict[int, bool]) -> Tally:
    """Of the keys that come and go; what is touched is another's to say."""
    sign = {key: 1 if comes else -1 for key, comes in inserted.items()}
    comes = [key for key, there in inserted.items() if there]
    return Tally(
        touched=0,
        delta=sum(sign.values()),
        markers=sum(by for key, by in sign.items() if key & LOW == LOW),
        loops=sum(by for key, by in sign.items() if key & LOW == key >> 32),
        largest=max([-1, *(max(key >> 32, key & LOW if key & LOW != LOW else 0) for key in comes)]),
        deletions=len(inserted) - len(comes),
    )


def changes_of(inserted: dict[int, bool], most: int) -> Changed:
    if len(inserted) > most:
        return None
    keys = sorted(inserted)
    return np.array(keys, np.uint64), np.array([inserted[key] for key in keys], np.bool_)
