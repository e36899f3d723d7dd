"""Kernels that other kernels call by address, so that each is compiled once.

What a kernel calls, Numba links into it, optimizes and translates once more. A kernel of some size
is called through its address instead, which costs nanoseconds:

    move_at = ByAddress(move, types.void, VIEW, types.int64)  # `move` is a kernel
    call_move = move_at.call

    @compiled
    def every(v, n, address):
        call_move(address, v, n)

    every(view, 5, move_at.address)

An address is an argument, and no constant, because compiled code is kept on disk.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from numba import typeof, types
from numba.extending import intrinsic


class ByAddress:
    """A kernel with the types that it returns and takes. `call` is for compiled code: it takes the
    kernel's address and then its arguments, which are converted to these types."""

    def __init__(self, kernel: Any, returns: Any, *takes: Any) -> None:
        self.kernel, self.returns, self.takes = kernel, returns, takes
        self.call = _caller(returns, takes)

    @cached_property
    def address(self) -> int:
        """Of the kernel, which is compiled if it is not yet."""
        self.kernel.compile(self.takes)
        made = self.kernel.overloads[self.takes]
        if made.signature.return_type != self.returns:
            raise TypeError(f"{self.kernel} returns {made.signature.return_type}")
        return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def record_type(record: Any) -> Any:
    """The type of a NamedTuple of integers."""
    return typeof(record(*[0] * len(record._fields)))


def _caller(returns: Any, takes: tuple[Any, ...]) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        function = context.call_conv.get_function_type(returns, takes)
        callee = builder.inttoptr(given[0], function.as_pointer())
        _, result = context.call_conv.call_function(builder, callee, returns, takes, given[1:])
        return result

    # Arguments one by one, which Numba wants named: a tuple would count references to its arrays.
    names = ", ".join(f"_{i}" for i in range(len(takes)))
    made = {"rule": (returns(types.int64, *takes), codegen)}
    exec(f"def call(typingctx, address, {names}): return rule", made)
    return intrinsic(made["call"])
