"""A batch as kernels get it: where its columns lie, and what holds for all of its rows."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...batch import Columns, Kind

Array = Any  # numpy or cupy

DELETE = int(Kind.DELETE)

# Batch of fold.cuh: n; kind, src, dst, weight, time; now, wide, one_kind.
BATCH = struct.Struct("<qQQQQQqii")


def needed(columns: Columns) -> tuple[Array | None, Array | None, Array | None]:
    """The kinds, weights and times that kernels read; None where all rows have the same."""
    one_kind, time = columns.one_kind, columns.time
    if one_kind == DELETE:
        return None, None, None
    if time is not None and len(time) != len(columns.src):
        time = None
    return columns.kind if one_kind is None else None, columns.weight, time


def packed(columns: Columns, addresses: Iterable[int], now: int) -> bytes:
    """BATCH of columns that lie at these addresses; 0: see `needed`. now: the time of rows that
    have none."""
    wide = columns.weight is not None and columns.weight.dtype == np.float64
    return BATCH.pack(len(columns), *addresses, now, wide, columns.one_kind or 0)
