"""Core numbers after a batch, on a CUDA device: one cooperative kernel, see core.cu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.cuda.work_queue import queue_room

from ...views.simple import View
from ..types import Change

Array = Any  # cupy.ndarray

FILE = "algorithms/tracker/core/core.cu"
BLOCK, PIECE = 1024, 128  # threads of a block, entries of a piece: as in waves.cuh
WAVES = 24  # bytes of three times Found in waves.cuh
ENTRIES_PER_THREAD = 8  # of the whole graph: a small graph gets a small grid, with cheap barriers


def order(
    rows: View, numbers: Array, layer: Array, after: Array, support: Array
) -> tuple[int, None]:
    """As `cpu.order`, but nothing is kept. Waits for the device."""
    n = rows.num_rows
    if n == 0:
        return 0, None
    state = driver.zeros(1, np.int32)
    launch.run_together(
        FILE, "make_order", _threads(rows), rows.indptr, rows.indices, n, numbers, layer, after,
        support, *_room(rows), state, block=BLOCK,
    )  # fmt: skip
    return driver.number(state), None


def begin(
    change: Change,
    numbers: Array,
    layer: Array,
    after: Array,
    support: Array,
    state: np.ndarray[Any, Any],
    lists: None,
) -> Callable[[], bool]:
    """As `cpu.begin`; state is on the host. What is returned waits for the device."""
    rows, n = change.after, change.after.num_rows
    if n == 0:
        return lambda: True
    total, target, seen = (cupy.empty(n, np.int32) for _ in range(3))
    words = cupy.empty(3, np.int32)
    launch.run_together(
        FILE, "follow", _threads(rows), rows.indptr, rows.indices, n, change.deleted,
        len(change.deleted), change.inserted, len(change.inserted), numbers.copy(), numbers, layer,
        after, support, total, target, seen, *_room(rows), int(state[2]) // PIECE, int(state[0]),
        int(state[1]), words, block=BLOCK,
    )  # fmt: skip

    def end() -> bool:
        state[0], state[1], sufficed = words.tolist()
        return bool(sufficed)

    return end


def _threads(rows: View) -> int:
    return rows.num_rows + len(rows.indices) // ENTRIES_PER_THREAD


def _room(rows: View) -> tuple[Array, int, Array, Array, Array]:
    """Room for three lists of the pieces of all rows, the room of each, and room for the
    records of the waves, the entries of all rows, and a word for each piece."""
    room = queue_room(rows.num_rows, len(rows.indices), PIECE)
    return (
        cupy.empty(3 * room, np.uint64), room, cupy.empty(WAVES, np.uint8),
        cupy.empty(len(rows.indices), np.uint32), cupy.empty(room, np.uint32),
    )  # fmt: skip
