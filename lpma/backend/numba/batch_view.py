"""A located batch by address: its columns, its key operations, the leaves it touches.

See addressing.py for why kernels get addresses. Each record names its columns' dtypes; the
accessors below are the only places that depend on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...cpu.instructions import (
    load_f32,
    load_f64,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    prefetch,
    store_i32,
    store_u8,
    store_u16,
)
from ...cpu.jit import inlined

LEAF_COLUMNS = 5  # int32, see Leaves


class BatchView(NamedTuple):
    """A batch's columns, by place: as long as the batch, or one entry and a step of 0, where every
    operation has the same value.

    A batch is plain if all operations add positive weights, or all set them: then nothing needs to be read to
    know the outcome of a run, and the mover alone folds. `plain` is 0, or the address of what it
    counts then: the operations that change nothing, see fold.py."""

    kind: int  # uint8
    kind_step: int  # 0 or 1
    weight: int  # float32 or float64, whatever the store's dtype is
    weight_step: int  # 0, 4 or 8
    wide: int  # 1 where the weights are float64
    time: int  # int64
    time_step: int  # 0 or 8
    plain: int  # int64[2 * REASONS], or 0


@inlined
def batch_at(at: int) -> BatchView:
    """The one whose words are at an address."""
    return BatchView(
        load_i64(at), load_i64(at + 8), load_i64(at + 16), load_i64(at + 24), load_i64(at + 32),
        load_i64(at + 40), load_i64(at + 48), load_i64(at + 56),
    )  # fmt: skip


class Rows(NamedTuple):
    """A batch's n key operations by rising key, and what locating found: columns of n entries."""

    n: int
    key: int  # uint64
    place: int  # uint32: row of the batch
    action: int  # uint8
    position: int  # uint16 in the leaf: where to insert before, or what to write or delete


class Leaves(NamedTuple):
    """The n leaves that a batch changes, by rising rank: columns of int32, of n entries."""

    n: int
    rank: int
    lo: int  # its operations are rows lo … hi - 1
    hi: int
    delta: int  # net change of its filled slots
    flags: int  # rebalance.MOVED, rebalance.DELETED

    def from_index(self, first: int) -> Leaves:
        """The same columns from entry `first` on."""
        columns = (column + 4 * int(first) for column in self[1:])
        return Leaves(self.n - int(first), *columns)


@inlined
def operation_weight(b: BatchView, place: int) -> float:
    if b.wide:
        return load_f64(b.weight + place * b.weight_step)
    return np.float64(load_f32(b.weight + place * b.weight_step))


@inlined
def brings_columns(b: BatchView) -> bool:
    """Whether operations differ in more than their keys; if not, their rows stay in the cache."""
    return b.weight_step != 0 or b.time_step != 0 or b.kind_step != 0


@inlined
def prefetch_operation(b: BatchView, place: int) -> None:
    """Prefetch an operation's row of the batch, which may lie anywhere."""
    prefetch(b.kind + place * b.kind_step)
    prefetch(b.weight + place * b.weight_step)
    prefetch(b.time + place * b.time_step)


@inlined
def row_key(rows: Rows, row: int) -> np.uint64:
    return load_u64(rows.key + row * 8)


@inlined
def row_place(rows: Rows, row: int) -> int:
    return np.int64(load_u32(rows.place + row * 4))


@inlined
def row_action(rows: Rows, row: int) -> int:
    return np.int64(load_u8(rows.action + row))


@inlined
def row_position(rows: Rows, row: int) -> int:
    return np.int64(load_u16(rows.position + row * 2))


@inlined
def set_action(rows: Rows, row: int, action: int) -> None:
    store_u8(rows.action + row, np.uint8(action))


@inlined
def set_position(rows: Rows, row: int, position: int) -> None:
    store_u16(rows.position + row * 2, np.uint16(position))


@inlined
def get(column: int, i: int) -> int:
    """Entry i of a column of Leaves."""
    return np.int64(load_i32(column + i * 4))


@inlined
def put(column: int, i: int, value: int) -> None:
    """Set entry i of a column of Leaves."""
    store_i32(column + i * 4, np.int32(value))
