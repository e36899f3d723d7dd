"""Atomic operations on an array that several threads write, which Numba lacks on the CPU.

The swap and the operations in order are sequentially consistent: a thread that sees one also sees
what was written before it. `fetch_add` orders nothing else: it counts, or hands out places.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Where array[index] lies, of the first two arguments."""
    array = signature.args[0]
    view = context.make_array(array)(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, array, view, [args[1]])


@intrinsic
def compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Set array[index] to `value` if it is `expected`. Returns whether it was. `index` is not
    checked, here and below; arrays are one-dimensional, of integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        return builder.extract_value(builder.cmpxchg(place, *args[2:], "seq_cst", "seq_cst"), 1)

    return types.boolean(array, types.intp, array.dtype, array.dtype), codegen


def _operation(name: str, ordering: str) -> Any:
    @intrinsic
    def operation(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        """Add `value` to array[index], or put it there. Returns what was there before."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _place(context, builder, signature, args)
            return builder.atomic_rmw(name, place, args[2], ordering)

        return array.dtype(array, types.intp, array.dtype), codegen

    return operation


fetch_add = _operation("add", "monotonic")
add_in_order = _operation("add", "seq_cst")
put_in_order = _operation("xchg", "seq_cst")
