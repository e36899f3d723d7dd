"""The layout, slowly: segments in key order by walking a perfect binary tree node by node.

Nothing here knows a formula of `lpma.pma.layout`: the head comes first, then the tree in order.
The rest helps tests to make a store of known segments and to see what a batch did to each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import lpma
from lpma.backend.numpy.segments import Segments as NumpySegments
from lpma.backend.values import SlotArrays
from lpma.store.lpma import LPMA
from tests.support.oracles import host

Array = npt.NDArray[Any]


@cache
def in_order(m: int) -> list[tuple[int, int]]:
    """(level, offset) of the 2^m segments in key order: the head, then the tree of m levels."""
    segments = [(0, 0)]

    def walk(level: int, offset: int) -> None:
        if level <= m:
            walk(level + 1, 2 * offset)
            segments.append((level, offset))
            walk(level + 1, 2 * offset + 1)

    walk(1, 0)
    return segments


@cache
def place_of(level: int, offset: int) -> int:
    """Where a segment lies in its level's allocation: first those of the level's first part."""
    if level < 3:
        return offset
    parts = [[o for o in range(2 ** (level - 1)) if o % 4 == first] for first in (0, 2, 1, 3)]
    return [o for part in parts for o in part].index(offset)


def breadth_first(m: int) -> dict[tuple[int, int], int]:
    """The number each segment has in the paper's figures: s0 the head, then level by level."""
    numbers = {(0, 0): 0}
    for level in range(1, m + 1):
        for offset in range(2 ** (level - 1)):
            numbers[level, offset] = len(numbers)
    return numbers


def columns_by_rank(segments: Any, column: str = "keys") -> list[Array]:
    """Copies of the filled slots of one column, segment by segment in key order; on the host."""
    size, m = segments.segment_size, segments.m
    filled = host(segments.counts)[2**m :]
    levels = [
        host(level[: size * held])
        for level, held in zip(getattr(segments, column), segments.size.by_level, strict=True)
    ]
    starts = [place_of(level, offset) * size for level, offset in in_order(m)]
    return [
        levels[level][start : start + int(count)].copy()
        for (level, _), start, count in zip(in_order(m), starts, filled, strict=True)
    ]


def shares_levels(now: Any, then: Any, column: str = "keys") -> list[bool]:
    """Level by level, whether one shape's slots lie in the arrays of another. The NumPy backend has
    no arrays of levels, but makes them when they are asked for: nothing is compared there."""
    if isinstance(now, NumpySegments):
        return [True] * (1 + min(now.m, then.m))
    levels = zip(getattr(now, column), getattr(then, column), strict=False)
    return [level is before for level, before in levels]


def sizes_by_rank(segments: Any) -> list[int]:
    """The filled slots of each segment in key order."""
    return [len(keys) for keys in columns_by_rank(segments)]


def same_columns(some: list[Array], others: list[Array]) -> list[bool]:
    """Rank by rank, whether two readings of a store agree."""
    return [np.array_equal(a, b) for a, b in zip(some, others, strict=True)]


def fill(g: lpma.Graph, keys: Array, weights: Array | None, times: Array | None) -> None:
    """Replace a graph's contents by sorted slots, spread evenly, as loading a file does."""
    g._lock.write(g._stores.fill, SlotArrays(keys, weights, times))


def make(device: str, keys: Any, segment_size: int = 4, **options: Any) -> tuple[lpma.Graph, LPMA]:
    """A graph of edges (0, key), spread evenly, and its out-store."""
    options = {"strategy": "bottom-up", "global_merge": "never"} | options
    g = lpma.Graph(device=device, segment_size=segment_size, **options)
    keys = np.asarray(keys, np.uint64)
    fill(g, keys, np.ones(len(keys), np.float32), np.zeros(len(keys), np.int64))
    return g, g._stores.out


def take_in(g: lpma.Graph) -> None:
    """Have the stores show what the last batch came to, as whoever asks the graph does."""
    g._lock.read(lambda: None)


def insert(g: lpma.Graph, *keys: int) -> None:
    g.insert(np.zeros(len(keys), np.int64), keys, time=1)
    take_in(g)


def delete(g: lpma.Graph, *keys: int) -> None:
    g.delete(np.zeros(len(keys), np.int64), keys, time=1)
    take_in(g)


def since(store: LPMA, before: dict[str, Any]) -> dict[str, Any]:
    """What a store counted since `before`, the lists by layer without their empty end."""
    grown = {}
    for name, value in store.stats.as_dict().items():
        if isinstance(value, list):
            added = np.subtract(value, before[name])
            grown[name] = added[: added.nonzero()[0].max(initial=-1) + 1].tolist()
        else:
            grown[name] = value - before[name]
    return grown
