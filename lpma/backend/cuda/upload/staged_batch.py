"""A batch as kernels get it: where its columns lie, and what holds for all of its rows."""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any

import numpy as np

from ....batch.columns import Columns, Kind
from ....cuda.driver import Array
from ....record import Record

DELETE = int(Kind.DELETE)

# Batch of fold.cuh: n; kind, src, dst, weight, time; now, wide, one_kind.
BATCH = struct.Struct("<qQQQQQqii")
BATCH_ORDER = "kind", "src", "dst", "weight", "time"
Words = tuple[int, ...]  # of a BATCH
Five = tuple[Array | None, Array, Array, Array | None, Array | None]  # columns in BATCH_ORDER


class StagedBatch(Record):
    """A batch's columns on the device, as kernels get them. `columns` is the host's view."""

    words: Words
    columns: Columns  # keeps alive what is already on the device
    block: Any  # where the rest lies; None: there is none

    @cached_property
    def record(self) -> Any:
        """BATCH, as one opaque value."""
        return np.frombuffer(BATCH.pack(*self.words), f"V{BATCH.size}")


def required_columns(columns: Columns) -> Five:
    """The kinds, sources, targets, weights and times that kernels read; None where all rows have
    the same."""
    one_kind, time, src = columns.one_kind, columns.time, columns.src
    if one_kind == DELETE:
        return None, src, columns.dst, None, None
    if time is not None and len(time) != len(src):
        time = None
    return columns.kind if one_kind is None else None, src, columns.dst, columns.weight, time
