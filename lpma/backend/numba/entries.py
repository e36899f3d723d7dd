"""The kernels that small.py calls by address (lpma/cpu/calls.py), and where they are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from ...cpu.calls import ByAddress
from . import counts, locate, move, rebalance, sort
from .move import BATCH, LEAVES, ROWS, SLOT, VIEW, gather_at
from .rebalance import bottom_up, top_down

Array = npt.NDArray[Any]

_int = types.int64
_i32, _i64, _u32, _u64 = types.int32[::1], _int[::1], types.uint32[::1], types.uint64[::1]
_i32_rows = types.int32[:, ::1]

_sort = ByAddress(sort.sort_few, types.none, _u64, _u32, _u64, _u32, _int)
_locate = ByAddress(locate.locate, _i64, VIEW, BATCH, ROWS, _int, _int, LEAVES)
_planned = types.UniTuple(_int, 5)
_to_plan = (_i64, _i32, _i32, _i32, _i64, _i64, _i32_rows, _i64)
_plan_up = ByAddress(bottom_up.plan_into, _planned, *_to_plan)
_plan_down = ByAddress(top_down.plan_into, _planned, *_to_plan)
_leaves = ByAddress(move.move_leaves, types.none, VIEW, BATCH, ROWS, LEAVES, _int, _int, SLOT)
_windows = ByAddress(
    move.move_windows, types.none, VIEW, BATCH, ROWS, LEAVES, _i32_rows, _int, _int, SLOT,
    _int, _int,
)  # fmt: skip
_sum = ByAddress(counts.sum_upward, types.none, VIEW, _i32, _int, _i32)
_count = ByAddress(rebalance.count_work, _int, _i32_rows, _int, _i32, _i32, _i64, _i64, _i64, _i64)

SORT, LOCATE, PLAN_UP, PLAN_DOWN, LEAVES_OF, WINDOWS_OF, SUM, COUNT, GATHER = range(9)
ENTRIES = (_sort, _locate, _plan_up, _plan_down, _leaves, _windows, _sum, _count, gather_at)
NUM_ENTRIES = len(ENTRIES)

sort_few, locate_rows, plan_into = _sort.call, _locate.call, _plan_up.call
move_leaves, move_windows = _leaves.call, _windows.call
sum_upward, count_work = _sum.call, _count.call


@lru_cache(maxsize=1)
def addresses() -> Array:
    """int64: of each of these, by the numbers above. Compiles them."""
    return np.array([entry.address for entry in ENTRIES], np.int64)
