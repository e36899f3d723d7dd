"""A batch as kernels get it: where its columns lie, and what holds for all of its rows."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from ...batch import Columns, Kind

Array = Any  # numpy or cupy

DELETE = int(Kind.DELETE)

# Batch of fold.cuh: n; kind, src, dst, weight, time; now, wide, one_kind.
BATCH = struct.Struct("<qQQQQQqii")
Words = tuple[int, ...]  # of a BATCH


def needed(columns: Columns) -> tuple[Array | None, Array, Array, Array | None, Array | None]:
    """The kinds, sources, targets, weights and times that kernels read; None where all rows have
    the same."""
    one_kind, time, src = columns.one_kind, columns.time, columns.src
    if one_kind == DELETE:
        return None, src, columns.dst, None, None
    if time is not None and len(time) != len(src):
        time = None
    return columns.kind if one_kind is None else None, src, columns.dst, columns.weight, time


def words_of(columns: Columns, now: int, at: Iterable[int]) -> Words:
    """The BATCH of columns that lie at these addresses; 0: see `needed`. now: the time of rows that
    have none."""
    weight = columns.weight
    wide = weight is not None and weight.itemsize == 8
    return len(columns.kind), *at, now, wide, columns.one_kind or 0
