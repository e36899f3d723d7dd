"""Atomic operations on an array that several threads write, which Numba lacks on the CPU.

The swap and the operations in order are sequentially consistent: a thread that sees one also sees
what was written before it. `fetch_add` orders nothing else: it counts, or hands out places.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic


@intrinsic
def compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Set array[index] to `value` if it is `expected`. Returns whether it was. `index` is not
    checked, here and below; arrays are one-dimensional, of integers."""
    dtype = array.dtype

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        view = context.make_array(array_type)(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, array_type, view, [args[1]])
        swapped = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        result = builder.extract_value(swapped, 1)
        assert result.type == ir.IntType(1)
        return impl_ret_untracked(context, builder, signature.return_type, result)

    return types.boolean(array, types.intp, dtype, dtype), codegen


def _operation(name: str, ordering: str) -> Any:
    @intrinsic
    def operation(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        """Add `value` to array[index], or put it there. Returns what was there before."""
        dtype = array.dtype

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array_type = signature.args[0]
            view = context.make_array(array_type)(context, builder, args[0])
            place = cgutils.get_item_pointer(context, builder, array_type, view, [args[1]])
            result = builder.atomic_rmw(name, place, args[2], ordering)
            return impl_ret_untracked(context, builder, signature.return_type, result)

        return dtype(array, types.intp, dtype), codegen

    return operation


fetch_add = _operation("add", "monotonic")
add_in_order = _operation("add", "seq_cst")
put_in_order = _operation("xchg", "seq_cst")
