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

from .instructions import instruction


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
    # Arguments one by one: a tuple would count references to its arrays.
    @instruction(returns, types.int64, *takes)
    def call(context: Any, builder: Any, address: Any, *given: Any) -> Any:
        function = context.call_conv.get_function_type(returns, takes)
        callee = builder.inttoptr(address, function.as_pointer())
        return context.call_conv.call_function(builder, callee, returns, takes, given)[1]

    return call
