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
    """Where a segment lies in its level's allocation, in segments: part by part."""
    if level < 3:
        return offset
    part = (offset & 1) << 1 | (offset & 2) >> 1
    return part << (level - 3) | offset >> 2


@inlined
def there_before(parts: int, rank: int) -> int:
    """How many segments of lower rank than this are there (layout.py). A digit of the constants
    says it for a rank from 0 to 7."""
    before = 0x76543210 if parts > 2 else 0x65433210 if parts == 2 else 0x54433210
    return (rank >> 3) * (4 + parts) + (before >> 4 * (rank & 7) & 15)


@inlined
def rank_of_number(parts: int, number: int) -> int:
    """The rank of segment `number`, in key order, of those that are there. As above."""
    ranks = 0x76543210 if parts > 2 else 0x654210 if parts == 2 else 0x64210
    period = 4 + parts
    return number // period << 3 | ranks >> 4 * (number % period) & 15


@inlined
def heap_number(rank: int, m: int) -> int:
    """The segment's number in the tree; the window that its fence splits. 0 for the head."""
    if rank == 0:
        return 0
    return ((1 << m) + rank) >> (trailing_zeros(rank) + 1)
