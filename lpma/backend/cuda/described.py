"""A batch as kernels get it: where its columns lie, and what holds for all of its rows."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...batch.columns import Columns, Kind

Array = Any  # numpy or cupy

DELETE = int(Kind.DELETE)

# Batch of fold.cuh: n; kind, src, dst, weight, time; now, wide, one_kind.
BATCH = struct.Struct("<qQQQQQqii")
BATCH_ORDER = "kind", "src", "dst", "weight", "time"
Words = tuple[int, ...]  # of a BATCH


@dataclass
class StagedBatch:
    """A batch's columns on the device, as kernels get them. `columns` is the host's view."""

    words: Words
    columns: Columns  # keeps alive what is already on the device
    block: Any  # where the rest lies; None: there is none

    @cached_property
    def record(self) -> Any:
        """BATCH, as one opaque value."""
        return np.frombuffer(BATCH.pack(*self.words), f"V{BATCH.size}")


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


class Places(NamedTuple):
    """Where the arrays lie that kernels read of a batch in pinned memory; 0 for None."""

    one_kind: int | None
    columns: tuple[Array, Array, Array, Array | None, Array | None]  # of the batch
    at: list[int]
    end: int  # of what they take of the block

    def holds(self, columns: Columns) -> bool:
        """Whether that batch is this one again."""
        kind, src, dst, weight, time = self.columns
        return (
            columns.kind is kind
            and columns.src is src
            and columns.dst is dst
            and columns.weight is weight
            and columns.time is time
            and columns.one_kind == self.one_kind
        )


def places_of(columns: Columns) -> Places:
    """Where a batch in pinned memory lies, as most batches of a stream do where one was before."""
    block = columns.block
    known: Places | None = block.known
    if known is None or not known.holds(columns):
        every = columns.kind, columns.src, columns.dst, columns.weight, columns.time
        arrays = needed(columns)
        at = block.places(arrays)
        ends = [a + array.nbytes for a, array in zip(at, arrays, strict=True) if array is not None]
        block.known = known = Places(columns.one_kind, every, at, max(ends))
    return known
