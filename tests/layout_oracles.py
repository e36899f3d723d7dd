"""The layout, slowly: segments in key order by walking a perfect binary tree node by node.

Nothing here knows a formula of `lpma.layout`; the head comes first, then the tree in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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


def breadth_first(m: int) -> dict[tuple[int, int], int]:
    """The number each segment has in the paper's figures: s0 the head, then level by level."""
    numbers = {(0, 0): 0}
    for level in range(1, m + 1):
        for offset in range(2 ** (level - 1)):
            numbers[level, offset] = len(numbers)
    return numbers


def columns_by_rank(segments: Any, column: str = "keys") -> list[Array]:
    """Copies of the filled slots of one column, segment by segment in key order."""
    size, m = segments.segment_size, segments.m
    filled = np.asarray(segments.counts)[2**m :]
    levels = getattr(segments, column)
    return [
        np.asarray(levels[level])[offset * size : offset * size + int(count)].copy()
        for (level, offset), count in zip(in_order(m), filled, strict=True)
    ]


def sizes_by_rank(segments: Any) -> list[int]:
    """The filled slots of each segment in key order."""
    return [len(keys) for keys in columns_by_rank(segments)]


def same_columns(some: list[Array], others: list[Array]) -> list[bool]:
    """Rank by rank, whether two readings of a store agree."""
    return [np.array_equal(a, b) for a, b in zip(some, others, strict=True)]
