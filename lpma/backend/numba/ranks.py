"""Where a segment lies, for compiled kernels: layout.py has the map, and the same for Python."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...cpu.jit import inlined


@intrinsic
def trailing_zeros(typingctx: Any, value: Any) -> Any:
    """ctz of an int64; 64 for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen


@inlined
def level_and_offset(rank: int, m: int) -> tuple[int, int]:
    """The allocation that holds segment `rank`, and its index there. 0 <= rank < 2^m."""
    if rank == 0:
        return 0, 0
    z = trailing_zeros(rank)
    return m - z, rank >> (z + 1)


@inlined
def place_in_level(level: int, offset: int) -> int:
    """Where a segment lies in its level's allocation, in segments: see layout.py."""
    if level < 3:
        return offset
    part = (offset & 1) << 1 | (offset & 2) >> 1
    return part << (level - 3) | offset >> 2


@inlined
def heap_number(rank: int, m: int) -> int:
    """The segment's number in the tree; the window that its fence splits. 0 for the head."""
    if rank == 0:
        return 0
    return ((1 << m) + rank) >> (trailing_zeros(rank) + 1)
